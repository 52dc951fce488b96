"""Threads and cores: how a run is done, never what comes of it; and one number of cores, shared among all runs."""

import contextlib
import json
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import weft
from conftest import Weft
from weft import _core
from weft.cli.bench_predict import predicted_wall_s, print_predicted
from weft.cli.bench_threads import measure_threads
from weft.errors import Stopped
from weft.runs.cores import CoreShares
from weft.runs.run import Run, resolved_run
from weft.spec import SpecText

CUT = {"fabric.leaves": 4, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "traffic.flows": 60}


def run_with(threads: int | None = None) -> Run:
    overrides = {} if threads is None else {"run.threads": threads}
    return resolved_run(SpecText(""), 0, {}, overrides=overrides)


def shares_of(cores: int, *runs: Run) -> list[int]:
    """Return the shares of runs that begin one after the other, none of which ends."""
    shares = CoreShares(cores, len(runs))
    with contextlib.ExitStack() as begun:
        return [begun.enter_context(shares.share(run)) for run in runs]


def test_a_run_on_threads_has_the_tables_of_one_without_and_says_so_in_its_spec() -> None:
    one, two = weft.run("", set=CUT, jobs=1), weft.run("", set={**CUT, "run.threads": 2})
    for name in ("flows", "links", "scheme"):
        assert getattr(two, name).equals(getattr(one, name)), name
    assert "threads = 2" in two.spec and "threads" not in one.spec
    assert two.summary.spec_hash == one.summary.spec_hash


STAR = """
hosts = [{ prefix = "h", count = 8 }]
switches = ["s0"]
rate = "10Gbps"
delay = "1us"
link = [{ from = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"], to = "s0" }]
"""
INTERLEAVED = """
hosts = ["h0", "h1", "h2", "h3"]
switches = ["s0", "s1"]
rate = "10Gbps"
delay = "50us"
link = [{ from = ["h0", "h1", "h3", "s1"], to = "s0" }, { from = "h2", to = "s1" }]
"""
RING = """
hosts = [{ prefix = "h", count = 6 }]
switches = ["s0", "s1", "s2"]
rate = "10Gbps"
delay = "1us"
link = [
    { from = ["h0", "h1", "s1"], to = "s0" },
    { from = ["h2", "h3", "s2"], to = "s1" },
    { from = ["h4", "h5", "s0"], to = "s2" },
]
"""


@pytest.mark.parametrize("graph", [STAR, INTERLEAVED, RING])
def test_threads_leave_no_trace_where_hosts_are_at_switches_of_the_highest_tier(graph: str, tmp_path: Path) -> None:
    file = tmp_path / "graph.toml"
    file.write_text(graph, encoding="utf-8")
    traffic = {"flows": 30, "load": 0.2, "size": "50KB", "pairs": "anywhere", "load_of": "host-links"}
    keys = {"fabric": {"kind": "graph", "file": str(file)}, "traffic": traffic}
    one, *others = (weft.run({**keys, "run": {"threads": threads}}) for threads in (1, 2, 3, 8))
    assert one.summary.unfinished == 0 and one.summary.unroutable_packets == 0
    for other in others:
        assert other.summary.events == one.summary.events
        for name in ("flows", "links", "scheme"):
            assert getattr(other, name).equals(getattr(one, name)), name


def test_a_stored_run_is_found_whatever_threads_it_had_and_keeps_none(tmp_path: Path) -> None:
    first = weft.compare(["ecmp"], set={**CUT, "run.threads": 2}, store=tmp_path / "store", out=tmp_path / "one")
    again = weft.compare(["ecmp"], set=CUT, store=tmp_path / "store", out=tmp_path / "two")
    assert (first.kept, again.kept) == (0, 1)
    specs = list(tmp_path.rglob("spec.toml"))
    assert specs and not any("threads" in spec.read_text(encoding="utf-8") for spec in specs)


def test_a_sweep_over_threads_is_refused_since_its_points_are_one_run(tmp_path: Path) -> None:
    with pytest.raises(weft.SpecError, match="two points are the same run"):
        weft.sweep("", tmp_path / "out", set=CUT, vary={"run.threads": [1, 2]})


def test_many_runs_have_a_core_each_few_have_several_and_none_is_left_over() -> None:
    run = run_with()
    assert shares_of(8, run) == [8]
    assert shares_of(8, *[run] * 3) == [2, 3, 3]
    assert shares_of(2, *[run] * 2) == [1, 1]


def test_a_run_that_says_how_many_threads_it_wants_holds_so_many_cores_at_most_all() -> None:
    assert shares_of(8, run_with(3), run_with()) == [3, 5]
    assert shares_of(2, run_with(16)) == [2]


