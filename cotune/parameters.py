"""The few fitted parameters of a GEMM kernel per chip, from data/parameters.toml, each set with the error of its fit.

Fitted means: chosen so that `gemm.calibrated` meets measured latencies. `fixed`, `bandwidth` and `peak` come close to
what they are named after; `load` and `store` also stand for whatever else grows in the same way.
"""

import math
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from cotune.arguments import one_of
from cotune.chip import chip_named
from cotune.units import MICRO

SAME_GENERATION = 1.15  # chips whose BF16 rate per SM differs by less have the same kind of SM


@dataclass(frozen=True)
class Kernel:
    """One kind of GEMM: formats of A, B and C, and `splits`, whether its library may cut K into parts.

    Kernels of narrow formats do not split; they quantize their BF16 activations first.
    """

    name: str
    a: str
    b: str
    c: str
    splits: bool

    @property
    def fitted(self):
        """Names of the six parameters this kernel has."""
        return ("fixed", "peak", "bandwidth", "load", "store", "split" if self.splits else "quantize")


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("bf16", "bf16", "bf16", "bf16", splits=True),
        Kernel("fp8", "fp8", "fp8", "bf16", splits=False),
        Kernel("fp8_block", "fp8_1x128", "fp8_128x128", "bf16", splits=False),
        Kernel("nvfp4", "nvfp4", "nvfp4", "bf16", splits=False),
    )
}


@dataclass(frozen=True)
class FitError:
    """How far a fit is from the `n` rows it was made of, and from left-out ones, in percent of the measured time.

    mape, median_ape, p90_ape : mean, median and 90th percentile of the absolute error; bias : mean signed error
    cv_mean, cv_worst         : mean absolute error of the fold, over folds that each leave one (N, K) pair out
    """

    n: int
    mape: float
    median_ape: float
    p90_ape: float
    bias: float
    cv_mean: float
    cv_worst: float


@dataclass(frozen=True)
class CarriedError:
    """Mean absolute error, in percent, of `chips` chips whose parameters were carried over from the others."""

    chips: int
    mean: float
    worst: float
    worst_chip: str


@dataclass(frozen=True)
class GemmParameters:
    """Six numbers that turn the ideal time of one `kernel` into a calibrated one; see `gemm.calibrated`.

    fixed     : s, of every call: launch, first loads, last stores
    peak      : share of the datasheet's FLOP/s that full tiles reach
    bandwidth : share of the datasheet's memory bandwidth
    load      : bytes an SM loads from L2 in the time of one FLOP of its BF16 peak
    store     : bytes of C an SM stores in that time, after its last multiplication
    split     : s, of adding the parts where K was split; None for kernels that do not split
    quantize  : time of quantizing A over its ideal (read BF16, write the format, at full bandwidth); None for BF16
    error     : FitError, or CarriedError where `donors`, other chips, lent their parameters; None for your own
    """

    chip: str
    kernel: str
    fixed: float
    peak: float
    bandwidth: float
    load: float
    store: float
    split: float | None = None
    quantize: float | None = None
    error: FitError | CarriedError | None = None
    donors: tuple[str, ...] = ()

    def __post_init__(self):
        where = f"parameters of {self.kernel} on {self.chip}"
        wanted = KERNELS[one_of("kernel", self.kernel, KERNELS)].fitted
        for name in ("fixed", "peak", "bandwidth", "load", "store", "split", "quantize"):
            value = getattr(self, name)
            if name in wanted and not _is_positive(value):
                raise ValueError(f"{where}: {name} must be a finite number above 0, got {value!r}")
            if name not in wanted and value is not None:
                raise ValueError(f"{where}: {name} must be None, this kernel has no such cost; got {value!r}")

    @property
    def values(self):
        """The six numbers in the order of the kernel's `fitted`."""
        return tuple(getattr(self, name) for name in KERNELS[self.kernel].fitted)


