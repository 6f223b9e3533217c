"""Print the path of a Chromium that starts, for the browser tests; get one where there is none.

Root on Debian gets Debian's own (apt-get), everybody else Playwright's.
"""

import os
import platform
import shutil
import subprocess
import sys

from playwright.sync_api import Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def starts(playwright, path):
    """Whether the browser at `path` shows an empty page (Ubuntu's chromium can be a stub that only asks for snap)."""
    try:
        playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]).close()
    except Error:
        return False
    return True


def find():
    """Return the path of the first browser that starts, or None."""
    with sync_playwright() as playwright:
        known = [os.environ.get("COTUNE_BROWSER"), *map(shutil.which, NAMES), playwright.chromium.executable_path]
        return next((path for path in known if path and os.path.exists(path) and starts(playwright, path)), None)


def install():
    """Install a browser, all output on stderr; a failure is seen by looking for the browser again."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    debian = platform.system() == "Linux" and platform.freedesktop_os_release().get("ID") == "debian"
    print("Getting a browser for the tests.", file=sys.stderr, flush=True)
    if root and debian:
        subprocess.run(["apt-get", "-qq", "update"], stdout=sys.stderr)
        subprocess.run(["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "chromium"], stdout=sys.stderr)
    else:
        deps = ["--with-deps"] if root else []
        subprocess.run([sys.executable, "-m", "playwright", "install", *deps, "chromium"], stdout=sys.stderr)


if __name__ == "__main__":
    browser = find()
    if browser is None:
        install()
        browser = find()
    if browser is None:
        sys.exit(
            "No Chromium starts here, and none could be installed. Install Chromium or Chrome yourself, "
            "or set COTUNE_BROWSER to the path of one."
        )
    print(browser)
