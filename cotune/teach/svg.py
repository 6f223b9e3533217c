"""A matplotlib figure as small inline SVG whose colours follow the page's light or dark theme.

Figures draw with the colours below and no others. In the SVG each becomes a CSS variable, so dark mode is a
matter of CSS. Coordinates are rounded to a tenth of a point, which no reader can see and which makes frames small.
"""

import io
import re
import xml.etree.ElementTree as ET
from contextlib import contextmanager
from html import escape

INK, MUTE, GRID, PAPER = "#000000", "#767676", "#cccccc", "#ffffff"
BLUE, ORANGE, GREEN, PURPLE = "#0063a0", "#b54700", "#00724f", "#7b3f98"

VARIABLES = {
    INK: "currentColor",
    MUTE: "var(--ex-mute)",
    GRID: "var(--ex-grid)",
    PAPER: "var(--ex-paper)",
    BLUE: "var(--ex-blue)",
    ORANGE: "var(--ex-orange)",
    GREEN: "var(--ex-green)",
    PURPLE: "var(--ex-purple)",
}

# Text stays text; DejaVu is wider than the page's font, so what fits here fits there.
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cotune",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}

NOTHING = {"Date": None, "Creator": None, "Format": None, "Type": None}
ROUNDED = {"x", "y", "width", "height", "viewBox"}
KEPT = ROUNDED | {"clip-path", "d", "id", "style", "transform"}


@contextmanager
def style():
    """matplotlib settings under which every figure of the course is made and drawn."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def lines(figure, scope):
    """Return the figure as themed SVG, one tag per line, with every id prefixed by `scope`."""
    out = io.StringIO()
    with style():
        figure.savefig(out, format="svg", metadata=NOTHING)
    root = ET.fromstring(out.getvalue())
    used = set(re.findall(r'(?:#)([\w-]+)["\)]', out.getvalue()))
    found = []
    _walk(root, scope, used, found)
    return found


def _walk(element, scope, used, found):
    tag = element.tag.rpartition("}")[2]
    if tag in ("metadata", "style"):
        return
    attributes = "".join(f' {k}="{escape(v)}"' for k, v in _attributes(element, scope, used))
    children = [c for c in element if isinstance(c.tag, str)]
    if tag == "text":
        found.append(f"<text{attributes}>{escape(''.join(element.itertext()))}</text>")
    elif not children:
        if attributes or tag != "g":
            found.append(f"<{tag}{attributes}/>" if tag not in ("g", "defs") else "")
    elif tag == "g" and not attributes:
        for child in children:
            _walk(child, scope, used, found)
    else:
        found.append(f"<{tag}{attributes}>")
        for child in children:
            _walk(child, scope, used, found)
        found.append(f"</{tag}>")
    while "" in found:
        found.remove("")


def _attributes(element, scope, used):
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id" and value not in used:
            continue
        if element.tag.endswith("}svg") and key in ("width", "height"):
            continue
        if key == "href":
            yield key, "#" + scope + "-" + value[1:]
        elif key in KEPT and (value := _value(key, value, scope)):
            yield key, value


def _value(key, value, scope):
    if key == "id":
        return f"{scope}-{value}"
    if key == "clip-path":
        return value.replace("url(#", f"url(#{scope}-")
    if key == "style":
        return _themed(value)
    if key == "d":
        return _short_path(value)
    if key == "transform":
        return "" if re.match(r"rotate\(-?0 ", value) else _round_all(value)
    return _round_all(value)


def _round_all(text):
    return re.sub(r"-?\d+\.\d+", lambda m: f"{round(float(m[0]), 1) + 0:g}", text)


def _themed(css):
    """Replace palette colours by CSS variables and the font by the page's; refuse any other colour."""
    for colour in set(re.findall(r"#[0-9a-fA-F]{6}\b", css)):
        if colour.lower() not in VARIABLES:
            raise ValueError(f"colour {colour} is not in the palette; use one of {', '.join(VARIABLES)}")
        css = css.replace(colour, VARIABLES[colour.lower()])
    css = re.sub(r"font: (?:(bold|\d+) )?(\d+(?:\.\d+)?)px [^;]*", _font, css)
    return "; ".join(part.strip() for part in css.split(";") if part.strip())


def _font(match):
    weight = f"font-weight: {match[1]}; " if match[1] else ""
    return f"{weight}font-size: {match[2]}px"


def _short_path(d):
    """Absolute M and L vertices as relative tenths of a point; other paths only rounded."""
    tokens = re.findall(r"[A-Za-z]|-?\d+(?:\.\d+)?(?:e-?\d+)?", d)
    if {t for t in tokens if t.isalpha()} - {"M", "L", "z"}:
        return _round_all(" ".join(d.split()))
    out, i, x, y = [], 0, 0, 0
    while i < len(tokens):
        if tokens[i] == "z":
            out.append("z")
            i += 1
            continue
        new_x, new_y = round(float(tokens[i + 1]) * 10), round(float(tokens[i + 2]) * 10)
        first = i > 0 and tokens[i - 3] == "M"
        if tokens[i] == "M":
            out.append(f"M{new_x / 10:g} {new_y / 10:g}")
        elif first or (new_x, new_y) != (x, y):
            out.append(f"{'l' if first else ' '}{(new_x - x) / 10:g} {(new_y - y) / 10:g}")
        x, y = new_x, new_y
        i += 3
    return "".join(out)


def pack(frames):
    """Store each distinct line once; a frame becomes runs [start, count, ...] into that table.

    >>> pack([["a", "b", "c"], ["a", "x", "c"]])
    {'lines': ['a', 'b', 'c', 'x'], 'frames': [[0, 3], [0, 1, 3, 1, 2, 1]]}
    """
    table, packed = {}, []
    for frame in frames:
        runs = []
        for line in frame:
            at = table.setdefault(line, len(table))
            if runs and runs[-2] + runs[-1] == at:
                runs[-1] += 1
            else:
                runs += [at, 1]
        packed.append(runs)
    return {"lines": list(table), "frames": packed}
