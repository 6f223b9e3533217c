"""Chips and their published figures, from data/chips.toml: every figure with its sources and its status.

Values are SI here (FLOP/s, B/s, bytes, W); the file keeps the units that datasheets print.
Peaks are dense, gigabytes decimal, links counted in one direction.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cotune.arguments import one_of
from cotune.formats import FORMATS, Format
from cotune.units import GIGA, MIB, TERA

PEAKS = ("bf16", "fp8", "fp4")

# field: (key in chips.toml, SI units in one unit of the key, SI unit, what it is called in a sentence)
FIELDS = {
    "bf16": ("bf16_TFLOPS", TERA, "FLOP/s", "BF16 peak"),
    "fp8": ("fp8_TFLOPS", TERA, "FLOP/s", "FP8 peak"),
    "fp4": ("fp4_TFLOPS", TERA, "FLOP/s", "FP4 peak"),
    "int8": ("int8_TOPS", TERA, "OP/s", "INT8 peak"),
    "bandwidth": ("hbm_GBps", GIGA, "B/s", "memory bandwidth"),
    "capacity": ("hbm_GB", GIGA, "B", "memory capacity"),
    "label_capacity": ("hbm_label_GB", GIGA, "B", "capacity on the label"),
    "link_bandwidth": ("link_GBps_per_direction", GIGA, "B/s", "scale-up link"),
    "link_domain": ("link_domain", 1, "chips", "chips joined by that link"),
    "nic_bandwidth": ("nic_GBps_per_direction", GIGA, "B/s", "network card"),
    "sm": ("sm", 1, "", "SM count"),
    "l2": ("l2_MiB", MIB, "B", "last-level cache"),
    "tdp": ("tdp_W", 1, "W", "power limit"),
}

# status: what to say next to such a figure ("" says nothing)
STATUSES = {
    "sourced": "",
    "derived": "derived",
    "announced": "announced, not measured",
    "unverified": "unverified",
    "absent": "absent",
    "unknown": "not published",
}


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
    source : keys of the sources, see `sources`
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
    """One accelerator: `id`, `name`, `aliases`, and `figures` by field (the keys of FIELDS)."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    figures: dict[str, Figure] = field(default_factory=dict, hash=False, repr=False)

    def figure(self, name):
        """Return the Figure called `name`: a key of FIELDS, a format name or a Format.

        >>> chip_named("gb300").figure("bandwidth").source
        ('nvidia-dgxc',)
        """
        return self.figures[_field(name)]

    def value(self, name):
        """Return the SI value of a figure; ValueError where the chip lacks it or nobody publishes it.

        >>> chip_named("h100").value("tdp")
        700.0
        """
        figure = self.figure(name)
        if figure.value is None:
            why = {"absent": "has no", "unknown": "has no published"}[figure.status]
            raise ValueError(f"{self.id} {why} {FIELDS[_field(name)][3]}")
        return figure.value

    def peak(self, format):
        """Return the dense peak in FLOP/s of the unit that multiplies `format`: a name, a Format, or "fp4".

        Raises ValueError where the chip has no such arithmetic, saying what it has.
        Source: NVIDIA, AI Model Co-Design (2026-07-10), Figure 6.

        >>> [chip_named("gb300").peak(f) / 1e15 for f in ("bf16", "mxfp8", "nvfp4")]
        [2.5, 5.0, 15.0]
        """
        unit = _field(format)
        if unit not in PEAKS:
            raise ValueError(f"peak needs a format, got {format!r}; known: {', '.join([*FORMATS, 'fp4'])}")
        if self.figures[unit].value is None:
            has = " and ".join(u for u in PEAKS if self.figures[u].value is not None)
            raise ValueError(f"{self.id} has no {unit} arithmetic; it has {has}")
        return self.figures[unit].value

    @property
    def bandwidth(self):
        """Peak memory bandwidth in B/s."""
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
        """Scale-up link (NVLink, Infinity Fabric, ICI) of one chip in B/s, one direction, all its links together.

        >>> chip_named("h100").link_bandwidth / 1e9  # 18 links of 25 GB/s
        450.0
        """
        return self.value("link_bandwidth")

    @property
    def link_domain(self):
        """How many chips that link joins."""
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
        """Return what has to be said about these figures, "" when all are sourced.

        >>> chip_named("rubin").caveat("nvfp4", "bandwidth"), chip_named("h100").caveat("bandwidth")
        ('announced, not measured', '')
        """
        said = dict.fromkeys(self.figure(name).caveat for name in names)
        return "; ".join(text for text in said if text)

    @property
    def label(self):
        """The name, with what has to be said about the peaks it has and its bandwidth.

        >>> chip_named("rubin").label
        'NVIDIA Rubin (Vera Rubin NVL72) [announced, not measured]'
        """
        has = [name for name in (*PEAKS, "bandwidth") if self.figures[name].value is not None]
        said = self.caveat(*has)
        return f"{self.name} [{said}]" if said else self.name


