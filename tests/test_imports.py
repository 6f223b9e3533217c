"""Imports point only to a simpler module, and `import cotune` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "cotune"

# A module may import only names further up.
ORDER = [
    *["units", "arguments", "formats", "chip", "parameters", "model", "families", "keys", "config", "count"],
    *["roofline", "gemm", "layer"],
    *["collectives", "prefill", "decode", "pareto", "rules", "silicon", "calibration", "teach", "cli"],
]
MEASURED = {"silicon", "calibration"}  # a model must not see what it will be judged by
MAY_MEASURE = {"calibration", "teach", "cli"}


def name_of(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported(source, module, is_package=False):
    """Dotted cotune names that a module's source imports, at any depth, relative imports resolved."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *filter(None, [base])])
            names |= {base} - {"cotune"} | {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "cotune"}


def forbidden(module, imports):
    """Those of `imports` that `module` must not import; all are dotted names that start with cotune."""
    part = module.split(".")[1]
    bad = set()
    for name in imports:
        target = name.split(".")[1] if "." in name else ""
        if target not in ORDER:  # the package as a whole, or a name it passes on
            wrong = part not in MAY_MEASURE
        else:
            upward = ORDER.index(target) > ORDER.index(part)
            unfair = target in MEASURED and target != part and part not in MAY_MEASURE
            drawing = name.startswith("cotune.teach.figures") and part != "teach"
            wrong = upward or unfair or drawing
        if wrong:
            bad.add(name)
    return bad


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_is_simpler(path):
    module = name_of(path)
    assert module.split(".")[1] in ORDER, f"{module} has no place in ORDER"
    source = path.read_text(encoding="utf-8")
    assert forbidden(module, imported(source, module, path.name == "__init__.py")) == set()


@pytest.mark.parametrize(
    ("module", "source", "bad"),
    [
        ("cotune.gemm", "from cotune import roofline", set()),
        ("cotune.roofline", "from cotune import gemm", {"cotune.gemm"}),
        ("cotune.roofline", "from . import gemm", {"cotune.gemm"}),
        ("cotune.roofline", "from .gemm import time", {"cotune.gemm", "cotune.gemm.time"}),
        ("cotune.formats", "def f():\n    import cotune.gemm", {"cotune.gemm"}),
        ("cotune.rules", "import cotune.silicon", {"cotune.silicon"}),
        ("cotune.silicon", "import cotune.decode", set()),
        ("cotune.teach.explorer", "import cotune.silicon", set()),
        ("cotune.cli", "import cotune.teach.figures.roofline", {"cotune.teach.figures.roofline"}),
        ("cotune.teach.figures.roofline", "import cotune.teach.figures.style", set()),
        ("cotune.gemm", "import cotune", {"cotune"}),
        ("cotune.gemm", "from cotune import Chip", {"cotune.Chip"}),
        ("cotune.gemm", "import numpy, json", set()),
    ],
)
def test_the_walk_sees_a_forbidden_import(module, source, bad):
    assert forbidden(module, imported(source, module)) == bad


def test_import_cotune_loads_neither_matplotlib_nor_ipywidgets():
    code = "import cotune, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"cotune", "numpy"} <= set(loaded)
    assert not {"matplotlib", "ipywidgets", "IPython"} & set(loaded)
