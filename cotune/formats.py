"""Number formats and what they cost in memory, block scales included.

A block format stores one shared scale for every `block` elements, so an element takes a little more
than its own bits: NVFP4 is 4 + 8/16 = 4.5 bits, not 4.
"""

from dataclasses import dataclass

from cotune.arguments import one_of
from cotune.units import BITS_PER_BYTE


@dataclass(frozen=True)
class Format:
    """One number format.

    element_bits : bits of one element without its scale
    scale_bits   : bits of one block scale; 0 where there is none
    block        : elements that share one scale
    unit         : which peak of a chip multiplies it: "bf16", "fp8" or "fp4"
    """

    name: str
    title: str
    element_bits: int
    scale_bits: int
    block: int
    unit: str

    @property
    def bits_per_element(self):
        """Bits per element with its share of the block scale: element_bits + scale_bits / block."""
        return self.element_bits + self.scale_bits / self.block

    @property
    def bytes_per_element(self):
        """Bytes per element with its share of the block scale: bits_per_element / 8."""
        return self.bits_per_element / BITS_PER_BYTE


FORMATS = {
    f.name: f
    for f in (
        Format("bf16", "BF16", 16, 0, 1, "bf16"),
        Format("fp8", "FP8", 8, 0, 1, "fp8"),
        Format("fp8_1x128", "FP8, FP32 scale per 128", 8, 32, 128, "fp8"),
        Format("fp8_128x128", "FP8, FP32 scale per 128x128", 8, 32, 128 * 128, "fp8"),
        Format("mxfp8", "MXFP8", 8, 8, 32, "fp8"),
        Format("mxfp4", "MXFP4", 4, 8, 32, "fp4"),
        Format("nvfp4", "NVFP4", 4, 8, 16, "fp4"),
    )
}


def format_named(name):
    """Return the Format called `name`; a Format is passed through.

    NVFP4 has an E4M3 scale per 16 elements (its one FP32 scale per tensor is left out: it is 4 bytes in all),
    MXFP4 and MXFP8 an E8M0 scale per 32. `fp8_1x128` and `fp8_128x128` are the activations and the weights of
    block-scaled FP8 as DeepSeek-V3 stores them.

    Raises ValueError listing the known formats.
    Source: OCP Microscaling Formats 1.0 (2023-09); NVIDIA, Introducing NVFP4 (2025-06).

    >>> [format_named(f).bits_per_element for f in ("bf16", "fp8", "mxfp8", "mxfp4", "nvfp4")]
    [16.0, 8.0, 8.25, 4.25, 4.5]
    """
    return name if isinstance(name, Format) else FORMATS[one_of("format", name, FORMATS)]


def multiply_unit(a, b):
    """Return which peak multiplies an `a` operand with a `b` operand: that of the wider one.

    A kernel that keeps weights in four bits and activations in BF16 widens the weights first.

    >>> multiply_unit("bf16", "nvfp4"), multiply_unit("nvfp4", "nvfp4")
    ('bf16', 'fp4')
    """
    return max((format_named(a), format_named(b)), key=lambda f: f.element_bits).unit
