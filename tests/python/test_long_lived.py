"""Runs in which no flow ends compare what flows carry, and how evenly they share."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import weft
from weft.cli.tables import print_comparison, print_summary

SPEC = """
[fabric]
leaves = 2
spines = 2
hosts_per_leaf = 2
[[traffic.long_lived]]
src = 0
dst = 2
[[traffic.long_lived]]
src = 1
dst = 3
[run]
time_limit = "1ms"
"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> weft.Comparison:
    out = tmp_path_factory.mktemp("long-lived") / "out"
    return weft.compare(["ecmp", "drill"], spec=SPEC, seeds=2, out=out, progress=False)


def test_goodput_and_fairness_are_shown_judged_and_reported(comparison: weft.Comparison) -> None:
    console = Console(width=160, record=True, file=StringIO())
    print_comparison(console, comparison)
    text = console.export_text()
    assert "goodput" in text and "fairness" in text and " FCT" not in text
    assert not any(set(line.split()[1:]) == {"-"} for line in text.splitlines() if line.split()[:1] == ["ecmp"])
    verdict = comparison.verdict
    assert verdict is not None and verdict.metric.key == "background_goodput_mbps"
    assert all("retransmissions" not in sentence for sentence in verdict.sentences), "they are not counted"
    assert comparison.path is not None and "fairness" in (comparison.path / "report.html").read_text()
    for run in comparison.runs:
        endless = run.summary.background
        assert endless is not None and endless.fairness is not None and 0.5 <= endless.fairness <= 1.0


def test_one_run_says_what_each_carries(comparison: weft.Comparison) -> None:
    console = Console(width=160, record=True, file=StringIO())
    print_summary(console, comparison.runs[0])
    assert "long-lived" in console.export_text()


def test_a_sweep_has_the_same_columns(tmp_path: Path) -> None:
    found = weft.sweep(SPEC, tmp_path / "s", schemes=["ecmp", "drill"], seeds=1, figures="usual", progress=False)
    assert [metric.key for metric in found.shown_metrics][:2] == ["background_goodput_mbps", "background_fairness"]
    assert found.verdict is not None and found.verdict.to_dict()["points"][0]["mean_mbps"] > 0.0


def test_what_no_flow_counts_is_not_listed(comparison: weft.Comparison) -> None:
    console = Console(width=160, record=True, file=StringIO())
    print_summary(console, comparison.runs[0])
    text = console.export_text()
    assert "ecmp, seed 1: 0 packets dropped" in text and "- data packets" not in text
