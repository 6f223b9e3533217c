"""What lesson 04 promises in words, computed; tiles, waves and alignment against published values."""

import re
from dataclasses import replace

import numpy as np
import pytest

import lesson
from cotune import count, gemm, silicon
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.teach.figures import alignment as scenes
from cotune.teach.grade import exercise_named, mark
from cotune.teach.lessons import alignment as answers
from cotune.teach.running_case import FIRST, GATED, calibrated_rates


@pytest.fixture(scope="module")
def shown():
    return {s.title: s for s in lesson.run("04_alignment")[1]}


def share(kernel, n, chip="gb300"):
    """Share of the best rate in percent that the calibrated model reaches at N."""
    return float(scenes.Sawtooth.rates(chip, kernel)[scenes.Sawtooth.outputs == n][0])


def peaks(kernel):
    """The N of the sawtooth's window at which the calibrated rate is a local maximum."""
    rate = scenes.Sawtooth.rates("gb300", kernel)
    inner = (rate[1:-1] > rate[:-2]) & (rate[1:-1] > rate[2:])
    return scenes.Sawtooth.outputs[1:-1][inner]


# ------------------------------------------------------------------ the sawtooth and the staircase
def test_one_step_past_the_edge():
    (before, _), (after, whole) = (scenes.Sawtooth.fixed(n, "gb300", 256) for n in (2560, 2592))
    assert before == 100
    assert after == pytest.approx(92, abs=1)
    assert whole < after
    assert 1 < share("bf16", 2560) - share("bf16", 2592) < 3
    assert scenes.Sawtooth.plan(2592, "gb300", "bf16").columns < 256


def test_a_wider_tile_loses_more():
    full = [scenes.Sawtooth.fixed(2592, "gb300", columns)[0] for columns in scenes.GRIDS]
    assert full == sorted(full, reverse=True)
    assert full[0] - full[-1] > 10


def test_the_fixed_tile_peaks_where_figure_5_does():
    """NVIDIA 2026-07-10, Figure 5: a kernel with tiles of 256 x 128 in groups has maxima at multiples of 256 or 512."""
    for columns in (256, 512):
        full, _ = scenes.Sawtooth.fixed(scenes.Sawtooth.outputs, "gb300", columns)
        assert (scenes.Sawtooth.outputs[full == 100] % columns == 0).all()


def test_the_calibrated_rate_peaks_at_multiples_of_128():
    for kernel in ("bf16", "nvfp4"):
        assert (peaks(kernel) % 128 == 0).all()
        assert (peaks(kernel) % 256 != 0).any()


def test_the_menu_softens_the_sawtooth_and_a_wide_layer_is_faster():
    _, whole = scenes.Sawtooth.fixed(scenes.Sawtooth.outputs, "gb300", 256)
    assert np.ptp(scenes.Sawtooth.rates("gb300", "bf16")) < 0.6 * np.ptp(whole)
    assert share("nvfp4", 2048) < 80 < 95 < share("nvfp4", 4096)


def test_rounds_lie_between_no_idle_sm_and_whole_waves():
    sms = chip_named("a100").sm
    tiles = np.arange(1, 500)
    paid = gemm.rounds(tiles, sms)
    assert (paid >= tiles / sms).all()
    assert (paid <= gemm.waves(tiles, sms)).all()
    assert (np.diff(paid) >= 0).all()
    assert gemm.rounds(108, sms) == 1
    assert gemm.rounds(109, sms) == pytest.approx(1.25, abs=0.01)
    assert gemm.wave_efficiency(433, sms) == pytest.approx(0.8, abs=0.005)


def test_the_calibrated_time_pays_these_rounds():
    """The rounds that the lesson explains are those inside gemm.calibrated."""
    k, sms = 16384, chip_named("gb300").sm
    for m, n in ((8192, 8192), (8192, 2592)):
        plan = gemm.calibrated(m, n, k, "gb300", "nvfp4")
        one = gemm.calibrated(64, 32, k, "gb300", "nvfp4")
        each = one.math / (one.rows * one.columns)  # one round of the smallest tile, for each of its elements
        tiles = gemm.tiles(m, n, (plan.rows, plan.columns))
        assert plan.math == pytest.approx(gemm.rounds(tiles, sms) * plan.rows * plan.columns * each)


def test_150_tiles_fit_one_chip_and_not_the_other():
    assert gemm.waves(150, chip_named("b200").sm) == 2
    assert gemm.waves(150, chip_named("gb300").sm) == 1


# ------------------------------------------------------------------ real models
def off(model, tp):
    return {name for name, size in scenes.sizes(model_named(model), tp).items() if size and size % 128}


