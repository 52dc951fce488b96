"""Flows that did not finish leave means and percentiles open: what is known are bounds, and a bound does not win."""

from io import StringIO
from typing import Any

import msgspec
import pytest
from rich.console import Console

import weft
from factory import collective, summary
from weft.cli.tables import print_summary
from weft.flows import bounded, counted
from weft.metrics import ALL_METRICS, best_labels, estimates, over_runs
from weft.quantity import estimate_text
from weft.ranking import MEAN_FCT, difference, rank
from weft.statistics import interval_mean
from weft.summary import Summary
from weft.summary_words import summary_lines, summary_table
from weft.verdict import judge

BY_KEY = {metric.key: metric for metric in ALL_METRICS}


def cut(label: str, seed: int, least_us: float, unfinished: int = 4) -> Summary:
    """A run that its time limit of 2 ms ended."""
    return msgspec.structs.replace(summary(label, seed, least_us, unfinished=unfinished), time_limit_us=2000.0)


def test_a_bound_is_printed_as_one_and_has_no_interval_and_no_star() -> None:
    table = {
        "ecmp": estimates([cut("ecmp", 1, 50.0), summary("ecmp", 2, 70.0)]),
        "rps": estimates([summary("rps", seed, 80.0 + seed) for seed in (1, 2)]),
    }
    for key, text in (("mean_fct_us", "≥ 60.0"), ("p99_fct_us", "> 60.0"), ("goodput_mbps", "≤ 171")):
        value = table["ecmp"][key]
        assert value is not None and value.value is None and value.spread is None
        assert estimate_text(value, BY_KEY[key].unit) == text
        # It may be better than the one that is known: so none is the best.
        assert best_labels(table, BY_KEY[key]) == set()
    worse = table | {"ecmp": estimates([cut("ecmp", 1, 500.0)])}
    assert best_labels(worse, BY_KEY["mean_fct_us"]) == {"rps"}


def test_whoever_finished_all_flows_wins_if_even_the_bound_of_the_others_is_worse() -> None:
    verdict = judge({"ecmp": [cut("ecmp", 1, 500.0)], "rps": [summary("rps", 1, 100.0)]})
    assert verdict is not None and (verdict.winner, verdict.other_mean_us) == ("rps", None)
    assert verdict.sentences[0] == (
        "rps has the lowest mean FCT: 100 µs, at least 80.0 % less than ecmp (≥ 500 µs); ecmp left 4 of 10 flows "
        "unfinished when the runs ended 2 ms after the last start (run.time_limit)."
    )


def test_nobody_wins_where_a_bound_may_be_better_or_nothing_else_is_known() -> None:
    one = judge({"ecmp": [cut("ecmp", 1, 50.0)], "rps": [summary("rps", 1, 100.0)]})
    assert one is not None and (one.winner, one.leader) == (None, None)
    assert one.sentences[0] == (
        "Nobody wins: the mean FCT of rps is 100 µs, but others may be better (ecmp ≥ 50.0 µs); ecmp left 4 of 10 "
        "flows unfinished when the runs ended 2 ms after the last start (run.time_limit)."
    )
    all_ = judge({"ecmp": [cut("ecmp", 1, 50.0)], "rps": [cut("rps", 1, 100.0, 1)]})
    assert all_ is not None and (all_.winner, all_.winner_mean_us) == (None, None)
    assert all_.sentences[0].startswith(
        "Nobody wins: only lower bounds of the mean FCT are known (ecmp ≥ 50.0 µs, rps ≥ 100 µs); ecmp left 4 "
    )


def test_a_lead_over_a_bound_needs_an_interval_below_zero() -> None:
    """Differences of at most -400, -410 and -420 us: Student's t for two degrees of freedom is 4.303."""
    rps = [summary("rps", seed, 100.0) for seed in (1, 2, 3)]
    ecmp = [cut("ecmp", seed, 490.0 + 10.0 * seed) for seed in (1, 2, 3)]
    verdict = judge({"ecmp": ecmp, "rps": rps})
    assert verdict is not None and verdict.leader == "rps" and verdict.difference_us is not None
    assert verdict.difference_us.sign == "≤" and verdict.difference_us.excludes_zero
    assert verdict.sentences[1] == (
        "Paired over 3 seeds the difference is at most -385 µs (95 % confidence): the interval excludes zero."
    )
    # One seed of several is enough to leave it open.
    mixed = difference(MEAN_FCT, rps, [ecmp[0], *(summary("ecmp", seed, 600.0) for seed in (2, 3))])
    assert mixed is not None and mixed.sign == "≤"
    # Where each is open with some seed, nothing is known of the difference.
    assert difference(MEAN_FCT, [cut("rps", 1, 100.0), *rps[1:]], [ecmp[0], ecmp[1], ecmp[2]]) is None
    ranking = rank({}, {"ecmp": ecmp, "rps": rps})
    assert ranking is not None and ranking.means_json()["ecmp"] == {"mean": None, "at_least": 510.0}


@pytest.mark.parametrize(("pairs", "sign", "mean"), [
    ([(1.0, 1.0), (3.0, 3.0)], "", 2.0),
    ([(1.0, 1.0), (3.0, float("inf"))], "≥", 2.0),
    ([(float("-inf"), 5.0), (3.0, 3.0)], "≤", 4.0),
])  # fmt: skip
def test_the_mean_of_bounds_is_a_bound(pairs: list[tuple[float, float]], sign: str, mean: float) -> None:
    found = interval_mean(pairs)
    assert found is not None and (found.sign, found.mean) == (sign, mean)
    assert interval_mean([*pairs, (float("-inf"), float("inf"))]) is None


