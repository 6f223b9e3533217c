"""Grade the answer to an exercise: right, close, or wrong with the likely slip.

An exercise is a question with a list of verdicts. A verdict is an interval and what to tell whoever answers
inside it. The kernel and the published page walk the same list, so they give the same reply.
"""

import json
import math
import os
import re
from dataclasses import dataclass
from html import escape
from importlib import import_module

from cotune.teach import keep
from cotune.teach.explorer import asset

MARKS = ("wrong", "close", "right")  # from worst to best
NEAR = 0.003  # a slip by a factor is recognised within this much
SLIPS = (  # factor, how it is said, what it points to when the answer is too large, and when too small
    (1e9, "10^9", "check giga", "check giga"),
    (1e6, "10^6", "check mega or micro", "check mega or micro"),
    (1024, "1024", "a binary prefix where none belongs", "a binary prefix where none belongs"),
    (1000, "1000", "check the SI prefix", "check the SI prefix"),
    (100, "100", "a percentage is not a fraction", "a percentage was asked for"),
    (8, "8", "bits and bytes were mixed up", "bits and bytes were mixed up"),
    (4, "4", "check the bytes per element", "check the bytes per element"),
    (2, "2", "a factor 2 counted twice, or a sparse peak", "is the 2 in 2MNK missing, or a peak the sparse one"),
    (1.024, "1.024", "1024 was used where the SI prefix means 1000", "1024 was used where the SI prefix means 1000"),
    (1.024**2, "1.049", "MiB and MB were mixed up", "MiB and MB were mixed up"),
    (1.024**3, "1.074", "GiB and GB were mixed up", "GiB and GB were mixed up"),
    (1.024**4, "1.100", "TiB and TB were mixed up", "TiB and TB were mixed up"),
)
PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"  # how a number may be written; grade.js has the same two
GROUPED = r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"
ELSE = "Not yet. Read the hint and try once more."


@dataclass(frozen=True)
class Verdict:
    """What to say to an answer between `low` and `high`; `mark` is right, close or wrong."""

    low: float
    high: float
    mark: str
    text: str


@dataclass(frozen=True)
class Exercise:
    """A graded question: `ask` says in a few words what is wanted, `unit` in what, `options` if it is a choice.

    whole : only whole numbers can be right
    """

    id: str
    ask: str
    unit: str
    verdicts: tuple
    options: tuple = ()
    whole: bool = False

    def __post_init__(self):
        for verdict in self.verdicts:
            if not verdict.low <= verdict.high:
                raise ValueError(f"exercise {self.id}: no number lies between {verdict.low} and {verdict.high}")


def numeric(id, ask, unit, answer, *, tolerance=0.01, slips=()):
    """An exercise answered by one number, right within `tolerance` (relative).

    slips : (wrong value, message) of this exercise, tried before the general ones.
    """
    good = (_around(answer, tolerance, "right", "Right."),)
    own = tuple(_around(value, NEAR, "wrong", "Not yet. " + text) for value, text in slips)
    general = tuple(v for slip in SLIPS for v in _slip(answer, *slip))
    general += (_around(-answer, tolerance, "wrong", "Not yet. The size is right, the sign is not."),)
    near = (_around(answer, 0.05, "close", "Close: within 5 %. Keep more digits until the last step."),)
    return Exercise(id, ask, unit, good + own + general + near)


def _slip(answer, factor, name, over, under):
    """Verdicts for an answer that is `factor` times too large or too small."""
    yield _around(answer * factor, NEAR, "wrong", f"Not yet. That is {name} times the answer: {over}.")
    yield _around(answer / factor, NEAR, "wrong", f"Not yet. That is the answer divided by {name}: {under}.")


def choose(id, ask, options, right, why):
    """An exercise answered by picking the number of one option (from 1); `why` says what each wrong one misses."""
    if not 1 <= right <= len(options):
        raise ValueError(f"exercise {id}: right must be from 1 to {len(options)}, got {right}")
    verdicts = []
    for n, option in enumerate(options, 1):
        mark = "right" if n == right else "wrong"
        text = "Right." if n == right else "Not yet. " + why[option]
        verdicts.append(Verdict(n, n, mark, text))
    return Exercise(id, ask, f"a number from 1 to {len(options)}", tuple(verdicts), tuple(options), whole=True)


def within(id, ask, unit, low, high, *, below, above):
    """A design exercise: any whole number from `low` to `high` is right; `below` and `above` say what else gives up."""
    return Exercise(
        id,
        ask,
        unit,
        (
            Verdict(low, high, "right", "Right: this meets every demand."),
            Verdict(-math.inf, 0, "wrong", "Not yet. It must be at least 1."),
            Verdict(0, low, "wrong", "Not yet. " + below),
            Verdict(high, math.inf, "wrong", "Not yet. " + above),
        ),
        whole=True,
    )


def _around(value, tolerance, mark, text):
    ends = sorted((value * (1 - tolerance), value * (1 + tolerance)))
    return Verdict(*ends, mark, text)