def test_what_leaves_the_grid():
    assert off("gpt-oss-120b", 1) == {"width H", "one expert"}
    assert off("gpt-oss-120b", 8) == {"width H", "one expert", "KV heads", "vocabulary"}
    assert scenes.sizes(model_named("gpt-oss-120b"), 8)["KV heads"] == 64
    assert "dense FFN" not in off("deepseek-v3", 16)
    assert {"dense FFN", "one expert"} <= off("deepseek-v3", 32)
    assert off("llama-3.1-70b", 8) == {"vocabulary"}


def test_counter_examples_are_what_the_sources_say():
    assert scenes.sizes(model_named("deepseek-v3"), 32)["dense FFN"] == 576  # LMSYS 2025-05-05
    assert model_named("gpt-oss-120b").hidden / 128 == 22.5
    assert scenes.in_grid(2880) == "2,880 = 22.5 × 128"


@pytest.mark.parametrize("model", scenes.MODELS)
def test_sizes_are_those_of_the_config(model):
    m = model_named(model)
    held = scenes.sizes(m, 1)
    assert held["width H"] == m.hidden
    assert held["vocabulary"] == m.vocab
    assert held["dense FFN"] or held["one expert"]


def test_the_worked_example_says_what_it_computes(shown):
    names = lesson.run("04_alignment")[0]
    assert 1.5 < names["loss"]("bf16", 2944) < 3
    assert 5 < names["loss"]("nvfp4", 3072) < 9
    for kernel in ("bf16", "nvfp4"):
        assert names["per_column"](576, kernel) <= max(names["per_column"](p, kernel) for p in (512, 640))


# ------------------------------------------------------------------ silicon
@pytest.mark.parametrize(
    ("dtype", "medians"),
    [("bfloat16", (7, 14, 10)), ("fp8_block", (0, 2, 9)), ("nvfp4", (25, 13, 19))],
)
def test_measured_steps_of_gb300(dtype, medians):
    """N and K from 2048 to 16384, 24 layers: computed before, from the same tables, by others."""
    for edge, median in zip(scenes.GRIDS, medians, strict=True):
        weights, *_ = scenes.OnSilicon.rows("gb300", dtype, edge)
        assert len(weights) == 24
        assert scenes.OnSilicon.medians("gb300", dtype, edge)[0] == pytest.approx(median, abs=0.5)


def test_the_tables_cannot_test_alignment():
    table = silicon.gemm_table()
    assert not (table["n"] % 128).any() and not (table["k"] % 128).any()


def test_where_the_calibrated_model_is_right_and_where_wrong():
    for edge in scenes.GRIDS:
        seen, told = scenes.OnSilicon.medians("gb300", "bfloat16", edge)
        assert abs(seen - told) < 2
    seen, told = scenes.OnSilicon.medians("gb300", "nvfp4", 128)
    assert told < seen - 7
    seen, told = scenes.OnSilicon.medians("gb300", "fp8_block", 128)
    assert abs(seen) < 1 and told > 5


def test_other_chips_and_the_spread():
    assert 40 < scenes.OnSilicon.medians("h200", "fp8_block", 128)[0] < 50
    _, measured, _ = scenes.OnSilicon.rows("gb300", "nvfp4", 128)
    assert measured.min() < 0


def test_a_chip_without_nvfp4_says_so(shown):
    one = shown["One token past an edge"]
    lesson.explorer.canvas(one.scene)
    assert "no NVFP4" in one.scene.update(chip="h200", edge=128, dtype="nvfp4")
    assert "24 measured" in one.scene.update(chip="h200", edge=128, dtype="fp8_block")


def test_the_guess_compares_measured_rows():
    modelled, measured = scenes.Guess.answers()
    assert measured == pytest.approx((21.731 / 15.568 - 1) * 100, abs=0.05)
    assert modelled < measured


