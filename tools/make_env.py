"""Make or refresh .venv with everything that requirements.txt names, and leave a stamp for make."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"


def works():
    """Whether .venv has a Python that starts and a pip: a moved folder or an upgraded system can break both."""
    try:
        return subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def create():
    """Create .venv. Debian keeps venv in a package of its own: get it where we may, else say which."""
    command = [sys.executable, "-m", "venv", "--clear", VENV]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode and shutil.which("apt-get") and os.geteuid() == 0:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        subprocess.run(["apt-get", "-qq", "update"], stdout=subprocess.DEVNULL)
        subprocess.run(["apt-get", "-qq", "install", "--yes", package], stdout=subprocess.DEVNULL)
        made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stdout + made.stderr)


def install():
    """Install what requirements.txt names; pip's many lines go to a log, its last ones to the screen if it fails."""
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--requirement", "requirements.txt"]
    with LOG.open("w") as log:
        failed = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT).returncode
    if failed:
        lines = LOG.read_text(errors="replace").splitlines()
        sys.exit("\n".join([*lines[-20:], f"pip could not install everything; all it said is in {LOG}"]))


if __name__ == "__main__":
    if not works():
        create()
    print("Installing into .venv what the book is built with; the first time takes some minutes.", flush=True)
    install()
    (VENV / "made").touch()
