"""explore(): the same scene in the page and in the kernel, and what it refuses."""

import json
import re
from unittest import mock

import pytest

from cotune.teach import explorer, keep
from cotune.teach.explorer import choice, explore, slider
from cotune.teach.svg import BLUE


class Line:
    """A scene whose sentence and line follow its two controls."""

    def __init__(self, drift=0):
        self.drift = drift

    def setup(self, fig):
        ax = fig.add_axes([0.1, 0.1, 0.8, 0.8])
        ax.set(xlim=(0, 10), ylim=(0, 10))
        (self.line,) = ax.plot([0, 1], [0, 1], color=BLUE)

    def update(self, *, slope, way):
        self.line.set_data([0, 10], [0, slope + self.drift])
        return f"slope {slope + self.drift} & {way}"


class Still:
    def setup(self, fig):
        fig.add_axes([0.1, 0.1, 0.8, 0.8]).plot([0, 1], [0, 1], color=BLUE)

    def update(self):
        return "one line of slope 1"


CONTROLS = (slider("slope", "Slope", (1, 2, 5), 2, lambda v: f"{v} %"), choice("way", "Way", ("up", "down"), "up"))


@pytest.fixture
def displayed():
    with mock.patch("IPython.display.display") as display:
        yield lambda: display.call_args.args[0]


@pytest.fixture(autouse=True)
def progress(tmp_path, monkeypatch):
    monkeypatch.setenv("COTUNE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.delenv("COTUNE_STATIC", raising=False)


def page(scene=None, controls=CONTROLS):
    return explorer.static_html(scene or Line(), controls, "A line")


def stored(html):
    return json.loads(re.search(r'class="ex-data">(.*?)</script>', html, re.S)[1])


def test_page_holds_every_frame_in_order():
    data = stored(page())
    assert data["says"] == [f"slope {s} & {w}" for s in (1, 2, 5) for w in ("up", "down")]
    assert len(data["frames"]) == 6
    assert data["frames"][0] == data["frames"][1] != data["frames"][2]


def test_page_shows_the_default_without_script():
    html = page()
    assert re.sub(r"<script.*?</script>", "", html, flags=re.S).count("<svg") == 1
    assert '<p class="ex-say" aria-live="polite">slope 2 &amp; up</p>' in html
    assert 'aria-valuetext="2 %"' in html and "<option selected>up</option>" in html
    assert html.count("disabled") >= 2  # the script enables them


def test_every_control_has_a_label():
    html = page()
    for field in re.findall(r'<(?:input|select)[^>]* id="([^"]+)"', html):
        assert f'<label for="{field}">' in html and f'<output for="{field}"' in html


def test_a_figure_without_controls_has_no_script_and_no_fingerprint(displayed):
    assert "<script" not in page(Still(), ())
    explore(Still(), title="Still")
    assert displayed()["text/plain"] == "one line of slope 1"


def test_static_and_live_say_the_same(displayed, monkeypatch):
    explore(Line(), CONTROLS, title="A line")
    live = displayed()
    monkeypatch.setenv("COTUNE_STATIC", "1")
    explore(Line(), CONTROLS, title="A line")
    static = displayed()
    assert live["text/plain"] == static["text/plain"]
    assert live["text/plain"].startswith("slope 2 & up\n(6 frames, sentences ")
    assert set(live) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert set(static) == {"text/plain", "text/html", "image/png"}


def test_fingerprint_sees_a_change_in_any_frame():
    class Odd(Line):
        def update(self, *, slope, way):
            said = super().update(slope=slope, way=way)
            return said.replace("5", "5.05") if way == "down" else said

    assert explorer.fingerprint(Line(), CONTROLS) != explorer.fingerprint(Line(0.01), CONTROLS)
    assert explorer.fingerprint(Line(), CONTROLS) != explorer.fingerprint(Odd(), CONTROLS)


def test_fingerprint_covers_controls_of_the_kernel_alone():
    live = (CONTROLS[0], choice("way", "Way", ("up", "down"), "up", live=True))
    assert explorer.fingerprint(Line(), live).startswith("5 frames")
    assert len(stored(page(controls=live))["frames"]) == 3


@pytest.fixture
def boxes():
    """Every VBox made, in order."""
    import ipywidgets

    made, real = [], ipywidgets.VBox
    with mock.patch.object(ipywidgets, "VBox", lambda *a, **k: made.append(real(*a, **k)) or made[-1]):
        yield made


def test_live_controls_move_picture_and_sentence_together(displayed, boxes):
    explore(Line(), CONTROLS, title="A line")
    assert displayed()["application/vnd.jupyter.widget-view+json"]["model_id"] == boxes[0].model_id
    slope, way, picture = boxes[0].children
    before = picture.value
    slope.value = 5
    assert "slope 5 &amp; up" in picture.value and picture.value != before
    way.value = "down"
    assert "slope 5 &amp; down" in picture.value
    assert slope.description == "Slope"


def test_a_kept_choice_is_met_again(displayed, boxes):
    kept = (slider("slope", "Slope", (1, 2, 5), 2, keep="guess"), CONTROLS[1])
    explore(Line(), kept, title="First")
    slope, *_ = boxes[-1].children
    slope.value = 5
    assert keep.get("guess") == 2
    explore(Line(), kept, title="Second")
    slope, _, picture = boxes[-1].children
    assert slope.value == 5 and "slope 5" in picture.value
    keep.put("guess", 99)  # from another version of the lesson
    explore(Line(), kept, title="Third")
    assert boxes[-1].children[0].value == 2


def test_refuses_more_than_a_page_can_carry():
    many = tuple(range(12))
    with pytest.raises(ValueError, match="144 frames"):
        explore(Line(), (slider("slope", "S", many, 1), slider("way", "W", many, 1)), title="Too much")
    four = tuple(slider(n, n, (1, 2), 1) for n in "abcd")
    with pytest.raises(ValueError, match="4 controls"):
        explorer.page_controls(four)


def test_refuses_a_default_that_is_no_value():
    with pytest.raises(ValueError, match="control slope: default 3"):
        slider("slope", "Slope", (1, 2), 3)


def test_what_a_sentence_says_cannot_break_the_page():
    class Rude(Line):
        def update(self, *, slope, way):
            super().update(slope=slope, way=way)
            return f'{slope} </script><b onclick="x">'

    html = page(Rude())
    assert html.count("</script>") == 2
    assert stored(html)["says"][0] == '1 </script><b onclick="x">'
