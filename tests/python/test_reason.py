"""The reason is the part of the mean completion time that differs most, or none."""

import json
from collections.abc import Mapping
from math import fsum

import polars as pl
import pytest

from factory import collective, comparison, summary
from weft.comparing import compare
from weft.reason import Reason, flow_reason
from weft.summary import FCT_PARTS, Summary
from weft.verdict import judge

NAMES = ("dctcp", "tcp")


def of(mine: Mapping[str, float], yours: Mapping[str, float]) -> Reason:
    runs = [
        summary(name, mean_us=fsum(parts.values()), breakdown=parts)
        for name, parts in zip(NAMES, (mine, yours), strict=True)
    ]
    found = flow_reason(NAMES, runs[:1], runs[1:], None)
    assert found is not None
    return found


def said(mine: Mapping[str, float], yours: Mapping[str, float], *, sure: bool = True) -> str:
    [sentence] = of(mine, yours).sentences(sure=sure)
    return sentence


def test_the_part_that_explains_most_is_named_with_its_share_and_both_times() -> None:
    # Of 500 us 450 are timeouts and 50 are at the last hop.
    assert said(
        {"transmission": 100.0, "timeouts": 50.0}, {"transmission": 100.0, "timeouts": 500.0, "last": 50.0}
    ) == (
        "Why: timeouts explain 90 % of the difference: 50.0 µs against 500 µs, "
        "and queues at the last hop 10 % (0 µs against 50.0 µs)."
    )


def test_every_part_from_a_tenth_of_the_difference_on_is_named() -> None:
    def second(leaf: float, spine: float) -> str:
        return said({"transmission": 10.0}, {"transmission": 10.0, "leaf": leaf, "spine": spine})

    assert second(70.0, 30.0) == (
        "Why: queues at the leaf uplink explain 70 % of the difference: 0 µs against 70.0 µs, "
        "and queues at the spine 30 % (0 µs against 30.0 µs)."
    )
    assert "spine 10 %" in second(90.0, 10.0)
    assert second(91.0, 9.0).endswith("0 µs against 91.0 µs; the other parts add 9 %.")
    assert said({"transmission": 1.0}, {"transmission": 1.0, "leaf": 60.0, "last": 15.0, "spine": 25.0}) == (
        "Why: queues at the leaf uplink explain 60 % of the difference: 0 µs against 60.0 µs, "
        "queues at the spine 25 % (0 µs against 25.0 µs), and queues at the last hop 15 % (0 µs against 15.0 µs)."
    )


def test_the_shares_of_a_sentence_close() -> None:
    """Gained 81 and 64 of 100 us, lost 26, 25 and, in a part too small for a name, 2; 8 came of another."""
    mine = {"reordering": 26.0, "host": 25.0, "timeouts": 2.0}
    assert said(mine, {"leaf": 81.0, "spine": 64.0, "window": 8.0}) == (
        "Why: queues at the leaf uplink explain 81 % of the difference: 0 µs against 81.0 µs, "
        "and queues at the spine 64 % (0 µs against 64.0 µs); "
        "reordering stalls take 26 % back (26.0 µs against 0 µs) and waiting at the sender's NIC 25 % "
        "(25.0 µs against 0 µs); the other parts add 6 %."
    )
    assert "other parts" not in said({"timeouts": 0.4}, {"leaf": 100.4})


def test_parts_that_cancel_are_named_with_their_times() -> None:
    """23.9 ms gained at the last hop and 17.5 ms lost by timeouts: 1195 % and -875 % of a difference of 2 ms."""
    mine = {"timeouts": 18_000.0, "window": 4_900.0, "reordering": 500.0}
    assert said(mine, {"last": 23_900.0, "timeouts": 500.0, "window": 1_000.0}) == (
        "Why: parts cancel: the difference of 2.00 ms is +23.9 ms queues at the last hop (0 µs against 23.9 ms), "
        "-17.5 ms timeouts (18.0 ms against 500 µs), -3.90 ms window and recovery (4.90 ms against 1.00 ms) and "
        "-500 µs the other parts."
    )
    assert "parts cancel" not in said({"timeouts": 99.0}, {"last": 199.0})


def test_where_no_part_explains_half_that_is_said() -> None:
    found = of({"transmission": 10.0}, {"transmission": 10.0, "leaf": 40.0, "spine": 35.0, "last": 25.0})
    assert found.main is None
    assert found.sentences(sure=True) == [
        "Why: no part explains half of the difference; the largest is queues at the leaf uplink with 40 % "
        "(0 µs against 40.0 µs), then queues at the spine 35 % (0 µs against 35.0 µs) and "
        "queues at the last hop 25 % (0 µs against 25.0 µs)."
    ]


