"""One linear layer as a GEMM: the article's tables, properties, refusals."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotune import count, gemm, roofline
from cotune.chip import chip_named
from cotune.config import model_named, model_names
from cotune.formats import FORMATS, Format
from cotune.parameters import KERNELS, fitted, gemm_parameters
from cotune.units import MICRO

settings.load_profile("ci")  # the same examples every time, and no limit on how long one takes

GB300 = chip_named("gb300")
ARTICLE = {"a": "nvfp4", "b": "nvfp4", "c": "fp8"}
BF16 = {"a": "bf16", "b": "bf16", "c": "bf16"}

sizes = st.integers(min_value=1, max_value=1 << 17)
shapes = st.tuples(sizes, sizes, sizes)
formats = st.sampled_from(list(FORMATS))
operands = st.fixed_dictionaries({"a": formats, "b": formats, "c": formats})


def shown(seconds):
    """A time as the article's Table 2 prints it: microseconds, two decimals."""
    return f"{seconds / MICRO:.2f}"


def table2(m, formats=ARTICLE):
    traffic = gemm.traffic(m, 8192, 512, **formats)
    math = gemm.flops(m, 8192, 512) / GB300.peak("nvfp4")
    return shown(math), shown(traffic.read / GB300.bandwidth), shown(traffic.write_c / GB300.bandwidth)


# --- the article's tables ---


def test_table_1_turns_four_layers_into_gemms():
    tokens, hidden, ffn = 2048, 8192, 512
    assert gemm.linear_layers(tokens, hidden, ffn) == {
        "QKV": (2048, 24576, 8192),
        "attention output": (2048, 8192, 8192),
        "FFN-1": (2048, 512, 8192),
        "FFN-2": (2048, 8192, 512),
    }


def test_table_2_every_printed_digit():
    assert table2(256) == ("0.14", "0.30", "0.26")
    assert table2(2048) == ("1.15", "0.37", "2.10")


def test_table_2_third_row():
    # Worked out from the same formulas; the printed third row was not at hand to compare.
    assert table2(16384) == ("9.16", "0.88", "16.78")


@pytest.mark.parametrize("m", [256, 2048])
def test_half_a_byte_per_element_does_not_reproduce_the_reads(m):
    bare = Format("bare4", "four bits, no scales", 4, 0, 1, "fp4")
    math, read, write = table2(m, {"a": bare, "b": bare, "c": "fp8"})
    assert (math, write) == (table2(m)[0], table2(m)[2])
    assert read == {256: "0.27", 2048: "0.33"}[m] != table2(m)[1]


def test_ffn_2_of_the_article_is_memory_bound_at_every_row():
    times = [gemm.time(m, 8192, 512, GB300, **ARTICLE) for m in (256, 2048, 16384)]
    assert [time.bound for time in times] == ["memory"] * 3
    assert [shown(time.memory) for time in times] == ["0.57", "2.47", "17.66"]
    assert gemm.tokens_at_ridge(8192, 512, GB300, **ARTICLE) == np.inf


# --- known values ---


def test_each_operand_counts_its_own_bytes():
    traffic = gemm.traffic(3, 5, 7, a="bf16", b="fp8", c="mxfp8")
    assert (traffic.read_a, traffic.read_b, traffic.write_c) == (3 * 7 * 2, 5 * 7, 3 * 5 * 8.25 / 8)
    assert traffic.read == 77 and traffic.total == 77 + 15.46875
    assert gemm.flops(3, 5, 7) == 210
    assert gemm.work(3, 5, 7, a="bf16", b="fp8", c="mxfp8") == roofline.Work(210, 77 + 15.46875)


def test_time_uses_the_peak_of_the_wider_operand():
    assert gemm.time(4096, 4096, 4096, GB300, **BF16).math == 2 * 4096**3 / 2.5e15
    assert gemm.time(4096, 4096, 4096, GB300, a="bf16", b="nvfp4", c="bf16").math == 2 * 4096**3 / 2.5e15
    assert gemm.time(4096, 4096, 4096, GB300, a="fp8", b="nvfp4", c="bf16").math == 2 * 4096**3 / 5e15


