"""The built book, once per test run: from COTUNE_BOOK where that names a folder of built pages, else built here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    """The folder of the built pages. A warning of the build fails every test that asks for it."""
    if ready := os.environ.get("COTUNE_BOOK"):
        folder = Path(ready).resolve()
        assert (folder / "index.html").exists(), f"COTUNE_BOOK={ready} has no index.html; run `make book` first"
        return folder
    output = tmp_path_factory.mktemp("book")
    tool = Path(sys.executable).with_name("jupyter-book")
    command = [tool, "build", str(ROOT), "-W", "--keep-going", "--path-output", output]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert build.returncode == 0, build.stdout[-3000:] + build.stderr[-3000:]
    return output / "_build" / "html"
