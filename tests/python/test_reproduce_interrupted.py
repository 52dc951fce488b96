"""A reproduction that is killed goes on where it was, and ends with the same bytes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import flip_a_bit
from tiny_paper import TINY, runs_done, stored_runs, tree, write_tiny
from weft.errors import OutputError
from weft.papers.reproduction import make_figures
from weft.papers.store import Store

pytestmark = pytest.mark.slow

MANY = TINY.replace("seeds = 2", "seeds = 8")
RUNS = 2 * 2 * 8 + 1


def test_a_killed_reproduction_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    folder, out = write_tiny(tmp_path / "papers", MANY), tmp_path / "out"
    script = (
        "from weft.papers.reproduction import make_figures\n"
        f"make_figures('tiny', folder={str(folder)!r}, out={str(out)!r}, jobs=1)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while runs_done(out) < 4 and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = runs_done(out)
    assert 4 <= there < RUNS, "it was to be killed in the middle"
    undisturbed = tree(make_figures("tiny", folder=folder, out=tmp_path / "undisturbed", store=tmp_path / "own").path)
    for name, digest in tree(out).items():
        if name in undisturbed:
            assert digest == undisturbed[name], "what has its name is whole"
    went_on = make_figures("tiny", folder=folder, out=out)
    assert went_on.kept == there and went_on.ok
    assert tree(out) == undisturbed


def test_the_bytes_do_not_depend_on_how_many_runs_go_on_at_a_time(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "papers")
    one, four = (
        make_figures("tiny", folder=folder, out=tmp_path / str(jobs), jobs=jobs, store=tmp_path / f"store{jobs}").path
        for jobs in (1, 4)
    )
    assert tree(one) == tree(four)


def test_a_damaged_run_is_done_again(tmp_path: Path) -> None:
    folder, out = write_tiny(tmp_path / "papers"), tmp_path / "out"
    before = tree(make_figures("tiny", folder=folder, out=out).path)
    places = stored_runs(out)
    (places[0] / "summary.json").write_bytes(b"{")
    (places[1] / "provenance.json").unlink()
    (places[2] / "provenance.json").write_bytes(b"{")
    assert make_figures("tiny", folder=folder, out=out).kept == 6
    assert tree(out) == before


def test_a_run_with_a_flipped_bit_is_told_and_done_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, out = write_tiny(tmp_path / "papers"), tmp_path / "out"
    before = tree(make_figures("tiny", folder=folder, out=out).path)
    places = stored_runs(out)
    with_table = next(file for place in places for file in place.glob("*.parquet"))
    others = [place for place in places if place != with_table.parent]
    names = ("summary.json", "spec.toml", "provenance.json")
    damaged = [with_table, *(place / name for place, name in zip(others, names, strict=False))]
    for file in damaged:
        flip_a_bit(file)
    assert make_figures("tiny", folder=folder, out=out).kept == len(places) - len(damaged)
    assert tree(out) == before
    said = {record.getMessage() for record in caplog.records}
    assert said == {f"{file}: is damaged; its run is done again" for file in damaged}


def test_two_at_once_in_one_directory_are_told(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "papers")
    with (
        Store(tmp_path / "out", ["tiny"]),
        pytest.raises(OutputError, match="another reproduction is writing to it"),
    ):
        make_figures("tiny", folder=folder, out=tmp_path / "out")
