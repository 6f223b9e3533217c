"""explore(): one figure and a few controls, alive in a kernel and in the published page without one.

A scene is any object with two methods:

    setup(fig)          makes axes and artists once
    update(**values)    moves the artists and returns one sentence that says what the figure now shows

In a live kernel the controls are ipywidgets and the same artists are redrawn. While the book is built
(COTUNE_STATIC=1) the same call precomputes every frame and emits one piece of HTML that needs no kernel.
"""

import base64
import hashlib
import io
import itertools
import json
import os
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from cotune.teach import keep, svg

SIZE = (5.6, 3.6)  # inches
MOST_CONTROLS = 3
MOST_FRAMES = 125


@dataclass(frozen=True)
class Control:
    """One control: `show` turns a value into what the reader sees; `live` keeps it out of the published page;
    `keep` is the name under which a reader's choice is kept from one explorer to another."""

    name: str
    label: str
    values: tuple
    default: object
    show: object = str
    kind: str = "range"
    live: bool = False
    keep: str = ""

    def __post_init__(self):
        if self.default not in self.values:
            raise ValueError(f"control {self.name}: default {self.default!r} is not among {self.values}")

    @property
    def shown(self):
        return [self.show(v) for v in self.values]

    @property
    def at(self):
        return self.values.index(self.default)


def slider(name, label, values, default, show=str, **options):
    """A control moved along its ordered values."""
    return Control(name, label, tuple(values), default, show, "range", **options)


def choice(name, label, values, default, show=str, **options):
    """A control that picks one of a few values."""
    return Control(name, label, tuple(values), default, show, "select", **options)


def explore(scene, controls=(), *, title, size=SIZE):
    """Show a scene with its controls; without controls it is a plain figure.

    scene : object with setup(fig) and update(**values) -> sentence; controls : Control, in page order.
    size : inches. Errors: ValueError for more controls or frames than a page can carry.
    """
    from IPython.display import display

    page_controls(controls)
    said = sentence(scene, values(controls), size)
    if controls:
        said += f"\n({fingerprint(scene, controls, size)})"
    if os.environ.get("COTUNE_STATIC"):
        bundle = {"text/html": static_html(scene, controls, title, size), "image/png": _png(scene, controls, size)}
    else:
        bundle = {"application/vnd.jupyter.widget-view+json": _live(scene, controls, title, size)}
    display({"text/plain": said, **bundle}, raw=True)


def page_controls(controls):
    """Return the controls that the published page has, refusing more than it can carry."""
    names = [c.name for c in controls]
    if len(set(names)) < len(names):
        raise ValueError(f"every control needs a name of its own, got {', '.join(names)}")
    paged = [c for c in controls if not c.live]
    frames = len(list(combinations(paged)))
    if len(paged) > MOST_CONTROLS or frames > MOST_FRAMES:
        raise ValueError(
            f"{len(paged)} controls and {frames} frames in the page; at most {MOST_CONTROLS} and {MOST_FRAMES}: "
            "make a control live=True or give it fewer values"
        )
    return paged


def values(controls, **chosen):
    """Return {name: value} with every control at its default, except those chosen."""
    return {c.name: c.default for c in controls} | chosen


def combinations(controls):
    """Yield {name: value} for every frame, the last control varying fastest."""
    names = [c.name for c in controls]
    for combination in itertools.product(*(c.values for c in controls)):
        yield dict(zip(names, combination, strict=True))


def canvas(scene, size=SIZE):
    """Return a figure on which the scene has set up its artists."""
    from matplotlib.figure import Figure

    with svg.style():
        figure = Figure(figsize=size)
        figure.patch.set_visible(False)
        scene.setup(figure)
    return figure


def sentence(scene, chosen, size=SIZE):
    """Return what the scene says for these values, on a figure of its own."""
    canvas(scene, size)
    return scene.update(**chosen)


def fingerprint(scene, controls, size=SIZE):
    """Return a hash over the sentences of all frames, and of each live-only control moved alone.

    It stands in the stored notebook, so strict nbval fails when any frame says something else.
    """
    canvas(scene, size)
    paged = [c for c in controls if not c.live]
    says = [scene.update(**values(controls, **frame)) for frame in combinations(paged)]
    says += [scene.update(**values(controls, **{c.name: v})) for c in controls if c.live for v in c.values]
    digest = hashlib.sha256("\n".join(says).encode()).hexdigest()[:8]
    return f"{len(says)} frames, sentences {digest}"


