"""Pages that ask no other host for anything and that everybody can use: what the theme gets wrong, put right."""

import re
from pathlib import Path

THEME = Path(__file__).parent.parent / "_theme"

# Pattern and replacement, made in every finished page. Made twice they do no harm: a rebuild writes only some pages.
CORRECTIONS = [
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        # Thebe runs cells on another host; Jupyter Book puts it into every page, twice, even when it is off.
        (r'\s*<script type="text/x-thebe-config">.*?</script>', ""),
        (r"\s*<script>\s*kernelName = .*?</script>", ""),
        (r"\s*<script>const THEBE_JS_URL.*?</script>", ""),
        (r"\s*<script[^>]*sphinx-thebe\.js[^>]*></script>", ""),
        (r"\s*<link[^>]*sphinx-thebe\.css[^>]*>", ""),
        # 1.5 MB of script for icons that the theme's icon font, there as well, draws too.
        (r"\s*<script defer[^>]*fontawesome\.js[^>]*></script>", ""),
        (r'<i class="([^"]*\bfa-[^"]*)"', r'<i aria-hidden="true" class="\1"'),
        # A name that leaves out visible text hides that text from speech control and screen readers.
        (r'(<button class="btn search-button-field [^>]*?) title="Search" aria-label="Search"', r"\1"),
        (r'<summary aria-label="Toggle hidden content">', "<summary>"),
        (r'(<i [^>]*class="theme-switch [^>]*?) title="[^"]*"', r"\1"),
        # The page that leads from the folder to the first page comes without a language, a title or an icon.
        (
            r'^<meta http-equiv="Refresh" content="0; url=([^"]*)" />\s*$',
            '<!doctype html><html lang="en"><head><meta charset="utf-8">\n'
            "<title>Hardware-friendly language models</title>\n"
            '<link rel="icon" href="_static/favicon.svg">\n'
            '<meta http-equiv="refresh" content="0; url=\\1"></head>\n'
            '<body><a href="\\1">To the book</a></body></html>\n',
        ),
    )
]


def correct(html):
    """Return one finished page with all corrections made."""
    for pattern, replacement in CORRECTIONS:
        html = pattern.sub(replacement, html)
    return html


def correct_pages(app, failure):
    if failure or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        if (better := correct(html)) != html:
            page.write_text(better, encoding="utf-8")


def add_style(app, config):
    config.html_static_path.append(str(THEME))


def setup(app):
    app.connect("config-inited", add_style)
    app.connect("build-finished", correct_pages)
    app.add_css_file("course.css")
    app.add_js_file("course.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