def test_the_last_run_begins_when_a_core_is_free_and_one_that_is_stopped_never_does() -> None:
    run, stop = run_with(), threading.Event()
    shares = CoreShares(1, 3)
    with shares.share(run):
        later = threading.Timer(0.1, stop.set)
        later.start()
        with pytest.raises(Stopped), shares.share(run, stop):
            pytest.fail("there is no core")
    with shares.share(run) as share:
        assert share == 1


def test_explain_says_on_how_many_threads_a_run_works(weft_command: Weft) -> None:
    def cores(*arguments: str) -> tuple[int, int]:
        found = weft_command("explain", *arguments, "--json").json()["cores"]
        assert found["reason"]
        return found["threads"], found["partitions"]

    assert cores("--jobs", "2", "--set", "run.threads=2") == (2, 2)
    assert cores("--jobs", "2")[0] == 1, "a small fabric"
    within = ("--set", "traffic.pairs=anywhere", "--set", "traffic.load_of=host-links")
    assert cores("--set", "fabric.leaves=1", *within, "--set", "run.threads=2")[0] == 1, "nothing to cut"
    assert weft_command("explain", "--jobs", "2").stdout.strip().splitlines()[-1].startswith("1 thread")


def test_less_than_one_core_is_refused(weft_command: Weft) -> None:
    for command in ("run", "explain"):
        outcome = weft_command(command, "--jobs", 0)
        assert outcome.code == 2 and "--jobs" in outcome.stderr
    with pytest.raises(weft.SpecError, match="at least one core"):
        weft.run("", jobs=0)
    with pytest.raises(weft.SpecError, match="at least one core"):
        weft.compare(["ecmp"], jobs=0)


def test_bench_compares_numbers_of_threads(weft_command: Weft) -> None:
    options = ("bench", "--hosts", "32", "--schemes", "ecmp", "--threads", "1,2", "--repeat", "1")
    one, two = weft_command(*options, "--json").json()
    assert (one["threads"], one["partitions"], one["windows"], one["speed_up"]) == (1, 1, 0, 1.0)
    assert two["threads"] == 2 and two["partitions"] > 1 and two["windows"] > 0
    assert 0.0 < two["crossing_share"] < 1.0 and two["events_per_window"] > 0.0
    assert one["result"] == two["result"] and two["speed_up"] == one["wall_s"] / two["wall_s"]
    wrong = weft_command("bench", "--threads", "0,2")
    assert wrong.code == 2 and "--threads" in wrong.stderr


def test_bench_fails_if_results_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _core.bench

    def wrong(hosts: int, scheme: str, *, transport: str = "dctcp", seed: int = 1, threads: int = 1) -> str:
        row: dict[str, Any] = json.loads(real(hosts, scheme, transport=transport, seed=seed, threads=1))
        return json.dumps(row | {"result": str(threads)})

    monkeypatch.setattr(_core, "bench", wrong)
    with pytest.raises(RuntimeError, match="must not depend on threads"):
        measure_threads([4], ["ecmp"], "dctcp", [1, 2], 1)


@pytest.mark.nightly
def test_bench_predicts_from_one_core_and_says_what_is_a_prediction(weft_command: Weft) -> None:
    rows = weft_command("bench", "--hosts", "128", "--schemes", "ecmp", "--predict", "2,8", "--json").json()
    whole, two, eight = rows
    assert (whole["partitions"], two["partitions"], eight["partitions"]) == (1, 2, 8)
    assert len({row["result"] for row in rows}) == 1, "counting moves no result"
    assert whole["predicted_wall_s"] is None and whole["busiest_events"] is None
    for row in (two, eight):
        assert row["threads"] == 1, "it is measured on one"
        # The busiest does its part at least, and of one window at most all of it.
        assert row["events"] / row["cores"] <= row["busiest_events"] <= row["events"]
        assert 0 < row["shared_windows"] <= row["windows"]
        assert row["predicted_wall_s"] == pytest.approx(predicted_wall_s(row, row["window_s"]))
    printed = StringIO()
    print_predicted(Console(file=printed, width=200), rows)
    assert "predictions" in printed.getvalue()
    refused = weft_command("bench", "--predict", "8", "--threads", "2")
    assert refused.code == 2 and "--threads, --predict: one of them" in refused.stderr


def test_a_prediction_is_the_busiest_cores_part_and_the_meetings() -> None:
    row = {"cpu_s": 8.0, "events": 1_000, "busiest_events": 250, "shared_windows": 10, "cores": 4}
    assert predicted_wall_s(row, 0.01) == pytest.approx(8.0 / 4 + 10 * 0.01 * 4 / 2)
    assert predicted_wall_s(row | {"busiest_events": None}, 0.01) is None