def test_a_small_k_stays_memory_bound_at_any_number_of_tokens():
    assert gemm.tokens_at_ridge(4096, 338, GB300, **BF16) == np.inf
    assert gemm.tokens_at_ridge(4096, 339, GB300, **BF16) > 1e5
    assert gemm.tokens_at_ridge(4096, 512, GB300, **BF16) < 1000
    assert gemm.tokens_at_ridge(625, 625, GB300, **BF16) == np.inf  # its intensity tends to the ridge itself


def test_a_square_has_intensity_two_thirds_of_its_side_per_byte():
    assert gemm.intensity(4096, 4096, 4096, **BF16) == pytest.approx(2 * 4096 / (3 * 2), rel=1e-12)


# --- properties ---


@given(shapes, operands)
def test_doubling_every_size(shape, formats):
    double = [2 * size for size in shape]
    assert gemm.flops(*double) == 8 * gemm.flops(*shape)
    assert gemm.traffic(*double, **formats).total == 4 * gemm.traffic(*shape, **formats).total
    assert gemm.intensity(*double, **formats) == pytest.approx(2 * gemm.intensity(*shape, **formats), rel=1e-12)


@given(shapes, st.sampled_from([0, 1, 2]), st.integers(1, 1 << 12), operands)
def test_a_larger_size_never_costs_less_and_never_lowers_the_intensity(shape, which, more, formats):
    larger = [size + more * (place == which) for place, size in enumerate(shape)]
    before, after = (gemm.time(*s, GB300, **formats) for s in (shape, larger))
    assert after.math > before.math and after.memory > before.memory and after.total > before.total
    assert gemm.intensity(*larger, **formats) >= gemm.intensity(*shape, **formats) * (1 - 1e-12)


@given(shapes, operands, st.sampled_from("abc"))
def test_more_bits_never_cost_less(shape, formats, which):
    by_bits = sorted(FORMATS.values(), key=lambda f: f.bits_per_element)
    times = [gemm.time(*shape, GB300, **{**formats, which: f}) for f in by_bits]
    for (thin, wide), (before, after) in zip(itertools.pairwise(by_bits), itertools.pairwise(times), strict=True):
        assert (after.memory > before.memory) == (wide.bits_per_element > thin.bits_per_element)
        assert after.math >= before.math and after.total >= before.total


@given(shapes, operands)
def test_transposing_swaps_the_operands(shape, formats):
    m, n, k = shape
    turned = {"a": formats["b"], "b": formats["a"], "c": formats["c"]}
    one, other = gemm.time(m, n, k, GB300, **formats), gemm.time(n, m, k, GB300, **turned)
    assert other.math == one.math and other.memory == pytest.approx(one.memory, rel=1e-12)


@given(shapes, formats)
def test_with_one_format_the_three_sizes_are_interchangeable(shape, name):
    formats = {"a": name, "b": name, "c": name}
    work = gemm.work(*shape, **formats)
    for order in itertools.permutations(shape):
        other = gemm.work(*order, **formats)
        assert other.flops == work.flops and other.bytes == pytest.approx(work.bytes, rel=1e-12)


@given(sizes, sizes, operands, st.sampled_from(["gb300", "b200", "mi355x"]))
def test_tokens_at_ridge_is_where_intensity_meets_the_ridge(n, k, formats, chip):
    chip = chip_named(chip)
    ridge = roofline.ridge(chip, gemm.multiply_unit(formats["a"], formats["b"]))
    tokens = gemm.tokens_at_ridge(n, k, chip, **formats)
    if np.isinf(tokens):
        assert gemm.intensity(1e15, n, k, **formats) <= ridge * (1 + 1e-9)
    else:
        assert gemm.intensity(tokens, n, k, **formats) == pytest.approx(ridge, rel=1e-6)
        assert gemm.time(tokens * 1.01, n, k, chip, **formats).bound == "compute"
        assert gemm.time(tokens * 0.99, n, k, chip, **formats).bound == "memory"


