"""Chips and their published figures, from data/chips.toml: every figure with its sources and its status.

Values are SI here (FLOP/s, B/s, bytes, W); the file keeps the units that datasheets print.
Peaks are dense, gigabytes decimal, links counted in one direction.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cotune.arguments import one_of
from cotune.formats import FORMATS, Format
from cotune.units import GIGA, MIB, TERA

PEAKS = ("bf16", "fp8", "fp4")


class Field(NamedTuple):
    """One kind of figure: its `key` in chips.toml, the SI value and SI unit of one there, what people read."""

    key: str
    si: float
    unit: str
    printed: str
    title: str


FIELDS = {
    "bf16": Field("bf16_TFLOPS", TERA, "FLOP/s", "TFLOP/s", "BF16 peak"),
    "fp8": Field("fp8_TFLOPS", TERA, "FLOP/s", "TFLOP/s", "FP8 peak"),
    "fp4": Field("fp4_TFLOPS", TERA, "FLOP/s", "TFLOP/s", "FP4 peak"),
    "int8": Field("int8_TOPS", TERA, "OP/s", "TOP/s", "INT8 peak"),
    "bandwidth": Field("hbm_GBps", GIGA, "B/s", "GB/s", "memory bandwidth"),
    "capacity": Field("hbm_GB", GIGA, "B", "GB", "memory capacity"),
    "label_capacity": Field("hbm_label_GB", GIGA, "B", "GB", "capacity on the label"),
    "link_bandwidth": Field("link_GBps_per_direction", GIGA, "B/s", "GB/s", "scale-up link"),
    "link_domain": Field("link_domain", 1, "", "", "chips joined by the link"),
    "nic_bandwidth": Field("nic_GBps_per_direction", GIGA, "B/s", "GB/s", "network card"),
    "sm": Field("sm", 1, "", "", "SMs"),
    "l2": Field("l2_MiB", MIB, "B", "MiB", "last-level cache"),
    "tdp": Field("tdp_W", 1, "W", "W", "power limit"),
}

# status: what has to be said next to such a figure
STATUSES = {
    "sourced": "",
    "derived": "derived",
    "announced": "announced, not measured",
    "unverified": "unverified",
    "absent": "absent",
    "unknown": "not published",
}
WITHOUT_VALUE = ("absent", "unknown")

_FIELD_OF = {**{f.name: f.unit for f in FORMATS.values()}, **{name: name for name in FIELDS}}


@dataclass(frozen=True)
class Source:
    """Where a figure comes from: a document's title with its publisher, and its address."""

    key: str
    title: str
    url: str


@dataclass(frozen=True)
class Figure:
    """One figure of a chip.

    value  : number in `unit` (SI); None where status is "absent" or "unknown"
    source : keys of `sources()`
    status : one of STATUSES
    note   : what a reader could get wrong about it; may be empty
    """

    value: float | None
    unit: str
    source: tuple[str, ...]
    status: str
    note: str = ""

    @property
    def caveat(self):
        """What has to be said next to this figure; "" for a sourced one."""
        return STATUSES[self.status]


