"""What a reader's own work leaves behind: one small JSON file beside the notebooks.

COTUNE_PROGRESS names another file. A damaged file is set aside as *.damaged, never overwritten or deleted.
"""

import json
import os
from contextlib import suppress
from pathlib import Path


def path():
    """Return where the progress is kept: $COTUNE_PROGRESS, else .cotune-progress.json in the working folder."""
    return Path(os.environ.get("COTUNE_PROGRESS") or ".cotune-progress.json")


def everything():
    """Return all that is kept, as a dict; empty where nothing is or nothing can be read."""
    try:
        kept = json.loads(path().read_text(encoding="utf-8"))
    except OSError:
        return {}
    except ValueError:
        kept = None
    if isinstance(kept, dict):
        return kept
    with suppress(OSError):
        path().rename(_free_name(path()))
    return {}


def _free_name(damaged):
    names = (damaged.with_name(f"{damaged.name}.damaged{n or ''}") for n in range(1000))
    return next(name for name in names if not name.exists())


def get(name):
    """Return what is kept under `name`, or None."""
    return everything().get(name)


def put(name, value):
    """Keep `value` under `name`; return whether it could be written without losing anything."""
    kept = everything()
    try:
        if not kept and path().exists() and path().read_bytes().strip() not in (b"", b"{}"):
            return False  # damaged, and it could not be set aside
        path().write_text(json.dumps(kept | {name: value}, indent=1, sort_keys=True), encoding="utf-8")
    except OSError:
        return False
    return True
