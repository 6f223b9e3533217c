"""Explorers, answers and quiz in the built page: what a reader moves and reads is what cotune computes."""

import gzip
import re
from html import unescape

import pytest

import lesson
from cotune.teach import explorer, grade
from cotune.teach.explorer import scope_of

LESSONS = lesson.stems()


@pytest.fixture(scope="module", params=LESSONS)
def run(request):
    return request.param, lesson.run(request.param)[1]


@pytest.fixture
def opened(visit, site, run):
    seen = visit(f"{site}/notebooks/{run[0]}.html")
    yield seen.page, run[1]
    assert seen.errors == []


def box_of(page, one):
    return page.locator(f"#{scope_of(one.title)}")


def said(box):
    return box.locator(".ex-say").inner_text()


def steps(field, control):
    """Press the keyboard through every step of a control; yield the value that each press leads to."""
    field.focus()
    field.press("Home")
    yield control.values[0]
    for value in control.values[1:]:
        field.press("ArrowRight" if control.kind == "range" else "ArrowDown")
        yield value


def test_every_explorer_is_there_with_its_controls(opened):
    page, shown = opened
    assert page.locator(".explorer").count() == len(shown)
    for one in shown:
        assert box_of(page, one).locator("input, select").count() == len(one.paged)
        assert said(box_of(page, one)) == one.sentences()[_home(one)]


def _home(one):
    return list(explorer.combinations(one.paged)).index(explorer.values(one.paged))


def test_every_step_by_keyboard_says_what_cotune_computes(opened):
    page, shown = opened
    for one in shown:
        box, frames = box_of(page, one), list(explorer.combinations(one.paged))
        sentences = one.sentences()
        for control in one.paged:
            field = box.locator(f"#{scope_of(one.title)}-{control.name}")
            for value in steps(field, control):
                chosen = explorer.values(one.paged, **{control.name: value})
                assert said(box) == sentences[frames.index(chosen)], (one.title, control.name, value)
                picture = box.locator(".ex-pic")
                assert picture.get_attribute("aria-label") == said(box)
                if control.kind == "range":
                    assert field.get_attribute("aria-valuetext") == control.show(value)
            back(field, control)


def back(field, control):
    """Return a control to its default, by keyboard."""
    field.press("Home")
    for _ in range(control.at):
        field.press("ArrowRight" if control.kind == "range" else "ArrowDown")


def test_every_frame_in_the_page_is_the_one_of_its_sentence(opened):
    """The stored sentences of all frames, and the texts in each frame's picture."""
    page, shown = opened
    for one in shown:
        if not one.paged:
            continue
        data = page.evaluate(
            "id => JSON.parse(document.getElementById(id).querySelector('.ex-data').textContent)", scope_of(one.title)
        )
        assert data["says"] == one.sentences(), one.title
        assert len(data["frames"]) == len(data["says"])


def test_an_explorer_adds_at_most_250_kb(book, run):
    html = (book / "notebooks" / f"{run[0]}.html").read_text(encoding="utf-8")
    places = [html.index(f'id="{scope_of(one.title)}"') for one in run[1]]
    for start, end, one in zip(places, [*places[1:], len(html)], run[1], strict=True):
        assert len(gzip.compress(html[start:end].encode())) < 250_000, one.title


def test_the_figure_keeps_its_height(opened):
    page, shown = opened
    for one in (s for s in shown if s.paged):
        box, control = box_of(page, one), one.paged[0]
        field = box.locator(f"#{scope_of(one.title)}-{control.name}")
        heights = {
            tuple(box.locator(part).bounding_box()["height"] for part in (".ex-pic", ".ex-controls"))
            for _ in steps(field, control)
        }
        assert len(heights) == 1, one.title


