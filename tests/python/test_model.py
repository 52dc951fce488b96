"""`weft model`: values worked by hand from the papers' equations, tables, and what is said of bad input."""

import math
from pathlib import Path

import pytest

from conftest import Weft
from weft.errors import SpecError
from weft.models import work_out

# Four paths of 8 Gbit/s carry 500,000 B each in 500 us; a window takes 64 us.
LBT = {
    "paths": 4, "rate": "8Gbps", "window": "64KB", "segment": "1KB",
    "short_flows": 7, "long_flows": 2, "best_effort_flows": 1,
    "short_bytes": "8KB", "long_bytes": "300KB", "best_effort_bytes": "240KB",
}  # fmt: skip
LBT_OPTIONS = [part for key, value in LBT.items() for part in (f"--{key.replace('_', '-')}", str(value))]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # 56,000 + 600,000 (+ 240,000) of 2,000,000 B.
        ("load_1", 0.328),
        ("load_2", 0.448),
        ("wait_1", 0.328 / (2 * 0.672) * 64),
        ("short_fct_2", 4 * 0.448 / (2 * 0.552) * 64 + 8),
        # Without a target Eq. 9 gives K back; of ten flows two are long: 0.8 paths.
        ("needed_1", 4),
        ("threshold_1", 600_000 / 0.8 - 500_000),
        ("threshold_2", 240_000 / 0.4 - 500_000),
    ],
)
def test_lbt_as_worked_by_hand(key: str, expected: float) -> None:
    assert work_out("lbt", LBT).value(key) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # 206 packets of 1,460 B; ten queues of 250 packets for 20 flows; half and half, all but surely resent.
        ("packets", 206),
        ("largest_window", 125),
        ("reordered", 1),
        ("rps_window", 62.5),
        ("rps_round", 500 + 20 * 62.5 * 12 / 10),
        ("rps_time", 4 * 206 * 2000 / (3 * 62.5)),
        ("tr_window", 93.75),
        ("tr_time", 206 * 20 * (16 * 500 + 12 * 250 * 12) / (9 * 10 * 250)),
    ],
)
def test_tr_as_worked_by_hand(key: str, expected: float) -> None:
    assert work_out("tr").value(key) == pytest.approx(expected, rel=1e-9)


def test_what_is_infinite_is_infinity_in_python_and_null_in_json(weft_command: Weft) -> None:
    assert work_out("lbt", {**LBT, "load": 1}).value("wait_2") == math.inf
    document = weft_command("model", "lbt", "--short-paths", "9", "--json").json()
    values = {item["key"]: item["value"] for item in document["quantities"]}
    assert values["threshold_1"] is None and values["used_1"] == 384_000


def test_lbt_prints_inputs_and_equations(weft_command: Weft) -> None:
    outcome = weft_command("model", "lbt", *LBT_OPTIONS)
    assert outcome.code == 0
    assert "--long-bytes" in outcome.stdout and "300KB" in outcome.stdout
    rows = [row.split()[:2] for row in outcome.stdout.splitlines()]
    for row in (["8", "Q_1"], ["9", "Z_1"], ["10", "Q_2"], ["11", "Z_2"]):
        assert row in rows
    assert "250,000" in outcome.stdout


@pytest.mark.parametrize(("change", "used"), [({"load": 0.05}, 4_500), ({"short_paths": 4}, 384_000)])
def test_lbt_keeps_the_threshold_within_what_the_switch_may_use(change: dict[str, float], used: int) -> None:
    assert work_out("lbt", {**LBT, **change}).value("used_1") == used


@pytest.mark.parametrize("model", ["lbt", "tr"])
def test_help_has_every_input_with_its_default_and_examples(weft_command: Weft, model: str) -> None:
    text = weft_command("model", model, "--help").stdout
    assert "Examples" in text and f"weft model {model}" in text
    for key in work_out(model).inputs:
        assert f"--{key.replace('_', '-')}" in text


def test_loads_give_a_row_each_in_which_thresholds_grow(weft_command: Weft) -> None:
    rows = weft_command("model", "lbt", *LBT_OPTIONS, "--loads", "0.1,0.4, 0.7", "--json").json()
    values = [{item["key"]: item["value"] for item in row["quantities"]} for row in rows]
    assert [value["load_2"] for value in values] == pytest.approx([0.1, 0.4, 0.7])
    # 600,000 B at a load of 0.448: in proportion.
    assert [value["threshold_1"] for value in values] == pytest.approx(
        [load / 0.448 * 750_000 - 500_000 for load in (0.1, 0.4, 0.7)]
    )
    text = weft_command("model", "lbt", *LBT_OPTIONS, "--loads", "0.1,0.4").stdout
    assert "Eq. 8" in text and f"{0.1 / 0.448 * 750_000 - 500_000:,.0f}" in text


def test_sizes_and_flow_counts_give_a_row_each(weft_command: Weft) -> None:
    sizes = weft_command("model", "tr", "--sizes", "146KB,292KB", "--json").json()
    assert [row["quantities"][0]["value"] for row in sizes] == [100, 200]
    counts = weft_command("model", "tr", "--flow-counts", "20,50", "--json").json()
    assert [row["quantities"][1]["value"] for row in counts] == [125, 50]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lbt", "--rate", "10"], ["rate = 10", "a rate with its unit"]),
        (["lbt", "--load", "0"], ["load is 0", "above 0"]),
        (["lbt", "--short-flows", "nan"], ["short_flows is NaN", "0 to 1e12"]),
        (["lbt", "--most", "1KB"], ["most is 1KB", "at least `least`"]),
        (["lbt", "--loads", "0.1,x"], ['load = "x"', "a number"]),
        (["lbt", "--loads", ","], ["--loads ','", "0.1,0.2,0.5"]),
        (["lbt", "--loads", "0.1", "--load", "0.2"], ["--loads", "in place of --load"]),
        (["tr", "--sizes", "1KB", "--flow-counts", "2"], ["--sizes and --flow-counts", "one of them"]),
        (["tr", "--good-paths", "0", "--bad-paths", "0"], ["good_paths is 0", "at least 1"]),
        (["tr", "--bad-delay", "1us"], ["bad_delay is 1us", "at least `good_delay`"]),
    ],
)
def test_bad_input_gets_one_message_and_writes_nothing(
    weft_command: Weft, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    outcome = weft_command("model", *arguments)
    assert outcome.code == 2 and outcome.stdout == ""
    assert len(outcome.stderr.strip().splitlines()) == 1, outcome.stderr
    for word in words:
        assert word in outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_model_is_answered() -> None:
    with pytest.raises(SpecError, match="did you mean"):
        work_out("lbtt")
