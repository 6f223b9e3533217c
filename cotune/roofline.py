"""The roofline: a kernel takes as long as the slower of its arithmetic and its memory traffic.

Work adds inside one kernel. Across kernels times add: the roofline of a sum is not the sum of rooflines.
"""

from dataclasses import dataclass

import numpy as np

from cotune.arguments import positive
from cotune.chip import chip_named


@dataclass(frozen=True)
class Work:
    """What one kernel has to do: `flops` (FLOP) and `bytes` (bytes moved to and from HBM); numbers or arrays."""

    flops: float
    bytes: float

    def __add__(self, other):
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    @property
    def intensity(self):
        """Arithmetic intensity in FLOP per byte; ValueError for FLOP or bytes that are not above 0."""
        return positive("flops", self.flops) / positive("bytes", self.bytes)


@dataclass(frozen=True)
class Time:
    """How long one kernel takes in seconds: `math` and `memory` overlap, so the total is the larger."""

    math: float
    memory: float

    @property
    def total(self):
        """max(math, memory), in seconds."""
        larger = np.maximum(self.math, self.memory)
        return float(larger) if np.ndim(larger) == 0 else larger

    @property
    def bound(self):
        """ "compute" where the arithmetic takes at least as long as the memory traffic, else "memory"."""
        which = np.where(np.asarray(self.math) >= self.memory, "compute", "memory")
        return str(which) if which.ndim == 0 else which


def ridge(chip, unit):
    """Return the ridge point peak / bandwidth in FLOP/B: the intensity at which both limits are equal.

    chip : Chip or its id; unit : format name or Format whose peak counts.
    Errors: ValueError for an unknown chip, or where it has no arithmetic for that format.
    Source: Williams, Waterman, Patterson, Roofline (CACM 52/4, 2009).

    >>> ridge("gb300", "nvfp4")  # 15 PFLOP/s over 8 TB/s, NVIDIA 2026-07-10, Table 2
    1875.0
    """
    chip = chip_named(chip)
    return chip.peak(unit) / chip.bandwidth


def attainable(intensity, chip, unit):
    """Return the ideal FLOP/s at an arithmetic intensity: min(peak, intensity * bandwidth).

    intensity : FLOP/B, number or array. Errors as in `ridge`.
    """
    chip = chip_named(chip)
    rate = np.minimum(chip.peak(unit), positive("intensity", intensity) * chip.bandwidth)
    return float(rate) if np.ndim(rate) == 0 else rate


def time(work, chip, unit):
    """Return the ideal Time of a kernel: math = flops / peak, memory = bytes / bandwidth, in seconds.

    Errors as in `ridge`, and for work that is not a Work or whose FLOP or bytes are not above 0.

    >>> time(Work(flops=2e9, bytes=1e6), "h100", "bf16").bound
    'compute'
    """
    if not isinstance(work, Work):
        raise ValueError(f"work must be a Work of flops and bytes, got {work!r}")
    chip = chip_named(chip)
    return Time(positive("flops", work.flops) / chip.peak(unit), positive("bytes", work.bytes) / chip.bandwidth)
