"""Chips: published figures typed from datasheets, the honesty of the file, and what bad input says."""

import copy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cotune.chip
from cotune.chip import CHIPS, FIELDS, PEAKS, STATUSES, WITHOUT_VALUE, Chip, chip_named, read_chips, sources
from cotune.formats import FORMATS, format_named
from cotune.roofline import ridge
from cotune.teach.tables import LEGEND

TEXT = (Path(cotune.chip.__file__).parent / "data" / "chips.toml").read_text(encoding="utf-8")
chips = st.sampled_from(CHIPS)

# Typed from datasheets and vendor pages, in their units: bf16, fp8, fp4, int8 (dense T/s), GB/s, decimal GB, GB on the
# label, GB/s per direction, chips per link domain, network GB/s, SMs, MiB of cache, W. None: absent or not published.
PUBLISHED = {
    "a100": (312, None, None, 624, 2039, 85.899, 80, 300, 8, 25, 108, 40, 400),
    "h100": (989.4, 1979, None, 1979, 3350, 85.521, 80, 450, 8, 50, 132, 50, 700),
    "h200": (989.4, 1979, None, 1979, 4800, 150.755, 141, 450, 8, 50, 132, 50, 700),
    "b200": (2250, 4500, 9000, 4500, 7700, 192.266, 180, 900, 8, 50, 148, 126.5, 1000),
    "gb200": (2500, 5000, 10000, 5000, 8000, 198.675, 186, 900, 72, 50, 152, 126, 1200),
    "b300": (2250, 4500, 13500, 153.5, 7700, 288.400, 270, 900, 8, 100, 148, 126, 1100),
    "gb300": (2500, 5000, 15000, 165, 8000, 298.014, 279, 900, 72, 100, 152, 126, 1400),
    "l40s": (362.05, 733, None, 733, 864, 48.306, 48, None, 1, 50, 142, 96, 350),
    "rtx-pro-6000": (480, 960, 1920, 960, 1597, 102.642, 96, None, 1, 50, 188, 128, 600),
    "mi300x": (1307.4, 2614.9, None, 2614.9, 5300, 206.142, 192, 448, 8, 50, 304, 256, 750),
    "mi325x": (1307.4, 2614.9, None, 2614.9, 6000, 274.878, 256, 448, 8, 50, 304, 256, 1000),
    "mi355x": (2516.6, 5033.2, 10066.3, 5033.2, 8000, 309.221, 288, 537.6, 8, 50, 256, 256, 1400),
    "tpu-v5p": (459, 459, None, 918, 2765, 102.005, 95, 600, 8960, 6.25, 2, 128, None),
    "tpu-v6e": (918, 918, None, 1836, 1638, 34.360, 32, 400, 256, 12.5, 1, 128, None),
    "tpu-v7": (2307, 4614, None, None, 7380, 206.158, 192, 600, 9216, 12.5, 2, 128, None),
    "rubin": (4000, 17500, 35000, 250, 22000, 288, 288, 1800, 72, 200, 212, None, 1800),
}
NOT_SOURCED = {
    "announced": {("rubin", f) for f in FIELDS} - {("rubin", "sm"), ("rubin", "l2"), ("rubin", "tdp")},
    "unverified": {("rubin", "tdp"), ("l40s", "nic_bandwidth"), ("rtx-pro-6000", "nic_bandwidth")},
    "derived": {("rtx-pro-6000", f) for f in ("bf16", "fp8", "fp4", "int8")}
    | {("mi325x", "capacity"), ("b300", "l2"), ("gb300", "l2"), ("l40s", "l2")},
}


def test_every_chip_is_there_in_order():
    assert list(PUBLISHED) == list(CHIPS)


@pytest.mark.parametrize("id", PUBLISHED)
def test_published_figures(id):
    figures = chip_named(id).figures
    printed = [(figures[f].value or 0) / FIELDS[f].si for f in FIELDS]
    assert printed == pytest.approx([published or 0 for published in PUBLISHED[id]], rel=1e-5)


@pytest.mark.parametrize("status", NOT_SOURCED)
def test_only_what_deserves_it_is_marked(status):
    found = {(id, f) for id in CHIPS for f in FIELDS if chip_named(id).figure(f).status == status}
    assert found == NOT_SOURCED[status]


