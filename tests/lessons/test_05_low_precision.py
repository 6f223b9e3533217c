"""What lesson 05 promises in words, computed; measured facts with their filters."""

import re
from dataclasses import replace

import numpy as np
import pytest

import lesson
from cotune import count, gemm, silicon
from cotune.config import model_named
from cotune.teach import quantizing
from cotune.teach.figures import low_precision as scenes
from cotune.teach.grade import exercise_named, mark
from cotune.teach.lessons.low_precision import linear_share, prefill_gain
from cotune.teach.running_case import GATED, calibrated_rates, calibrated_step_time


@pytest.fixture(scope="module")
def shown():
    return {s.title: s for s in lesson.run("05_low_precision")[1]}


def zeros(format, largest, part):
    return int(np.sum(quantizing.rounded(quantizing.one_block(largest), format)[part] == 0))


def test_an_outlier_hurts_its_own_block_only():
    near, far = [i for i in range(16) if i != 4], slice(16, 32)
    lost = [zeros("nvfp4", largest, near) for largest in (1, 8, 32, 128)]
    assert lost == sorted(lost) and lost[0] < 5 and lost[-1] == 15
    kept = {zeros("nvfp4", largest, far) for largest in (1, 8, 32, 128)}
    assert max(kept) <= min(kept) + 1
    assert zeros("mxfp4", 128, far) == 16
    assert zeros("mxfp8", 128, near) == zeros("mxfp8", 128, far) == 0


def error(data, kind, block, rotation=False):
    return quantizing.product_error(data, kind, block, rotation) * 100


def test_errors_of_the_product_are_these():
    """The seed is fixed, so these are facts of the emulation; an independent one gave the same to three digits."""
    assert error("normal", "nvfp4", 16) == pytest.approx(13.4, abs=0.3)
    assert error("normal", "mxfp4", 32) == pytest.approx(16.3, abs=0.4)
    assert error("normal", "mxfp8", None) == pytest.approx(4.2, abs=0.2)


def test_errors_move_as_the_lesson_says():
    normal = [error("normal", "nvfp4", b) for b in (16, 32, 64, 128)]
    assert normal == sorted(normal) and normal[-1] < 1.25 * normal[0]
    assert error("outliers", "nvfp4", 128) > 1.5 * error("outliers", "nvfp4", 16)
    assert error("outliers", "nvfp4", 128, True) < 0.8 * error("outliers", "nvfp4", 128)
    assert error("outliers", "nvfp4", 16, True) > 1.05 * error("outliers", "nvfp4", 16)
    assert error("outliers", "mxfp4", 32, True) < 0.9 * error("outliers", "mxfp4", 32)


def test_a_rotation_leaves_the_product():
    for data in quantizing.DATA:
        a, b = quantizing.operands(data)
        assert quantizing.relative_error(quantizing.rotate(a) @ quantizing.rotate(b).T, a @ b.T) < 1e-12


def test_the_tails_are_as_heavy_as_said():
    """Kurtosis: 3 for normal values; without bound for Student's t with three degrees of freedom."""

    def kurtosis(x):
        return np.mean(x**4) / np.mean(x**2) ** 2

    normal, heavy, outliers = (quantizing.operands(d)[0] for d in ("normal", "heavy", "outliers"))
    assert kurtosis(normal) == pytest.approx(3, abs=0.1)
    assert kurtosis(heavy) > 20
    size = np.sqrt(np.mean(outliers**2, axis=0))
    assert np.sum(size > 20) == quantizing.OUTLIERS and np.median(size) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("low", "high", "median"), [(0, 5e6, 0.83), (5e6, 16e6, 1.14), (16e6, 64e6, 1.56), (64e6, np.inf, 2.14)]
)
def test_measured_speed_up_by_size(low, high, median):
    """GB300, N and K from 512, M up to 8192, the rows one token past a tile edge left out."""
    table, ratio = silicon.speedups("gb300", "nvfp4")
    m, n, k = (table[size] for size in "mnk")
    used = (n >= 512) & (k >= 512) & (m <= 8192) & ~np.isin(m, (129, 257, 513)) & (n * k >= low) & (n * k < high)
    assert np.median(ratio[used]) == pytest.approx(median, abs=0.006)


