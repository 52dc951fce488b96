"""Runs on a cluster: a real Dask scheduler with workers in processes of their own, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import weft
from conftest import Weft
from made_paper import CHOICES, write_made
from sweeping import POINTS, SPEC, rows_done, tree
from tiny_paper import write_tiny
from weft import _core
from weft.multiverse.exploring import asked, explore
from weft.papers.reproduction import make_figures
from weft.runs.cluster import Batch, connected
from weft.runs.run import resolved_run, simulate_far
from weft.spec import SpecText

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'weft[cluster]'")
pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: pip install 'weft[cluster]'")

# Long enough runs that a worker is lost in the middle of one.
LONGER = ("--set", "traffic.flows=300", "--seeds", "2")
LONGER_POINTS = 2 * 3 * 2

TINY_SPEC = {
    "fabric": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "traffic": {"workload": "web-search", "flows": 30, "load": 0.3},
}
"""Spec of runs of the tiny paper, at its first load."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers with one thread each; give the address and the workers."""
    file = tmp_path / "scheduler.json"
    environment = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "cluster.log").open("wb"))

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", *arguments, "--scheduler-file", str(file), "--no-dashboard"]
            process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        worker = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--memory-limit", "0")
        workers = [start(*worker) for _ in range(2)]
        address = json.loads(wait_for_text(file))["address"]
        wait_for_workers(address, 2)
        yield address, workers


def wait_for_text(file: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text(encoding="utf-8")).strip().endswith("}"):
            return text
        time.sleep(0.05)
    raise AssertionError("the scheduler did not start")


def wait_for_workers(address: str, number: int) -> None:
    with connected(address) as client:
        client.wait_for_workers(number, timeout=60)


