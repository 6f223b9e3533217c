"""What lesson 06 promises in words, computed; counts against published values."""

import re
from dataclasses import replace

import numpy as np
import pytest

import lesson
from cotune import count, layer, silicon
from cotune.config import model_named
from cotune.teach.figures import anatomy as scenes
from cotune.teach.grade import exercise_named, mark
from cotune.teach.running_case import GATED, as_model, decode_rates, most_requests


@pytest.fixture(scope="module")
def shown():
    return {s.title: s for s in lesson.run("06_anatomy")[1]}


def total(counter, name, *args, **more):
    return counter(model_named(name), *args, **more).total


def test_deepseek_holds_more_reads_less_keeps_less():
    small, large = "llama-3.1-70b", "deepseek-v3"
    assert 9 < total(count.weight_bytes, large) / total(count.weight_bytes, small) < 10
    assert 0.4 < total(count.active_weight_bytes, large) / total(count.active_weight_bytes, small) < 0.6
    assert total(count.kv_bytes, large, 8192) < total(count.kv_bytes, small, 8192)
    assert total(count.kv_bytes, small, 2**18) > total(count.weight_bytes, small) / 2


def test_active_weight_bytes_are_two_for_each_active_parameter():
    for name in ("deepseek-v3", "llama-3.1-8b", "mixtral-8x7b", "qwen3.5-27b"):
        assert total(count.active_weight_bytes, name) == 2 * total(count.active_parameters, name)


def test_shares_of_the_flop_move_as_the_lesson_says():
    def share(name, context, group):
        return scenes.grouped(layer.decode_flops(model_named(name), context))[group]

    assert share("llama-3.1-70b", 1024, "dense FFN") == pytest.approx(80, abs=2)
    assert share("llama-3.1-70b", 2**20, "dense FFN") < 5
    assert share("deepseek-v3", 16384, "attention") > 50
    assert share("qwen3.5-27b", 65536, "dense FFN") > share("llama-3.1-70b", 65536, "dense FFN")


@pytest.mark.parametrize("name", scenes.MODELS)
def test_groups_make_a_whole(name):
    for found in (count.parameters(model_named(name)), layer.decode_flops(model_named(name), 4096)):
        shares = scenes.grouped(found)
        assert sum(shares.values()) == pytest.approx(100)
        assert all(share > -1e-9 for share in shares.values())
        assert shares[scenes.REST] < 2


def test_the_guess_is_checked_against_the_paper():
    counted, published = scenes.Guess.answers()
    assert counted == pytest.approx(published, rel=1e-12)
    assert counted == pytest.approx(70.272e3 * 131072 / 1e9)


@pytest.mark.parametrize("chip", ["gb300", "b200", "h200"])
def test_measured_attention_never_beats_the_bandwidth_and_comes_near_it(chip):
    table = silicon.decode_table().where(chip=chip)
    share = silicon.ideal_decode(table).total / table["latency"]
    assert share.max() < 1
    many = table.where(batch=64, context=lambda c: c >= 16384, dtype="bfloat16")
    assert np.median(silicon.ideal_decode(many).total / many["latency"]) > 0.7
    one = table.where(batch=1, context=1024)
    assert np.median(silicon.ideal_decode(one).total / one["latency"]) < 0.1


def test_fp8_cache_saves_less_than_half_the_time():
    narrow, wide = (silicon.decode_table().where(chip="gb300", batch=64, dtype=d) for d in ("fp8", "bfloat16"))
    for column in ("heads", "kv_heads", "head_dim", "context"):
        assert (narrow[column] == wide[column]).all()
    assert 0.5 < np.median(narrow["latency"] / wide["latency"]) < 0.8


def test_fewer_kv_heads_let_more_requests_in():
    fits = {h: most_requests(as_model(GATED, h), "gb300", 8192) for h in (48, 8, 4)}
    assert fits[48] < 32 <= fits[8] < fits[4]
    assert (
        decode_rates(as_model(GATED, 8), "gb300", 32, 8192)[0] > decode_rates(as_model(GATED, 48), "gb300", 32, 8192)[0]
    )
    assert 0 < most_requests(as_model(GATED, 8), "gb300", 131072) < 10


def test_what_fits_really_fits():
    model = as_model(GATED, 8)
    most = most_requests(model, "gb300", 8192)
    held = count.weight_bytes(model).total + most * count.kv_bytes(model, 8192).total
    assert held <= 298.01e9 < held + 1.1 * count.kv_bytes(model, 8192).total


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        ("anatomy-1", 2 * 36 * 6 * 128 * 2),
        ("anatomy-2", 64 * (1 - (1 - 4 / 64) ** 16)),
        ("anatomy-3", 3.75),  # hf-mem 0.5.6 printed four times as much
        ("anatomy-4", 156575),  # aiconfigurator pull request 1201
        ("anatomy-5", 122880),  # exo pull request 1669
        ("anatomy-6", 3),
    ],
)
def test_right_answers_are_right(exercise, answer):
    assert mark(exercise_named(exercise), answer)[0] == "right"


@pytest.mark.parametrize(
    ("exercise", "answer", "said"),
    [
        ("anatomy-1", 2 * 36 * 48 * 128 * 2, "query heads"),
        ("anatomy-1", 2 * 36 * 6 * 128, "factor|half|2 times|2"),
        ("anatomy-2", 64, "same experts"),
        ("anatomy-3", 15, "60 layers"),
        ("anatomy-4", 78351, "stop at 128"),
        ("anatomy-5", 30720, "one copy"),
        ("anatomy-6", 4, "fit"),
        ("anatomy-6", 1, "more heads"),
    ],
)
def test_slips_are_named(exercise, answer, said):
    verdict, text = mark(exercise_named(exercise), answer)
    assert verdict == "wrong"
    assert re.search(said, text)


def test_no_answer_stands_in_the_lesson(shown):
    said = "\n".join(text for one in shown.values() for text in one.sentences())
    assert not re.search(r"110,592|\b111 kB|\b41\.2\b|3\.75 GiB|156,575|122,880|\b123 kB", said)


def test_a_reader_may_bring_any_config():
    """A Model that is read from a file joins every explorer, whatever its name."""
    own = replace(model_named("qwen3-8b"), name="llama-3.1-70b")
    for scene, controls in (
        (scenes.WhatItHolds(), scenes.hold_controls(own)),
        (scenes.Growth(), scenes.growth_controls(own)),
        (scenes.WhereFlopsGo(), scenes.flop_controls(own)),
    ):
        assert len(controls[0].values) == len(scenes.MODELS) + 1
        lesson.explorer.page_controls(controls)
        said = lesson.explorer.sentence(scene, lesson.explorer.values(controls, model=own))
        theirs = lesson.explorer.sentence(scene, lesson.explorer.values(controls, model="llama-3.1-70b"))
        assert said.startswith("llama-3.1-70b") and said != theirs
    assert len(scenes.hold_controls(model_named("llama-3.1-70b"))[0].values) == len(scenes.MODELS)