# Anchors of other people's pages, SI; the ids are those of the course's reference cases.
@pytest.mark.parametrize(
    "case, got, expected, tolerance",
    [
        ("W53", lambda: chip_named("h100").peak("bf16"), 989.4e12, 2e-4),
        ("W57", lambda: chip_named("a100").peak("bf16"), 312e12, 1e-6),
        ("W59", lambda: chip_named("b200").peak("bf16"), 2250e12, 1e-6),
        ("W61", lambda: 72 * chip_named("gb200").peak("bf16"), 180e15, 1e-6),
        ("W65", lambda: chip_named("gb200").bandwidth, 576e12 / 72, 1e-6),
        ("W68", lambda: chip_named("h100").capacity, 81559 * 2**20, 1e-6),
        ("W71", lambda: chip_named("h100").link_bandwidth, 18 * 25e9, 1e-6),
        ("W73", lambda: chip_named("a100").link_bandwidth, 12 * 25e9, 1e-6),
        ("nvfp4-14 bf16", lambda: chip_named("gb300").peak("bf16"), 2.5e15, 1e-9),
        ("nvfp4-14 fp8", lambda: chip_named("gb300").peak("fp8"), 5e15, 1e-9),
        ("nvfp4-14 fp4", lambda: chip_named("gb300").peak("nvfp4"), 15e15, 1e-9),
        ("roofline-01", lambda: ridge(chip_named("gb300"), "fp4"), 1875, 1e-9),
        ("roofline-02 fp8", lambda: ridge(chip_named("gb300"), "fp8"), 625, 1e-9),
        ("roofline-02 bf16", lambda: ridge(chip_named("gb300"), "bf16"), 312.5, 1e-9),
        ("mi355x: 256 CU x 8192 x 2.4 GHz", lambda: chip_named("mi355x").peak("fp8"), 256 * 8192 * 2.4e9, 1e-4),
        ("tpu-v5p: 2575 GiB/s", lambda: chip_named("tpu-v5p").bandwidth, 2575 * 2**30, 1e-3),
        ("rubin: 2520 PFLOP/s a rack", lambda: 72 * chip_named("rubin").peak("fp4"), 2520e15, 1e-9),
    ],
)
def test_anchor(case, got, expected, tolerance):
    assert got() == pytest.approx(expected, rel=tolerance)


def test_units_are_si():
    h200 = chip_named("h200")
    assert (h200.bandwidth, h200.nic_bandwidth, h200.l2, h200.sm, h200.tdp) == (4.8e12, 50e9, 50 * 2**20, 132, 700)
    assert (h200.link_domain, chip_named("l40s").link_domain) == (8, 1)


@given(chips)
def test_peaks_are_positive_and_no_narrower_format_is_slower(id):
    chip = chip_named(id)
    peaks = [chip.peak(f) for f in PEAKS if chip.figure(f).value is not None]
    assert peaks[0] > 0
    assert peaks == sorted(peaks)


@given(chips, st.sampled_from(sorted(FORMATS)))
def test_a_peak_belongs_to_the_unit_of_a_format(id, name):
    chip, unit = chip_named(id), format_named(name).unit
    if chip.figure(unit).value is None:
        with pytest.raises(ValueError, match=f"{id} has no {unit} arithmetic; it has bf16"):
            chip.peak(name)
    else:
        assert chip.peak(name) == chip.peak(format_named(name)) == chip.peak(unit) == chip.figure(name).value


@given(chips)
def test_memory_is_what_the_device_reports(id):
    chip = chip_named(id)
    assert chip.value("label_capacity") <= chip.capacity <= 1.08 * chip.value("label_capacity")


@given(chips, st.sampled_from(list(FIELDS)))
def test_every_figure_says_where_it_comes_from(id, field):
    figure = chip_named(id).figure(field)
    assert figure.status in STATUSES
    assert (figure.value is None) == (figure.status in WITHOUT_VALUE)
    assert figure.source
    assert set(figure.source) <= set(sources())
    assert figure.note or figure.status in ("sourced", "absent", "unknown", "announced")


def test_every_source_is_used_and_reads_like_one():
    used = {key for id in CHIPS for figure in chip_named(id).figures.values() for key in figure.source}
    assert used == set(sources())
    for source in sources().values():
        assert source.url.startswith("https://")
        assert len(source.title) > 10
    assert len({source.url for source in sources().values()}) == len(sources())


@pytest.mark.parametrize(
    "name, id",
    [
        ("a100_sxm", "a100"),
        ("b200_sxm", "b200"),
        ("B200 SXM", "b200"),
        ("gb200", "gb200"),
        ("GB200", "gb200"),
        ("gb200_nvl72", "gb200"),
        ("gb300", "gb300"),
        ("b300_sxm", "b300"),
        ("h100_sxm", "h100"),
        ("h200_sxm", "h200"),
        ("rtx_pro_6000_server", "rtx-pro-6000"),
        ("L40S", "l40s"),
        ("ironwood", "tpu-v7"),
    ],
)
def test_names_of_data_files(name, id):
    assert chip_named(name).id == id


def test_no_two_chips_share_a_name():
    names = [name for id in CHIPS for name in (id, *chip_named(id).aliases)]
    assert len(names) == len(set(names))