def test_collectives_that_did_not_finish_are_bounds_too() -> None:
    runs = [summary("ecmp", 1, 10.0, collectives=[collective(300.0, unfinished=1)])]
    for key, text in (("collective_us", "≥ 300"), ("longest_collective_us", "> 300")):
        assert estimate_text(over_runs(BY_KEY[key], runs), "us") == text


def test_one_run_says_what_is_a_bound_and_why() -> None:
    titles, rows = summary_table(cut("ecmp", 1, 50.0))
    assert rows[0][:6] == ["all", "10", "4", "≥ 50.0", "> 50.0", "> 50.0"] and len(titles) == 7
    assert summary_lines(cut("ecmp", 1, 50.0))[0] == (
        "ecmp left 4 of 10 flows unfinished when the run ended 2 ms after the last start (run.time_limit): ≥ "
        "and > stand before what they leave open"
    )


def test_results_that_do_not_depend_on_the_seed_are_one_sample() -> None:
    groups = {
        "ecmp": [summary("ecmp", seed, 100.0) for seed in (1, 2, 3)],
        "rps": [summary("rps", seed, 80.0) for seed in (1, 2, 3)],
    }
    verdict = judge(groups)
    assert verdict is not None and verdict.leader is None and verdict.difference_us is not None
    assert (verdict.difference_us.half_width, verdict.difference_us.runs) == (None, 1)
    assert verdict.sentences[1] == (
        "No result depends on the seed: 3 seeds are one sample, which has no confidence interval."
    )
    found = estimates(groups["ecmp"])["mean_fct_us"]
    assert found is not None and (found.half_width, found.runs) == (None, 1)
    # Of one alone, the other one's seeds are samples.
    other = judge(groups | {"rps": [summary("rps", seed, 80.0 + seed) for seed in (1, 2, 3)]})
    assert other is not None and other.leader == "rps"
    assert any(sentence.startswith("No result of ecmp depends on the seed") for sentence in other.sentences)


def test_a_difference_that_is_too_small_decides_nothing_whatever_its_interval() -> None:
    groups = {
        "ecmp": [summary("ecmp", seed, 100.0 + seed) for seed in (1, 2, 3)],
        "rps": [summary("rps", seed, 99.5 + 1.001 * seed) for seed in (1, 2, 3)],
    }
    verdict = judge(groups)
    assert verdict is not None and verdict.leader is None
    assert verdict.difference_us is not None and verdict.difference_us.excludes_zero
    assert verdict.sentences[0] == (
        "No difference that matters: rps and ecmp are within 1 % of each other by mean FCT (rps and ecmp: 0.488 %, "
        "-0.498 ± 0.00248 µs over 3 seeds)."
    )
    assert not any(sentence.startswith("Why") for sentence in verdict.sentences)
    strict = judge(groups, matters=0.0)
    assert strict is not None and strict.leader == "rps"
    one = judge({name: runs[:1] for name, runs in groups.items()})
    assert one is not None and one.sentences[0].startswith("No difference that matters: rps and ecmp are within 1 %")


@pytest.mark.parametrize("more", [{}, {"traffic.long_lived": [{"src": 0, "dst": 4, "start": "50ms"}]}])
def test_the_time_limit_counts_from_the_last_start(small: dict[str, Any], more: dict[str, Any]) -> None:
    settings = small | more | {"run.time_limit": "100us", "traffic.load": 0.2}
    run = weft.run("", set=settings)
    starts = run.flows.get_column("start_us")
    last = starts.max()
    assert isinstance(last, float) and last > 1000.0 and run.summary.simulated_us == pytest.approx(last + 100.0)
    assert run.summary.unfinished or more
    if run.summary.unfinished:
        assert "after the last start (run.time_limit)" in summary_lines(run.summary)[0]


def test_headings_of_a_run_take_several_lines_where_one_is_too_wide(small: dict[str, Any]) -> None:
    run = weft.run("", set=small | {"run.time_limit": "1ms"})
    console = Console(width=80, record=True, file=StringIO())
    print_summary(console, run)
    printed = console.export_text()
    assert max(map(len, printed.splitlines())) <= 80
    assert "unfinished" in printed.split() and "slowdown" in printed.split()


def test_the_bounds_of_a_table_of_flows_are_those_of_the_summary() -> None:
    # Every other handshake fails for as long as the run lasts: its flow has begun, and sent no segment.
    lost = {"link": "leaf0-spine0", "blackhole": 1.0}
    settings: dict[str, object] = {
        "fabric.leaves": 2,
        "fabric.spines": 2,
        "fabric.hosts_per_leaf": 4,
        "fabric.fault": [lost],
        "transport": {"name": "tcp", "handshake": True},
        "traffic.flows": 60,
        "run.time_limit": "50ms",
    }
    run = weft.run("", set=settings)
    flows = counted(run.flows)
    silent = flows.filter((flows["segments_sent"] == 0) & flows["start_us"].is_not_null())
    assert silent.height > 0 and run.summary.fct_us.at_least is not None and run.summary.slowdown.at_least is not None
    for column, told in (("fct_us", run.summary.fct_us.at_least), ("slowdown", run.summary.slowdown.at_least)):
        low, _ = bounded(flows, column, run.summary.simulated_us)
        assert low[column].mean() == pytest.approx(told.mean)
