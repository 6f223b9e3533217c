"""What lesson 02 promises in words, computed."""

import re

import pytest

import lesson
from cotune import gemm, roofline, silicon
from cotune.chip import chip_named
from cotune.teach.figures import roofline as scenes
from cotune.teach.grade import exercise_named, mark
from cotune.teach.running_case import FIRST, operands, rates, step_time, used_share


@pytest.fixture(scope="module")
def shown():
    return {s.title: s for s in lesson.run("02_roofline")[1]}


def test_table_2_agrees_with_every_printed_digit():
    names, _ = lesson.run("02_roofline")
    assert names["same"] == 9
    # without the block scales the reads do not come out
    for m, line in names["PRINTED"].items():
        assert not names["agree"](0.5 * (m * 512 + 8192 * 512) / 8e12 / 1e-6, line.split()[1])


def layer(tokens, ffn, format):
    return gemm.time(tokens, 8192, ffn, chip_named("gb300"), **operands(format))


def test_a_small_k_never_reaches_the_ridge_and_a_wide_one_does():
    assert [layer(m, 512, "nvfp4").bound for m in (1, 256, 16384)] == ["memory"] * 3
    assert layer(16384, 8192, "nvfp4").bound == "compute"
    assert layer(16384, 8192, "bf16").bound == "compute"


def test_in_decode_the_batch_is_nearly_free_up_to_the_ridge():
    time = {m: gemm.time(m, 4 * 8192, 8192, chip_named("gb300"), **operands("bf16")).total for m in (1, 256, 4096)}
    assert 240 < 256 * time[1] / time[256] < 256
    assert time[4096] / time[256] > 8
    narrow = gemm.time(16, 4 * 8192, 8192, chip_named("gb300"), **operands("nvfp4")).total
    wide = gemm.time(16, 4 * 8192, 8192, chip_named("gb300"), **operands("bf16")).total
    assert narrow / wide == pytest.approx(4.5 / 16, rel=0.02)


def test_ridges_move_little_in_bf16_and_far_in_four_bits():
    bf16 = [roofline.ridge(chip_named(c), "bf16") for c in ("h100", "b200", "gb300")]
    assert max(bf16) / min(bf16) < 1.1
    assert roofline.ridge(chip_named("gb300"), "nvfp4") == 6 * roofline.ridge(chip_named("gb300"), "bf16")


@pytest.mark.parametrize("chip", ["gb300", "b200", "h200"])
@pytest.mark.parametrize("precision", ["high", "low"])
def test_measured_layers_stay_below_the_roof(chip, precision):
    for tokens in (1, 16, 256, 8192, 32768):
        table, _ = scenes.OnSilicon().rows(chip, precision, tokens)
        assert len(table) > 15
        assert (silicon.ideal(table).total < table["latency"]).all()


def test_h200_comes_closest_to_its_roof_in_low_precision():
    median = {c: scenes.Distance.curve(c, "low") for c in ("gb300", "b200", "h200")}
    for place in range(len(median["h200"][0])):
        assert median["h200"][1][place] == max(m[1][place] for m in median.values())


def test_the_guessed_layer_is_one_that_was_measured():
    ideal, measured = scenes.Guess.answers()
    # 16 x 8192 x 8192 on GB300 in NVFP4: 12.168 us in the table, 15 PFLOP/s at peak
    assert measured == pytest.approx(2 * 16 * 8192**2 / 12.168e-6 / 15e15 * 100, rel=1e-9)
    assert measured < ideal < 4


def test_a_lone_request_leaves_the_arithmetic_idle():
    weights = FIRST.parameters - FIRST.vocab * FIRST.hidden  # the embedding is looked up, not multiplied
    step = step_time(FIRST, chip_named("gb300"), 1)
    assert used_share(FIRST, chip_named("gb300"), 1) == pytest.approx(2 * weights / 2.5e15 / step, rel=1e-9)
    assert used_share(FIRST, chip_named("gb300"), 4096) == pytest.approx(1)


def test_the_roof_orders_most_pairs_of_layers():
    for chip in ("gb300", "b200", "h200"):
        assert 85 < scenes.ordered(chip, "low", 16) < scenes.ordered(chip, "high", 16) < 100


def test_running_case_is_30_billion_and_reads_its_weights_once():
    assert 30e9 < FIRST.parameters < 31e9
    weights = (FIRST.parameters - FIRST.vocab * FIRST.hidden) * 2 / 8e12  # the input embedding is only looked up
    assert step_time(FIRST, chip_named("gb300"), 1) == pytest.approx(weights, rel=2e-3)
    user, gpu = rates(FIRST, chip_named("gb300"), 256)
    assert gpu == pytest.approx(256 * user)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("roofline-1", 2 * 64 * 4096**2 / (64 * 4096 + 4096**2 + 2 * 64 * 4096)),
        ("roofline-2", 640),
        ("roofline-3", 48.5),  # fms-fsdp issue 89: 480 TFLOP/s of 989.4
        ("roofline-4", 310),
        ("roofline-5", 2),
        ("roofline-6", 206),
        ("roofline-6", 256),
        ("roofline-6", 512),
    ],
)
def test_right_answers_are_right(exercise, answer):
    assert mark(exercise_named(exercise), answer)[0] == "right"


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        ("roofline-1", 124.12, "BF16"),  # the result counted as one byte
        ("roofline-1", 128, "weights alone"),
        ("roofline-2", 0.640, "SI prefix"),
        ("roofline-3", 24.25, "dense"),
        ("roofline-4", 295.34, "rule of thumb"),
        ("roofline-5", 1, "one expert"),
        ("roofline-6", 100, "less than 90 %"),
        ("roofline-6", 600, "asked for"),
    ],
)
def test_slips_are_named(exercise, answer, said):
    verdict, text = mark(exercise_named(exercise), answer)
    assert verdict == "wrong"
    assert said in text


def test_no_answer_stands_in_the_lesson(shown):
    """What exercises 1 and 4 ask for is said in no frame of the page."""
    said = "\n".join(text for one in shown.values() for text in one.sentences())
    assert not re.search(r"122(\.\d)? FLOP/B|\b(310|309\.7) tokens", said)
