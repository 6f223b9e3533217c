"""Number formats: what they cost in memory, block scales included, and what they do to numbers.

A block format stores one shared scale for every `block` elements, so an element takes a little more
than its own bits: NVFP4 is 4 + 8/16 = 4.5 bits, not 4. `quantize` and `dequantize` emulate the formats exactly.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from cotune.arguments import one_of, positive
from cotune.units import BITS_PER_BYTE


@dataclass(frozen=True)
class Format:
    """One number format.

    element_bits : bits of one element without its scale
    scale_bits   : bits of one block scale; 0 where there is none
    block        : elements that share one scale
    unit         : which peak of a chip multiplies it: "bf16", "fp8" or "fp4"
    element      : the type of one element, as ml_dtypes calls it; "" for formats that `quantize` does not emulate
    scale        : the type of a block scale, as ml_dtypes calls it; "" where there is none
    block_rows   : rows that a block spans; its other side, along K, is block / block_rows
    """

    name: str
    title: str
    element_bits: int
    scale_bits: int
    block: int
    unit: str
    element: str = ""
    scale: str = ""
    block_rows: int = 1

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
        Format("bf16", "BF16", 16, 0, 1, "bf16", "bfloat16"),
        Format("fp8", "FP8", 8, 0, 1, "fp8", "float8_e4m3fn"),
        Format("fp8_e5m2", "FP8 E5M2", 8, 0, 1, "fp8", "float8_e5m2"),
        Format("fp8_1x128", "FP8, FP32 scale per 128", 8, 32, 128, "fp8"),
        Format("fp8_128x128", "FP8, FP32 scale per 128x128", 8, 32, 128 * 128, "fp8", block_rows=128),
        Format("mxfp8", "MXFP8", 8, 8, 32, "fp8", "float8_e4m3fn", "float8_e8m0fnu"),
        Format("mxfp8_e5m2", "MXFP8 E5M2", 8, 8, 32, "fp8", "float8_e5m2", "float8_e8m0fnu"),
        Format("mxfp4", "MXFP4", 4, 8, 32, "fp4", "float4_e2m1fn", "float8_e8m0fnu"),
        Format("nvfp4", "NVFP4", 4, 8, 16, "fp4", "float4_e2m1fn", "float8_e4m3fn"),
    )
}


def format_named(name):
    """Return the Format called `name`; a Format is passed through.

    NVFP4 has an E4M3 scale per 16 elements (its one FP32 scale per tensor is left out: it is 4 bytes in all),
    MXFP4 and MXFP8 an E8M0 scale per 32. Elements of FP8 and MXFP8 are E4M3 unless the name says E5M2.
    `fp8_1x128` and `fp8_128x128` are the activations and the weights of
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


# --- bytes of a matrix, and the dimensions that fit ---

SCALE_TILE = (128, 4)  # rows x scales: kernels of block formats read scales of 8 bits in whole tiles of this size