def _field(name):
    """The key of FIELDS that `name` means: itself, or the unit of a format."""
    if isinstance(name, Format):
        return name.unit
    known = {**{f.name: f.unit for f in FORMATS.values()}, **{f: f for f in FIELDS}}
    return known[one_of("format or figure", name, known)]


def read_chips(text):
    """Return ({id: Chip}, {key: Source}) of a text in the form of data/chips.toml.

    Raises ValueError naming the chip and the field where a key is missing or unknown, a status is not one of
    STATUSES, a value is missing or must not be there, or a source is not defined.
    """
    import tomllib  # here, so that `import cotune` does not pay for it

    table = tomllib.loads(text)
    _keys("chips file", table, {"sources", "chips"})
    sources = {}
    for key, entry in table["sources"].items():
        _keys(f"source {key}", entry, {"title", "url"})
        sources[key] = Source(key, **entry)
    return {id: _chip(id, entry, sources) for id, entry in table["chips"].items()}, sources


def _keys(where, entry, needed, optional=frozenset()):
    for word, keys in (("lacks", needed - set(entry)), ("has the unknown key", set(entry) - needed - optional)):
        if keys:
            raise ValueError(f"{where} {word} {', '.join(sorted(keys))}")


def _chip(id, entry, sources):
    _keys(f"chip {id}", entry, {"name", "aliases", *(key for key, *_ in FIELDS.values())})
    figures = {f: _figure(f"{id}.{key}", entry[key], si, unit, sources) for f, (key, si, unit, _) in FIELDS.items()}
    return Chip(id, entry["name"], tuple(entry["aliases"]), figures)


def _figure(where, entry, si, unit, sources):
    status = entry.get("status")
    if status not in STATUSES:
        raise ValueError(f"{where} has status {status!r}; known: {', '.join(STATUSES)}")
    valueless = status in ("absent", "unknown")
    _keys(where, entry, {"status", "source"} | (set() if valueless else {"value"}), {"note"})
    value = entry.get("value")
    if not valueless and not (type(value) in (int, float) and 0 < value < float("inf")):
        raise ValueError(f"{where} must be a number above 0, got {value!r}")
    undefined = [key for key in entry["source"] if key not in sources]
    if undefined or not entry["source"]:
        raise ValueError(f"{where} needs keys of [sources], got {entry['source']!r}")
    return Figure(None if valueless else value * si, unit, tuple(entry["source"]), status, entry.get("note", ""))


@cache
def _catalogue():
    return read_chips(Path(__file__).with_name("data").joinpath("chips.toml").read_text(encoding="utf-8"))


@cache
def _names():
    """{spelling: id} of every id and alias."""
    return {_plain(name): chip.id for chip in _catalogue()[0].values() for name in (chip.id, *chip.aliases)}


def _plain(name):
    return name.lower().replace("_", "-").replace(" ", "-") if isinstance(name, str) else name


def chip_named(name):
    """Return the Chip with this id or alias; a Chip is passed through. Upper case, "_" and blanks do not matter.

    Raises ValueError listing the known ids.

    >>> chip_named("b200_sxm").id, chip_named("GB200").id
    ('b200', 'gb200')
    """
    if isinstance(name, Chip):
        return name
    ids = _names()
    if _plain(name) not in ids:
        one_of("chip", name, tuple(_catalogue()[0]))
    return _catalogue()[0][ids[_plain(name)]]


def sources():
    """Return {key: Source} of every source the figures name."""
    return _catalogue()[1]


def __getattr__(name):
    # CHIPS is read on first use: `import cotune` stays as cheap as it was
    if name == "CHIPS":
        return tuple(_catalogue()[0])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