def test_a_part_that_is_more_than_the_difference_is_held_against_what_was_lost() -> None:
    # 104 us gained by timeouts, and two parts that took 2 each.
    little = said({"reordering": 2.0, "last": 2.0}, {"timeouts": 104.0})
    assert little.endswith(
        "timeouts explain 104 % of the difference: 0 µs against 104 µs; the other parts take 4 % back."
    )
    much = said({"reordering": 50.0}, {"timeouts": 150.0})
    assert much.endswith(
        "150 % of the difference: 0 µs against 150 µs; reordering stalls take 50 % back (50.0 µs against 0 µs)."
    )


def test_waiting_at_the_senders_nic_is_a_part_of_its_own() -> None:
    """60 us at the NIC, 20 at each queue of the fabric: added together, the queues would have named the fabric."""
    yours = {"host": 60.0, "leaf": 20.0, "spine": 20.0}
    assert said({"transmission": 1.0}, {"transmission": 1.0, **yours}) == (
        "Why: waiting at the sender's NIC explains 60 % of the difference: 0 µs against 60.0 µs, "
        "queues at the leaf uplink 20 % (0 µs against 20.0 µs), and queues at the spine 20 % (0 µs against 20.0 µs)."
    )


def test_longer_waits_of_the_winner_are_no_reason() -> None:
    found = of({"transmission": 10.0, "leaf": 60.0}, {"transmission": 10.0, "leaf": 20.0, "window": 100.0})
    assert found.main is not None and found.main.key == "window"
    assert found.sentences(sure=True)[0].endswith(
        "; queues at the leaf uplink take 67 % back (60.0 µs against 20.0 µs)."
    )


def test_what_may_be_luck_is_not_called_a_reason() -> None:
    sentence = said({"transmission": 1.0}, {"transmission": 1.0, "timeouts": 5.0}, sure=False)
    assert sentence.startswith("If it is not luck, timeouts explain 100 % of the difference: ")


def test_parts_are_means_over_the_seeds_that_both_have() -> None:
    mine = [summary("dctcp", seed, breakdown={"timeouts": us}) for seed, us in ((1, 10.0), (2, 30.0), (3, 999.0))]
    yours = [summary("tcp", seed, breakdown={"timeouts": us}) for seed, us in ((2, 50.0), (1, 70.0))]
    found = flow_reason(NAMES, mine, yours, None)
    assert found is not None and found.main is not None
    assert (found.main.winner_us, found.main.other_us) == (20.0, 60.0)


def test_shares_add_up_to_one_and_parts_to_the_means() -> None:
    found = of({"leaf": 3.0, "window": 40.0, "transmission": 7.0}, {"leaf": 90.0, "timeouts": 1.0, "transmission": 9.0})
    assert found.winner_us == pytest.approx(50.0) and found.other_us == pytest.approx(100.0)
    assert fsum(part.share or 0.0 for part in found.parts) == pytest.approx(1.0)


def flows(rows: Mapping[int, tuple[float, float] | None], background: int | None = None) -> pl.DataFrame:
    """Flows by number, with the time at the leaf and in timeouts; None for one that did not finish."""
    return pl.DataFrame(
        [
            {
                "id": number,
                "background": number == background,
                "fct_us": None if parts is None else sum(parts),
                **{f"fct_{key}_us": None if parts is None else 0.0 for key in FCT_PARTS},
                "fct_leaf_us": None if parts is None else parts[0],
                "fct_timeouts_us": None if parts is None else parts[1],
            }
            for number, parts in rows.items()
        ],
        infer_schema_length=None,
    )


def of_flows(mine: pl.DataFrame, yours: pl.DataFrame) -> Reason | None:
    runs = [
        summary(name, unfinished=frame["fct_us"].null_count()) for name, frame in zip(NAMES, (mine, yours), strict=True)
    ]
    tables = dict(zip(NAMES, (mine, yours), strict=True))

    def flows_of(run: Summary) -> pl.DataFrame:
        return tables[run.label]

    return flow_reason(NAMES, runs[:1], runs[1:], flows_of)


