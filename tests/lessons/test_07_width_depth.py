"""What lesson 07 promises in words, computed; shapes and floors against published values."""

import re
from dataclasses import replace

import pytest

import lesson
from cotune import gemm
from cotune.config import model_named
from cotune.parameters import gemm_parameters
from cotune.teach.figures import width_depth as scenes
from cotune.teach.grade import exercise_named, mark
from cotune.teach.running_case import GATED, RUNGS, calibrated_rates, calibrated_step_time, rung, step_time


@pytest.fixture(scope="module")
def shown():
    return {s.title: s for s in lesson.run("07_width_depth")[1]}


def blocks(draft):
    return draft.parameters - 2 * draft.vocab * draft.hidden


def test_rungs_hold_the_same_weights():
    assert {h: rung(h).layers for h in RUNGS} == {3072: 256, 4096: 144, 6144: 64, 8192: 36, 12288: 16}
    assert rung(6144) == GATED
    for hidden in RUNGS:
        # 12 L H^2, up to H' rounded to 256
        assert blocks(rung(hidden)) == pytest.approx(12 * 64 * 6144**2, rel=7e-3)
        assert blocks(rung(hidden)) >= 12 * 64 * 6144**2
    assert rung(12288).parameters > rung(3072).parameters
    with pytest.raises(ValueError, match="hidden"):
        rung(5000)


def test_the_floor_is_layers_times_kernels_times_fixed():
    assert gemm.latency_floor(126, 2, 5e-6) == pytest.approx(1260e-6)  # cases shape-02
    assert gemm.latency_floor(61, 2, 5e-6) == pytest.approx(610e-6)


def test_half_the_time_is_fixed_at_the_floor_width():
    # fixed 3.892 us, 81.48 % of 8 TB/s, 0.5625 B a weight: data/parameters.toml, chips.toml
    by_hand = (4 * 3.892e-6 * 0.8148 * 8e12 / (12 * 0.5625)) ** 0.5
    assert gemm.floor_width("gb300", "nvfp4") == pytest.approx(by_hand, rel=1e-9)
    for chip, kernel in (("gb300", "bf16"), ("gb300", "nvfp4"), ("h200", "fp8")):
        parts, _ = scenes.layer_parts(4096, 1, chip, kernel)
        assert (parts["fixed"] < sum(parts.values()) / 2) == (gemm.floor_width(chip, kernel) < 4096)
    assert gemm.floor_width("gb300", "bf16") < gemm.floor_width("gb300", "fp8") < gemm.floor_width("gb300", "nvfp4")
    assert gemm.floor_width("gb300", "bf16", kernels=16) == pytest.approx(2 * gemm.floor_width("gb300", "bf16"))


def test_a_twin_holds_as_much_in_its_layers_and_more_in_its_head():
    layers = gemm.fused_layers(model_named("llama-3.1-8b"))
    wide = gemm.wider(layers, 2)
    inside = lambda found: sum(x.n * x.k * x.copies for x in found if x.part != "head")  # noqa: E731
    assert inside(layers) == inside(wide) == 6_979_321_856  # Llama-3.1-8B without embedding, head and norms
    assert (wide[0].n, wide[0].k, wide[0].copies) == (12288, 8192, 8)
    assert (wide[-1].n, wide[-1].k, wide[-1].copies) == (128256, 8192, 1)
    assert [x.name for x in layers] == ["q, k and v", "o", "up and gate", "down", "head"]
    one = sum(x.copies * gemm.calibrated(4, x.n, x.k, "h200", "fp8").total for x in layers[:-1])
    head = gemm.calibrated(4, 128256, 4096, "h200", "bf16").total
    assert gemm.step_time(layers, 4, "h200", "fp8") == pytest.approx(one + head, rel=1e-12)
    with pytest.raises(ValueError, match="not whole"):
        gemm.wider(gemm.fused_layers(model_named("llama-3.1-405b")), 2)  # 126 layers
    with pytest.raises(ValueError, match="experts"):
        gemm.fused_layers(model_named("deepseek-v3"))


def test_the_ladder_says_what_the_lesson_promises():
    ratio = scenes.deep_over_wide
    assert 2.1 < ratio("nvfp4", "gb300", 16) < 2.5
    assert ratio("bf16", "gb300", 16) == pytest.approx(1.2, abs=0.05)
    assert ratio("nvfp4", "gb300", 4096) == pytest.approx(1.2, abs=0.05)
    ideal = [step_time(rung(h, "nvfp4"), "gb300", 16) for h in RUNGS]
    assert max(ideal) / min(ideal) < 1.05
    floor = gemm.latency_floor(256, 4, gemm_parameters("gb300", "nvfp4").fixed)
    assert floor / calibrated_step_time(rung(3072, "nvfp4"), "gb300", 16) == pytest.approx(0.5, abs=0.03)


