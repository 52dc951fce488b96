"""Notebook display of a result, progress of a call, and the notebooks of the examples."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import nbclient
import nbformat
import pytest

import weft
from conftest import SMALL
from weft import progress_bar

pytestmark = pytest.mark.slow


def executed(notebook: Any, place: Path) -> Any:
    """Run all cells of a notebook in a kernel of its own; the first error is raised."""
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(place)}}).execute()
    return notebook


NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def outputs(cell: Any) -> list[Any]:
    """Everything below a cell that has data, by MIME type."""
    return [output["data"] for output in cell["outputs"] if "data" in output]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """Return the output of cells that end with a run, a comparison, a figure, a sweep, and a run that takes long."""
    sources = [
        # A bar that a slow machine needs would be one more output.
        "import weft\nfrom weft import progress_bar\nprogress_bar._SHOWN_AFTER_S = 1e9\n"
        f"small = {SMALL}\nweft.run({{}}, set=small)",
        'compared = weft.compare(["ecmp", "drill"], set=small, seeds=2)\ncompared',
        'compared.plot("mean FCT by scheme")',
        'weft.sweep({}, "loads", set=small, vary={"traffic.load": [0.3, 0.5]})',
        "progress_bar._SHOWN_AFTER_S = 0.0\nsaid = []\nkept = progress_bar._InNotebook.__call__\n"
        "def noted(self, share, words):\n    said.append(share)\n    kept(self, share, words)\n"
        "progress_bar._InNotebook.__call__ = noted\n"
        'assert weft.compare(["ecmp", "drill"], set=small) and said',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    return [outputs(cell) for cell in executed(notebook, tmp_path_factory.mktemp("notebook"))["cells"]]


def test_the_last_value_of_a_cell_is_shown_as_a_table_with_what_it_says(shown: list[list[Any]]) -> None:
    (run,), (comparison,), _, (sweep,), _ = shown
    assert "<b>ecmp, seed 1</b>" in run["text/html"] and "data packets" in run["text/html"]
    assert ">drill</td>" in comparison["text/html"] and "lowest mean FCT" in comparison["text/html"]
    assert "traffic.load: 2 runs" in sweep["text/html"]


def test_a_figure_at_the_end_of_a_cell_is_shown(shown: list[list[Any]]) -> None:
    assert "image/png" in shown[2][0]


def test_a_bar_is_gone_when_its_call_is_done(shown: list[list[Any]]) -> None:
    (bar,) = shown[4]
    assert bar["text/html"] == ""


class Screen(io.StringIO):
    """Takes what would stand on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bar, "_SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress_bar, "_BETWEEN_S", 0.0)


CALLS: dict[str, Callable[[Path, Any], Any]] = {
    "run": lambda _, progress: weft.run("", set=SMALL | {"traffic.flows": 2000}, progress=progress),
    "compare": lambda _, progress: weft.compare(["ecmp", "drill"], set=SMALL, progress=progress),
    "sweep": lambda place, progress: weft.sweep("", place / "sweep", seeds=2, set=SMALL, progress=progress),
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("call", CALLS)
def test_a_terminal_has_a_bar_unless_it_is_told_not_to(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for progress, barred in ((None, True), (False, False)):
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        CALLS[call](tmp_path / str(barred), progress)
        assert (call in screen.getvalue()) == barred


@pytest.mark.usefixtures("at_once")
def test_nothing_is_said_where_nobody_looks_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for call in CALLS.values():
        call(tmp_path, None)
    assert capfd.readouterr() == ("", "")


def test_a_callback_has_what_a_bar_would_have() -> None:
    told: list[Any] = []
    weft.compare(["ecmp", "drill"], set=SMALL, progress=told.append)
    assert {state.label for state in told if state.done} == {"ecmp", "drill"}


def test_what_a_label_holds_is_no_html() -> None:
    run = weft.run("", set=SMALL)
    named = weft.Result(msgspec.structs.replace(run.summary, label="<i>"), run.spec)
    assert "<b>&lt;i&gt;, seed 1</b>" in named._repr_html_()


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_examples_runs_and_shows_what_it_has_written_down(path: Path, tmp_path: Path) -> None:
    written = nbformat.read(path, 4)
    kinds = [[sorted(data) for data in outputs(cell)] for cell in written["cells"] if cell["cell_type"] == "code"]
    notebook = executed(written, tmp_path)
    shown = [outputs(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    # A bar is there only if a call takes long, and leaves an empty place.
    assert [[sorted(data) for data in cell if any(data.values())] for cell in shown] == kinds
    assert any("image/png" in data or "<img" in data.get("text/html", "") for cell in shown for data in cell)


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 4