def _is_positive(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0


# What the file calls the two times; everything else there has the name and the unit it has here.
_MICROSECONDS = {"fixed": "fixed_us", "split": "split_us"}


def read_parameters(text):
    """Return ({(chip, kernel): GemmParameters}, {kernel: CarriedError}) of a text in the form of data/parameters.toml.

    Raises ValueError naming chip, kernel and key where one is missing, unknown or not a number above 0.
    """
    import tomllib  # here, so that `import cotune` does not pay for it

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the parameters file is not TOML: {error}") from None
    _check_keys("the parameters file", table, {"gemm", "carried"})
    fitted = {}
    for chip, kernels in table["gemm"].items():
        for kernel, entry in kernels.items():
            fitted[chip_named(chip).id, kernel] = _read_entry(chip, kernel, entry)
    carried = {kernel: _read_record(f"carried {kernel}", CarriedError, e) for kernel, e in table["carried"].items()}
    return fitted, carried


def _read_entry(chip, kernel, entry):
    where = f"parameters of {kernel} on {chip}"
    names = {_MICROSECONDS.get(name, name): name for name in KERNELS[one_of("kernel", kernel, KERNELS)].fitted}
    _check_keys(where, entry, {*names, "error"})
    for key in names:
        if not _is_positive(entry[key]):
            raise ValueError(f"{where}: {key} must be a finite number above 0, got {entry[key]!r}")
    values = {name: entry[key] * (MICRO if key in _MICROSECONDS.values() else 1) for key, name in names.items()}
    return GemmParameters(chip, kernel, **values, error=_read_record(f"{where}, error", FitError, entry["error"]))


def _read_record(where, kind, entry):
    _check_keys(where, entry, {field.name for field in fields(kind)})
    return kind(**entry)


def _check_keys(where, entry, wanted):
    for problem, keys in (("lacks", wanted - entry.keys()), ("has the unknown key", entry.keys() - wanted)):
        if keys:
            raise ValueError(f"{where} {problem} {', '.join(sorted(keys))}")


@cache
def _shipped():
    return read_parameters(Path(__file__).with_name("data").joinpath("parameters.toml").read_text(encoding="utf-8"))


def fitted():
    """Return {(chip id, kernel name): GemmParameters} of every shipped fit."""
    return dict(_shipped()[0])


def gemm_parameters(chip, kernel="bf16"):
    """Return the GemmParameters of a kernel on a chip: its own fit, or carried over from the chips most like it.

    kernel : a key of KERNELS. Carried ones have `donors` and a CarriedError, which is larger.
    Raises ValueError for an unknown chip or kernel, a chip without that arithmetic, and one not made by NVIDIA: only
    NVIDIA's chips were measured.

    >>> round(gemm_parameters("gb300", "bf16").peak, 2), gemm_parameters("b300", "bf16").donors
    (0.81, ('b200', 'gb200', 'gb300'))
    """
    chip = chip_named(chip)
    chip.peak(KERNELS[one_of("kernel", kernel, KERNELS)].a)
    found, carried = _shipped()
    if (chip.id, kernel) in found:
        return found[chip.id, kernel]
    return carry(chip, [p for p in found.values() if p.kernel == kernel], carried[kernel])


def carry(chip, known, error=None):
    """Return GemmParameters for `chip`: the geometric mean of those in `known` that belong to the chips most like it.

    known : GemmParameters of one kernel on other chips. Shares and ratios carry over; peak, bandwidth and SMs are the
    chip's own. Alike is the BF16 rate of one SM: the nearest chip lends, and all within 15% of that one.
    """
    chip = chip_named(chip)
    if not chip.name.startswith("NVIDIA"):
        raise ValueError(f"{chip.id} was not measured, and parameters of NVIDIA's chips say nothing about it")
    rates = [(abs(math.log(_sm_rate(p.chip) / _sm_rate(chip))), p) for p in known]
    nearest = min(rates, key=lambda pair: pair[0])[1]
    alike = [p for _, p in sorted(rates, key=lambda pair: pair[0]) if _ratio(p.chip, nearest.chip) < SAME_GENERATION]
    means = (math.prod(values) ** (1 / len(alike)) for values in zip(*(p.values for p in alike), strict=True))
    values = dict(zip(KERNELS[nearest.kernel].fitted, means, strict=True))
    return GemmParameters(chip.id, nearest.kernel, **values, error=error, donors=tuple(p.chip for p in alike))


def _sm_rate(chip):
    chip = chip_named(chip)
    return chip.peak("bf16") / chip.sm


def _ratio(one, other):
    return math.exp(abs(math.log(_sm_rate(one) / _sm_rate(other))))
