"""Grading: right, close, or wrong with the likely slip; never a traceback, never a false "right"."""

import json
import math
import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotune.teach import grade as g
from cotune.teach import keep

ONE = g.numeric("x-1", "A size", "GB", 312.5)


@pytest.fixture(autouse=True)
def progress(tmp_path, monkeypatch):
    monkeypatch.setenv("COTUNE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.delenv("COTUNE_STATIC", raising=False)


@pytest.mark.parametrize(
    ("answer", "verdict", "said"),
    [
        (312.5, "right", "Right"),
        ("312.5", "right", "Right"),
        (314, "right", "Right"),
        (302, "close", "Close"),
        (2500, "wrong", "bits and bytes"),
        (39.0625, "wrong", "bits and bytes"),
        (312500, "wrong", "SI prefix"),
        (0.3125, "wrong", "SI prefix"),
        (320000, "wrong", "binary prefix"),
        (625, "wrong", "sparse"),
        (156.25, "wrong", "2MNK"),
        (31250, "wrong", "percentage"),
        (312.5 * 1.024**3, "wrong", "GiB"),
        (312.5 / 1.024**3, "wrong", "GiB"),
        (-312.5, "wrong", "sign"),
        (77, "wrong", "hint"),
        (None, "open", "GB"),
        (math.nan, "unreadable", "one number"),
        (math.inf, "unreadable", "one number"),
        (True, "unreadable", "True"),
        ("a lot", "unreadable", "'a lot'"),
        ([312.5, 1], "unreadable", "[312.5, 1]"),
        (10**400, "unreadable", "number"),
        ("1,312.5", "wrong", "hint"),
        ("312,5", "unreadable", "'312,5'"),
        ("0x138", "unreadable", "number"),
        ("312.5 GB", "unreadable", "number"),
        (" 3.125e2 ", "right", "Right"),
        ("٣", "unreadable", "number"),
    ],
)
def test_verdicts(answer, verdict, said):
    got, text = g.mark(ONE, answer)
    assert got == verdict
    assert said in text


@given(st.one_of(st.floats(), st.text(), st.binary(), st.lists(st.integers()), st.complex_numbers(), st.booleans()))
def test_never_raises(answer):
    verdict, text = g.mark(ONE, answer)
    assert verdict in ("right", "close", "wrong", "open", "unreadable") and text


def test_an_answer_that_hates_to_be_shown():
    class Bad:
        def __repr__(self):
            raise RuntimeError

    assert g.mark(ONE, Bad())[0] == "unreadable"


@given(st.floats(1e-6, 1e9), st.floats(0.2, 5))
def test_right_means_within_the_tolerance(answer, factor):
    exercise = g.numeric("x-2", "A size", "GB", answer)
    right = g.mark(exercise, answer * factor)[0] == "right"
    assert right == (abs(factor - 1) <= 0.01 + 1e-12) or abs(abs(factor - 1) - 0.01) < 1e-9


def test_choices_and_designs():
    pick = g.choose("x-3", "Which", ("a", "b"), 2, {"a": "Look again."})
    assert g.mark(pick, 2) == ("right", "Right.")
    assert g.mark(pick, 1) == ("wrong", "Not yet. Look again.")
    assert g.mark(pick, 3) == ("wrong", "Not yet. Choose a number from 1 to 2.")
    design = g.within("x-4", "How many", "requests", 10, 20, below="More.", above="Fewer.")
    assert [g.mark(design, n)[0] for n in (9, 10, 20, 21, 10.5)] == ["wrong", "right", "right", "wrong", "wrong"]
    assert "at least 1" in g.mark(design, -5)[1] and "whole" in g.mark(design, 10.5)[1]


def test_grade_prints_and_keeps_the_best(capsys):
    g.grade("roofline-2", 1)
    assert keep.get("roofline-2") == "wrong"
    g.grade("roofline-2", 640)
    g.grade("roofline-2", 1)
    assert keep.get("roofline-2") == "right"
    g.grade("roofline-2", None)
    assert "Not answered yet" in capsys.readouterr().out
    g.progress("roofline")
    out = capsys.readouterr().out
    assert "1 of 6" in out and "right  roofline-2" in out


def test_grade_says_when_nothing_could_be_kept(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COTUNE_PROGRESS", str(tmp_path / "no" / "such" / "folder.json"))
    g.grade("roofline-2", 640)
    assert "could not be kept" in capsys.readouterr().out


@pytest.mark.parametrize("id", ["roofline-99", "nothing-1", "", "roofline", None, 3])
def test_unknown_exercises_are_refused(id):
    with pytest.raises(ValueError, match="unknown exercise"):
        g.grade(id, 1)


def test_the_page_gives_the_same_verdicts():
    from html import unescape

    for exercise in (ONE, g.exercise_named("roofline-5"), g.exercise_named("roofline-6")):
        rows = json.loads(unescape(re.search(r'data-verdicts="([^"]*)"', g.form(exercise))[1]))
        for answer in (312.5, 2500, 302, 1, 2, 100, 256, 999, -312.5):
            if exercise.whole and answer != int(answer):
                assert g.mark(exercise, answer) == ("wrong", "Not yet. It must be a whole number.")
                continue
            last = f"Not yet. Choose {exercise.unit}." if exercise.options else g.ELSE
            hit = next((text for low, high, text in rows if low <= answer <= high), last)
            assert hit == g.mark(exercise, answer)[1]


def test_progress_that_is_damaged_is_set_aside(tmp_path):
    keep.path().write_text("{not json")
    assert keep.everything() == {}
    assert (tmp_path / "progress.json.damaged").read_text() == "{not json"
    assert keep.put("a", 1) and keep.get("a") == 1
    keep.path().write_text("[1, 2]")
    assert keep.get("a") is None
    assert (tmp_path / "progress.json.damaged1").read_text() == "[1, 2]"


def test_what_cannot_be_set_aside_is_not_overwritten(monkeypatch, capsys):
    keep.path().write_text("{not json")
    monkeypatch.setattr("pathlib.Path.rename", mock.Mock(side_effect=OSError))
    assert keep.put("a", 1) is False
    g.grade("roofline-2", 640)
    assert "could not be kept" in capsys.readouterr().out
    assert keep.path().read_text() == "{not json"


@pytest.mark.parametrize("kept", [None, ["x"], 3, "banana"])
def test_odd_progress_counts_as_open(kept, capsys):
    keep.put("roofline-1", kept)
    g.progress("roofline")
    assert "open   roofline-1" in capsys.readouterr().out


def test_an_unknown_lesson_is_refused():
    with pytest.raises(ValueError, match="no lesson is called 'nope'"):
        g.progress("nope")


def test_exercises_that_no_answer_can_meet_are_refused():
    with pytest.raises(ValueError, match="x-5"):
        g.numeric("x-5", "A size", "GB", math.nan)
    with pytest.raises(ValueError, match="x-6"):
        g.within("x-6", "How many", "requests", 5, 1, below="", above="")
    with pytest.raises(ValueError, match="right must be from 1 to 2, got 9"):
        g.choose("x-7", "Which", ("a", "b"), 9, {"a": "", "b": ""})
