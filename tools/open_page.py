"""Name a built page, and show it in the reader's browser where there is a screen. Never fails, never waits.

Usage: python tools/open_page.py PAGE
"""

import os
import sys
import webbrowser
from pathlib import Path


def has_screen(environment, platform):
    """Whether a window can open here. A text browser on a bare terminal would wait for keys, so that counts as none."""
    if environment.get("CI") or environment.get("SSH_CONNECTION"):
        return False
    return platform != "linux" or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def show(page):
    """Print where the page is and open it if that is possible."""
    page = Path(page).resolve()
    print(f"The book is at {page}")
    if has_screen(os.environ, sys.platform):
        try:
            webbrowser.open(page.as_uri())
        except (webbrowser.Error, OSError) as error:
            print(f"No browser opened it: {error}")


if __name__ == "__main__":
    show(sys.argv[1])
