"""How long a reader waits: a redraw in the live kernel and its model part, a frame swap in the page.

    make bench

Prints the median and the 95th percentile, in milliseconds, over every frame of every explorer of every lesson.
"""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

import lesson
from cotune.teach import explorer, svg
from cotune.units import MILLI

SWAPS = """id => {
  const box = document.getElementById(id), knobs = [...box.querySelectorAll('.ex-row input, .ex-row select')];
  const times = [], size = k => k.options ? k.options.length : +k.max + 1;
  const total = knobs.reduce((n, k) => n * size(k), 1);
  for (let n = 0; n < total; n++) {
    let rest = n;
    for (const k of [...knobs].reverse()) {
      const i = rest % size(k); rest = Math.floor(rest / size(k));
      if (k.options) k.selectedIndex = i; else k.value = i;
    }
    const start = performance.now();
    knobs[0].dispatchEvent(new Event('input', { bubbles: true }));
    box.getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times;
}"""


def explorers():
    return [one for stem in lesson.stems() for one in lesson.run(stem)[1] if one.controls]


def report(capsys, what, seconds):
    median, late = np.percentile(np.array(seconds) / MILLI, (50, 95))
    with capsys.disabled():
        print(f"\n{what}: median {median:.1f} ms, 95th percentile {late:.1f} ms, {len(seconds)} frames")


@pytest.mark.parametrize("part", ["model", "whole"])
def test_live_redraw(benchmark, capsys, part):
    shown = explorers()
    figures = {one.title: explorer.canvas(one.scene, one.size) for one in shown}
    frames = [(one, explorer.values(one.controls, **f)) for one in shown for f in explorer.combinations(one.paged)]
    endless = itertools.cycle(frames)

    def redraw():
        one, chosen = next(endless)
        said = one.scene.update(**chosen)
        if part == "whole":
            explorer.live_html(svg.lines(figures[one.title], "x"), said, one.title)

    benchmark.pedantic(redraw, rounds=len(frames), warmup_rounds=5)
    report(capsys, f"live redraw, {part}", benchmark.stats.stats.data)


def test_frame_swap(benchmark, capsys):
    """In the built book: swap, style and layout of every frame, on a page served from disk."""
    from playwright.sync_api import sync_playwright

    folder = Path(os.environ.get("COTUNE_BOOK", "_build/html")).resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("COTUNE_BROWSER") or None, args=["--no-sandbox"]
        )
        page, times = browser.new_page(), []
        for stem in lesson.stems():
            page.goto((folder / "notebooks" / f"{stem}.html").as_uri())
            for one in lesson.run(stem)[1]:
                if one.controls:
                    times += page.evaluate(SWAPS, explorer.scope_of(one.title))[1:]
        benchmark.pedantic(lambda: None, rounds=1)
        browser.close()
    report(capsys, "frame swap in the page", np.array(times) * MILLI)