def test_a_shrinking_layer_says_what_the_lesson_promises():
    def fixed(hidden, tokens, format):
        parts, bound = scenes.layer_parts(hidden, tokens, "gb300", format)
        return parts["fixed"] / sum(parts.values()), bound

    assert 0.5 < fixed(1024, 1, "bf16")[0] < 0.6
    assert fixed(4096, 1, "bf16")[0] == pytest.approx(0.1, abs=0.02)
    assert 1 / 3 < fixed(4096, 1, "nvfp4")[0] < 0.45
    assert fixed(1024, 1, "nvfp4")[0] > 0.75
    assert fixed(1024, 16384, "bf16")[0] < 0.05
    assert fixed(16384, 16384, "bf16")[1] == "math"


@pytest.mark.parametrize("tokens", [1, 512, 16384])
def test_parts_of_a_layer_add_up_to_its_time(tokens):
    parts, _ = scenes.layer_parts(2048, tokens, "gb300", "nvfp4")
    draft = rung(2048, "nvfp4")
    total = sum(gemm.calibrated(*size, "gb300", "nvfp4").total for size in draft.block(tokens).values())
    assert sum(parts.values()) == pytest.approx(total, rel=1e-12)


def test_twins_say_what_the_lesson_promises():
    def times(name, format):
        layers = gemm.fused_layers(model_named(name))
        return [gemm.step_time(gemm.wider(layers, w), 1, "gb300", format) for w in (0.5, 1, 2)]

    narrow, now, wide = times("qwen3-32b", "nvfp4")
    assert now / wide == pytest.approx(1.29, abs=0.03)
    assert 1.7 < narrow / now < 2
    narrow, now, wide = times("qwen3-32b", "bf16")
    assert now / wide == pytest.approx(1.03, abs=0.005)
    large = times("llama-3.1-70b", "nvfp4")
    assert 1.1 < large[1] / large[2] < 1.25


def test_measured_small_layers_are_slower_than_large_ones():
    measured, model, ideal = scenes.ratio_of_sizes("gb300", "low", 16)
    # 16 layers of 2048 x 2048 at 4.9 us, one of 8192 x 8192 at 12.2 us
    assert measured == pytest.approx(16 * 4.907 / 12.168, rel=2e-3)
    assert 6 < measured < 7 and model == pytest.approx(measured, rel=0.1) and ideal < 1.05
    assert 2.8 < scenes.ratio_of_sizes("gb300", "high", 16)[0] < 3.2
    assert scenes.ratio_of_sizes("gb300", "high", 16384)[0] == pytest.approx(1, abs=0.05)
    assert 1.5 < scenes.ratio_of_sizes("gb300", "low", 16384)[0] < 1.8


@pytest.mark.parametrize("chip", ["gb300", "b200", "h200"])
@pytest.mark.parametrize("precision", ["high", "low"])
def test_measured_squares_stay_above_the_ideal(chip, precision):
    for tokens in (1, 16, 256, 2048, 16384):
        sides, measured, _ = scenes.OnSilicon.squares(chip, precision, tokens)
        assert {512, 2048, 3072, 4096, 8192} <= set(sides.tolist())
        assert (sorted(sides) == sides).all() and (measured > 0).all()
        ratio = scenes.ratio_of_sizes(chip, precision, tokens)
        assert ratio[0] > 0.9 * ratio[2]


@pytest.mark.parametrize(("case", "published"), scenes.FULL_TABLES.items())
def test_whole_ffns_come_near_what_the_full_tables_gave(case, published):
    assert scenes.ffn_ratio(*case) == pytest.approx(published, rel=0.15)


def test_deeper_models_keep_more_cache():
    rows = scenes.rung_rows()
    grouped, multi = ([float(row[at].replace(",", "")) for row in rows] for at in (-2, -1))
    assert grouped == sorted(grouped, reverse=True) and multi == sorted(multi, reverse=True)
    assert grouped[0] / grouped[-1] == pytest.approx(16, rel=0.01)  # 256 layers over 16
    assert multi[0] / multi[-1] == pytest.approx(4, rel=0.01)  # its square root
    assert grouped[2] == pytest.approx(2 * 64 * 8 * 128 * 2 / 1000, rel=0.01)


