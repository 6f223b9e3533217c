"""Tables: what a screen reader needs, every mark in words, links that lead somewhere."""

from html.parser import HTMLParser

import pytest

from cotune.chip import CHIPS, FIELDS, chip_named, sources
from cotune.teach.tables import COLUMNS, Cell, Table, chip_table, chips_table, number


class Reader(HTMLParser):
    """The cells of the rows, the attributes of every tag, and whether tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.rows = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data

    def of(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def table():
    return chips_table()


@pytest.fixture(scope="module")
def read(table):
    return Reader(table._repr_html_())


def test_a_screen_reader_can_find_its_way(table, read):
    (region,) = read.of("div")
    assert (region["role"], region["tabindex"], region["aria-label"]) == ("region", "0", table.caption)
    assert len(read.of("caption")) == 1
    assert [a["scope"] for a in read.of("th")] == ["col"] * len(table.heads) + ["row"] * len(table.rows)
    assert {len(row) for row in read.rows} == {len(table.heads)}


@pytest.mark.parametrize("id", CHIPS)
def test_every_figure_is_shown_with_its_mark_in_words(read, id):
    words = {"absent": "none", "unknown": "not published", "sourced": ""}
    expected = []
    for field in COLUMNS:
        figure = chip_named(id).figure(field)
        shown = "" if figure.value is None else number(figure.value / FIELDS[field].si)
        expected.append(shown + words.get(figure.status, figure.status))
    assert read.rows[1 + CHIPS.index(id)][1:-1] == expected


def test_the_legend_explains_every_mark(table):
    legend = " ".join(table.notes).lower()
    for mark in ("derived", "announced", "unverified", "none", "not published"):
        assert f"{mark}:" in legend


def test_numbered_links_lead_to_the_list(table, read):
    ids = [a["id"] for a in read.of("li")]
    assert ids == [f"source-{key}" for key in sources()]
    for row in table.rows:
        for text, address, spoken in row[-1].links:
            assert ids[int(text) - 1] == address.removeprefix("#")
            assert spoken.startswith(f"source {text}: ")
    outside = [a["href"] for a in read.of("a") if not a["href"].startswith("#")]
    assert outside == [source.url for source in sources().values()]


def test_a_row_names_the_sources_of_its_figures(table):
    for id, row in zip(CHIPS, table.rows, strict=True):
        named = {address.removeprefix("#source-") for _, address, _ in row[-1].links}
        assert named == {key for field in COLUMNS for key in chip_named(id).figure(field).source}


@pytest.mark.parametrize("id", CHIPS)
def test_one_chip_shows_every_figure_with_status_note_and_sources(id):
    chip, rows = chip_named(id), Reader(chip_table(id)._repr_html_()).rows[1:]
    for (field, figure), row in zip(chip.figures.items(), rows, strict=True):
        assert row[0].lower().startswith(FIELDS[field].title.lower())
        assert row[2:4] == [figure.status, figure.note]
        assert row[4] == "; ".join(sources()[key].title for key in figure.source)


def test_plain_text_says_the_same(table):
    lines = repr(table).splitlines()
    assert lines[0] == table.caption
    rubin = next(line for line in lines if line.startswith("NVIDIA Rubin"))
    assert "35,000 (announced)" in rubin
    assert f"[{len(sources())}] " in lines[-1]


def test_text_is_escaped():
    table = Table("a < b", ("<h>", "y"), (("<x>", Cell("&", "<m>", (("<t>", '"u"', "<s>"),))),), notes=("<n>",))
    html = table._repr_html_()
    assert Reader(html).rows == [["<h>", "y"], ["<x>", "&<m><t>"]]
    for raw in ("<h>", "<x>", "<m>", "<t>", '""u', "<s>", "<n>"):
        assert raw not in html


def test_other_tables_need_no_sources():
    table = Table("Two models", ("Model", "Layers"), (("a", "1"), ("b", "22")))
    assert repr(table) == "Two models\nModel  Layers\na      1\nb      22"
    assert "<ol>" not in table._repr_html_()


def test_unknown_chip():
    with pytest.raises(ValueError, match="unknown chip 'h999'"):
        chip_table("h999")