def test_a_chip_is_passed_through_and_cannot_change():
    chip = chip_named("h100")
    assert chip_named(chip) is chip is chip_named("h100_sxm")
    assert isinstance(hash(chip), int)
    with pytest.raises(AttributeError):
        chip.name = "other"


@pytest.mark.parametrize("name", ["h999", "", "200", None, 100, ["h100"]])
def test_unknown_chip_lists_the_known(name):
    with pytest.raises(ValueError, match="unknown chip .*known: a100, h100, h200, b200, gb200, .*tpu-v7, rubin$"):
        chip_named(name)


@pytest.mark.parametrize(
    "ask, says",
    [
        (lambda: chip_named("h100").peak("nvfp4"), "h100 has no fp4 arithmetic; it has bf16 and fp8"),
        (lambda: chip_named("a100").peak("fp8"), "a100 has no fp8 arithmetic; it has bf16"),
        (lambda: chip_named("h100").peak("fp7"), "unknown format 'fp7'; known: bf16, fp8, .*nvfp4, fp4"),
        (lambda: chip_named("h100").peak("bandwidth"), "unknown format 'bandwidth'"),
        (lambda: chip_named("h100").peak(None), "unknown format None"),
        (lambda: chip_named("l40s").link_bandwidth, "l40s has no scale-up link"),
        (lambda: chip_named("tpu-v7").tdp, "tpu-v7 has no published power limit"),
        (lambda: chip_named("rubin").l2, "rubin has no published last-level cache"),
        (lambda: chip_named("h100").figure("price"), "unknown figure 'price'; known: .*bandwidth"),
    ],
)
def test_error(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()


def test_caveats_are_said():
    rubin, pro, l40s = map(chip_named, ("rubin", "rtx-pro-6000", "l40s"))
    assert rubin.caveat("nvfp4", "bandwidth") == "announced, not measured"
    assert rubin.caveat("sm") == ""
    assert rubin.caveat("bandwidth", "tdp", "fp8") == "announced, not measured; unverified"
    assert l40s.caveat("nic_bandwidth") == "unverified"
    assert (pro.label, l40s.label) == ("NVIDIA RTX PRO 6000 Server [derived]", "NVIDIA L40S")


def broken(change):
    """The file with `change` made to its table, as TOML again: values here are str, numbers, lists and tables."""
    table = copy.deepcopy(tomllib.loads(TEXT))
    change(table)
    lines = []
    for group, entries in table.items():
        for name, entry in entries.items():
            lines.append(f"[{group}.{name}]")
            lines += [f"{key} = {inline(value)}" for key, value in entry.items()]
    return "\n".join(lines)


def inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(v)}" for key, v in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'''{value}'''" if isinstance(value, str) else repr(value)


def h100(table):
    return table["chips"]["h100"]


