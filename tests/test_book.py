"""The built book as files: whole links, no other host, one name per element, and nothing in it that is not the book."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

ROOT = Path(__file__).parent.parent
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CONTENT = [TOC["root"]] + [chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]]
LOADING = {("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"), ("link", "href"), ("use", "href")}


class Reader(HTMLParser):
    """Collects the `ids` of a page, the addresses it links to and those it `loads`."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links, self.loads, self.maths = [], [], [], set()
        self.in_maths = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.in_maths = self.in_maths or tag == "math"
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if tag == "a" and name == "href":
                self.links.append(value)
            if (tag, name) in LOADING:
                self.loads.append(value)

    def handle_endtag(self, tag):
        self.in_maths = self.in_maths and tag != "math"

    def handle_data(self, data):
        if self.in_maths:
            self.maths.update(data.strip())


@pytest.fixture(scope="module")
def pages(book):
    found = (p for p in book.rglob("*.html") if "_static" not in p.relative_to(book).parts)
    return {page: Reader(page) for page in found}


@pytest.mark.parametrize("name", CONTENT)
def test_every_page_of_the_contents_exists(name, pages, book):
    assert any((ROOT / f"{name}{suffix}").exists() for suffix in (".md", ".ipynb"))
    assert book / f"{name}.html" in pages


def test_links_lead_somewhere(pages):
    broken = []
    for page, reader in pages.items():
        for link in reader.links:
            parts = urlsplit(link)
            if parts.scheme or link == "#":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = pages[target].ids if target in pages else None
            if not target.exists() or (parts.fragment and known is not None and unquote(parts.fragment) not in known):
                broken.append(f"{page.name} -> {link}")
    assert broken == []


def test_pages_load_nothing_from_another_host(pages):
    outside = [(p.name, a) for p, reader in pages.items() for a in reader.loads if urlsplit(a).netloc]
    assert outside == []
    assert all(reader.loads for page, reader in pages.items() if page.name != "index.html")


def test_no_page_or_style_names_a_delivery_network(pages, book):
    for page in pages:
        text = page.read_text(encoding="utf-8").lower()
        assert not [h for h in ("jsdelivr", "unpkg", "cdnjs", "googleapis", "thebe") if h in text], page.name
    for style in book.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"""(url\(|@import)\s*["']?(https?:)?//""", text), style.name


def test_no_name_is_given_twice_in_a_page(pages):
    twice = {(p.name, i) for p, reader in pages.items() for i in reader.ids if reader.ids.count(i) > 1}
    assert twice == set()


def test_the_maths_font_has_every_character(pages, book):
    from fontTools.ttLib import TTFont

    font = TTFont(book / "_static" / "math.woff2")
    known = font.getBestCmap()
    invisible = {"\u2061", "\u2062", "\u2063", "\u200b"}
    used = set().union(*(reader.maths for reader in pages.values()))
    assert used
    assert {c for c in used - invisible if ord(c) not in known} == set()
    assert "MATH" in font


@pytest.mark.parametrize(
    "path",
    [
        ".venv/lib/site-packages/a/README.md",
        ".pytest_cache/README.md",
        ".vendor/node_modules/temml/README.md",
        ".ruff_cache/a.md",
        ".hypothesis/a.md",
        "node_modules/temml/README.md",
        "cotune.egg-info/a.md",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "cotune/data/silicon/README.md",
        "tests/data/README.md",
        "tools/README.md",
        "notebooks/.ipynb_checkpoints/a.ipynb",
    ],
)
def test_what_is_not_the_book_is_left_out(path):
    from sphinx.util.matching import Matcher

    excluded = Matcher(CONFIG["exclude_patterns"])
    parents = [str(p.as_posix()) for p in Path(path).parents][:-1]
    assert any(excluded(p) for p in [path, *parents])


def test_pages_of_the_book_are_not_left_out():
    from sphinx.util.matching import Matcher

    excluded = Matcher(CONFIG["exclude_patterns"])
    sources = [p.relative_to(ROOT).as_posix() for n in CONTENT for p in ROOT.glob(f"{n}.*")]
    assert len(sources) >= len(CONTENT)
    assert not any(excluded(source) for source in sources)


def test_no_folder_from_which_every_script_would_go_into_every_page():
    assert not (ROOT / "_static").exists()


def test_the_lock_file_names_no_registry():
    lock = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock and "registry" not in lock
    assert lock.count('"integrity"') == 3


def test_a_change_of_the_package_runs_every_page_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    from frozen_explorers import digest

    chips = tmp_path / "cotune" / "data" / "chips.toml"
    chips.parent.mkdir(parents=True)
    chips.write_text("peak = 1")
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    chips.write_text("peak = 2")
    assert digest(tmp_path) != before


def test_maths_is_typeset_or_refused(book, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    from temml_math import Typesetter

    typesetter = Typesetter(ROOT / ".vendor")
    assert "<mfrac>" in typesetter.mathml(r"\frac{1}{b_A}", display=False)
    with pytest.raises(ValueError, match="end of input"):
        typesetter.mathml(r"\frac{1", display=True)
    typesetter.close()
