"""A browser, the book on a loopback port, and pages that remember what went wrong on them."""

import functools
import http.server
import os
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, Page, sync_playwright

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = [
    "--no-sandbox",  # root may not start a browser without it
    "--disable-gpu",
    "--disable-background-networking",  # this and the rest: the browser itself must not call home
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Visit:
    """One open page: `errors` of console and script, `hosts` asked for anything, `scripts` in bytes by address."""

    page: Page
    errors: list = field(default_factory=list)
    hosts: set = field(default_factory=set)
    scripts: dict = field(default_factory=dict)

    def watch(self):
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: r.url.startswith("data:") or self.hosts.add(urlsplit(r.url).netloc))
        self.page.on("response", self.weigh)

    def weigh(self, response):
        if response.request.resource_type == "script":
            self.scripts[response.url] = len(response.body())


@pytest.fixture(scope="session")
def browser():
    """Chromium: COTUNE_BROWSER, else the one on PATH, else Playwright's own."""
    names = os.environ.get("COTUNE_BROWSER"), *map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    path = next(filter(None, names), None)
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error as error:
            pytest.fail(f"no browser could be started ({path or 'none on PATH'}); `make test` installs one.\n{error}")
        yield chromium
        chromium.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site(book):
    """Address of the served book, without a final slash."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(book)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def visit(browser):
    """Open an address in a fresh profile: visit(url, width=1280, theme="light") -> Visit; closed after the test."""
    opened = []

    def open_page(url, width=1280, theme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
        opened.append(context)
        seen = Visit(context.new_page())
        seen.watch()
        seen.page.goto(url, wait_until="load")
        seen.page.wait_for_load_state("networkidle")
        return seen

    yield open_page
    for context in opened:
        context.close()
