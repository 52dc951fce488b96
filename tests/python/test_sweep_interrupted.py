"""Sweeps that are killed, run out of disk, fail in part or meet another: what is there is whole, and goes on."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft
from conftest import Weft, all_formats, flip_a_bit
from sweeping import POINTS, SPEC, rows_done, tree
from weft import _core, sweeps
from weft.cli.console import EXIT_NO_SPACE
from weft.runs.run import Run
from weft.spec import load_spec
from weft.sweeps.grid import Grid, read_grid
from weft.sweeps.planning import plan
from weft.sweeps.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.all_formats]


class Cut(BaseException):
    """Stands in for the end of the process."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    # As the command draws them.
    with all_formats():
        return tree(weft.sweep(SPEC, tmp_path_factory.mktemp("sweep") / "out", figures="usual").path)


def test_a_killed_sweep_goes_on_and_ends_with_the_same_bytes(
    weft_command: Weft, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    (tmp_path / "my.toml").write_text(SPEC, encoding="utf-8")
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "sweep", "my.toml", "--out", "out", "--jobs", "1"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while rows_done(out) < 3 and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = rows_done(out)
    assert 3 <= there < POINTS, "the sweep was to be killed in the middle"
    for name in set(tree(out)) & set(undisturbed):
        if name.endswith(".parquet"):
            assert tree(out)[name] == undisturbed[name], "what has its name is whole"
    went_on = weft_command("sweep", "my.toml", "--out", "out", "--json", own_process=True)
    assert went_on.code == 0, went_on.stderr
    # The store may have one that had not come to the directory yet.
    assert there <= json.loads(went_on.stdout)["kept"] <= there + 1
    assert tree(out) == undisturbed


@pytest.mark.nightly
def test_a_sweep_that_is_cut_off_at_any_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SPEC.split("[[scheme]]")[0]
    fixed = {"traffic.load": 0.3, "traffic.flows": 10}
    whole = tree(weft.sweep(spec, tmp_path / "whole", set=fixed, seeds=2).path)
    sync = os.fsync
    for writes in itertools.count(0, 3):
        left = writes

        def cut(handle: int) -> None:
            nonlocal left
            if left == 0:
                raise Cut
            left -= 1
            sync(handle)

        out = tmp_path / f"out{writes}"
        monkeypatch.setattr(os, "fsync", cut)
        try:
            weft.sweep(spec, out, set=fixed, seeds=2, jobs=1, store=tmp_path / f"store{writes}")
        except Cut:
            ended = False
        else:
            ended = True
        monkeypatch.setattr(os, "fsync", sync)
        assert tree(weft.sweep(spec, out, set=fixed, seeds=2, store=tmp_path / f"store{writes}").path) == whole, (
            f"cut off after {writes} writes"
        )
        if ended:
            break
    # Each file takes two writes at least, its own and its directory's: manifest, tables, and four for each run.
    assert writes >= 2 * (1 + 2 + 4 * 2)


@pytest.mark.nightly
def test_a_run_with_a_flipped_bit_is_told_and_done_again(
    weft_command: Weft, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    (tmp_path / "my.toml").write_text(SPEC, encoding="utf-8")
    out = tmp_path / "out"
    assert weft_command("sweep", "my.toml", "--out", "out").code == 0
    damaged = [sorted((out / name).rglob("*.parquet"))[place] for place, name in enumerate(("flows", "runs", "links"))]
    damaged.append(sorted((out / "provenance").rglob("*.parquet"))[-1])
    for file in damaged[:-1]:
        flip_a_bit(file)
    damaged[-1].write_bytes(b"PAR1")
    went_on = weft_command("sweep", "my.toml", "--out", "out", "--json", own_process=True)
    assert went_on.code == 0 and went_on.json()["kept"] == POINTS, "the store has all of them"
    said = [line for line in went_on.stderr.splitlines() if "damaged" in line]
    assert sorted(said) == sorted(
        f"{file.relative_to(tmp_path)}: is damaged; the files of its run are written again" for file in damaged
    )
    assert tree(out) == undisturbed


@pytest.mark.nightly
def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    weft_command: Weft, tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    (tmp_path / "my.toml").write_text(SPEC, encoding="utf-8")
    out = tmp_path / "out"
    # A limit on file size makes every larger write fail, as a full disk does.
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); from weft.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "sweep", "my.toml", "--out", "out"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == EXIT_NO_SPACE and done.stdout == ""
    assert "cannot be written" in done.stderr and "the same command goes on" in done.stderr
    assert "Traceback" not in done.stderr
    found = tree(out)
    assert rows_done(out) == 0 and not (out / ".part").exists()
    assert all(undisturbed[name] == digest for name, digest in found.items()), "each file is whole or not there"
    assert weft_command("sweep", "my.toml", "--out", "out").code == 0
    assert tree(out) == undisturbed


def test_a_run_that_fails_is_recorded_and_the_rest_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = "size_bytes,cumulative_probability\n1000,0\n50000,1\n"
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text(sizes.replace("50000", str(50_000 + ord(name[0]))), encoding="utf-8")
    spec = tmp_path / "my.toml"
    spec.write_text("[traffic]\nworkload = ['a.csv', 'b.csv', 'c.csv']\nload = 0.3\nflows = 20\n", encoding="utf-8")

    def plan_and_lose_a_file(grid: Grid, *options: Any) -> list[Run]:
        runs = plan(grid, *options)
        (tmp_path / "b.csv").rename(tmp_path / "elsewhere.csv")
        return runs

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "plan", plan_and_lose_a_file)
        broken = weft.sweep(spec, tmp_path / "out")
    assert [run.labels["traffic.workload"] for run in broken.failed] == ["b.csv"]
    assert "b.csv" in (broken.failed[0].error or "")
    (row,) = broken.provenance.filter(pl.col("status") == "failed").to_dicts()
    assert "b.csv" in row["error"] and row["version"] == weft.__version__ and row["host"]
    assert set(broken.frame("runs")["traffic.workload"]) == {"a.csv", "c.csv"}
    (tmp_path / "elsewhere.csv").rename(tmp_path / "b.csv")
    mended = weft.sweep(spec, tmp_path / "out")
    assert mended.kept == 2 and not mended.failed
    assert tree(mended.path) == tree(weft.sweep(spec, tmp_path / "undisturbed").path)


