"""Every lesson is tested as a new reader meets it: with no progress saved, and without touching the reader's own."""

import tempfile
from pathlib import Path

import pytest

FOLDER = tempfile.TemporaryDirectory(prefix="cotune-progress-")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "COTUNE_PROGRESS",
            str(Path(FOLDER.name) / f"{item.path.stem}.json"),
        )
        return (yield)
