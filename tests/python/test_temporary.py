"""Runs whose temporary files cannot be written."""

import resource
from pathlib import Path

import pytest

from conftest import Outcome, Weft
from weft.cli.console import EXIT_BAD_INPUT, EXIT_NO_SPACE

# So many flows that their records do not stay in memory.
MANY = """
[fabric]
leaves = 2
spines = 2
hosts_per_leaf = 4
[traffic]
size = "1KB"
load = 0.6
flows = 600000
[transport]
name = "dctcp"
"""


def run_many(weft_command: Weft, folder: Path) -> Outcome:
    (folder / "many.toml").write_text(MANY, encoding="utf-8")
    # Its limits are those of this process.
    return weft_command("run", "many.toml", "--out", "out", "--json", own_process=True)


def assert_one_message(done: Outcome, folder: Path, *words: str, code: int = EXIT_BAD_INPUT) -> None:
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert (done.code, len(errors), done.stdout) == (code, 1, "")
    assert all(word in errors[0] for word in ("TMPDIR", *words)), errors
    assert [path.name for path in folder.iterdir()] == ["many.toml"], "nothing of a result is left"


def test_a_directory_for_temporary_files_that_is_not_there_is_one_message(
    weft_command: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    assert_one_message(run_many(weft_command, tmp_path), tmp_path, "/nowhere/at/all", "No such file")


def test_a_temporary_file_that_cannot_grow_is_one_message(
    weft_command: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, hard))
    try:
        done = run_many(weft_command, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_one_message(done, tmp_path, "File too large", code=EXIT_NO_SPACE)