@pytest.mark.nightly
def test_a_lost_worker_changes_nothing(
    weft_command: Weft, tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    address, workers = cluster
    (tmp_path / "my.toml").write_text(SPEC, encoding="utf-8")
    out = tmp_path / "out"
    options = ("my.toml", *LONGER, "--scheduler", address, "--out", "out", "--json")
    command = [sys.executable, "-m", "weft", "sweep", *options]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while worker_of_any(out, workers[0].pid) == 0 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    workers[0].send_signal(signal.SIGKILL)
    assert rows_done(out) < LONGER_POINTS, "the worker was to be lost in the middle"
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0 and "Traceback" not in stderr, stderr
    document = json.loads(stdout)
    assert (document["runs"], document["failed"]) == (LONGER_POINTS, [])
    by_process = dict(weft.load_sweep(out).provenance.group_by("process").len().iter_rows())
    assert set(by_process) == {worker.pid for worker in workers}, "both worked"
    assert by_process[workers[0].pid] < by_process[workers[1].pid]
    here = weft_command("sweep", "my.toml", *LONGER, "--out", "here", "--store", "own")
    assert here.code == 0
    assert tree(out) == tree(tmp_path / "here")


@pytest.mark.nightly
def test_a_comparison_runs_on_a_cluster_and_a_reproduction_finds_its_runs(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    address, workers = cluster
    compared = weft.compare(["ecmp"], spec=TINY_SPEC, seeds=2, cluster=address, store=tmp_path / ".weft")
    assert [run.flows.height for run in compared.runs] == [30, 30]
    records = [json.loads(file.read_bytes()) for file in (tmp_path / ".weft").glob("??/*/provenance.json")]
    assert {record["record"]["provenance"]["process"] for record in records} <= {worker.pid for worker in workers}
    folder = write_tiny(tmp_path / "papers")
    made = make_figures("tiny", ["1"], folder=folder, out=tmp_path / "out", cluster=address)
    assert (made.runs, made.kept) == (8, 2) and made.ok
    (tmp_path / "last.py").write_text(
        "class Last:\n    def choose(self, switch, packet, ports):\n        return len(ports) - 1\n", encoding="utf-8"
    )
    scheme = f"{tmp_path / 'last.py'}:Last"
    there = weft.compare([scheme], spec=TINY_SPEC, cluster=address, store=tmp_path / ".weft").runs[0]
    assert there.flows.equals(weft.run(TINY_SPEC, scheme=scheme).flows), "a class in a file runs there as here"


@pytest.mark.nightly
def test_a_multiverse_on_a_cluster_gives_the_same_answer(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    """Every run is done by a worker, and what is said of claims is what it is on this machine."""
    address, workers = cluster
    folder = write_made(tmp_path / "papers")
    far, here = (
        explore(
            asked("made", choices=CHOICES, folder=folder),
            out=tmp_path / name,
            store=tmp_path / f"store-{name}",
            cluster=where,
        )
        for name, where in (("far", address), ("here", None))
    )
    records = [json.loads(file.read_bytes()) for file in (tmp_path / "store-far").glob("??/*/provenance.json")]
    assert len(records) == far.runs
    assert {record["record"]["provenance"]["process"] for record in records} <= {worker.pid for worker in workers}
    assert (far.claims, far.default, far.single, far.crossed) == (here.claims, here.default, here.single, here.crossed)


@pytest.mark.nightly
def test_workers_with_other_results_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    theirs = _core.results_version()
    monkeypatch.setattr(_core, "results_version", lambda: "0123456789abcdef")
    with pytest.raises(weft.ClusterError, match=f"a weft with the results {theirs}, and this one has 0123456789abcdef"):
        weft.sweep(SPEC, tmp_path / "out", cluster=cluster[0])
    assert rows_done(tmp_path / "out") == 0


def test_a_worker_with_other_results_that_comes_later_fails_its_runs() -> None:
    run = replace(resolved_run(SpecText(""), 0, {}), results_version="0123456789abcdef")
    outcome = simulate_far(run)
    assert "this run is of" in (outcome.error or "") and outcome.measured is None


def worker_of_any(out: Path, process: int) -> int:
    """How many finished runs this process did."""
    if rows_done(out) == 0:
        return 0
    return int((weft.load_sweep(out).provenance["process"] == process).sum())


@pytest.mark.nightly
def test_batch_jobs_are_asked_for_and_do_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for `sbatch` runs what it is given here, as SLURM would elsewhere."""
    place = tmp_path / "bin"
    place.mkdir()
    jobs = tmp_path / "jobs"
    # dask-jobqueue removes the script as soon as it is submitted.
    submit = 'cp "$1" "$JOBS/script"\nsetsid sh "$JOBS/script" > /dev/null 2>&1 &\necho "Submitted batch job $!"\n'
    for name, text in (("sbatch", submit), ("scancel", 'kill -- "-$1"\n')):
        (place / name).write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        (place / name).chmod(0o755)
    jobs.mkdir()
    (tmp_path / "my.toml").write_text(SPEC, encoding="utf-8")
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "JOBS": str(jobs), "DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "weft", "sweep", "my.toml", "--out", "out", "--slurm", "--workers", "1"),
            *("--batch", "cores=1", "--batch", "memory=1GB", "--batch", "queue=short", "--batch", "interface=lo"),
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = (jobs / "script").read_text(encoding="utf-8")
    assert "#SBATCH -p short" in written and "--cpus-per-task=1" in written
    assert rows_done(tmp_path / "out") == POINTS
    monkeypatch.chdir(tmp_path)
    assert tree(tmp_path / "out") == tree(weft.sweep("my.toml", "here", store="own", figures="usual").path)


def test_a_cluster_that_cannot_be_had_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.runs.cluster._SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(weft.ClusterError, match="no Dask scheduler answers there"):
        weft.sweep(SPEC, tmp_path / "out", cluster="tcp://127.0.0.1:1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(weft.ClusterError, match="--pbs: there is no qsub here"):
        weft.sweep(SPEC, tmp_path / "out", cluster=Batch("pbs"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["foo", "", "foo://host:1", "tcp://host:port"])
def test_what_is_no_address_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    def called(*_given: object, **_named: object) -> None:
        raise AssertionError("Dask was given it")

    monkeypatch.setattr("distributed.Client", called)
    out = tmp_path / "deep" / "out"
    with pytest.raises(weft.ClusterError, match="is no address of a Dask scheduler"):
        weft.sweep(SPEC, out, cluster=address)
    with pytest.raises(weft.ClusterError, match="is no address of a Dask scheduler"):
        weft.compare(["ecmp"], out=out, cluster=address)
    assert list(tmp_path.iterdir()) == []
