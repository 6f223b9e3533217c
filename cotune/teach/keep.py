"""What a reader's own work leaves behind: one small JSON file beside the notebooks.

COTUNE_PROGRESS names another file. A damaged file is set aside as *.damaged, never overwritten.
"""

import json
import os
from pathlib import Path


def path():
    """Return where the progress is kept: $COTUNE_PROGRESS, else .cotune-progress.json in the working folder."""
    return Path(os.environ.get("COTUNE_PROGRESS") or ".cotune-progress.json")


def everything():
    """Return all that is kept, as a dict; empty where nothing is."""
    try:
        kept = json.loads(path().read_text(encoding="utf-8"))
    except OSError:
        return {}
    except ValueError:
        kept = None
    if not isinstance(kept, dict):
        path().replace(path().with_suffix(".damaged"))
        return {}
    return kept


def get(name):
    """Return what is kept under `name`, or None."""
    return everything().get(name)


def put(name, value):
    """Keep `value` under `name`; return whether it could be written."""
    try:
        path().write_text(json.dumps(everything() | {name: value}, indent=1, sort_keys=True), encoding="utf-8")
    except OSError:
        return False
    return True
