"""A quiz in plain HTML: radio buttons and replies that the page's style sheet shows, with no script and no network."""

import os
from dataclasses import dataclass
from html import escape
from importlib import import_module

from cotune.teach.explorer import asset


@dataclass(frozen=True)
class Question:
    """`options` are (text, reply) pairs; `right` is the place of the right one, from 0."""

    text: str
    options: tuple
    right: int


def quiz(lesson):
    """Show the quiz of a lesson, such as quiz("roofline")."""
    from IPython.display import display

    questions = import_module(f"cotune.teach.lessons.{lesson}").QUIZ
    plain = "\n".join(_plain(n, q) for n, q in enumerate(questions, 1))
    if os.environ.get("COTUNE_STATIC"):
        return display({"text/html": html(lesson, questions), "text/plain": plain}, raw=True)
    import ipywidgets

    view = {"version_major": 2, "version_minor": 0, "model_id": ipywidgets.HTML(html(lesson, questions)).model_id}
    display({"text/plain": plain, "application/vnd.jupyter.widget-view+json": view}, raw=True)


def _plain(n, question):
    return f"{n}. {question.text}\n" + "\n".join(f"   ( ) {text}" for text, _ in question.options)


def html(lesson, questions):
    """Return the quiz; each reply follows its radio button and is shown while that button is chosen."""
    parts = []
    for n, question in enumerate(questions, 1):
        name, rows = f"quiz-{lesson}-{n}", []
        for i, (text, reply) in enumerate(question.options):
            right = i == question.right
            rows.append(
                f'<div class="quiz-option"><input type="radio" name="{name}" id="{name}-{i}" '
                f'aria-describedby="{name}-{i}-reply"><label for="{name}-{i}">{escape(text)}</label>'
                f'<p class="quiz-reply {"quiz-right" if right else "quiz-wrong"}" id="{name}-{i}-reply">'
                f"{'Right.' if right else 'No.'} {escape(reply)}</p></div>"
            )
        parts.append(f"<fieldset><legend>{n}. {escape(question.text)}</legend>{''.join(rows)}</fieldset>")
    return f'<div class="cotune-quiz"><style>{asset("quiz.css")}</style>{"".join(parts)}</div>'