def rubin(table):
    return table["chips"]["rubin"]


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda t: rubin(t)["aliases"].append("h100"), "chip rubin aliases: 'h100' already names h100; a name belongs"),
        (lambda t: h100(t)["aliases"].append("rubin"), "chip h100 aliases: 'rubin' already names rubin"),
        (lambda t: h100(t)["aliases"].append("B200 SXM"), "chip b200 aliases: 'b200_sxm' already names h100"),
        (lambda t: t["chips"].update(H100=h100(t)), "chip H100 id: 'H100' already names h100"),
        (lambda t: h100(t).update(aliases="h100_sxm"), "chip h100 aliases must be a list of names, got 'h100_sxm'"),
        (lambda t: h100(t).update(aliases=[5]), r"chip h100 aliases must be a list of names, got \[5\]"),
        (lambda t: h100(t).update(aliases=[""]), r"chip h100 aliases must be a list of names, got \[''\]"),
        (lambda t: h100(t).update(name=5), "chip h100 name must be text, got 5"),
        (lambda t: h100(t).update(name=" "), "chip h100 name must be text, got ' '"),
        (lambda t: h100(t)["sm"].update(note=5), "h100 sm note must be text, got 5"),
        (lambda t: h100(t)["sm"].update(value=148.9), "h100 sm .*needs a whole number above 0.*, got 148.9"),
        (lambda t: h100(t)["link_domain"].update(value=8.5), "h100 link_domain .*needs a whole number.*, got 8.5"),
        (lambda t: h100(t)["sm"].update(value=float("nan")), "h100 sm .*needs a whole number above 0.*, got nan"),
        (lambda t: h100(t)["bf16_TFLOPS"].update(value=1e305), r"h100 bf16_TFLOPS .*below 1e100, got 1e\+305"),
        (lambda t: h100(t)["bf16_TFLOPS"].update(value=10**400), "h100 bf16_TFLOPS .*below 1e100, got 1000"),
        (lambda t: h100(t).update(bf16_TFLOPS=312), "h100 bf16_TFLOPS must be a table of note, .*value, got 312"),
        (lambda t: h100(t)["sm"].update(source=5), r"h100 sm needs a list of keys of \[sources\], got 5"),
        (lambda t: h100(t)["sm"].update(source="nvidia-h100"), r"h100 sm needs a list of .*, got 'nvidia-h100'"),
        (lambda t: h100(t)["sm"].update(source=[["x"]]), r"h100 sm needs a list of .*, got \[\['x'\]\]"),
        (lambda t: h100(t)["sm"].update(status=["sourced"]), r"h100 sm has the unknown status \['sourced'\]; known"),
        (lambda t: t["sources"]["nvidia-h100"].update(url=5), "source nvidia-h100 url must be text, got 5"),
        (lambda t: h100(t).pop("sm"), "chip h100 lacks sm"),
        (lambda t: h100(t).pop("name"), "chip h100 lacks name"),
        (lambda t: h100(t).update(hbm_TBps={}), "chip h100 has the unknown key hbm_TBps"),
        (lambda t: h100(t)["hbm_GBps"].pop("value"), "h100 hbm_GBps is sourced and needs a number.*, got None"),
        (lambda t: h100(t)["hbm_GBps"].update(value=-1), "h100 hbm_GBps .*above 0 .*, got -1"),
        (lambda t: h100(t)["hbm_GBps"].update(value=float("inf")), "h100 hbm_GBps .*above 0 .*, got inf"),
        (lambda t: h100(t)["hbm_GBps"].update(value=float("nan")), "h100 hbm_GBps .*above 0 .*, got nan"),
        (lambda t: h100(t)["hbm_GBps"].update(value="3350"), "h100 hbm_GBps .*above 0 .*, got '3350'"),
        (lambda t: h100(t)["hbm_GBps"].update(value=True), "h100 hbm_GBps .*above 0 .*, got True"),
        (lambda t: h100(t)["fp4_TFLOPS"].update(value=1), "h100 fp4_TFLOPS is absent and must have no value, got 1"),
        (lambda t: h100(t)["sm"].update(status="sure"), "h100 sm has the unknown status 'sure'; known: sourced, "),
        (lambda t: h100(t)["sm"].pop("status"), "h100 sm lacks status"),
        (lambda t: h100(t)["sm"].pop("source"), "h100 sm lacks source"),
        (lambda t: h100(t)["sm"].update(source=[]), r"h100 sm needs a list of keys of \[sources\], got \[\]"),
        (lambda t: h100(t)["sm"].update(source=["me"]), r"h100 sm needs a list of keys of \[sources\], got \['me'\]"),
        (lambda t: h100(t)["sm"].update(units="SM"), "h100 sm has the unknown key units"),
        (lambda t: t["sources"]["nvidia-h100"].pop("url"), "source nvidia-h100 lacks url"),
        (lambda t: t.pop("sources"), "the chips file lacks sources"),
    ],
)
def test_a_broken_file_names_the_line(change, says):
    with pytest.raises(ValueError, match=says):
        read_chips(broken(change))


@pytest.mark.parametrize(
    "line, says", [("sources.me = 5\n[chips]", "source me must"), ("chips.me = 5\n[sources]", "chip me must")]
)
def test_an_entry_that_is_no_table_is_named(line, says):
    with pytest.raises(ValueError, match=f"{says} be a table of .*, got 5"):
        read_chips(line)


@pytest.mark.parametrize("group", ["sources", "chips"])
def test_a_group_that_is_no_table_is_named(group):
    other = {"sources": "chips", "chips": "sources"}[group]
    with pytest.raises(ValueError, match=f"the chips file's {group} must be a table of tables, got 5"):
        read_chips(f"{group} = 5\n[{other}]")


def test_sourced_means_the_same_everywhere():
    meaning = "a datasheet, a file of the maker, a reading of a device or a page that quotes one says "
    book = Path(__file__).parent.parent / "book"
    pages = [(book / page).read_text(encoding="utf-8") for page in ("chips.md", "how-to-use.md")]
    for text in (TEXT, " ".join(LEGEND), *pages):
        assert meaning in " ".join(text.split())


def test_the_helper_that_breaks_files_leaves_the_rest_alone():
    same, _ = read_chips(broken(lambda table: None))
    assert same == {id: chip_named(id) for id in CHIPS}
    assert all(isinstance(chip, Chip) for chip in same.values())


def test_importing_cotune_reads_no_file():
    code = "import sys, cotune; print({'tomllib', 'matplotlib', 'ipywidgets', 'IPython'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