def test_the_frontier_says_what_the_lesson_promises():
    def gain(hidden, format, batch):
        return (
            calibrated_rates(rung(hidden, format), "gb300", batch)[0]
            / calibrated_rates(rung(6144, format), "gb300", batch)[0]
        )

    assert gain(8192, "nvfp4", 64) == pytest.approx(1.15, abs=0.02)
    assert gain(8192, "bf16", 64) == pytest.approx(1.02, abs=0.01)
    assert 0.5 < gain(3072, "nvfp4", 64) < 0.6
    assert gain(3072, "nvfp4", 4096) > 0.8


def test_by_hand_comes_near_the_calibrated_model():
    names, _ = lesson.run("07_width_depth")
    assert len(names["worked"]) == 2
    for _, floor, hand, model in names["worked"]:
        assert float(floor) < float(hand) == pytest.approx(float(model), rel=0.2)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("width_depth-1", 32),
        ("width_depth-2", 1 / (80 * 6 * 4e-6)),
        ("width_depth-3", 452),
        ("width_depth-4", 1.307),
        ("width_depth-5", 3),
        ("width_depth-6", 36),
    ],
)
def test_right_answers_are_right(exercise, answer):
    assert mark(exercise_named(exercise), answer)[0] == "right"


def test_applied_4_may_be_done_by_hand():
    """Floor and weights over the reached bandwidth, with the numbers that the lesson shows."""

    def hand(layers, hidden):
        head = 2.151e-6 + 128256 * hidden * 2 / (0.7663 * 8e12)  # BF16
        return 4 * layers * 3.892e-6 + 6.98e9 * 0.5625 / (0.8148 * 8e12) + head

    assert mark(exercise_named("width_depth-4"), hand(32, 4096) / hand(8, 8192))[0] == "right"


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        ("width_depth-1", 48, "square"),
        ("width_depth-1", 162, "fewer"),
        ("width_depth-2", 3125, "six kernels"),
        ("width_depth-2", 1920, "tokens a second"),
        ("width_depth-3", 41.9, "bytes over bandwidth"),
        ("width_depth-3", 113, "four"),
        ("width_depth-4", 1.042, "BF16"),
        ("width_depth-5", 2, "quantizes"),
        ("width_depth-5", 4, "fixed"),
        ("width_depth-6", 16, "fewer layers"),
        ("width_depth-6", 64, "fewer tokens"),
    ],
)
def test_slips_are_named(exercise, answer, said):
    verdict, text = mark(exercise_named(exercise), answer)
    assert verdict == "wrong"
    assert said in text


def test_the_slip_prints_what_bytes_over_bandwidth_give():
    from cotune.teach.lessons.width_depth import read_time

    seconds = read_time(model_named("qwen3-0.6b"), "nvfp4")
    assert seconds == pytest.approx(596_049_920 * 0.5625 / 8e12)  # parameters of Qwen3-0.6B as transformers counts them
    assert 23_000 < 1 / seconds < 24_000 and round(seconds * 1e6) == 42


def test_narrow_formats_slow_the_small_model_down():
    layers = gemm.fused_layers(model_named("qwen3-0.6b"))
    now, fp8, nvfp4 = (gemm.step_time(layers, 1, "gb300", f) for f in ("bf16", "fp8", "nvfp4"))
    assert now < nvfp4 < fp8
    measured, many = scenes.small_layers(tokens=1)
    assert many >= 10 and 1 < measured["nvfp4"] < measured["fp8"] < 1.6


def test_one_token_in_bf16_is_where_the_model_fails():
    measured, model, _ = scenes.ratio_of_sizes("gb300", "high", 1)
    assert measured == pytest.approx(16 * 7.2 / 25.0, rel=0.02)
    assert model < 0.7 * measured


def test_no_answer_stands_in_the_lesson(shown):
    said = "\n".join(text for one in shown.values() for text in one.sentences())
    assert not re.search(r"\b521 tokens|\b452 µs|1\.31\d? times as fast|0\.337 ms", said)


def test_a_reader_may_bring_any_model():
    """A dense Model joins the twins, whatever its name; one with experts, or odd layers, is left out."""
    own = replace(model_named("qwen3-8b"), name="qwen3-32b")
    controls = scenes.twin_controls(own)
    assert len(controls[0].values) == 3
    said = lesson.explorer.sentence(scenes.Twins(), lesson.explorer.values(controls, model=own))
    theirs = lesson.explorer.sentence(scenes.Twins(), lesson.explorer.values(controls, model="qwen3-32b"))
    assert said.startswith("qwen3-32b") and said != theirs
    for name in ("deepseek-v3", "llama-3.1-405b", "qwen3-32b"):
        assert len(scenes.twin_controls(model_named(name))[0].values) == 2
