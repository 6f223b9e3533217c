"""The quiz is plain HTML with a reply to every option, and tells nothing before a choice."""

import re
from unittest import mock

import pytest

from cotune.teach import quiz as q
from cotune.teach.lessons.roofline import QUIZ


def test_three_questions_with_one_right_option_each():
    assert len(QUIZ) == 3
    for question in QUIZ:
        assert 0 <= question.right < len(question.options) >= 3
        assert all(text and reply for text, reply in question.options)


def test_html_groups_labels_and_describes():
    html = q.html("roofline", QUIZ)
    assert html.count("<fieldset>") == html.count("<legend>") == 3
    assert html.count('class="quiz-reply quiz-right"') == 3
    assert "<script" not in html and "http" not in html
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'(?:for|aria-describedby)="([^"]+)"', html):
        assert target in ids


@pytest.mark.parametrize("static", ["", "1"])
def test_text_shows_no_answer(static, monkeypatch):
    monkeypatch.setenv("COTUNE_STATIC", static)
    with mock.patch("IPython.display.display") as display:
        q.quiz("roofline")
    plain = display.call_args.args[0]["text/plain"]
    assert plain.count("( )") == sum(len(question.options) for question in QUIZ)
    assert "Right" not in plain and all(reply not in plain for question in QUIZ for _, reply in question.options)
