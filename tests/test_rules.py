"""The rules are complete, well-formed, and stated where they say they are."""

import json
import re
from pathlib import Path

import pytest

from cotune.rules import GUIDELINES, RULES, rule

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

# The course plan: which lesson first states which rule (12_pareto comes back to 1 and 22).
LESSONS = {
    "01_frontier": {1, 2},
    "02_roofline": {3, 9},
    "03_gemm_shapes": {4},
    "04_alignment": {5, 6, 7},
    "05_low_precision": {15, 16},
    "06_anatomy": {10},
    "07_width_depth": {8},
    "08_experts": {17, 18, 19},
    "09_sharding": {11, 20},
    "10_chunked_pipeline": {21, 22},
    "11_helix": {12, 13, 14},
}
PLAN = {
    "intro": {1, 2, 3, 9, 10},
    "G1": {4},
    "G2": {5, 6, 7},
    "G3": {8},
    "G4": {15, 16},
    "G5": {17, 18, 19, 20},
    "G6": {21, 22},
    "G7": {11, 12, 13, 14},
}


def ids_by(field):
    groups = {}
    for r in RULES:
        groups.setdefault(getattr(r, field), set()).add(r.id)
    return groups


def anchors(notebook):
    """What a page calls the headings of a notebook: "### Rule 3" can be linked to as #rule-3."""
    text = "\n\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return [title.strip().lower().replace(" ", "-") for title in re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)]


def test_there_are_22_rules_numbered_in_order():
    assert [r.id for r in RULES] == list(range(1, 23))


def test_every_rule_belongs_to_the_planned_lesson_and_guideline():
    assert ids_by("lesson") == LESSONS
    assert ids_by("guideline") == PLAN
    assert list(GUIDELINES) == ["intro", "G1", "G2", "G3", "G4", "G5", "G6", "G7"]


@pytest.mark.parametrize("r", RULES, ids=lambda r: r.anchor)
def test_a_rule_is_one_plain_sentence_with_a_caveat_and_a_number(r):
    assert r.anchor == f"rule-{r.id}"
    for sentence in (r.sentence, r.caveat):
        assert re.fullmatch(r"[A-Z][^.!?]*\.", sentence), sentence
    assert r.number_to_check and not r.number_to_check.endswith(".")


def test_no_two_rules_say_the_same():
    for field in ("sentence", "caveat", "number_to_check"):
        assert len(ids_by(field)) == len(RULES)


@pytest.mark.parametrize("r", RULES, ids=lambda r: r.anchor)
def test_the_lesson_states_its_rule_under_the_anchor(r):
    path = NOTEBOOKS / f"{r.lesson}.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not written yet")
    assert anchors(json.loads(path.read_text(encoding="utf-8"))).count(r.anchor) == 1


def test_an_anchor_is_a_heading():
    cells = [{"cell_type": "markdown", "source": ["# The rules\n", "\n", "### Rule 3\n"]}]
    cells += [{"cell_type": "code", "source": ["### Rule 4"]}, {"cell_type": "markdown", "source": ["rule-5, Rule 5"]}]
    assert anchors({"cells": cells}) == ["the-rules", "rule-3"]


@pytest.mark.parametrize("bad", [0, 23, -1, 1.0, "3", None, True])
def test_an_unknown_rule_is_refused_with_its_value(bad):
    with pytest.raises(ValueError, match=rf"rule id must be a whole number from 1 to 22, got {re.escape(repr(bad))}"):
        rule(bad)
