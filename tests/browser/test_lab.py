"""The lessons as `make lab` shows them: every cell runs, every control works, nothing leaves this machine."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"
CONTROLS = ".noUi-handle, .widget-dropdown select"
SECONDS = 120  # for a start or a run that hangs; a good one takes a few

# Both run in the page; `jupyterapp` is JupyterLab itself.
RUN_ALL = """async () => {
    const panel = jupyterapp.shell.currentWidget
    await panel.sessionContext.ready
    await jupyterapp.commands.execute('notebook:run-all-cells')
    return panel.content.widgets.map(cell => cell.model.toJSON().outputs ?? [])
}"""
SHOW_CELL = "index => jupyterapp.shell.currentWidget.content.scrollToItem(index, 'start')"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab started as `make lab` does, on copies of the lessons: its address with the token."""
    assert (
        'JUPYTER_CONFIG_PATH="$$PWD/tools/jupyter" $(PYTHON) -m jupyterlab notebooks' in (ROOT / "Makefile").read_text()
    )
    folder = tmp_path_factory.mktemp("lab")
    lessons, runtime = folder / "notebooks", folder / "runtime"
    lessons.mkdir()
    for lesson in LESSONS:
        shutil.copy(lesson, lessons)
    own = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR", "COTUNE_PROGRESS")}
    own |= {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"), "JUPYTER_RUNTIME_DIR": str(runtime)}
    environment = os.environ | own | {"JUPYTER_CONFIG_PATH": str(ROOT / "tools" / "jupyter")}
    options = ["--no-browser", "--ServerApp.port=0", "--LabApp.expose_app_in_browser=True"]
    command = [sys.executable, "-m", "jupyterlab", str(lessons), *options]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        yield address(runtime, server, folder / "log")
    finally:
        server.terminate()
        server.wait(SECONDS)


def address(runtime, server, log):
    """Where the server listens, from the file that it writes when it is ready."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            if text := path.read_text():
                info = json.loads(text)
                return f"{info['url']}lab/tree/{{}}?reset&token={info['token']}"
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


def move(control):
    """Move a slider or a drop-down by one step, back where it stands at its end."""
    if control.evaluate("e => e.tagName") == "SELECT":
        control.select_option(index=control.evaluate("e => e.selectedIndex + (e.selectedIndex ? -1 : 1)"))
    else:
        at_the_end = control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
        control.press("ArrowLeft" if at_the_end else "ArrowRight")


def try_explorer(cell):
    """Move every control of an explorer: each changes the sentence and leaves the height of the figure."""
    said, figure, controls = cell.locator(".ex-say"), cell.locator(".ex-pic"), cell.locator(CONTROLS)
    expect(said).to_have_count(1)
    height = figure.bounding_box()["height"]
    assert height > 100
    assert controls.count() > 0
    for control in controls.all():
        before = said.inner_text()
        move(control)
        expect(said).not_to_have_text(before)
        expect(figure.locator("svg")).to_have_count(1)
        assert figure.bounding_box()["height"] == height


def try_quiz(cell):
    """Choose every option once: each shows its reply."""
    options = cell.locator(".quiz-option input")
    expect(options.first).to_be_attached()
    for option in options.all():
        option.check()
        expect(cell.locator(f"[id='{option.get_attribute('id')}-reply']")).to_be_visible()


# What stands in the plain text of a live output, which is also what nbval compares.
ATTEMPTS = {"frames, sentences": try_explorer, "( )": try_quiz}


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_alive_in_jupyterlab(lab, visit, lesson):
    seen = visit(lab.format(lesson.name))
    page = seen.page
    page.locator(".jp-Notebook").wait_for()
    cells = page.evaluate(RUN_ALL)
    errors = [output for cell in cells for output in cell if output["output_type"] == "error"]
    assert [(error["ename"], error["evalue"]) for error in errors] == []
    tried = set()
    for index, cell in enumerate(cells):
        text = "".join(str(output["data"].get("text/plain")) for output in cell if WIDGET in output.get("data", {}))
        for mark, attempt in ATTEMPTS.items():
            if mark in text:
                page.evaluate(SHOW_CELL, index)
                attempt(page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]'))
                tried.add(mark)
    assert tried == set(ATTEMPTS)
    assert page.locator(".jp-Dialog").count() == 0
    assert seen.errors == []
    assert seen.hosts == {urlsplit(page.url).netloc}
