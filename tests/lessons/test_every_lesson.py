"""What holds for every lesson, found from its notebook."""

import itertools
import re

import numpy as np
import pytest

import lesson
from cotune.teach import explorer, svg

LESSONS = lesson.stems()


@pytest.fixture(scope="module", params=LESSONS)
def run(request):
    return request.param, lesson.run(request.param)[1]


def artists(figure):
    """Everything drawn, as text that changes when an artist moves."""
    return "\n".join(svg.lines(figure, "x"))


def test_a_lesson_has_two_explorers_and_a_picture(run):
    _, shown = run
    assert sum(bool(s.controls) for s in shown) >= 2
    assert any(not s.controls for s in shown)


def test_every_step_of_every_control_changes_the_figure_and_a_number(run):
    for one in run[1]:
        figure = explorer.canvas(one.scene, one.size)
        for control in one.controls:
            seen = []
            for value in control.values:
                said = one.scene.update(**explorer.values(one.controls, **{control.name: value}))
                seen.append((artists(figure), said))
            for (drawn, said), (drawn_next, said_next) in itertools.pairwise(seen):
                assert drawn != drawn_next, (one.title, control.name)
                assert said != said_next, (one.title, control.name)
                assert re.findall(r"\d+(?:[.,]\d+)*", said) != re.findall(r"\d+(?:[.,]\d+)*", said_next)


def test_axes_stay_while_controls_move(run):
    for one in run[1]:
        figure = explorer.canvas(one.scene, one.size)
        limits = [(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes]
        for control in one.controls:
            for value in control.values:
                one.scene.update(**explorer.values(one.controls, **{control.name: value}))
        assert limits == [(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes], one.title


def test_sentences_do_not_depend_on_the_order_of_moves(run):
    rng = np.random.default_rng(0)
    for one in run[1]:
        explorer.canvas(one.scene, one.size)
        for _ in range(20):
            chosen = {c.name: c.values[rng.integers(len(c.values))] for c in one.controls}
            assert one.scene.update(**chosen) == one.scene.update(**chosen)


def test_titles_are_unique(run):
    titles = [s.title for s in run[1]]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("stem", LESSONS)
def test_cells_are_short_and_hold_no_chip_constants(stem):
    for cell in lesson.cells(stem):
        assert len(cell.source.splitlines()) <= 15, cell.source
        if not cell.metadata.get("jupyter", {}).get("source_hidden"):
            assert max(map(len, cell.source.splitlines())) <= 78, f"the page cuts this line off: {cell.source}"
        assert not re.search(r"\d(?:\.\d+)?e1[2-6]", cell.source), f"take this from chips.toml: {cell.source}"


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_follows_the_template(stem):
    text = "\n".join(c.source for c in lesson.cells(stem, "markdown"))
    for heading in (
        "Predict first",
        "The picture",
        "The model",
        "Explore",
        "On silicon",
        "The running case",
        "The rules",
        "Exercises",
        "Quiz",
        "Sources",
    ):
        assert re.search(rf"^## {heading}$", text, re.M), heading
    assert text.splitlines()[0].endswith("?")
    assert text.count("<details><summary>Hint</summary>") == 6
    assert text.count("Try this, expect that:") >= 2
    code = "\n".join(c.source for c in lesson.cells(stem))
    assert code.count("grade(") == 6


def test_the_guess_is_about_what_the_lesson_asks(run):
    """The sizes that "Predict first" names in words are those that the scene computes with."""
    stem, shown = run
    text = "\n".join(c.source for c in lesson.cells(stem, "markdown"))
    asked = text.partition("## Predict first")[2].partition("## The picture")[0]
    guess = next(one.scene for one in shown if any(c.keep for c in one.controls))
    sizes = [getattr(guess, name) for name in ("m", "n", "k", "context") if hasattr(guess, name)]
    assert sizes
    assert all(re.search(rf"\b({size}|{size:,})\b", asked) for size in sizes), sizes