@dataclass(frozen=True)
class Chip:
    """One accelerator: `id`, `name`, `aliases`, and `figures`, a Figure for every key of FIELDS."""

    id: str
    name: str
    aliases: tuple[str, ...]
    figures: dict[str, Figure] = field(hash=False, repr=False)

    def figure(self, name):
        """Return the Figure called `name`: a key of FIELDS, a format name or a Format.

        Raises ValueError listing the known names.

        >>> chip_named("gb300").figure("nvfp4").status
        'sourced'
        """
        return self.figures[_field_of(name)]

    def value(self, name):
        """Return the SI value of a figure; ValueError where the chip lacks it or nobody publishes it.

        >>> chip_named("h100").value("tdp")
        700.0
        """
        figure = self.figure(name)
        if figure.value is None:
            lacks = "no" if figure.status == "absent" else "no published"
            raise ValueError(f"{self.id} has {lacks} {FIELDS[_field_of(name)].title}")
        return figure.value

    def peak(self, format):
        """Return the dense peak in FLOP/s of the unit that multiplies `format`: a name, a Format, or "fp4".

        Raises ValueError where the chip has no such arithmetic, saying what it has.
        Source: NVIDIA, AI Model Co-Design (2026-07-10), Figure 6.

        >>> [chip_named("gb300").peak(f) / 1e15 for f in ("bf16", "mxfp8", "nvfp4")]
        [2.5, 5.0, 15.0]
        """
        if not isinstance(format, Format):
            one_of("format", format, [*FORMATS, "fp4"])
        unit = _field_of(format)
        if self.figures[unit].value is None:
            has = " and ".join(u for u in PEAKS if self.figures[u].value is not None)
            raise ValueError(f"{self.id} has no {unit} arithmetic; it has {has}")
        return self.figures[unit].value

    @property
    def bandwidth(self):
        """Memory bandwidth in B/s, as published."""
        return self.value("bandwidth")

    @property
    def capacity(self):
        """Memory in bytes as the device counts it, which is more than its label says in decimal GB.

        >>> round(chip_named("h100").capacity / 2**20)  # MiB that nvidia-smi prints
        81559
        """
        return self.value("capacity")

    @property
    def link_bandwidth(self):
        """Scale-up link (NVLink, Infinity Fabric, ICI) of one chip in B/s: one direction, all its links together.

        >>> chip_named("h100").link_bandwidth / 1e9  # 18 links of 25 GB/s
        450.0
        """
        return self.value("link_bandwidth")

    @property
    def link_domain(self):
        """How many chips that link joins; 1 where there is none."""
        return int(self.value("link_domain"))

    @property
    def nic_bandwidth(self):
        """Network card of one chip in B/s, one direction."""
        return self.value("nic_bandwidth")

    @property
    def sm(self):
        """How many SMs (NVIDIA), compute units (AMD) or TensorCores (Google) one chip has."""
        return int(self.value("sm"))

    @property
    def l2(self):
        """Last level of on-chip memory in bytes: L2, AMD's Infinity Cache, a TPU's VMEM."""
        return self.value("l2")

    @property
    def tdp(self):
        """Power limit in W."""
        return self.value("tdp")

    def caveat(self, *names):
        """Return what has to be said wherever these figures are shown, "" where all are sourced.

        names : as in `figure`; none means the peaks the chip has and its bandwidth.

        >>> chip_named("rubin").caveat("nvfp4", "bandwidth"), chip_named("h100").caveat("bandwidth")
        ('announced, not measured', '')
        """
        names = names or [name for name in (*PEAKS, "bandwidth") if self.figures[name].value is not None]
        return "; ".join(dict.fromkeys(filter(None, (self.figure(name).caveat for name in names))))

    @property
    def label(self):
        """The name, with what has to be said about its peaks and its bandwidth.

        >>> chip_named("rubin").label, chip_named("h100").label
        ('NVIDIA Rubin (Vera Rubin NVL72) [announced, not measured]', 'NVIDIA H100 SXM')
        """
        said = self.caveat()
        return f"{self.name} [{said}]" if said else self.name


def _field_of(name):
    if isinstance(name, Format):
        return name.unit
    return _FIELD_OF[one_of("figure", name, _FIELD_OF)]


def read_chips(text):
    """Return ({id: Chip}, {key: Source}) of a text in the form of data/chips.toml.

    Raises ValueError naming the chip and the field where a key is missing or unknown, something is not the text,
    list or table it should be, two chips share a name, a status is not one of STATUSES, a value is missing, not above
    0, a count that is not whole, or present where there is none, or a source is not defined.
    """
    import tomllib  # here, so that `import cotune` does not pay for it

    table = tomllib.loads(text)
    _check_keys("the chips file", table, {"sources", "chips"})
    for group, entries in table.items():
        _check(isinstance(entries, dict), f"the chips file's {group}", "a table of tables", entries)
    sources = {key: _read_source(key, entry) for key, entry in table["sources"].items()}
    chips = {id: _read_chip(id, entry, sources) for id, entry in table["chips"].items()}
    _names(chips)
    return chips, sources


def _read_source(key, entry):
    _check_keys(f"source {key}", entry, {"title", "url"})
    for name, text in entry.items():
        _check(_is_text(text), f"source {key} {name}", "text", text)
    return Source(key, **entry)


