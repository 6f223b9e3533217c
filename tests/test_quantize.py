"""quantize and dequantize: bit-exact with the specifications, on a million values per format, and what they refuse."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import reference_formats as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cotune import formats
from cotune.formats import FORMATS, dequantize, format_named, legal, matrix_bytes, quantize, scale_bytes

MX = {"mxfp4": ("float4_e2m1fn", 2), "mxfp8": ("float8_e4m3fn", 8), "mxfp8_e5m2": ("float8_e5m2", 15)}
BLOCKED = ("nvfp4", *MX)
EMULATED = tuple(name for name, f in FORMATS.items() if f.element)
MILLION = 1 << 20


def hard_values(name, *, finite):
    """A million FP32 numbers that are hard to round, in blocks of 32: see each line."""
    rng = np.random.default_rng(7)
    table = reference.MAGNITUDES[name]
    table = table[np.isfinite(table)]
    ties = np.concatenate([table, (table[1:] + table[:-1]) / 2]).astype(np.float32)
    near = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))])
    parts = [
        rng.standard_normal(MILLION // 4),
        rng.choice(near, MILLION // 4) * rng.choice([-1, 1], MILLION // 4),  # on, just above and just below an edge
        rng.choice(near, (MILLION // 256, 32)) * 2.0 ** rng.integers(-130, 118, (MILLION // 256, 1)),  # other scales
        rng.integers(0, 1 << 32, MILLION // 4, dtype=np.uint32).view(np.float32),  # any bits
        rng.integers(0, 1 << 23, MILLION // 16, dtype=np.uint32).view(np.float32),  # subnormal in FP32
        rng.choice([0.0, -0.0], MILLION // 16),
    ]
    with np.errstate(over="ignore"):
        values = np.concatenate([part.astype(np.float32, copy=False).reshape(-1) for part in parts])
    if finite:
        values[~np.isfinite(values)] = np.float32(np.finfo(np.float32).max)
        values = values.reshape(-1, 32)
        values[5::7, 11] = np.float32(3e38)  # one huge value in a block
        values[6::7, 3] = np.float32(1e-30)
        values[3::11] = 0  # blocks of nothing but zero
    return values.reshape(-1)


def raw(array):
    return array.view(np.uint8)


@pytest.mark.parametrize("name", ["fp8", "fp8_e5m2"])
def test_fp8_is_bit_exact(name):
    element = format_named(name).element
    values = hard_values(element, finite=False)
    q = quantize(values, name)
    good = ~np.isnan(values)
    assert np.array_equal(raw(q.elements)[good], reference.codes(values, element)[good])
    assert np.isnan(dequantize(q)[~good]).all() and (~good).sum() > 1000
    assert np.array_equal(dequantize(q)[good], reference.values_of(raw(q.elements), element)[good])


@pytest.mark.parametrize("name", MX)
def test_mx_formats_are_bit_exact(name):
    element, exponent = MX[name]
    values = hard_values(element, finite=True)
    q = quantize(values, name)
    codes, scales = reference.mx(values, element, 32, exponent)
    assert np.array_equal(raw(q.scales), scales)
    assert np.array_equal(raw(q.elements), codes)
    back = reference.values_of(codes, element).reshape(-1, 32) * 2.0 ** (scales.astype(float) - 127)[:, None]
    assert np.array_equal(dequantize(q).reshape(-1, 32), back.astype(np.float32))
    assert len(set(scales.tolist())) > 200


@pytest.mark.parametrize("tensor_scale", [None, 1.0, 2.0**-126, 1e-3, 1e30, 0.37])
@pytest.mark.parametrize("huge", [True, False])
def test_nvfp4_is_bit_exact(tensor_scale, huge):
    values = hard_values("float4_e2m1fn", finite=True)
    if not huge:  # then block scales do not all end at 0 and 448
        values = np.where(np.abs(values) > 1e4, np.float32(1), values)
    q = quantize(values, "nvfp4", tensor_scale=tensor_scale)
    codes, scales = reference.nvfp4(values, q.tensor_scale)
    assert np.array_equal(raw(q.scales), scales)
    assert np.array_equal(raw(q.elements), codes)
    factor = reference.values_of(scales, "float8_e4m3fn").astype(np.float32) * np.float32(q.tensor_scale)
    with np.errstate(over="ignore"):
        back = reference.values_of(codes, "float4_e2m1fn").astype(np.float32).reshape(-1, 16) * factor[:, None]
    assert np.array_equal(dequantize(q).reshape(-1, 16), back)


def test_a_tensor_scale_stays_a_normal_number():
    """Else its own rounding would be coarse, or it would be 0."""
    values = np.full(16, 2.0**-130, np.float32)
    q = quantize(values, "nvfp4")
    assert q.tensor_scale == 2.0**-126
    assert dequantize(q) == pytest.approx(values, rel=0.1)
    assert quantize(np.zeros(16, np.float32), "nvfp4").tensor_scale == 1


def test_nvfp4_uses_all_block_scales():
    rng = np.random.default_rng(3)
    values = rng.standard_normal(MILLION).astype(np.float32) * np.repeat(2.0 ** rng.uniform(-20, 0, MILLION // 16), 16)
    q = quantize(values.astype(np.float32), "nvfp4")
    assert len(set(raw(q.scales).tolist())) > 120
    assert q.tensor_scale == np.abs(values.astype(np.float32)).max() / np.float32(2688)
    codes, scales = reference.nvfp4(values.astype(np.float32), q.tensor_scale)
    assert np.array_equal(raw(q.elements), codes) and np.array_equal(raw(q.scales), scales)


def test_bf16_is_bit_exact():
    """The upper 16 bits, rounded to nearest with ties to even; NaN stays NaN."""
    values = hard_values("float8_e4m3fn", finite=False)
    bits = values.view(np.uint32).astype(np.uint64)
    wanted = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    q = quantize(values, "bf16")
    good = ~np.isnan(values)
    assert np.array_equal(q.elements.view(np.uint16)[good], wanted[good])
    assert np.isnan(dequantize(q)[~good]).all()
    assert np.isinf(dequantize(quantize(np.array([3.4e38, np.inf], np.float32), "bf16"))).all()


def test_the_enumerated_tables_are_those_of_the_specifications():
    """The values that the specifications print: guards the reference itself."""
    assert reference.E2M1.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert np.nanmax(reference.E4M3) == 448 and reference.E4M3[1] == 2.0**-9
    assert reference.E5M2[0x7B] == 57344 and reference.E5M2[1] == 2.0**-16


@pytest.mark.parametrize("name", reference.MAGNITUDES)
def test_every_fp32_number_gets_its_code(name):
    """All upper halves with the lower halves where a rounding could turn; those between two equal codes share it."""
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    values = ((np.arange(1 << 16, dtype=np.uint32)[:, None] << 16) | lower).reshape(-1).view(np.float32)
    values = values[~np.isnan(values)]
    ours = np.empty(values.size, np.uint8)
    formats._fill(replace(format_named("nvfp4"), element=name), values, None, ours)
    assert np.array_equal(ours, reference.codes(values, name))
    most = float(ml_dtypes.finfo(getattr(ml_dtypes, name)).max)
    assert np.array_equal(ours, np.clip(values, -most, most).astype(getattr(ml_dtypes, name)).view(np.uint8))


@pytest.mark.parametrize("tensor_scale", [0.37, 1e-3, 1e30, 3e-38])
def test_nvfp4_divides_in_the_order_it_says(tensor_scale):
    """Largest values and elements around every edge, where (x / 6) / t, x / (6 t) and x (1 / 6) / t differ."""
    t, six, ulps = np.float32(tensor_scale), np.float32(6), np.arange(-8, 9)
    edges = np.concatenate([reference.E4M3[1:-1], (reference.E4M3[2:-1] + reference.E4M3[1:-2]) / 2])
    largest = (edges * 6 * float(t)).astype(np.float32)
    largest = (largest.view(np.int32)[:, None] + ulps).astype(np.int32).view(np.float32).reshape(-1, 1)
    inner = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]) / 6  # of a block, at or beside the edges of E2M1
    values = np.concatenate([largest, *(largest * np.float32(share) for share in inner), *[largest * 0] * 8], axis=1)
    values = values.astype(np.float32).reshape(-1)
    q = quantize(values, "nvfp4", tensor_scale=tensor_scale)
    codes, scales = reference.nvfp4(values, t)
    assert np.array_equal(raw(q.scales), scales) and np.array_equal(raw(q.elements), codes)
    for other in (largest / (six * t), largest * (1 / six) / t):
        assert np.any(reference.codes(other.reshape(-1), "float8_e4m3fn") != scales)  # else this tests nothing


# --- properties ---

numbers = st.floats(-(2.0**99), 2.0**99, width=32)
matrices = arrays.arrays(np.float32, st.sampled_from([(32,), (3, 64), (2, 2, 32)]), elements=numbers)


@settings(max_examples=60, deadline=None)
@given(matrices, st.sampled_from(EMULATED))
def test_a_second_round_trip_changes_nothing(values, name):
    """With the same tensor scale, in blocks with a normal E4M3 number as scale; and a turned sign comes back turned."""
    once = quantize(values, name)
    back = dequantize(once)
    again = dequantize(quantize(back, name, **({"tensor_scale": once.tensor_scale} if name == "nvfp4" else {})))
    same = np.ones(values.shape, bool)
    if name == "nvfp4":
        same = np.repeat(once.scales.astype(float) >= 2.0**-6, 16, axis=-1)
    assert np.array_equal(again[same], back[same])
    assert np.array_equal(dequantize(quantize(-values, name)), -back)


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.float32, (4, 64), elements=st.floats(-1000, 1000, width=32)), st.sampled_from(BLOCKED))
def test_errors_are_within_half_a_step(values, name):
    """An element is off by half a step of the grid, or, where it saturates, by what is beyond the largest."""
    q = quantize(values, name)
    f = format_named(name)
    factors = np.repeat(q.scales.astype(np.float32) * np.float32(q.tensor_scale), f.block, axis=-1)
    table = reference.MAGNITUDES[f.element]
    table = table[np.isfinite(table)]
    size = np.abs(values.astype(float)) / np.where(factors > 0, factors, 1)
    place = np.clip(np.searchsorted(table, size), 1, table.size - 1)
    half = (table[place] - table[place - 1]) / 2
    allowed = np.maximum(half, size - table[-1]) * factors * (1 + 1e-6)
    error = np.abs(dequantize(q) - values)
    assert np.all((error <= allowed) | (factors == 0))
    assert np.all(np.abs(values[factors == 0]) <= 6 * 2.0**-10 * q.tensor_scale * 1.001)


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.float32, (3, 32), elements=numbers), st.sampled_from(EMULATED))
def test_a_larger_number_of_a_block_never_ends_below_a_smaller(values, name):
    values = np.sort(values, axis=1)
    if name == "nvfp4":
        values[:, 16:] = values[:, :16]  # two blocks, each in order
    found = dequantize(quantize(values, name)).reshape(-1, 16 if name == "nvfp4" else 32)
    assert np.all(np.diff(found, axis=1) >= 0)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(BLOCKED), st.integers(-3, 2))
def test_any_axis_is_the_last_one_moved(name, axis):
    values = np.random.default_rng(1).standard_normal((160, 32, 96)).astype(np.float32)
    q = quantize(values, name, axis)
    moved = quantize(np.moveaxis(values, axis, -1), name)
    assert np.array_equal(raw(np.ascontiguousarray(np.moveaxis(q.elements, axis, -1))), raw(moved.elements))
    assert np.array_equal(dequantize(q), np.moveaxis(dequantize(moved), -1, axis))
    assert q.elements.shape == values.shape and q.scales.shape[axis] == values.shape[axis] // format_named(name).block


@pytest.mark.parametrize("name", ["nvfp4", "mxfp4", "mxfp8", "fp8", "bf16"])
def test_stochastic_rounding_is_right_in_the_mean(name):
    rng = np.random.default_rng(2)
    values = rng.standard_normal(64).astype(np.float32)
    draws = 20000
    many = np.tile(values, (draws, 1))
    back = dequantize(quantize(many, name, rounding="stochastic", rng=rng))
    nearest = dequantize(quantize(values[None], name))[0]
    grid = [np.unique(back[:, i]) for i in range(values.size)]
    assert all(g.size <= 2 for g in grid)
    assert all(n in g for n, g in zip(nearest, grid, strict=True))
    step = np.array([g[-1] - g[0] for g in grid])
    inside = np.array([g[0] <= v <= g[-1] for g, v in zip(grid, values, strict=True)])
    assert inside.sum() > 55  # the largest of a block may saturate
    assert np.all(
        np.abs(back.astype(float).mean(axis=0) - values)[inside] <= (5 * step / 2 / draws**0.5 + 1e-12)[inside]
    )


def test_the_worked_value_of_stochastic_rounding():
    """Case nvfp4-11: 1.3 goes to 1.5 to nearest, and to 1.5 six times in ten when drawn."""
    block = np.full((50000, 16), 1.3, np.float32)
    block[:, 0] = 6  # makes the block scale 1
    one = quantize(block, "nvfp4", tensor_scale=1.0)
    assert float(one.scales[0, 0]) == 1 and float(one.elements[0, 1]) == 1.5
    drawn = quantize(block, "nvfp4", tensor_scale=1.0, rounding="stochastic", rng=np.random.default_rng(0))
    picked = drawn.elements[:, 1:].astype(float)
    assert set(np.unique(picked)) == {1.0, 1.5}
    assert np.mean(picked == 1.5) == pytest.approx(0.6, abs=0.005)


def test_a_seed_gives_the_same_draw():
    values = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    draw = [quantize(values, "nvfp4", rounding="stochastic", rng=np.random.default_rng(5)) for _ in range(2)]
    assert np.array_equal(raw(draw[0].elements), raw(draw[1].elements))


@pytest.mark.parametrize("name", EMULATED)
def test_a_draw_keeps_the_sign(name):
    """Also of what falls to zero."""
    values = np.ones((200, 32), np.float32)
    values[:, 1:5] = [0.0, -0.0, 1e-10, -1e-10]
    values[:, 16:] = values[:, :16]
    back = dequantize(quantize(values, name, rounding="stochastic", rng=np.random.default_rng(4)))
    assert np.array_equal(np.signbit(back), np.signbit(values))
    if name != "bf16":
        assert np.any(back[:, 3] == 0) and np.any(back[:, 4] == 0)


def test_what_is_no_finite_number_is_not_drawn():
    values = np.array([np.nan, np.inf, -np.inf, 3.4e38, -3.4e38] * 20, np.float32).reshape(20, 5)
    for name, top, largest in (("bf16", np.inf, 255 * 2.0**120), ("fp8", 448, 448), ("fp8_e5m2", 57344, 57344)):
        back = dequantize(quantize(values, name, rounding="stochastic", rng=np.random.default_rng(4)))
        assert np.isnan(back[:, 0]).all()
        assert np.all(back[:, 1:] == [top, -top, largest, -largest])  # a finite number stays finite


@pytest.mark.parametrize("kind", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_other_floats_are_taken_as_fp32(kind):
    values = np.random.default_rng(0).standard_normal(64).astype(kind)
    assert np.array_equal(
        dequantize(quantize(values, "nvfp4")), dequantize(quantize(values.astype(np.float32), "nvfp4"))
    )


def test_the_values_are_left_alone():
    values = np.random.default_rng(0).standard_normal((2, 32)).astype(np.float32)
    before = values.copy()
    values.setflags(write=False)
    quantize(values, "nvfp4")
    quantize(values.T, "mxfp4", axis=0)
    assert np.array_equal(values, before)


def test_other_blocks():
    values = np.random.default_rng(0).standard_normal((2, 128)).astype(np.float32)
    wide = quantize(values, replace(format_named("nvfp4"), block=64))
    assert wide.scales.shape == (2, 2)
    codes, scales = reference.nvfp4(values.reshape(-1), wide.tensor_scale, block=64)
    assert np.array_equal(raw(wide.elements).reshape(-1), codes) and np.array_equal(
        raw(wide.scales).reshape(-1), scales
    )
    with pytest.raises(ValueError, match="block must be a power of two up to 16384, got 48"):
        quantize(np.ones((2, 96)), replace(format_named("nvfp4"), block=48))


# --- bad input ---

GOOD = np.ones((4, 32), np.float32)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: quantize(np.ones((4, 24)), "nvfp4"), "axis 1 has 24 elements, not a multiple of 16"),
        (lambda: quantize(np.ones((24, 4)), "mxfp4", 0), "axis 0 has 24 elements, not a multiple of 32"),
        (lambda: quantize(GOOD, "nvfp4", 2), "axis must be a whole number from -2 to 1, got 2"),
        (lambda: quantize(GOOD, "nvfp4", -3), "axis must be a whole number from -2 to 1, got -3"),
        (lambda: quantize(GOOD, "nvfp4", True), "axis must be a whole number from -2 to 1, got True"),
        (lambda: quantize(np.float32(1), "nvfp4"), "values must be a numpy array of floats"),
        (lambda: quantize(np.array(1.0), "bf16"), "values must have an axis"),
        (lambda: quantize([1.0] * 16, "nvfp4"), "values must be a numpy array of floats, got list"),
        (
            lambda: quantize(np.ma.masked_less(GOOD, 2), "nvfp4"),
            "values must be a numpy array of floats, got MaskedArray",
        ),
        (lambda: quantize(np.ones(16, int), "nvfp4"), "values must be floats, got an array of int64"),
        (lambda: quantize(np.ones(16, complex), "nvfp4"), "values must be floats, got an array of complex128"),
        (lambda: quantize(np.ones(16, bool), "nvfp4"), "values must be floats, got an array of bool"),
        (lambda: quantize(np.ones(16, object), "nvfp4"), "values must be floats, got an array of object"),
        (lambda: quantize(np.ones((0, 16)), "nvfp4"), r"values must not be empty, got the shape \(0, 16\)"),
        (lambda: quantize(GOOD, "fp6"), "unknown format 'fp6'"),
        (lambda: quantize(GOOD, "fp8_1x128"), "quantize does not emulate 'fp8_1x128'; it knows bf16, fp8, "),
        (lambda: quantize(GOOD, "nvfp4", rounding="up"), "unknown rounding 'up'; known: nearest, stochastic"),
        (lambda: quantize(GOOD, "nvfp4", rounding="stochastic"), "rng must be a numpy Generator"),
        (lambda: quantize(GOOD, "nvfp4", rounding="stochastic", rng=7), "rng must be a numpy Generator"),
        (lambda: quantize(GOOD, "nvfp4", rng=np.random.default_rng(0)), "rng must be None"),
        (lambda: quantize(GOOD, "nvfp4", tensor_scale=0), "tensor_scale must be a finite number above 0, got 0"),
        (lambda: quantize(GOOD, "nvfp4", tensor_scale=1e-40), "tensor_scale must be a normal FP32 number"),
        (lambda: quantize(GOOD, "nvfp4", tensor_scale=1e39), "tensor_scale must be a normal FP32 number"),
        (lambda: quantize(GOOD, "nvfp4", tensor_scale=np.ones(2)), "tensor_scale must be one number"),
        (lambda: quantize(GOOD, "mxfp4", tensor_scale=1.0), "tensor_scale is for nvfp4; mxfp4 has none, got 1.0"),
        (lambda: quantize(GOOD, "fp8", tensor_scale=1.0), "tensor_scale is for nvfp4; fp8 has none, got 1.0"),
        (lambda: dequantize(GOOD), "quantized must be what quantize returns, got ndarray"),
        (lambda: scale_bytes(8, 24, "nvfp4"), "k must be a multiple of 16, the block of NVFP4, got 24"),
        (lambda: matrix_bytes(8, 24, "nvfp4"), "k must be a multiple of 16"),
        (lambda: matrix_bytes(0, 16, "nvfp4"), "rows must be a finite number above 0, got 0"),
        (lambda: legal(0, "nvfp4"), "k must be a finite number above 0, got 0"),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()


@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_what_a_block_cannot_store_is_refused_with_its_place(name, bad):
    values = np.ones((2, 64), float)
    values[1, 40] = bad
    with pytest.raises(ValueError, match=r"values\[1, 40\] is NaN or infinite in FP32"):
        quantize(values, name)
    with pytest.raises(ValueError, match=r"values\[40, 1\] is NaN or infinite in FP32"):
        quantize(values.T, name, 0)


def test_without_ml_dtypes_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match=r"cotune\[formats\]"):
        quantize(GOOD, "nvfp4")


# --- bytes and fit ---


def test_bytes_of_the_worked_matrix():
    """Case nvfp4-07, and nvfp4-09: one tile of scales covers 64 elements of K."""
    assert matrix_bytes(8192, 512, "nvfp4") - scale_bytes(8192, 512, "nvfp4") == 2097152
    assert scale_bytes(8192, 512, "nvfp4") == scale_bytes(8192, 512, "nvfp4", padded=True) == 262144
    assert matrix_bytes(8192, 512, "nvfp4") == 2359296
    assert scale_bytes(128, 64, "nvfp4", padded=True) == scale_bytes(1, 16, "nvfp4", padded=True) == 512


@pytest.mark.parametrize("rows", [1, 127, 128, 129, 256, 300])
@pytest.mark.parametrize("k", [32, 64, 96, 128, 160, 192])
def test_padding_ends_where_the_tiles_end(rows, k):
    whole = scale_bytes(rows, k, "nvfp4") == scale_bytes(rows, k, "nvfp4", padded=True)
    assert whole == (rows % 128 == 0 and k % 64 == 0)
    assert scale_bytes(rows, k, "bf16", padded=True) == scale_bytes(rows, k, "fp8") == 0


def test_legal_dimensions():
    assert [legal(2880 // tp, "nvfp4") for tp in (1, 2, 4, 8)] == [True, True, True, False]
    assert [legal(2880 // tp, "mxfp4") for tp in (1, 2, 4)] == [True, True, False]
    assert legal(np.array([16, 17]), "nvfp4").tolist() == [True, False]
    assert legal(7, "bf16") and matrix_bytes(7, 7, "bf16") == 98


def test_square_blocks():
    """DeepSeek-V3's FP8 weights: an FP32 scale for 128 x 128, started anew at an edge; none of it is padded."""
    assert scale_bytes(2048, 7168, "fp8_128x128") == 16 * 56 * 4 == scale_bytes(2048, 7168, "fp8_128x128", padded=True)
    assert scale_bytes(576, 7168, "fp8_128x128") == 5 * 56 * 4  # its latent projection
    assert scale_bytes(256, 256, "fp8_1x128", padded=True) == 256 * 2 * 4
    assert legal(7168, "fp8_128x128") and not legal(576, "fp8_128x128")


def test_big_endian_and_reversed_values():
    values = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    for other in (values.astype(">f4"), values[:, ::-1][:, ::-1], np.asfortranarray(values)):
        assert np.array_equal(dequantize(quantize(other, "nvfp4")), dequantize(quantize(values, "nvfp4")))


def test_rows_that_do_not_end_with_a_chunk():
    values = np.random.default_rng(0).standard_normal((3, 2 * formats.CHUNK + 16)).astype(np.float32)
    q = quantize(values, "nvfp4")
    codes, scales = reference.nvfp4(values.reshape(-1), q.tensor_scale)
    assert np.array_equal(raw(q.elements).reshape(-1), codes) and np.array_equal(raw(q.scales).reshape(-1), scales)
    assert np.array_equal(dequantize(quantize(values.T, "nvfp4", 0)), dequantize(q).T)


def test_the_experts_of_deepseek_v3():
    """ai-dynamo/aiconfigurator, pull request 391: half a byte for a weight forgets the scales."""
    assert 58 * 256 * 3 * matrix_bytes(2048, 7168, "nvfp4") == 367823683584
