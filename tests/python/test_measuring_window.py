"""Flows outside the window of measurement run like any, and are part of no average, wherever one is taken."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft
from conftest import SMALL, Weft
from weft.curves import slowdown_curve
from weft.errors import SpecError
from weft.flows import counted, measured
from weft.report.cells import size_steps
from weft.simulation import Result

WINDOW = {"run.warmup": 20, "run.measure": 0.5}
ENDLESS = {"traffic.workload": "web-search", "traffic.long_lived": [{"src": 0, "dst": 5}]}


def run(**more: Any) -> Result:
    return weft.run({}, set={**SMALL, **{key.replace("__", "."): value for key, value in more.items()}})


def windowed() -> Result:
    return weft.run({}, set={**SMALL, **WINDOW, **ENDLESS})


def test_the_flows_are_those_of_a_run_without_a_window() -> None:
    plain = weft.run({}, set={**SMALL, **ENDLESS})
    assert "measured" not in plain.flows.columns and plain.summary.unmeasured is None
    assert windowed().flows.drop("measured").equals(plain.flows)


def test_averages_are_over_the_window_alone() -> None:
    result = windowed()
    own = result.flows.filter("measured")
    ending = result.flows.filter(~pl.col("background"))
    assert own["id"].to_list() == ending["id"].to_list()[20:50]
    assert (result.summary.flows, result.summary.unmeasured) == (30, weft.summary.Unmeasured(30, 0, 0))
    for statistic in ("fct_us", "slowdown"):
        assert getattr(result.summary, statistic).mean == pytest.approx(own[statistic].mean())
    assert sum(one.flows for name, one in result.summary.bins.items() if name != "all") == 30
    for key in ("retransmissions", "timeouts", "out_of_order_packets"):
        assert getattr(result.summary, key) == own[key].sum()
    assert result.summary.background is not None and result.summary.background.flows == 1


def test_what_python_works_out_of_flows_is_over_the_window_alone() -> None:
    result = windowed()
    own = result.flows.filter("measured")
    values, shares = slowdown_curve([result], "all")
    assert values == sorted(own["slowdown"]) and shares[-1] == 1.0
    assert counted(result.flows).equals(own)
    assert measured(result.flows).height == own.height + 1, "a flow that never ends is in no window"
    assert max(size_steps([counted(result.flows)])) == own["size_bytes"].max()


def test_a_table_of_runs_with_and_without_a_window_counts_all_of_those_without() -> None:
    plain = run()
    both = pl.concat([windowed().flows, plain.flows], how="diagonal")
    assert counted(both).height == 30 + 60


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run.warmup": 60}, "run.warmup leaves no flow to measure"),
        ({"run.warmup": "9s"}, "run.warmup leaves no flow to measure"),
        ({"run.warmup": 59, "run.measure": "1ps", "run.seed": 2}, None),
        ({"run.measure": "1ps"}, "run.measure leaves no flow to measure"),
        ({"run.warmup": 1.5}, "a share of the flows above 0 and below 1"),
        ({"run.warmup": 0}, "a number of flows as in 500"),
        ({"run.warmup": "20%"}, "a time as in"),
    ],
)
def test_a_window_that_measures_nothing_is_refused(change: dict[str, Any], said: str | None) -> None:
    if said is None:
        assert weft.run({}, set={**SMALL, **change}).summary.flows == 1
        return
    with pytest.raises(SpecError, match=said):
        weft.run({}, set={**SMALL, **change})


def test_the_command_line_says_how_many_flows_are_outside(weft_command: Weft, small_options: list[str]) -> None:
    told = weft_command("run", *small_options, "--set", "run.warmup=0.25").stdout
    assert "15 flows outside the window of measurement are in no average" in told


def test_a_run_that_fills_up_is_told_and_one_that_is_steady_is_not(weft_command: Weft, tmp_path: Path) -> None:
    # A rack that is offered more than its one uplink of 1 Gbit/s carries: queues at hosts grow as long as flows come.
    rows = "".join(f"{12 * index},{index % 4},{4 + index % 4},2000\n" for index in range(1_200))
    (tmp_path / "flows.csv").write_text(f"start_us,src,dst,size_bytes\n{rows}", encoding="utf-8")
    fabric = ("--set", "fabric.leaves=2", "--set", "fabric.hosts_per_leaf=4", "--set", "fabric.spines=1")
    trace = ("run", *fabric, "--set", "traffic.trace=flows.csv", "--set", "fabric.fabric_rate")
    assert "in no steady state: slowdown rises" in weft_command(*trace[:-1], "fabric.fabric_rate=1Gbps").stdout
    assert "steady" not in weft_command(*trace[:-1], "fabric.fabric_rate=40Gbps").stdout