@given(st.lists(shapes, min_size=1, max_size=6), operands)
def test_an_array_equals_a_loop(rows, formats):
    m, n, k = (np.array(column) for column in zip(*rows, strict=True))
    time = gemm.time(m, n, k, GB300, **formats)
    traffic = gemm.traffic(m, n, k, **formats)
    one = [gemm.time(*row, GB300, **formats) for row in rows]
    assert gemm.flops(m, n, k).tolist() == [gemm.flops(*row) for row in rows]
    assert traffic.total.tolist() == [gemm.traffic(*row, **formats).total for row in rows]
    assert time.math.tolist() == [t.math for t in one] and time.memory.tolist() == [t.memory for t in one]
    assert time.total.tolist() == [t.total for t in one] and time.bound.tolist() == [t.bound for t in one]
    assert gemm.intensity(m, n, k, **formats).tolist() == [gemm.intensity(*row, **formats) for row in rows]
    ridges = [gemm.tokens_at_ridge(*row[1:], GB300, **formats) for row in rows]
    assert gemm.tokens_at_ridge(n, k, GB300, **formats).tolist() == ridges


def test_sizes_broadcast():
    m, k = np.array([1, 64, 4096])[:, None], np.array([512, 8192])
    time = gemm.time(m, 8192, k, GB300, **BF16)
    assert time.total.shape == time.bound.shape == (3, 2)
    assert time.total[2, 1] == gemm.time(4096, 8192, 8192, GB300, **BF16).total
    assert gemm.tokens_at_ridge(8192, k, GB300, **BF16).shape == (2,)


def test_numbers_give_plain_numbers():
    results = gemm.flops(1, 2, 3), gemm.intensity(1, 2, 3, **BF16), gemm.tokens_at_ridge(2, 3, GB300, **BF16)
    assert [type(result) for result in results] == [float] * 3


# --- tiles, waves, alignment, shape ---


