"""Themed SVG: colours become variables, ids are scoped, coordinates shrink, and nothing a reader sees is lost."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from cotune.teach import svg


def drawn(colour=svg.BLUE, label="9.54 µs < 12 & more"):
    with svg.style():
        fig = Figure(figsize=(4, 3))
        ax = fig.add_axes([0.2, 0.2, 0.7, 0.7])
        ax.plot(np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2, "o-", color=colour)
        ax.set(xlabel=label, xlim=(0, 1), ylim=(0, 1))
    return fig


def text(fig, scope="a"):
    return "\n".join(svg.lines(fig, scope))


def test_is_well_formed_and_keeps_every_label():
    root = ET.fromstring(text(drawn()))
    labels = ["".join(t.itertext()) for t in root.iter("text")]
    assert "9.54 µs < 12 & more" in labels
    assert {"0.0", "0.2", "1.0"} <= set(labels)


def test_colours_are_variables_and_others_are_refused():
    made = text(drawn())
    assert "var(--ex-blue)" in made
    assert not re.search(r"#[0-9a-f]{6}", made)
    with pytest.raises(ValueError, match="#ff0000"):
        text(drawn("#ff0000"))


def test_ids_are_scoped_and_resolve():
    made = text(drawn(), "one")
    ids = set(re.findall(r' id="([^"]+)"', made))
    used = set(re.findall(r'href="#([^"]+)"', made)) | set(re.findall(r"url\(#([^)]+)\)", made))
    assert used and used <= ids
    assert all(i.startswith("one-") for i in ids)
    assert not ids & set(re.findall(r' id="([^"]+)"', text(drawn(), "two")))


def test_has_no_fixed_size_but_a_view_box():
    head = svg.lines(drawn(), "a")[0]
    assert re.search(r'viewBox="0 0 288 216"', head)
    assert "width" not in head and "height" not in head


def test_drawing_twice_gives_the_same():
    fig = drawn()
    assert text(fig) == text(fig)


def ends(d):
    """Vertices of a path in the short form, back in absolute points."""
    start, _, moves = re.fullmatch(r"M([^l]+)(l(.+))?", d).group(1, 2, 3)
    numbers = [float(n) for n in (start + " " + (moves or "")).split()]
    return np.cumsum(np.array(numbers).reshape(-1, 2), axis=0)


@given(st.lists(st.tuples(*[st.floats(0, 500)] * 2), min_size=1, max_size=40))
def test_short_paths_stay_within_a_tenth_of_a_point(points):
    short = ends(svg._short_path("M " + " L ".join(f"{x:.6f} {y:.6f}" for x, y in points)))
    kept = np.array(points)
    assert np.abs(short[-1] - kept[-1]).max() <= 0.051
    for point in short:
        assert np.abs(kept - point).max(axis=1).min() <= 0.051


def test_paths_of_one_point_and_of_several_pieces():
    assert svg._short_path("M 1 2") == "M1 2"
    assert svg._short_path("M 1 2 L 1 2 L 3 4 z M 5 6 L 7 8") == "M1 2l0 0 2 2zM5 6l2 2"


@given(st.lists(st.lists(st.text("abc", min_size=1, max_size=2), max_size=8), max_size=8))
def test_packed_frames_unpack_to_themselves(frames):
    packed = svg.pack(frames)
    for frame, runs in zip(frames, packed["frames"], strict=True):
        pairs = zip(runs[::2], runs[1::2], strict=True)
        assert [line for start, n in pairs for line in packed["lines"][start : start + n]] == frame
    assert len(set(packed["lines"])) == len(packed["lines"])