def legal(k, format):
    """Return whether a row of K elements is a whole number of blocks; else it cannot be stored. Arrays welcome.

    >>> legal(2880 // 8, "nvfp4"), legal(2880 // 4, "nvfp4")  # gpt-oss' experts, cut over 8 and over 4 GPUs
    (False, True)
    """
    f = format_named(format)
    fits = np.asarray(positive("k", k)) % (f.block // f.block_rows) == 0
    return bool(fits) if fits.ndim == 0 else fits


def scale_bytes(rows, k, format, *, padded=False):
    """Return the bytes of the block scales of a rows x K matrix with blocks along K.

    padded : as kernels read those of NVFP4, MXFP4 and MXFP8, in whole tiles of 128 rows by 4 scales. NVFP4 needs rows
    in steps of 128 and K in steps of 64 to fill them.
    Raises ValueError where K is not a whole number of blocks.
    Source of the tile: NVIDIA, cuBLAS 12.9, "1D Block Scaling Factors Layout".

    >>> scale_bytes(8192, 512, "nvfp4"), scale_bytes(100, 16, "nvfp4", padded=True)
    (262144.0, 512.0)
    """
    f = format_named(format)
    rows, k = np.asarray(positive("rows", rows)), np.asarray(positive("k", k))
    if not np.all(legal(k, f)):
        raise ValueError(f"k must be a multiple of {f.block // f.block_rows}, the block of {f.title}, got {k}")
    rows, columns = np.ceil(rows / f.block_rows), k * f.block_rows / f.block
    if padded and f.scale_bits == BITS_PER_BYTE:
        rows, columns = (np.ceil(size / step) * step for size, step in zip((rows, columns), SCALE_TILE, strict=True))
    found = rows * columns * f.scale_bits / BITS_PER_BYTE
    return float(found) if np.ndim(found) == 0 else found


def matrix_bytes(rows, k, format, *, padded=False):
    """Return the bytes of a rows x K matrix: its elements and its block scales; see `scale_bytes`.

    The one FP32 scale that NVFP4 keeps for a whole tensor is left out: 4 bytes.

    >>> matrix_bytes(8192, 512, "nvfp4")
    2359296.0
    """
    elements = np.asarray(positive("rows", rows)) * positive("k", k) * format_named(format).element_bits / BITS_PER_BYTE
    found = elements + scale_bytes(rows, k, format, padded=padded)
    return float(found) if np.ndim(found) == 0 else found


# --- what a format does to numbers ---

CHUNK = 1 << 14  # elements worked on at a time, so that they stay in the processor's cache
SMALLEST = np.float32(2.0**-126)  # no tensor scale is below the smallest normal FP32 number


@dataclass(frozen=True, eq=False)
class Quantized:
    """Numbers in a format; all arrays are of ml_dtypes' types.

    elements     : in the shape of the values
    scales       : one for each block along `axis`, that axis shortened; None where the format has none
    tensor_scale : FP32 number that all scales are multiplied by; 1 where the format has none
    """

    format: Format
    axis: int
    elements: np.ndarray
    scales: np.ndarray | None
    tensor_scale: float = 1.0


def quantize(values, format, axis=-1, *, rounding="nearest", rng=None, tensor_scale=None):
    """Return the Quantized form of real numbers, with blocks along `axis`; exact emulation in FP32.

    bf16, fp8  : every value is rounded. NaN stays; FP8 saturates at its largest value, infinity included, as NVIDIA's
                 conversions do; BF16 keeps infinity and overflows to it.
    mxfp4, mxfp8 : scale = 2^(floor(log2 max|block|) - e), e the exponent of the largest element (2, 8, 15), then
                 element = value / scale, saturating. Source: OCP Microscaling Formats 1.0 (2023-09), section 6.3.
    nvfp4      : t = max|x| / 2688; c = E4M3((max|block| / 6) / t); element = E2M1(value / (c t)), each bracket rounded
                 to FP32. A block whose c is 0 becomes zeros. Source: arXiv 2509.25149, NVIDIA (2025-09).

    values : array of floats (float16, float32, float64, bfloat16), first rounded to FP32; any shape
    rounding : "nearest", ties to even, or "stochastic", to one of the two finite numbers around, so that the mean is
    right; needs `rng`, a numpy Generator. Scales are always rounded to nearest.
    tensor_scale : t of nvfp4, measured before; else from the values.
    Errors: TypeError for what is not an array of floats; ValueError for an axis that is not there or not a whole number
    of blocks, and for NaN or infinity in a block format, naming where it is. ImportError without ml_dtypes.

    >>> q = quantize(np.array([1.5, 0.9] * 8), "nvfp4", tensor_scale=1.0)
    >>> float(q.scales[0]), q.elements[:2].astype(float).tolist(), dequantize(q)[:2].tolist()
    (0.25, [6.0, 4.0], [1.5, 1.0])
    """
    f = _emulated(format)
    one_of("rounding", rounding, ("nearest", "stochastic"))
    _check_rng(rounding, rng)
    values = _floats(values)
    axis = _axis(axis, values)
    if tensor_scale is not None and f.scale != "float8_e4m3fn":
        raise ValueError(f"tensor_scale is for nvfp4; {f.name} has none, got {tensor_scale!r}")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # what overflows saturates, or is refused
        rows = np.ascontiguousarray(np.moveaxis(values, axis, -1), dtype=np.float32)
        codes, scales, total, factors = np.empty(rows.shape, _code_type(f)), None, np.float32(1), None
        if f.scale:
            largest = _block_largest(f, axis, rows)
            total = _tensor_scale(f, largest.max(), tensor_scale)
            scales, factors = _block_scales(f, largest, total)
        _fill(f, rows.reshape(-1), factors, codes.reshape(-1), rng)
    elements = np.moveaxis(codes.view(_dtype(f.element)), -1, axis)
    scales = scales if scales is None else np.moveaxis(scales.view(_dtype(f.scale)), -1, axis)
    return Quantized(f, axis, elements, scales, float(total))


def dequantize(quantized):
    """Return the FP32 values of Quantized numbers: element * (scale * tensor_scale), each product rounded to FP32.

    >>> dequantize(quantize(np.array([[0.1, 448.0, 1e9]]), "fp8")).tolist()
    [[0.1015625, 448.0, 448.0]]
    """
    if not isinstance(quantized, Quantized):
        raise TypeError(f"quantized must be what quantize returns, got {type(quantized).__name__}")
    q, f = quantized, quantized.format
    codes = np.ascontiguousarray(np.moveaxis(q.elements, q.axis, -1))
    found = np.empty(codes.shape, np.float32)
    if f.element_bits > 8:
        found[...] = codes
        return np.moveaxis(found, -1, q.axis)
    table, flat, out = _decoded(f.element), codes.view(np.uint8).reshape(-1), found.reshape(-1)
    factors = None
    if f.scale:
        scales = np.ascontiguousarray(np.moveaxis(q.scales, q.axis, -1)).view(np.uint8).reshape(-1)
        factors = _decoded(f.scale)[scales] * np.float32(q.tensor_scale)
    for start in range(0, flat.size, CHUNK):
        part = slice(start, start + CHUNK)
        np.take(table, flat[part], mode="clip", out=out[part])
        if factors is not None:
            blocks = out[part].reshape(-1, f.block)
            np.multiply(blocks, factors[start // f.block :][: len(blocks), None], out=blocks)
    return np.moveaxis(found, -1, q.axis)


def _emulated(format):
    f = format_named(format)
    if not f.element:
        known = ", ".join(name for name, one in FORMATS.items() if one.element)
        raise ValueError(f"quantize does not emulate {f.name!r}; it knows {known}")
    if CHUNK % f.block:
        raise ValueError(f"block must be a power of two up to {CHUNK}, got {f.block}")
    return f


def _dtype(name):
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("quantize needs the package ml_dtypes: pip install 'cotune[formats]'") from None
    return np.dtype(getattr(ml_dtypes, name))


def _check_rng(rounding, rng):
    if rounding == "nearest" and rng is not None:
        raise ValueError("rng must be None with rounding='nearest', which draws nothing")
    if rounding == "stochastic" and not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator with rounding='stochastic', got {rng!r}")


def _floats(values):
    """The values as an array of floats, refusing anything else: numbers of a list may be ints by accident."""
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):  # a mask would be lost
        raise TypeError(f"values must be a numpy array of floats, got {type(values).__name__}")
    if values.dtype.kind != "f" and values.dtype.name != "bfloat16":
        raise TypeError(f"values must be floats, got an array of {values.dtype}")
    if values.ndim == 0:
        raise ValueError("values must have an axis, got a single number")
    if values.size == 0:
        raise ValueError(f"values must not be empty, got the shape {values.shape}")
    return values


def _axis(axis, values):
    whole = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
    if not whole or not -values.ndim <= axis < values.ndim:
        raise ValueError(f"axis must be a whole number from {-values.ndim} to {values.ndim - 1}, got {axis!r}")
    return int(axis) % values.ndim


def _code_type(f):
    return np.uint8 if f.element_bits <= 8 else np.uint16


def _block_largest(f, axis, rows):
    """max |x| of every block along the last axis, refusing what cannot be stored in blocks."""
    if rows.shape[-1] % f.block:
        raise ValueError(
            f"axis {axis} has {rows.shape[-1]} elements, not a multiple of {f.block}, the block of {f.title}; "
            "add zeros yourself if you want them there"
        )
    flat, found = rows.reshape(-1), np.empty(rows.size // f.block, np.float32)
    for start in range(0, flat.size, CHUNK):
        sizes, step = np.abs(flat[start : start + CHUNK]), 1
        while step < f.block:  # neighbours 1, 2, 4, ... apart, until a whole block is compared
            sizes, step = np.maximum(sizes[:-step], sizes[step:]), 2 * step
        found[start // f.block : (start + CHUNK) // f.block] = sizes[:: f.block]
    if not np.isfinite(found).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(np.moveaxis(rows, -1, axis)))[0])
        raise ValueError(f"values[{', '.join(map(str, where))}] is NaN or infinite in FP32; {f.title} cannot store it")
    return found.reshape(*rows.shape[:-1], -1)


def _tensor_scale(f, largest, given):
    """The FP32 scale of the whole tensor: with it, the largest value becomes 448 * 6."""
    if f.scale != "float8_e4m3fn":
        return np.float32(1)
    if given is None:
        most = np.float32(_largest(f.scale) * _largest(f.element))
        return np.maximum(largest / most, SMALLEST) if largest > 0 else np.float32(1)
    if np.ndim(given):
        raise ValueError(f"tensor_scale must be one number, got {given!r}")
    value = np.float32(positive("tensor_scale", given))
    if not (np.isfinite(value) and value >= SMALLEST):
        raise ValueError(f"tensor_scale must be a normal FP32 number above 0, got {given!r}")
    return value


def _block_scales(f, largest, total):
    """Codes of the block scales, and the FP32 factors that values are divided by."""
    if f.scale == "float8_e8m0fnu":
        exponent = np.frexp(largest)[1] - np.frexp(np.float32(_largest(f.element)))[1]
        code = np.where(largest > 0, np.clip(exponent + 127, 0, 254), 0).astype(np.uint8)
        return code, _decoded(f.scale)[code]
    code = np.empty(largest.shape, np.uint8)
    _fill(format_named("fp8"), (largest / np.float32(_largest(f.element)) / total).reshape(-1), None, code.reshape(-1))
    return code, _decoded(f.scale)[code] * total


def _fill(f, values, factors, codes, rng=None):
    """Write the codes of all values over the factor of their block, chunk by chunk."""
    size = min(CHUNK, values.size)
    room, bits, index = np.empty(size, np.float32), np.empty(size, np.uint32), np.empty(size, np.intp)
    if factors is not None:  # what a factor of 0 divides becomes 0
        factors = np.where(factors == 0, np.float32(np.inf), factors).reshape(-1, 1)
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        if factors is not None:
            blocks = room[: part.size].reshape(-1, f.block)
            np.divide(part.reshape(blocks.shape), factors[start // f.block :][: len(blocks)], out=blocks)
            part = blocks.reshape(-1)
        if rng is not None:
            part = _drawn(part, f.element, rng)
        _encode(part, f.element, codes[start : start + CHUNK], bits[: part.size], index[: part.size])


def _encode(values, name, out, bits, index):
    """Write the codes of FP32 values in an element type: nearest, ties to even, saturating. bits, index : room to work.

    A narrow type rounds alike all FP32 numbers that share their upper 16 bits and whether the lower 16 are zero: those
    numbers at which the rounding changes have lower bits of zero, and an even 16th one. So each number is looked up
    under its upper 16 bits, the last of them set if anything follows, in a table that ml_dtypes made.
    """
    if name == "bfloat16":
        out[...] = values.astype(_dtype(name)).view(np.uint16)
        return
    source = values.view(np.uint32)
    np.minimum(np.bitwise_and(source, 0xFFFF, out=bits), 1, out=bits)
    np.bitwise_or(bits, np.right_shift(source, 16), out=index, casting="unsafe")
    np.take(_encoded(name), index, mode="clip", out=out)


@cache
def _encoded(name):
    """Code of each FP32 number with these upper 16 bits and lower 16 of zero, saturating; NaN stays NaN if it can."""
    numbers = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.clip(numbers, -_largest(name), _largest(name)).astype(_dtype(name)).view(np.uint8)


@cache
def _decoded(name):
    """FP32 value of each code of 8 bits or fewer."""
    codes = np.arange(16 if name.startswith("float4") else 256, dtype=np.uint8)
    return codes.view(_dtype(name)).astype(np.float32)


@cache
def _largest(name):
    """Largest finite value of an element or scale type."""
    import ml_dtypes

    return float(ml_dtypes.finfo(_dtype(name)).max)


@cache
def _grid(name):
    """All finite values of a type, in order."""
    codes = np.arange(1 << 16, dtype=np.uint16) if name == "bfloat16" else np.arange(256, dtype=np.uint8)
    values = codes[:16].view(_dtype(name)) if name.startswith("float4") else codes.view(_dtype(name))
    values = values.astype(np.float32)
    return np.unique(values[np.isfinite(values)])


def _drawn(values, name, rng):
    """Each value moved to one of its two neighbours in a type, the nearer the likelier; NaN and infinity stay."""
    grid = _grid(name)
    below = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, grid.size - 2)
    low, high = grid[below], grid[below + 1]
    up = rng.random(values.size) * (high.astype(float) - low) < values.astype(float) - low
    moved = np.copysign(np.where(up, high, low), values)  # what falls to zero keeps its sign
    return np.where(np.isfinite(values), moved, values).astype(np.float32)