@given(sizes, sizes, st.sampled_from(gemm.menu("gb300")))
def test_tiles_cover_the_result_with_less_than_a_row_and_a_column_too_many(m, n, tile):
    rows, columns = tile
    assert gemm.tiles(m, n, tile) == -(-m // rows) * -(-n // columns)
    assert gemm.tile_efficiency(m, n, tile) == pytest.approx(m * n / (gemm.tiles(m, n, tile) * rows * columns))
    assert 0 < gemm.tile_efficiency(m, n, tile) <= 1
    assert gemm.tile_efficiency(rows * m, columns * n, tile) == 1


@given(st.integers(1, 10**6), st.integers(1, 500))
def test_waves_are_whole_and_full_where_the_tiles_divide(tiles, sms):
    assert gemm.waves(tiles, sms) == -(-tiles // sms)
    assert 0 < gemm.wave_efficiency(tiles, sms) <= 1
    assert gemm.wave_efficiency(tiles * sms, sms) == 1


@given(sizes, st.sampled_from([1, 64, 128, 256]))
def test_padding_reaches_the_next_multiple(size, multiple):
    padded = gemm.padded(size, multiple)
    assert padded % multiple == 0 and size <= padded < size + multiple


@given(sizes)
def test_alignment_is_the_power_of_two_that_divides(size):
    power = gemm.alignment(size)
    assert size % power == 0 and (size // power) % 2 == 1 and power & (power - 1) == 0


def test_shapes_in_arrays():
    sizes = np.array([128, 129, 2880])
    assert gemm.alignment(sizes).tolist() == [128, 1, 64]
    assert gemm.padded(sizes, 128).tolist() == [128, 256, 2944]
    assert gemm.tiles(sizes, 128, (128, 128)).tolist() == [1, 2, 23]
    assert gemm.waves(sizes, 128).tolist() == [1, 2, 23]
    assert gemm.aspect(sizes, 256).tolist() == [2, 256 / 129, 11.25]


def test_aspect_does_not_care_which_side_is_long():
    assert gemm.aspect(4096, 1024) == gemm.aspect(1024, 4096) == 4 and gemm.aspect(7, 7) == 1


def test_a_cut_that_does_not_divide_is_refused():
    assert gemm.shard(2880, 8) == 360
    with pytest.raises(ValueError, match="2880 does not divide among 7 GPUs; 3 would be left over"):
        gemm.shard(2880, 7)
    with pytest.raises(ValueError, match="gpus must be a whole number of at least 1, got 0"):
        gemm.shard(2880, 0)
    with pytest.raises(ValueError, match="size must be a whole number, got 1.5"):
        gemm.alignment(1.5)


# --- the layers of a model ---


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("tp", [1, 4])
def test_layers_hold_the_matrices_of_the_model(name, tp):
    model = model_named(name)
    held = sum(x.n * x.k * x.copies for x in gemm.model_layers(model, tp))
    wanted = [w.held(tp) * many for w, many in count.weights(model) if w.matrix and w.copies]
    head = count.weights(model)[-1][0]
    tied = replace(head, copies=1).held(tp) if model.tied else 0  # multiplied, not stored again
    assert held == sum(wanted) + tied


def test_rows_or_columns_are_cut():
    layers = {x.name: x for x in gemm.model_layers(model_named("llama-3.1-8b"), tp=16)}
    assert (layers["q"].n, layers["q"].k, layers["q"].copies) == (4096 // 16, 4096, 32)
    assert (layers["k"].n, layers["k"].k) == (128, 4096)  # 8 KV heads on 16 GPUs: one each, twice over
    assert (layers["o"].n, layers["o"].k) == (4096, 4096 // 16)
    assert (layers["down"].n, layers["down"].k) == (4096, 14336 // 16)
    assert layers["head"].n == 128256 // 16


def test_routed_experts_are_all_listed():
    experts = [x for x in gemm.model_layers(model_named("deepseek-v3"), tp=1) if x.part == "experts"]
    assert [(x.n, x.k, x.copies) for x in experts] == [(4096, 7168, 256 * 58), (7168, 2048, 256 * 58)]


# --- calibrated ---

CALIBRATED = [("gb300", "bf16"), ("h200", "fp8_block"), ("b200", "nvfp4"), ("a100", "bf16")]


@given(st.lists(shapes, min_size=1, max_size=6), st.sampled_from(CALIBRATED))
def test_calibrated_arrays_equal_a_loop(rows, where):
    m, n, k = (np.array(column) for column in zip(*rows, strict=True))
    time = gemm.calibrated(m, n, k, *where)
    one = [gemm.calibrated(*row, *where) for row in rows]
    assert time.total.tolist() == [t.total for t in one] and time.bound.tolist() == [t.bound for t in one]
    for name in ("quantize", "math", "load", "memory", "store", "split", "rows", "columns", "splits"):
        assert getattr(time, name).tolist() == [getattr(t, name) for t in one]


@pytest.mark.parametrize("where", CALIBRATED, ids=str)
def test_batches_do_not_show(where, monkeypatch):
    m, n = np.arange(1, 41) * 97, np.arange(1, 41)[::-1] * 64
    whole = gemm.calibrated(m, n, 4096, *where).total
    monkeypatch.setattr(gemm, "BATCH", 7)
    assert gemm.calibrated(m, n, 4096, *where).total.tolist() == whole.tolist()


def test_calibrated_sizes_broadcast():
    time = gemm.calibrated(np.array([1, 64, 4096])[:, None], 8192, np.array([512, 8192]), "h100")
    assert time.total.shape == time.bound.shape == time.rows.shape == (3, 2)
    assert time.total[2, 1] == gemm.calibrated(4096, 8192, 8192, "h100").total
    assert gemm.calibrated(np.empty(0), 8192, 8192, "h100").total.shape == (0,)
    number = gemm.calibrated(1, 2, 3, "h100")
    assert [type(v) for v in (number.total, number.store, number.rows, number.bound)] == [float, float, float, str]


@given(shapes, st.sampled_from(sorted(fitted())))
def test_the_parts_add_up_and_the_ideal_is_never_beaten_by_much(shape, where):
    chip, kernel = where
    time = gemm.calibrated(*shape, chip, kernel)
    assert sum(time.parts.values()) == pytest.approx(time.total, rel=1e-12)
    assert max(time.math, time.load, time.memory) <= time.overlapped <= time.math + time.load + time.memory
    k = KERNELS[kernel]
    assert time.total > gemm.time(*shape, chip, a=k.a, b=k.b, c=k.c).total


@given(shapes, st.sampled_from([2, 3]), st.sampled_from(CALIBRATED))
def test_whole_multiples_of_a_shape_take_longer(shape, times, where):
    larger = gemm.calibrated(*(size * times for size in shape), *where).total
    assert larger > gemm.calibrated(*shape, *where).total


def test_the_plan_is_the_fastest_of_its_menu(monkeypatch):
    """Worked by hand for one tile and no split: the formula of the docstring."""
    p, chip, tile = gemm_parameters("h100", "bf16"), chip_named("h100"), (128, 128)
    share = 32 * 32 / 132
    rounds = share + gemm.TAIL * (8 - share)
    sm = chip.peak("bf16") / 132
    math = rounds * 2 * 128 * 128 * 4096 / (p.peak * sm)
    load = rounds * (128 + 128) * 2 * 4096 / (p.load * sm)
    memory = 3 * 4096**2 * 2 / (p.bandwidth * chip.bandwidth)
    by_hand = p.fixed + (math**3 + load**3 + memory**3) ** (1 / 3) + rounds * 128 * 128 * 2 / (p.store * sm)
    assert gemm.calibrated(4096, 4096, 4096, chip).total <= by_hand * (1 + 1e-12)
    monkeypatch.setattr(gemm, "menu", lambda chip, kernel: (tile,))
    assert gemm.calibrated(4096, 4096, 4096, chip).total == pytest.approx(by_hand, rel=1e-12)


def test_a_deep_and_small_layer_splits_k_and_low_precision_does_not():
    deep = gemm.calibrated(16, 256, 16384, "gb300", "bf16")
    assert deep.splits == gemm.MOST_SPLITS and deep.split > gemm_parameters("gb300", "bf16").split
    low = gemm.calibrated(16, 256, 16384, "gb300", "nvfp4")
    assert low.splits == 1 and low.split == 0 and low.quantize > 0
    assert gemm.calibrated(16, 256, 256, "gb300", "bf16").splits == 1 and deep.quantize == 0


def test_one_token_past_a_tile_edge_costs_time():
    at = gemm.calibrated([128, 256, 512], 8192, 8192, "gb300", "nvfp4").total
    past = gemm.calibrated([129, 257, 513], 8192, 8192, "gb300", "nvfp4").total
    assert (past > at * 1.05).all()


def test_parameters_are_an_argument():
    own = replace(gemm_parameters("h100", "fp8"), quantize=1e-9, fixed=1e-9)
    assert gemm.calibrated(64, 1024, 1024, "h100", "fp8", parameters=own).total < 5e-6
    assert gemm.calibrated(64, 1024, 1024, "h100", "fp8").total > 5e-6
    with pytest.raises(ValueError, match="parameters are of the kernel 'fp8', the kernel asked for is 'bf16'"):
        gemm.calibrated(64, 1024, 1024, "h100", "bf16", parameters=own)


# --- refusals ---

BAD = [0, -1, float("nan"), float("inf"), None, "x", "256", True, np.array([256, -7])]


@pytest.mark.parametrize("name", "mnk")
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_size_is_named(name, bad):
    sizes = {"m": 256, "n": 512, "k": 1024, name: bad}
    value = "-7" if isinstance(bad, np.ndarray) else str(bad)
    asks = [gemm.flops, lambda **s: gemm.traffic(**s, **BF16), lambda **s: gemm.intensity(**s, **BF16)]
    asks.append(lambda **s: gemm.time(**s, chip=GB300, **BF16))
    asks.append(lambda **s: gemm.calibrated(**s, chip=GB300, kernel="nvfp4"))
    if name != "m":
        asks.append(lambda m, n, k: gemm.tokens_at_ridge(n, k, GB300, **BF16))
    for ask in asks:
        with pytest.raises(ValueError, match=f"^{name} must be ") as error:
            ask(**sizes)
        assert value in str(error.value)


@pytest.mark.parametrize("name", ["tokens", "hidden", "ffn"])
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_layer_size_is_named(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        gemm.linear_layers(**{"tokens": 256, "hidden": 8192, "ffn": 512, name: bad})


@pytest.mark.parametrize("which", "abc")
def test_an_unknown_format_lists_the_known_ones(which):
    with pytest.raises(ValueError, match="unknown format 'fp7'; known: bf16, fp8, .*nvfp4"):
        gemm.traffic(1, 1, 1, **{**BF16, which: "fp7"})


def test_fp4_on_h100_says_what_it_has():
    with pytest.raises(ValueError, match="h100 has no fp4 .*has bf16 and fp8"):
        gemm.time(1, 1, 1, chip_named("h100"), **ARTICLE)


def test_sizes_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match="broadcast"):
        gemm.flops([1, 2], [1, 2, 3], 1)
