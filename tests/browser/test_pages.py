"""Every page of the book: no other host, no error, usable by everybody, light enough, also opened as a file."""

import itertools
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CONTENT = [TOC["root"]] + [chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]]
PAGES = [f"{name}.html" for name in [*CONTENT, "index", "genindex", "search"]]
# Script of a stock Jupyter Book 1.0.4.post1 page with the same themes, unpacked, in bytes (measured 2026-11-30).
STOCK_SCRIPT = 1_570_000
# After a change of width or theme: boxes that scroll have become tab stops, colours have faded over.
SETTLED = """() => [...document.querySelectorAll("pre")].every(
    box => !box.checkVisibility() || box.scrollWidth <= box.clientWidth || box.tabIndex === 0
) && document.getAnimations().every(fade => fade.playState !== "running")"""
every_page = pytest.mark.parametrize("name", PAGES)


def serious(page):
    """What axe-core calls serious or critical on the page now, as 'rule: where'."""
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{v['id']}: {node['target']} {node['failureSummary'].splitlines()[-1].strip()}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
    ]


def test_no_page_is_forgotten(book):
    built = {p.relative_to(book).as_posix() for p in book.rglob("*.html") if "_static" not in p.parts}
    assert built == set(PAGES)


@every_page
def test_asks_no_other_host_and_throws_no_error(site, visit, name):
    seen = visit(f"{site}/{name}")
    assert seen.hosts == {urlsplit(site).netloc}
    assert seen.errors == []
    assert 0 < sum(seen.scripts.values()) <= STOCK_SCRIPT
    texts = [image.get_attribute("alt") or "" for image in seen.page.locator("img").all()]
    assert all(len(text.split()) > 2 for text in texts), f"an image does not say what it shows: {texts}"


@every_page
def test_opens_as_a_file(book, visit, name):
    seen = visit((book / name).as_uri())
    assert seen.hosts == {""}
    assert seen.errors == []
    assert seen.page.title()


@pytest.mark.parametrize("name", [p for p in PAGES if p != "index.html"])  # index only leads on to the first page
def test_is_usable_by_everybody(site, visit, name):
    page = visit(f"{site}/{name}").page
    page.evaluate((ROOT / ".vendor/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
    for theme, width in itertools.product(("light", "dark"), (1280, 390)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        page.wait_for_function(SETTLED)
        assert serious(page) == [], f"{theme}, {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{theme}, {width} px"


@pytest.mark.parametrize("as_file", [False, True], ids=["served", "file"])
def test_search_finds_a_page(site, book, visit, as_file):
    address = (book / "search.html").as_uri() if as_file else f"{site}/search.html"
    seen = visit(f"{address}?q=bandwidth")
    seen.page.locator("#search-results li a").first.wait_for()
    links = [a.get_attribute("href") for a in seen.page.locator("#search-results li a").all()]
    assert any("notation.html" in link for link in links)
    assert seen.errors == []


def test_theme_switch_turns_the_page_dark(site, visit):
    page = visit(f"{site}/{PAGES[0]}").page
    modes = set()
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").click()
        modes.add(page.evaluate("document.documentElement.dataset.theme"))
    assert modes == {"light", "dark"}