def test_the_parts_are_of_the_flows_that_finished_under_both_and_the_others_are_counted() -> None:
    mine = flows({0: (1.0, 0.0), 1: (3.0, 0.0), 2: None, 3: (500.0, 0.0), 4: (9.0, 9.0)}, background=4)
    yours = flows({0: (1.0, 6.0), 1: (3.0, 10.0), 2: (9_000.0, 0.0), 3: None, 4: None}, background=4)
    found = of_flows(mine, yours)
    assert found is not None and (found.flows, found.left_out) == (2, 2)
    assert (found.winner_us, found.other_us) == (2.0, 10.0)
    assert found.sentences(sure=True) == [
        "The parts are of the 2 flows that finished under both, without 2 that did not.",
        "Why: timeouts explain 100 % of the difference: 0 µs against 8.00 µs.",
    ]


def test_flows_that_are_no_sooner_where_both_finished_are_no_reason() -> None:
    found = of_flows(flows({0: (5.0, 0.0), 1: (5.0, 0.0)}), flows({0: (4.0, 0.0), 1: None}))
    assert found is not None and found.main is None
    assert found.sentences(sure=True)[-1] == (
        "They do not explain it: the mean of these flows is 5.00 µs under dctcp, 4.00 µs under tcp."
    )


def test_without_a_flow_that_finished_under_both_there_is_no_reason() -> None:
    assert of_flows(flows({0: None, 1: (5.0, 0.0)}), flows({0: (4.0, 0.0), 1: None})) is None


def test_the_verdict_and_the_table_hold_the_numbers_of_the_sentence() -> None:
    parts = {"ecmp": {"transmission": 20.0, "leaf": 70.0, "host": 10.0}, "drill": {"transmission": 20.0, "leaf": 30.0}}
    found = comparison(*(summary(label, mean_us=fsum(own.values()), breakdown=own) for label, own in parts.items()))
    assert found.verdict is not None
    assert (
        "Why: queues at the leaf uplink explain 80 % of the difference: 30.0 µs against 70.0 µs, "
        "and waiting at the sender's NIC 20 % (0 µs against 10.0 µs)." in found.verdict.sentences
    )
    assert found.verdict.reason is not None
    told = json.loads(json.dumps(found.verdict.reason.to_dict()))
    assert (told["part"], told["winner_us"], told["against_us"], told["flows_left_out"]) == ("leaf", 50.0, 100.0, 0)
    assert {one["part"]: one["share"] for one in told["parts"] if one["share"]} == {"leaf": 0.8, "host": 0.2}
    row = found.table.row(by_predicate=pl.col("scheme") == "ecmp", named=True)
    assert {key: row[f"fct_{key}_us"] for key in parts["ecmp"]} == parts["ecmp"]


def test_the_reason_of_collectives_is_a_part_of_their_critical_path() -> None:
    zeros = dict.fromkeys(
        ("compute", "waiting", "transmission", "host", "leaf", "spine", "last", "reordering", "timeouts", "window",
         "acknowledgement"), 0.0
    )  # fmt: skip

    def run(label: str, **parts: float) -> Summary:
        path = {f"{key}_us": value for key, value in (zeros | parts).items()}
        worst = {"worst_flow": None, "worst_hosts": None, "worst_us": 0.0, "worst_late_by": None, "worst_late_at": None}
        one = {**collective(fsum(parts.values())), "critical_path": {"flows": 4.0, **path, **worst}}
        return summary(label, collectives=[one])

    verdict = judge(
        {"ecmp": [run("ecmp", transmission=100.0, spine=60.0)], "drill": [run("drill", transmission=100.0, spine=10.0)]}
    )
    assert verdict is not None
    assert "Why: queues of spines explain 100 % of the difference: 10.0 µs against 60.0 µs." in verdict.sentences


def test_the_reason_of_a_comparison_is_recomputed_from_its_json() -> None:
    told = compare(["ecmp", "drill"], set={"traffic.flows": 40}, seeds=2, progress=False).to_dict()
    reason, means = told["verdict"]["reason"], {row["scheme"]: row for row in told["schemes"]}
    for label, key in ((told["verdict"]["winner"], "winner_us"), (told["verdict"]["against"], "against_us")):
        assert reason[key] == pytest.approx(means[label]["mean_fct_us"])
        runs = [run for run in told["runs"] if run["label"] == label]
        for part in reason["parts"]:
            assert part[key] == pytest.approx(fsum(run["fct_breakdown_us"][part["part"]] for run in runs) / len(runs))
            assert part[key] == pytest.approx(means[label][f"fct_{part['part']}_us"])