# ------------------------------------------------------------------ the running case
def test_the_gated_running_case_lies_on_the_grid():
    assert GATED.parameters == FIRST.parameters
    assert 3 * GATED.ffn == 8 * GATED.hidden and GATED.ffn == 16384
    assert all(gemm.shard(GATED.ffn, tp) % 128 == 0 for tp in (1, 2, 4, 8, 16, 32, 64, 128))
    assert scenes.OFF.parameters == pytest.approx(GATED.parameters, rel=5e-4)
    assert scenes.OFF.hidden % 128 and scenes.OFF.ffn % 128
    with pytest.raises(ValueError, match="48 does not divide among 32"):
        gemm.shard(GATED.hidden // 128, 32)


def test_one_token_more_steps_back():
    (user, gpu), (more_user, more_gpu) = (calibrated_rates(GATED, "gb300", batch) for batch in (256, 257))
    assert more_gpu < 0.9 * gpu and more_user < user


def test_the_grid_buys_little_and_only_in_prefill():
    assert 0 < scenes.Frontier.lost(4096, 1, "bf16") < 1
    assert 1.5 < scenes.Frontier.lost(4096, 16, "bf16") < 3
    for tp in (1, 8, 16):
        assert abs(scenes.Frontier.lost(64, tp, "bf16")) < 0.3


# ------------------------------------------------------------------ exercises
@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("alignment-1", 300 * 1000 / (384 * 1024) * 100),
        ("alignment-2", 544 / (5 * 132) * 100),
        ("alignment-3", 152576),  # Megatron-LM, issue 1702
        ("alignment-4", (384 / 360 - 1) * 100),
        ("alignment-5", 11264),
        ("alignment-6", 21504),
        ("alignment-6", 22528),
    ],
)
def test_right_answers_are_right(exercise, answer):
    assert mark(exercise_named(exercise), answer)[0] == "right"


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        ("alignment-1", 300 / 384 * 100, "M alone"),
        ("alignment-1", 1000 / 1024 * 100, "N alone"),
        ("alignment-2", 544 / 528 * 100, "waves up"),
        ("alignment-2", 16 / 132 * 100, "last wave alone"),
        ("alignment-3", 151936, "printed value"),
        ("alignment-4", (2944 / 2880 - 1) * 100, "whole expert"),
        ("alignment-4", (1 - 360 / 384) * 100, "real one"),
        ("alignment-5", 11008, "Divide it by 8"),
        ("alignment-6", 22000, "no multiple of 128"),
        ("alignment-6", 20480, "less than 29"),
        ("alignment-6", 23552, "more than 31"),
        ("alignment-6", -1, "less than 29"),
        ("alignment-3", 152576 // 8, "part of one GPU"),
        ("alignment-5", 87 * 128, "next multiple of 128"),
        ("alignment-5", 11264 // 8, "part of one GPU"),
    ],
)
def test_slips_are_named(exercise, answer, said):
    verdict, text = mark(exercise_named(exercise), answer)
    assert verdict == "wrong"
    assert said in text


def test_the_open_exercise_accepts_what_its_words_accept():
    right = [
        ffn
        for ffn in range(20000, 25000, 8)
        if 29e9 <= replace(GATED, hidden=5120, ffn=ffn).parameters <= 31e9 and ffn // 8 % 128 == 0
    ]
    assert right == answers.open_widths()
    assert all(mark(exercise_named("alignment-6"), ffn)[0] == "right" for ffn in right)
    assert mark(exercise_named("alignment-6"), 21308)[0] == mark(exercise_named("alignment-6"), 21309)[0] == "wrong"


def test_no_answer_stands_in_the_lesson(shown):
    said = "\n".join(text for one in shown.values() for text in one.sentences())
    said += "\n".join(c.source for c in lesson.cells("04_alignment", "markdown"))
    assert not re.search(r"76\.3 %|82\.4 %|152,?576|6\.67 %|11,?264|21,?504|22,?528", said)


def test_padded_counts_of_the_text():
    assert count.padded_vocab(50257) == 50304  # arXiv 2401.14489
    assert count.padded_vocab(50257, 8) == 51200
    assert gemm.padded(8 * 4096 / 3, 256) == 11008  # Llama-2-7B
    assert [gemm.shard(2560, heads) for heads in (32, 20, 40)] == [80, 128, 64]  # GPT-3 2.7B, arXiv 2401.14489


def test_a_reader_may_bring_any_config():
    """A Model that is read from a file joins the explorer, whatever its name and its parts."""
    own = replace(model_named("nemotron-h-56b"), name="llama-3.1-70b")
    controls = scenes.sharding_controls(own)
    assert len(controls[0].values) == len(scenes.MODELS) + 1
    lesson.explorer.page_controls(controls)
    said = lesson.explorer.sentence(scenes.AfterSharding(), lesson.explorer.values(controls, model=own))
    theirs = lesson.explorer.sentence(scenes.AfterSharding(), lesson.explorer.values(controls, model="llama-3.1-70b"))
    assert said.startswith("llama-3.1-70b") and said != theirs
    assert scenes.best_grid(None) == "none"
    assert [scenes.best_grid(size) for size in (1024, 768, 384, 192)] == ["512", "256", "128", "(64)"]


def test_no_answer_is_printed_before_the_guess():
    """The opening of a lesson must not say the number that the next cell asks for."""
    opening = "".join(str(c.get("outputs", "")) for c in lesson.cells("04_alignment")[:3])
    assert "50.2 %" in opening and "39.6" not in opening