# ------------------------------------------------------------------ marking
def mark(exercise, answer):
    """Return (mark, text) for an answer of any kind; a mark is right, close, wrong, open or unreadable.

    Never raises: whatever cannot be read as a number gets a sentence that says what is wanted.
    """
    if answer is None:
        return "open", f"Not answered yet: put your answer ({exercise.unit}) in place of None."
    value = _number(answer)
    if value is None:
        return "unreadable", f"{wanted(exercise)} Got {_shown(answer)}."
    if exercise.whole and value != int(value):
        return "wrong", "Not yet. It must be a whole number."
    for verdict in exercise.verdicts:
        if verdict.low <= value <= verdict.high:
            return verdict.mark, verdict.text
    return "wrong", f"Not yet. Choose {exercise.unit}." if exercise.options else ELSE


def wanted(exercise):
    """Say what an answer looks like."""
    return f"This wants {exercise.unit if exercise.options else f'one number ({exercise.unit}), such as 12.5'}."


def _number(answer):
    """Return an answer as a finite float, or None. Text is read as the page reads it: a point, no decimal comma."""
    try:
        if isinstance(answer, str):
            text = re.sub(r"\s", "", answer)
            if not re.fullmatch(f"{PLAIN}|{GROUPED}", text, re.ASCII):
                return None
            answer = text.replace(",", "")
        value = float(answer)
    except Exception:
        return None
    return value if math.isfinite(value) and not isinstance(answer, bool) else None


def _shown(answer):
    try:
        return repr(answer)[:60]
    except Exception:
        return "something that cannot be shown"


def grade(id, answer=None):
    """Grade an answer in the notebook and keep the result; in the published page show a field to answer in.

    id : such as "roofline-1". Errors: ValueError for an unknown id, never for an answer.
    """
    exercise = exercise_named(id)
    verdict, text = mark(exercise, answer)
    if os.environ.get("COTUNE_STATIC"):
        from IPython.display import display

        return display({"text/html": form(exercise), "text/plain": f"{exercise.ask} ({exercise.unit})"}, raw=True)
    if verdict in MARKS and not keep.put(id, _best(keep.get(id), verdict)):
        text += f" (This could not be kept in {keep.path()}.)"
    options = "".join(f"\n  {n}. {option}" for n, option in enumerate(exercise.options, 1))
    print(f"{exercise.ask}{options}\n{text}")


def _best(before, now):
    return max((before if before in MARKS else "wrong", now), key=MARKS.index)


def exercise_named(id):
    """Return the Exercise called `id`, looking into the lesson that its name starts with."""
    lesson, _, number = str(id).rpartition("-")
    try:
        found = import_module(f"cotune.teach.lessons.{lesson}").EXERCISES
    except (ImportError, ValueError):
        raise ValueError(f"unknown exercise {id!r}: no lesson is called {lesson!r}") from None
    if id not in found:
        raise ValueError(f"unknown exercise {id!r}; this lesson has {', '.join(found)}")
    return found[id]


def progress(lesson):
    """Print which exercises of a lesson are done, from what `grade` kept."""
    try:
        exercises = import_module(f"cotune.teach.lessons.{lesson}").EXERCISES
    except ImportError:
        raise ValueError(f"no lesson is called {lesson!r}") from None
    kept = {id: mark for id, mark in keep.everything().items() if mark in MARKS}
    done = [id for id in exercises if kept.get(id) == "right"]
    print(f"{lesson}: {len(done)} of {len(exercises)} exercises right.")
    for id, exercise in exercises.items():
        print(f"  {kept.get(id, 'open'):6} {id}: {exercise.ask}")


# ------------------------------------------------------------------ the published page
def form(exercise):
    """Return an answer field that marks itself in the page, from the same verdicts."""
    verdicts = [[_finite(v.low), _finite(v.high), v.text] for v in exercise.verdicts]
    if exercise.options:
        options = "".join(f'<option value="{n}">{escape(o)}</option>' for n, o in enumerate(exercise.options, 1))
        field = f'<select id="{exercise.id}-answer" disabled><option value="">choose</option>{options}</select>'
    else:
        kind = 'type="text" inputmode="decimal" autocomplete="off" size="12" disabled'
        field = f'<input id="{exercise.id}-answer" {kind}>'
    unit = "" if exercise.options else f" <span>{escape(exercise.unit)}</span>"
    last = f"Not yet. Choose {exercise.unit}." if exercise.options else ELSE
    data = f'data-verdicts="{escape(json.dumps(verdicts))}" data-else="{escape(last)}" data-wanted="{wanted(exercise)}"'
    data += ' data-whole="yes"' if exercise.whole else ""
    return f"""<div class="cotune-answer" id="{exercise.id}" {data}>
<label for="{exercise.id}-answer">{escape(exercise.ask)}</label> {field}{unit}
<button type="button" disabled>Check</button> <output for="{exercise.id}-answer"></output>
<noscript>Answers are marked by JavaScript, or in the notebook.</noscript>
<script>{asset("grade.js")}</script></div>"""


def _finite(bound):
    return bound if math.isfinite(bound) else math.copysign(1e300, bound)
