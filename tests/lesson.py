"""A lesson as data for the tests: run its cells here and note every explorer and every sentence it shows."""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import nbformat

from cotune.teach import explorer

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


@dataclass(frozen=True)
class Shown:
    """One call of explore()."""

    scene: object
    controls: tuple
    title: str
    size: tuple

    @property
    def paged(self):
        return [c for c in self.controls if not c.live]

    def sentences(self):
        """What cotune says in every frame of the page, in the order of the frames."""
        explorer.canvas(self.scene, self.size)
        frames = explorer.combinations(self.paged)
        return [self.scene.update(**explorer.values(self.controls, **frame)) for frame in frames]


def stems():
    """The stem of every lesson."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))


def cells(stem, kind="code"):
    return [c for c in nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4).cells if c.cell_type == kind]


def run(stem):
    """Run the code cells in order; return (namespace, [Shown])."""
    shown, names = [], {}

    def note(scene, controls=(), *, title, size=explorer.SIZE):
        explorer.page_controls(controls)
        shown.append(Shown(scene, tuple(controls), title, size))

    quiet = contextlib.redirect_stdout(io.StringIO())
    with mock.patch.object(explorer, "explore", note), mock.patch("IPython.display.display"), quiet:
        for cell in cells(stem):
            exec(compile(cell.source, stem, "exec"), names)
    return names, shown