def test_failures_are_told_with_an_exit_code_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer.testing import CliRunner

    from weft.cli.app import app

    def plan_of_another_file(grid: Grid, *options: Any) -> list[Run]:
        runs = plan(grid, *options)
        (tmp_path / "a.csv").write_text("size_bytes,cumulative_probability\n1000,0\n9000,1\n", encoding="utf-8")
        return runs

    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("size_bytes,cumulative_probability\n1000,0\n50000,1\n", encoding="utf-8")
    Path("my.toml").write_text("[traffic]\nworkload = 'a.csv'\nload = 0.3\nflows = 5\n", encoding="utf-8")
    monkeypatch.setattr(sweeps, "plan", plan_of_another_file)
    outcome = CliRunner().invoke(app, ["sweep", "my.toml", "--seeds", "2", "--out", "out", "--json"])
    assert outcome.exit_code == 3
    assert "run.seed = 1: a file that the spec names is not here what it was" in outcome.stderr
    assert [one["run.seed"] for one in json.loads(outcome.stdout)["failed"]] == ["1", "2"]


def test_a_build_with_other_results_of_the_same_version_runs_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SPEC.split("[[scheme]]")[0]
    assert weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.3}).kept == 0
    monkeypatch.setattr(_core, "results_version", lambda: "0123456789abcdef")
    again = weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.3})
    assert again.kept == 0 and not again.failed
    assert again.provenance.height == 3
    assert set(again.provenance["results_version"]) == {"0123456789abcdef"}
    assert again.frame("flows").height == 3 * 40, "the runs of the other version are gone"


def test_another_spec_in_the_same_place_replaces_the_runs(tmp_path: Path) -> None:
    spec = SPEC.split("[[scheme]]")[0]
    weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.3, "run.sample_every": "100us"})
    assert (tmp_path / "out/samples").is_dir()
    other = weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.4})
    assert other.kept == 0 and other.frame("samples").is_empty()
    assert tree(other.path) == tree(weft.sweep(spec, tmp_path / "fresh", set={"traffic.load": 0.4}).path)


def test_a_file_that_was_damaged_is_made_again(tmp_path: Path) -> None:
    spec = SPEC.split("[[scheme]]")[0]
    first = weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.3})
    before = tree(first.path)
    (first.path / "flows/run.seed=2/run.parquet").write_bytes(b"PAR1")
    (first.path / "links/run.seed=3/run.parquet").unlink()
    assert weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.3}).kept == 3, "the store has them"
    assert tree(first.path) == before
    (first.path / "links/run.seed=3/run.parquet").unlink()
    assert weft.sweep(spec, tmp_path / "out", set={"traffic.load": 0.3}, store=tmp_path / "empty").kept == 2
    assert tree(first.path) == before


def test_two_sweeps_in_one_directory_at_once_are_told(tmp_path: Path) -> None:
    grid = read_grid(load_spec(SPEC), (), {}, None, None)
    runs = plan(grid, 2)
    with (
        Store(tmp_path / "out", grid, runs) as store,
        pytest.raises(weft.OutputError, match=rf"another sweep is writing to it \(process {os.getpid()} on "),
    ):
        weft.sweep(SPEC, store.path)
    assert len(weft.sweep(SPEC, tmp_path / "out").runs) == POINTS


def test_ctrl_c_keeps_what_is_finished(weft_command: Weft, tmp_path: Path) -> None:
    options = (
        "--vary",
        "traffic.flows=20,3000000",
        "--set",
        "traffic.workload=web-search",
        "--set",
        "traffic.load=0.3",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "sweep", *options, "--out", "out", "--jobs", "1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while rows_done(tmp_path / "out") < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and stdout == "" and stderr.strip().endswith("stopped")
    assert [run.error for run in weft.load_sweep(tmp_path / "out").runs] == [None]