def test_layers_gain_as_the_lesson_says():
    weights, measured, _ = scenes.SpeedUp.rows("gb300", "bfloat16", 16)
    assert np.mean(measured[weights < 5] < 1) > 0.9
    assert 2 < np.median(measured[weights >= 64]) < 3
    assert scenes.SpeedUp.rows("gb300", "bfloat16", 8192)[1].max() < 3.1
    for chip in ("gb300", "gb200", "b200"):
        ratio = silicon.speedups(chip, "nvfp4", "fp8_block")[1]
        assert 1.25 < np.median(ratio) < 1.45


def whole(model, phase, format):
    before, now = (scenes.WholeModel.times(model_named(model), phase, f, 8192, 16, "gb300") for f in ("bf16", format))
    return sum(before) / sum(now)


def test_whole_models_gain_as_the_lesson_says():
    linear = [
        scenes.WholeModel.times(model_named("qwen3-0.6b"), "decode", f, 8192, 16, "gb300")[0] for f in ("bf16", "nvfp4")
    ]
    assert linear[0] < linear[1] and whole("qwen3-0.6b", "decode", "nvfp4") > 1
    assert 3 < whole("llama-3.1-405b", "decode", "nvfp4") < 3.4
    assert whole("llama-3.1-405b", "prefill", "nvfp4") < 3
    gained = (whole("llama-3.1-8b", "decode", f) - 1 for f in ("fp8", "nvfp4"))
    assert 0.4 < next(gained) / next(gained) < 0.5


def test_the_running_case_gains_as_the_lesson_says():
    narrow = replace(GATED, format="nvfp4")
    for tokens, low, high in ((16, 2.0, 2.6), (4096, 1.9, 2.5)):
        assert low < calibrated_rates(narrow, "gb300", tokens)[0] / calibrated_rates(GATED, "gb300", tokens)[0] < high
    more, few = calibrated_rates(narrow, "gb300", 256), calibrated_rates(GATED, "gb300", 64)
    assert more[0] > few[0] and more[1] > few[1]


def test_the_guess_is_a_measurement():
    modelled, measured = scenes.Guess.answers()
    assert measured == pytest.approx(1.03, abs=0.005)
    assert modelled == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("low_precision-1", 3584 * 18944 * 4.5 / 8 / 1e6),
        ("low_precision-2", 1.0),
        ("low_precision-3", 367.823683584),  # ai-dynamo/aiconfigurator, pull request 391
        ("low_precision-4", 1.875),
        ("low_precision-5", 4),
    ],
)
def test_right_answers_are_right(exercise, answer):
    assert mark(exercise_named(exercise), answer)[0] == "right"


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        ("low_precision-1", 3584 * 18944 / 2 / 1e6, "scales"),
        ("low_precision-1", 3584 * 18944 * 4.25 / 8 / 1e6, "MXFP4"),
        ("low_precision-2", 0.875, "steps"),
        ("low_precision-2", 0.9, "value itself"),
        ("low_precision-3", 326.95, "no scales"),
        ("low_precision-4", 2.4, "Attention"),
        ("low_precision-5", 8, "360"),
        ("low_precision-5", 2, "MXFP4"),
    ],
)
def test_slips_are_named(exercise, answer, said):
    verdict, text = mark(exercise_named(exercise), answer)
    assert verdict == "wrong"
    assert re.search(said, text)


def test_the_open_exercise_has_one_answer():
    most = next(kept for kept in range(65) if mark(exercise_named("low_precision-6"), kept)[0] == "right")
    assert prefill_gain(most) >= 1.9 > prefill_gain(most + 1)
    assert mark(exercise_named("low_precision-6"), most + 1)[0] == "wrong"
    assert calibrated_step_time(replace(GATED, format="nvfp4"), "gb300", 8192, kept=64) == pytest.approx(
        calibrated_step_time(GATED, "gb300", 8192)
    )


def test_the_fourth_exercise_says_the_share():
    assert linear_share(model_named("llama-3.1-70b"), 32768) == pytest.approx(0.8, abs=0.005)


def test_no_answer_stands_in_the_lesson(shown):
    said = "\n".join(text for one in shown.values() for text in one.sentences())
    assert not re.search(r"38\.19|367\.8", said)


def test_a_model_with_experts_is_not_offered():
    own = replace(model_named("mixtral-8x7b"), name="mine")
    assert len(scenes.whole_controls(own)[0].values) == len(scenes.MODELS)
    own = replace(model_named("qwen3-8b"), name="mine")
    assert len(scenes.whole_controls(own)[0].values) == len(scenes.MODELS) + 1
    assert count.parameters(own).total and gemm.model_times(own, 16, "gb300").total > 0