OUTSIDE = """() => [...document.querySelectorAll('.explorer .ex-pic svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(t => {
    const r = t.getBoundingClientRect();
    const beside = r.left < box.left - 2 || r.right > box.right + 2, above = r.top < box.top - 2;
    return r.width && (beside || above || r.bottom > box.bottom + 2);
  }).map(t => t.textContent);
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_of_a_figure_is_cut_off(visit, site, run, width):
    page = visit(f"{site}/notebooks/{run[0]}.html", width=width).page
    assert page.evaluate(OUTSIDE) == []


def test_a_guess_is_kept_until_the_end(visit, site, run):
    stem, shown = run
    keeping = [(one, c) for one in shown for c in one.paged if c.keep]
    if not keeping:
        pytest.skip("this lesson keeps no guess")
    seen = visit(f"{site}/notebooks/{stem}.html")
    (first, control), (last, _) = keeping[0], keeping[-1]
    box_of(seen.page, first).locator(f"#{scope_of(first.title)}-{control.name}").press("Home")
    guess = {control.name: control.values[0]}
    sentence = last.sentences()[list(explorer.combinations(last.paged)).index(guess)]
    assert said(box_of(seen.page, last)) == sentence
    seen.page.reload(wait_until="load")
    assert said(box_of(seen.page, last)) == sentence
    assert seen.errors == []


def test_without_javascript_the_default_is_readable(visit, site, run):
    stem, shown = run
    seen = visit(f"{site}/notebooks/{stem}.html", java_script_enabled=False)
    for one in shown:
        assert box_of(seen.page, one).locator("svg").first.is_visible()
        assert said(box_of(seen.page, one)) == one.sentences()[_home(one)]


def test_without_javascript_answers_say_why_they_are_not_marked(visit, site, run):
    page = visit(f"{site}/notebooks/{run[0]}.html", java_script_enabled=False).page
    assert page.locator(".cotune-answer button:enabled").count() == 0
    reasons = page.locator(".cotune-answer noscript").all_inner_texts()
    assert len(reasons) == page.locator(".cotune-answer").count()
    assert all("marked by JavaScript" in text for text in reasons)


def test_paper_shows_the_default(opened):
    page, shown = opened
    one = next(s for s in shown if s.paged)
    field = box_of(page, one).locator(f"#{scope_of(one.title)}-{one.paged[0].name}")
    field.press("End")
    moved = said(box_of(page, one))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert said(box_of(page, one)) == one.sentences()[_home(one)]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert said(box_of(page, one)) == moved


ANSWERS = ["312.5", "1,000", " 640 ", "abc", "", "122.3", "978", "-640", "1e400", "122,3", "0x7a", "3.2e2", "12 ", "٣"]


def test_answers_get_the_reply_of_the_package(opened):
    page, _ = opened
    for box in page.locator(".cotune-answer").all():
        exercise = grade.exercise_named(box.get_attribute("id"))
        field, reply = box.locator("input, select"), box.locator("output")
        if exercise.options:
            for n in range(1, len(exercise.options) + 1):
                field.select_option(str(n))
                assert reply.inner_text() == grade.mark(exercise, n)[1]
            continue
        for text in ANSWERS:
            field.fill(text)
            field.press("Enter")
            verdict, expected = grade.mark(exercise, text or None)
            if verdict == "open":
                expected = "Not answered yet."
            if verdict == "unreadable":
                expected = grade.wanted(exercise)
            assert reply.inner_text() == expected, (exercise.id, text)


def test_solutions_and_hints_are_closed_at_first(opened):
    page, _ = opened
    assert page.locator("details[open]").count() == 0
    assert page.get_by_text("Show the solution").count() == page.locator(".cotune-answer").count()


def test_the_quiz_replies_to_the_chosen_option_alone(opened):
    page, _ = opened
    quiz = page.locator(".cotune-quiz")
    assert quiz.locator(".quiz-reply:visible").count() == 0
    for question in quiz.locator("fieldset").all():
        for option in question.locator("input").all():
            option.check()
            assert question.locator(".quiz-reply:visible").count() == 1
    assert quiz.locator(".quiz-reply:visible").count() == quiz.locator("fieldset").count()


def test_instructor_notes_are_not_in_the_page(book, run):
    html = unescape((book / "notebooks" / f"{run[0]}.html").read_text(encoding="utf-8"))
    assert "For instructors" not in html


def test_figures_are_numbered_and_captioned(opened):
    page, shown = opened
    captions = page.locator("figure figcaption .caption-number").all_inner_texts()
    assert len(captions) == len(shown)
    numbers = [int(re.search(r"\d+", c)[0]) for c in captions]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