def _read_chip(id, entry, sources):
    _check_keys(f"chip {id}", entry, {"name", "aliases", *(f.key for f in FIELDS.values())})
    name, aliases = entry["name"], entry["aliases"]
    _check(_is_text(name), f"chip {id} name", "text", name)
    _check(isinstance(aliases, list) and all(map(_is_text, aliases)), f"chip {id} aliases", "a list of names", aliases)
    figures = {name: _read_figure(f"{id} {f.key}", entry[f.key], f, sources) for name, f in FIELDS.items()}
    return Chip(id, name, tuple(aliases), figures)


def _read_figure(where, entry, field, sources):
    _check_keys(where, entry, {"status", "source"}, {"value", "note"})
    status, keys, note = entry["status"], entry["source"], entry.get("note", "")
    if not isinstance(status, str) or status not in STATUSES:
        raise ValueError(f"{where} has the unknown status {status!r}; known: {', '.join(STATUSES)}")
    if not (isinstance(keys, list) and keys and all(isinstance(key, str) and key in sources for key in keys)):
        raise ValueError(f"{where} needs a list of keys of [sources], got {keys!r}")
    _check(isinstance(note, str), f"{where} note", "text", note)
    return Figure(_read_value(where, entry.get("value"), status, field), field.unit, tuple(keys), status, note)


def _read_value(where, value, status, field):
    if status in WITHOUT_VALUE:
        if value is not None:
            raise ValueError(f"{where} is {status} and must have no value, got {value!r}")
        return None
    # 1e100 of any unit stays finite in SI; a figure without a unit is a count
    fits = type(value) in (int, float) and 0 < value < 1e100 and (field.unit or value % 1 == 0)
    if not fits:
        kind = "number" if field.unit else "whole number"
        raise ValueError(f"{where} is {status} and needs a {kind} above 0 and below 1e100, got {value!r}")
    return float(value * field.si)


def _names(chips):
    """Return {plain spelling: id} of every id and alias; ValueError where two are the same."""
    names = {}
    spelled = [(c, "id", c.id) for c in chips.values()] + [(c, "aliases", a) for c in chips.values() for a in c.aliases]
    for chip, key, name in spelled:
        if _plain(name) in names:
            other = names[_plain(name)]
            raise ValueError(f"chip {chip.id} {key}: {name!r} already names {other}; a name belongs to one chip, once")
        names[_plain(name)] = chip.id
    return names


def _is_text(value):
    return isinstance(value, str) and bool(value.strip())


def _check(good, where, wanted, value):
    if not good:
        raise ValueError(f"{where} must be {wanted}, got {value!r}")


def _check_keys(where, entry, needed, optional=frozenset()):
    _check(isinstance(entry, dict), where, f"a table of {', '.join(sorted(needed | optional))}", entry)
    for problem, keys in (("lacks", needed - entry.keys()), ("has the unknown key", entry.keys() - needed - optional)):
        if keys:
            raise ValueError(f"{where} {problem} {', '.join(sorted(keys))}")


@cache
def _catalogue():
    return read_chips(Path(__file__).with_name("data").joinpath("chips.toml").read_text(encoding="utf-8"))


@cache
def _ids():
    return _names(_catalogue()[0])


def _plain(name):
    return name.lower().replace("_", "-").replace(" ", "-") if isinstance(name, str) else None


def chip_named(name):
    """Return the Chip with this id or alias; a Chip is passed through. Upper case, "_" and blanks do not matter.

    Only whole names match, so that "gb200" is never taken for "b200". Raises ValueError listing the known ids.

    >>> chip_named("b200_sxm").id, chip_named("GB200").id
    ('b200', 'gb200')
    """
    if isinstance(name, Chip):
        return name
    chips = _catalogue()[0]
    return chips[_ids().get(_plain(name)) or one_of("chip", name, chips)]


def sources():
    """Return {key: Source} of every source the figures name."""
    return _catalogue()[1]


def __getattr__(name):
    if name == "CHIPS":  # the ids in the order of the file, read on first use
        return tuple(_catalogue()[0])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
