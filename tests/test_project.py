"""What holds for the repository as a whole: its promises to a reader, its notebooks, where its numbers come from."""

import ast
import json
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TEACH = sorted((ROOT / "cotune" / "teach").rglob("*.py"))
HOSTS = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|(?:deb|security)\.debian\.org|anaconda\.org")
PATHS = re.compile(r"(?<![\w.~*)}\]/<-])(?:/(?:work|root|home|Users|tmp|opt|mnt|usr/(?!bin/env\b))\b|[A-Z]:\\)")
STORED = {"text/plain", "text/markdown"}  # no picture and no widget: nbval compares text
SMALLEST_RATE = 5e11  # slower than any memory of a chip here


def name(path):
    return path.relative_to(ROOT).as_posix()


def tracked():
    """Text files that git would hand to a reader: {name: text}."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / part for part in listed.split("\0") if part]
    return {name(p): p.read_text(encoding="utf-8") for p in paths if p.exists() and p.suffix not in {".png", ".woff2"}}


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def faults(notebook):
    """What is wrong with the stored cells of a notebook for strict nbval, as sentences."""
    found = []
    for number, cell in enumerate(code_cells(notebook), 1):
        where = f"code cell {number}"
        if cell["execution_count"] is None:
            found.append(f"{where} was not run, so nbval would compare nothing; run `make store`")
        if re.search(r";\s*(#.*)?$", source(cell)):
            found.append(f"{where} ends in ';'")
        if "print(" in source(cell) and not cell["outputs"]:
            found.append(f"{where} prints but has no stored output; run `make store`")
        for output in cell["outputs"]:
            kinds = set(output.get("data", {"text/plain": ""}))
            if output["output_type"] == "error" or not kinds <= STORED:
                found.append(f"{where} stores {output['output_type']} with {sorted(kinds)}, not text alone")
            text = json.dumps(output)
            if re.search(r"\b0x[0-9a-f]{6,}", text):
                found.append(f"{where} stores a memory address")
    return found


def typed_in_figures(code):
    """Peaks and bandwidths that a cell or module writes down, such as 8e12: those of a chip are read from the data.

    There each has a source and a status. What an exercise makes up is written with its unit: 3.2 * PETA.
    """
    code = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in code.splitlines())
    numbers = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    rates = [n for n in numbers if SMALLEST_RATE < n.value < 1e18 and not re.fullmatch("10+", f"{n.value:.0f}")]
    return [f"line {n.lineno}: {n.value:g}" for n in rates]


def test_tracked_files_name_no_registry_and_no_absolute_path():
    found = {
        file: hits
        for file, text in tracked().items()
        if (hits := HOSTS.findall(text) + ([] if file in ("LICENSE", "LICENSE-text") else PATHS.findall(text)))
    }
    assert found == {}


@pytest.mark.parametrize("bad", ["see @work/main", "open('@tmp/x')", "C:@Users", "https:@files.pythonhosted@org/x"])
def test_the_search_sees_a_host_or_a_path(bad):
    # Written with @, since these lines are searched too.
    bad = bad.replace("d@", "d.").replace("C:@", "C:" + chr(92)).replace("s:@", "s://").replace("@", "/")
    assert bool(HOSTS.search(bad)) != bool(PATHS.search(bad))


@pytest.mark.parametrize("good", ["#!/usr/bin/env python", "../work", "a/home/b", "https://example.org/work/x"])
def test_the_search_leaves_other_text_alone(good):
    assert not HOSTS.search(good)
    assert not PATHS.search(good)


@pytest.mark.parametrize(
    "command",
    ["make book", "make test", "pip install -r requirements.txt", "jupyter-book build .", "pytest --nbval notebooks"],
)
def test_the_readme_names_every_command(command):
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_links_only_to_files_that_exist():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_example_prints_what_it_says(capsys):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)[1]
    exec(example, {})
    assert capsys.readouterr().out.strip() == example.strip().rpartition("  # ")[2]


def test_what_is_installed_is_what_requirements_pins():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert wanted.pop() == "-e ."
    pins = dict(line.split("==") for line in wanted)
    assert {package: version(package) for package in pins} == pins


def test_there_are_lessons():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_a_notebook_stores_what_nbval_can_compare(path):
    assert faults(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, None),
        ({"execution_count": None}, "not run"),
        ({"source": ["x = 1;\n", "y;"]}, "';'"),
        ({"outputs": []}, "no stored output"),
        ({"outputs": [{"output_type": "display_data", "data": {"text/plain": "", "image/png": ""}}]}, "image/png"),
        ({"outputs": [{"output_type": "error", "ename": "E"}]}, "error"),
        ({"outputs": [{"output_type": "stream", "text": ["<Figure at 0x7f3a5c10>"]}]}, "address"),
    ],
)
def test_a_faulty_cell_is_seen(change, word):
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "source": ["print(1)"],
        "outputs": [{"output_type": "stream", "text": ["1"]}],
    }
    found = faults({"cells": [{"cell_type": "markdown", "source": []}, cell | change]})
    assert found == [] if word is None else len(found) == 1 and word in found[0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_a_notebook_reads_its_figures_from_the_data(path):
    cells = code_cells(json.loads(path.read_text(encoding="utf-8")))
    assert [hit for cell in cells for hit in typed_in_figures(source(cell))] == []


@pytest.mark.parametrize("path", TEACH, ids=name)
def test_teach_reads_its_figures_from_the_data(path):
    assert typed_in_figures(path.read_text(encoding="utf-8")) == []


TYPED_IN = ["p = 15e15", "f(8e12)", "2500e12", "3_350_000_000_000"]
NOT_TYPED_IN = ["x / 1e12", "x * 1e12", "x / TERA", "n = 8192", "30e9", "%time\nx = 1", "1e300", "3.3 * PETA"]


@pytest.mark.parametrize("code", TYPED_IN)
def test_a_typed_in_figure_is_seen(code):
    assert len(typed_in_figures(code)) == 1


@pytest.mark.parametrize("code", NOT_TYPED_IN)
def test_other_numbers_are_left_alone(code):
    assert typed_in_figures(code) == []
