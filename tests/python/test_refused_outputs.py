"""An output that cannot be written is refused before anything is run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import SMALL
from weft.cli.app import app

SET = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
TO_A_DIRECTORY = {
    "run": ["run", *SET],
    "compare": ["compare", "--schemes", "ecmp,rps", *SET],
    "sweep": ["sweep", "--vary", "traffic.load=0.3,0.5", *SET],
    "reproduce": ["reproduce", "lbt", "8"],
    "multiverse": ["multiverse", "lbt", "8"],
}
TO_A_FILE = {
    "packets": ["packets", "--at", "host0", *SET, "--out"],
    "gaps": ["gaps", *SET, "--figure"],
    "fit": ["fit", "qall", "--samples", "10", "--out"],
    "report": ["report", "result", "--out"],
    "flow": ["flow", "result", "0", "--out"],
    "reproduce --write-times": ["reproduce", "lbt", "8", "--write-times"],
}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Call the command line in an empty directory where no run may begin; return what it says."""

    def called(*_given: object, **_named: object) -> None:
        raise AssertionError("a run was begun")

    for name in ("run", "packets", "pcapng", "observe", "congestion_windows"):
        monkeypatch.setattr(f"weft._core.{name}", called)
    monkeypatch.setattr("weft.runs.execution.Executor.do", called)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("WEFT_STORE", str(tmp_path / "store"))

    def call(*arguments: str) -> str:
        outcome = CliRunner().invoke(app, list(arguments))
        assert outcome.exit_code == 2, (outcome.output, outcome.exception)
        assert outcome.stdout == ""
        return outcome.stderr

    return call


@pytest.mark.parametrize("command", TO_A_DIRECTORY)
@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("file", "file: exists and is not a directory"),
        ("link", "link: is a symbolic link; name the directory itself"),
        ("file/deeper", "file is not a directory that can be written to"),
        ("nowhere/deeper", "nowhere is not a directory that can be written to"),
    ],
)
def test_a_directory_that_cannot_be_made(
    refused: Callable[..., str], tmp_path: Path, command: str, out: str, said: str
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert said in refused(*TO_A_DIRECTORY[command], "--out", out)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("command", TO_A_DIRECTORY)
def test_a_directory_without_permission(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    (tmp_path / "locked").mkdir()
    # Root may write anywhere, so that no mode of a directory would do.
    monkeypatch.setattr("weft.output.os.access", lambda path, _mode: Path(path).name != "locked")
    said = refused(*TO_A_DIRECTORY[command], "--out", "locked/out")
    assert "locked is not a directory that can be written to" in said
    assert list((tmp_path / "locked").iterdir()) == []


@pytest.mark.parametrize("command", TO_A_FILE)
def test_a_file_that_cannot_be_written(refused: Callable[..., str], tmp_path: Path, command: str) -> None:
    (tmp_path / "folder.pcapng").mkdir()
    (tmp_path / "folder.pdf").mkdir()
    suffix = "pdf" if command == "gaps" else "pcapng"
    assert "is a directory" in refused(*TO_A_FILE[command], f"folder.{suffix}")
    said = refused(*TO_A_FILE[command], f"missing/one.{suffix}")
    assert "missing is not a directory that can be written to" in said


@pytest.mark.parametrize("command", ["packets", "fit", "report", "flow"])
def test_a_file_that_is_there_stays(refused: Callable[..., str], tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.pcapng").write_text("mine", encoding="utf-8")
    assert "mine.pcapng: exists already; --force replaces it" in refused(*TO_A_FILE[command], "mine.pcapng")
    assert (tmp_path / "mine.pcapng").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_a_store_that_is_none(refused: Callable[..., str], tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    said = refused(*TO_A_DIRECTORY[command], "--out", "out", "--store", "file")
    assert "file: exists and is not a directory; choose another --store" in said
