"""Legends explain what a table shows, and nothing else: on the terminal, in the report and in a notebook."""

import pytest

import weft
from conftest import Weft
from factory import summary
from weft.footnotes import footnotes
from weft.metrics import ALL_METRICS, estimates
from weft.summary import Summary

SIZES, INTERVAL, FAIRNESS, BOUND = "small < 100 KB", "± is the 95 %", "Jain's index", "stands before a bound"
LASTING = "traffic={long_lived=[{src=0,dst=4},{src=1,dst=5}]}"


def notes(runs: list[Summary], *keys: str) -> str:
    metrics = [metric for metric in ALL_METRICS if metric.key in keys]
    return "; ".join(footnotes([(metrics, [estimates(runs, metrics)])]))


def test_each_note_comes_with_the_column_that_needs_it() -> None:
    one, two = [summary("ecmp", 1, 10.0)], [summary("ecmp", seed, 10.0 + seed) for seed in (1, 2)]
    left = [summary("ecmp", 1, 10.0, unfinished=3)]
    assert notes(one, "mean_fct_us") == ""
    assert notes(one, "mean_fct_us", "small_mean_fct_us") == "small < 100 KB"
    assert notes(two, "mean_fct_us") == "± is the 95 % confidence half-width over 2 seeds"
    assert notes(left, "unfinished") == "", "a count is no bound"
    assert notes(left, "mean_fct_us").startswith("≥ stands before a bound")
    assert notes(left, "mean_fct_us", "p99_fct_us").startswith("≥ and > stand before bounds")


@pytest.mark.parametrize(
    ("options", "there", "absent"),
    [
        (["--columns", "mean_fct_us"], [], [SIZES, INTERVAL, FAIRNESS, BOUND]),
        (["--columns", "small_p99_fct_us"], [SIZES], ["medium 100 KB", INTERVAL, FAIRNESS]),
        (["--columns", "mean_fct_us", "--seeds", "2"], [INTERVAL], [SIZES]),
        (["--set", LASTING, "--set", "run.time_limit=1ms"], [FAIRNESS], [SIZES, BOUND]),
        (["--set", "run.time_limit=1us", "--columns", "mean_fct_us"], [BOUND], [SIZES, FAIRNESS]),
    ],
)
def test_the_terminal_explains_what_it_prints(
    weft_command: Weft, small_options: list[str], options: list[str], there: list[str], absent: list[str]
) -> None:
    for command in (["compare", "--schemes", "ecmp,rps"], ["sweep", "--schemes", "ecmp,rps", "--out", "out"]):
        printed = " ".join(weft_command(*command, *small_options, *options).stdout.split())
        assert all(note in printed for note in there), printed
        assert not any(note in printed for note in absent), printed


def test_a_notebook_and_a_report_explain_what_they_show(small: dict[str, object]) -> None:
    lasting = {"traffic": {"long_lived": [{"src": 0, "dst": 4}, {"src": 1, "dst": 5}]}, "run.time_limit": "1ms"}
    from weft.report import render

    for settings, there, absent in ((small, "Small < 100 KB", FAIRNESS), (small | lasting, FAIRNESS, "< 100 KB")):
        compared = weft.compare(["ecmp", "rps"], set=settings, progress=False)
        shown = compared._repr_html_().replace("&lt;", "<").replace("&#39;", "'")
        assert there in shown and absent not in shown and INTERVAL not in shown
        section = render(compared).split('id="summary-section"')[1].split("</section>")[0]
        section = section.replace("&lt;", "<").replace("&#39;", "'")
        assert there in section and absent not in section and INTERVAL not in section
