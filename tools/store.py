"""Run lessons in a live kernel and store what strict nbval compares: text and Markdown, never pictures or widgets.

python tools/store.py notebooks/02_roofline.ipynb ...
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

STORED = ("text/plain", "text/markdown")


def store(path):
    """Run the notebook at `path` in its own folder and write it back with its stored outputs."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
    book.metadata.pop("widgets", None)
    book.metadata["language_info"] = {"name": "python"}
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = {kind: output.data[kind] for kind in STORED if kind in output.data}
                output.metadata = {}
    nbformat.write(book, path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COTUNE_PROGRESS"] = str(Path(folder) / "progress.json")
        for name in sys.argv[1:]:
            store(Path(name))