# ------------------------------------------------------------------ the published page
def static_html(scene, controls, title, size=SIZE):
    """Return the explorer as one piece of HTML: figure, controls, sentence, all frames and the script."""
    scope = scope_of(title)
    paged = page_controls(controls)
    figure = canvas(scene, size)
    frames, says = [], []
    for frame in combinations(paged):
        says.append(scene.update(**values(controls, **frame)))
        frames.append(svg.lines(figure, scope))
    at = list(combinations(paged)).index(values(paged))
    rows = "".join(_row(c, scope) for c in paged)
    moving = _moving_parts(frames, says, rows, title) if paged else ""
    kind = "explorer" if paged else "explorer ex-still"
    return f"""<div class="{kind}" id="{scope}" role="group" aria-label="{escape(title)}">
<style>{asset("explorer.css")}</style>
<p class="ex-title">{escape(title)}</p>
<div class="ex-pic" role="img" aria-label="{escape(says[at])}">
{"".join(frames[at])}
</div>
<p class="ex-say" aria-live="polite">{escape(says[at])}</p>
{moving}</div>"""


def _moving_parts(frames, says, rows, title):
    data = json.dumps({**svg.pack(frames), "says": says}, separators=(",", ":"), ensure_ascii=False)
    return f"""<div class="ex-controls">{rows}</div>
<noscript>The controls need JavaScript; without it you see the default setting.</noscript>
<script type="application/json" class="ex-data">{data.replace("</", "<" + chr(92) + "/")}</script>
<script>{asset("explorer.js")}</script>
"""


def _row(control, scope):
    name, shown = f"{scope}-{control.name}", control.shown
    kept = f' data-keep="{escape(control.keep)}"' if control.keep else ""
    if control.kind == "range":
        field = (
            f'<input type="range" id="{name}" min="0" max="{len(shown) - 1}" step="1" value="{control.at}" '
            f'aria-valuetext="{escape(shown[control.at])}" data-shown="{escape(json.dumps(shown))}"{kept} '
            'autocomplete="off" disabled>'
        )
    else:
        options = "".join(
            f"<option{' selected' if i == control.at else ''}>{escape(s)}</option>" for i, s in enumerate(shown)
        )
        field = f'<select id="{name}"{kept} autocomplete="off" disabled>{options}</select>'
    return (
        f'<div class="ex-row"><label for="{name}">{escape(control.label)}</label>{field}'
        f'<output for="{name}" aria-live="off">{escape(shown[control.at])}</output></div>'
    )


def scope_of(title):
    """Return the id of an explorer, made from its title.

    >>> scope_of("Batch against the ridge")
    'ex-batch-against-the-ridge'
    """
    return "ex-" + re.sub(r"\W+", "-", title.lower()).strip("-")


@cache
def asset(name):
    """Return the text of a file beside this module."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _png(scene, controls, size):
    """The default frame for builders without HTML, such as LaTeX."""
    figure, out = canvas(scene, size), io.BytesIO()
    scene.update(**values(controls))
    with svg.style():
        figure.savefig(out, format="png", dpi=200, facecolor="white")
    return base64.b64encode(out.getvalue()).decode()


# ------------------------------------------------------------------ the live kernel
def _live(scene, controls, title, size):
    """Build the widgets and return the view that Jupyter shows."""
    import ipywidgets

    figure, scope = canvas(scene, size), scope_of(title) + "-live"
    wide = ipywidgets.Layout(width="100%", max_width="44rem")
    picture = ipywidgets.HTML(layout=wide)
    knobs = [_knob(ipywidgets, c, wide) for c in controls]

    def redraw(_=None):
        said = scene.update(**{c.name: k.value for c, k in zip(controls, knobs, strict=True)})
        picture.value = live_html(svg.lines(figure, scope), said, title)

    def moved(control):
        return lambda change: (keep.put(control.keep, control.values.index(change["new"])), redraw())

    for c, k in zip(controls, knobs, strict=True):
        k.observe(moved(c) if c.keep else redraw, "value")
    redraw()
    box = ipywidgets.VBox([*knobs, picture])
    return {"version_major": 2, "version_minor": 0, "model_id": box.model_id}


def _knob(ipywidgets, control, layout):
    kind = ipywidgets.SelectionSlider if control.kind == "range" else ipywidgets.Dropdown
    at = keep.get(control.keep) if control.keep else None
    chosen = control.values[at] if isinstance(at, int) and 0 <= at < len(control.values) else control.default
    return kind(
        options=list(zip(control.shown, control.values, strict=True)),
        value=chosen,
        description=control.label,
        style={"description_width": "11em"},
        layout=layout,
    )


def live_html(lines, said, title):
    """Return one live frame: picture and sentence in one piece, so that both change at once."""
    return (
        f'<style>{asset("explorer.css")}</style><div class="explorer ex-live"><p class="ex-title">{escape(title)}</p>'
        f'<div class="ex-pic" role="img" aria-label="{escape(said)}">{"".join(lines)}</div>'
        f'<p class="ex-say" aria-live="polite">{escape(said)}</p></div>'
    )
