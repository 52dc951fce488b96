"""The sentences below a table say what the numbers say, no more."""

import msgspec
import pytest

from factory import collective, summary
from weft.metrics import ALL_METRICS, METRICS, best_labels, estimates
from weft.summary import Summary
from weft.verdict import caveats, judge


def test_the_winner_is_held_against_ecmp_wherever_it_stands() -> None:
    verdict = judge(
        {"drill": [summary("drill", 1, 50.0)], "rps": [summary("rps", 1, 80.0)], "ecmp": [summary("ecmp", 1, 100.0)]}
    )
    assert verdict is not None
    assert (verdict.winner, verdict.other) == ("drill", "ecmp")
    assert verdict.relative == pytest.approx(-0.5)
    assert verdict.sentences[0] == "drill has the lowest mean FCT: 50.0 µs, 50.0 % less than ecmp (100 µs)."


def test_without_ecmp_the_first_scheme_is_the_reference() -> None:
    verdict = judge(
        {"rps": [summary("rps", 1, 80.0)], "drill": [summary("drill", 1, 50.0)], "drb": [summary("drb", 1, 60.0)]}
    )
    assert verdict is not None
    assert (verdict.winner, verdict.other) == ("drill", "rps")


def test_if_the_reference_wins_it_is_held_against_the_next_best() -> None:
    verdict = judge(
        {"ecmp": [summary("ecmp", 1, 10.0)], "rps": [summary("rps", 1, 80.0)], "drb": [summary("drb", 1, 60.0)]}
    )
    assert verdict is not None
    assert (verdict.winner, verdict.other) == ("ecmp", "drb")


def test_one_seed_claims_no_certainty() -> None:
    verdict = judge({"ecmp": [summary("ecmp", 1, 100.0)], "rps": [summary("rps", 1, 80.0)]})
    assert verdict is not None and verdict.difference_us is not None
    assert verdict.difference_us.half_width is None
    assert any("One seed gives no confidence interval" in sentence for sentence in verdict.sentences)
    for mean_us in (99.9, 100.0):
        tie = judge({"ecmp": [summary("ecmp", 1, 100.0)], "rps": [summary("rps", 1, mean_us)]})
        assert tie is not None and len(tie.sentences) == 1, "more seeds decide nothing that matters"


def test_seeds_are_paired_by_number_not_by_position() -> None:
    ecmp = [summary("ecmp", 1, 100.0), summary("ecmp", 2, 500.0), summary("ecmp", 3, 900.0)]
    rps = [summary("rps", 3, 889.0), summary("rps", 1, 90.0), summary("rps", 2, 491.0)]
    verdict = judge({"ecmp": ecmp, "rps": rps})
    assert verdict is not None and verdict.difference_us is not None
    assert verdict.difference_us.mean == pytest.approx(-10.0)
    assert verdict.difference_us.excludes_zero
    assert any("excludes zero" in sentence for sentence in verdict.sentences)


def test_a_lead_whose_interval_includes_zero_is_no_lead() -> None:
    """Two seeds: Student's t is 12.7062 for one degree of freedom, and the half-width t times half of the spread."""
    ecmp = [summary("ecmp", 1, 100.0), summary("ecmp", 2, 100.0)]
    rps = [summary("rps", 1, 60.0), summary("rps", 2, 90.0)]
    verdict = judge({"ecmp": ecmp, "rps": rps})
    assert verdict is not None
    # Differences of -40 and -10: -25 ± 12.7062 * 15.
    assert verdict.sentences[0] == (
        "Nobody leads: rps and ecmp cannot be told apart by mean FCT (rps and ecmp: -25.0 ± 191 µs over 2 seeds)."
    )
    assert verdict.sentences[1] == "The lowest mean FCT is that of rps: 75.0 µs, 25.0 % less than ecmp (100 µs)."
    assert (verdict.winner, verdict.leader) == ("rps", None)
    assert "includes zero" in verdict.sentences[2]
    assert not any(sentence.startswith("Why:") for sentence in verdict.sentences), "luck has no reason"


def test_whoever_leads_the_reference_alone_does_not_lead() -> None:
    """The best of three is sure to be below ECMP, and not below the second."""
    groups = {
        "ecmp": [summary("ecmp", 1, 100.0), summary("ecmp", 2, 100.0)],
        "rps": [summary("rps", 1, 50.0), summary("rps", 2, 50.5)],
        "drill": [summary("drill", 1, 60.0), summary("drill", 2, 45.0)],
    }
    verdict = judge(groups)
    assert verdict is not None and verdict.difference_us is not None
    assert verdict.difference_us.excludes_zero and verdict.other == "ecmp"
    assert verdict.leader is None
    assert verdict.sentences[0].startswith(
        "Nobody leads: rps and drill cannot be told apart by mean FCT (rps and drill"
    )
    assert verdict.sentences[0].endswith("; all others are behind.")
    led = judge({name: groups[name] for name in ("ecmp", "rps")})
    assert led is not None and led.leader == "rps"
    assert led.sentences[0].startswith("rps has the lowest mean FCT: ")


def test_runs_without_flows_that_end_have_no_verdict() -> None:
    assert judge({"ecmp": [summary("ecmp", 1, None)]}) is None


def test_of_throughput_more_is_better_and_of_times_less() -> None:
    by_key = {metric.key: metric for metric in ALL_METRICS}
    table = {label: estimates([summary(label, 1, mean)]) for label, mean in (("slow", 50.0), ("fast", 20.0))}
    for key in ("mean_fct_us", "goodput_mbps"):
        assert best_labels(table, by_key[key]) == {"fast"}
    assert not any(metric.more_is_better for metric in METRICS), "the report's note says so"


def test_a_column_in_which_no_run_has_a_value_is_empty() -> None:
    found = estimates([summary("ecmp", 1, 5.0)])
    assert found["missed_deadlines_share"] is None and found["background_goodput_mbps"] is None


def test_the_best_is_marked_unless_more_than_half_share_it() -> None:
    by_key = {metric.key: metric for metric in METRICS}

    def best(**means: float) -> set[str]:
        table = {label: estimates([summary(label, 1, mean)]) for label, mean in means.items()}
        assert best_labels(table, by_key["retransmissions"]) == set()
        assert best_labels(table, by_key["large_mean_fct_us"]) == set()
        return best_labels(table, by_key["mean_fct_us"])

    assert best(ecmp=100.0, rps=80.0) == {"rps"}
    assert best(ecmp=100.0) == set()
    assert best(ecmp=100.0, rps=80.0, drill=80.0, presto=90.0) == {"rps", "drill"}
    assert best(ecmp=100.0, rps=80.0, drill=80.0) == set()


def test_what_schemes_send_themselves_is_said_for_those_that_do() -> None:
    runs = {"ecmp": [summary("ecmp", 1, 100.0)], "hula": [summary("hula", 1, 80.0, own_bytes=30_000)]}
    verdict = judge(runs)
    assert verdict is not None
    # 30,000 of 1,000,000 bytes; ECMP sends nothing and is not named.
    assert verdict.sentences[-1].endswith("of the packets that schemes send themselves: hula 3.00 %.")
    quiet = judge({"ecmp": [summary("ecmp", 1, 100.0)], "rps": [summary("rps", 1, 80.0)]})
    assert quiet is not None and not any("Overhead" in sentence for sentence in quiet.sentences)


def test_a_tie_has_no_winner() -> None:
    verdict = judge({"ecmp": [summary("ecmp", 1, 100.0)], "rps": [summary("rps", 1, 100.0)]})
    assert verdict is not None
    assert verdict.sentences[0] == "ecmp and rps have the same mean FCT: 100 µs."
    assert verdict.winner is None


def test_with_one_seed_a_third_scheme_hides_no_tie() -> None:
    """As with several seeds: those within 1 % of the best one are named together, and all others are behind."""
    means = {"roce": 10_400.0, "irn": 284.0, "dctcp": 284.654}
    verdict = judge({name: [summary(name, 1, mean)] for name, mean in means.items()})
    assert verdict is not None
    assert verdict.sentences[:2] == (
        "No difference that matters: irn and dctcp are within 1 % of each other by mean FCT (irn and dctcp: 0.230 %); "
        "all others are behind.",
        "The best mean FCT is that of irn: 284 µs, 97.3 % less than roce (10.4 ms).",
    )
    assert (verdict.winner, verdict.leader, verdict.other) == (None, None, "roce")
    far = judge({name: [summary(name, 1, mean)] for name, mean in means.items()}, matters=0.002)
    assert far is not None and far.winner == "irn"
    assert far.sentences[0] == "irn has the lowest mean FCT: 284 µs, 97.3 % less than roce (10.4 ms)."


def test_a_bound_is_no_tie() -> None:
    """At least 100.5 us may be any time above it."""
    verdict = judge({"ecmp": [summary("ecmp", 1, 100.0)], "rps": [summary("rps", 1, 67.0, unfinished=5)]})
    assert verdict is not None and not any("No difference" in said for said in verdict.sentences)


def test_a_reference_neither_wins_nor_loses_and_nothing_is_taken_off_it() -> None:
    groups = {
        "oracle": [summary("oracle", 1, 40.0)],
        "ecmp": [summary("ecmp", 1, 100.0)],
        "drill": [summary("drill", 1, 50.0)],
        "one queue": [summary("one queue", 1, 60.0, scheme="oracle")],
    }
    verdict = judge(groups)
    assert verdict is not None
    assert (verdict.winner, verdict.other) == ("drill", "ecmp")
    kind = "is a reference (perfect per-packet choice), no scheme and no bound"
    assert [sentence for sentence in verdict.sentences if "reference" in sentence] == [
        f"oracle {kind}: its mean FCT is 40.0 µs.",
        f"one queue {kind}: its mean FCT is 60.0 µs.",
    ]
    assert judge({"oracle": groups["oracle"]}) is None, "alone it is not compared with anything"


def test_the_best_of_a_column_is_the_best_scheme() -> None:
    mean = next(metric for metric in METRICS if metric.key == "mean_fct_us")
    rows = {label: estimates([summary(label, 1, value)]) for label, value in (("a", 1.0), ("b", 2.0), ("c", 3.0))}
    assert best_labels(rows, mean) == {"a"}
    assert best_labels(rows, mean, {"a"}) == {"b"}


def test_what_every_run_of_some_variants_warns_of_is_said_once_with_their_names() -> None:
    sprays = "the load balancer sprays, and roce takes the packets of a flow in order alone"
    runs = {label: [summary(label, seed, 100.0) for seed in (1, 2)] for label in ("ecmp", "rps", "drill")}
    for label in ("rps", "drill"):
        runs[label] = [msgspec.structs.replace(run, warnings=(sprays,)) for run in runs[label]]
    once = msgspec.structs.replace(runs["ecmp"][0], warnings=("hosts: 1 flow failed inside the kernel",))
    verdict = judge({**runs, "ecmp": [once, runs["ecmp"][1]]})
    assert verdict is not None
    assert [said for said in verdict.sentences if "sprays" in said] == [f"rps, drill: {sprays}."]
    assert not any("kernel" in said for said in verdict.sentences), "one of several runs alone warns of it"


def test_a_warning_of_all_variants_or_with_a_name_of_its_own_is_said_once_without_one() -> None:
    def run(label: str, seed: int, *warnings: str) -> Summary:
        return msgspec.structs.replace(summary(label, seed, 100.0), warnings=warnings)

    marks, moved = "switch_queue.mark is 97.5 KB", "letflow moved {} of 200 flows"
    lost = "flow {} lost 261 packets and flow {} none"
    groups = {
        "ecmp": [run("ecmp", 1, marks, lost.format(0, 1)), run("ecmp", 2, lost.format(1, 0), marks)],
        "letflow": [run("letflow", 1, moved.format(1), marks), run("letflow", 2, marks, moved.format(0))],
    }
    assert caveats(groups) == [
        f"{marks}.",
        f"ecmp: {lost.format(0, 1)} (seed 1).",
        f"{moved.format(1)} (seed 1).",
    ]


def test_variants_that_are_in_no_steady_state_are_named() -> None:
    steady, growing = summary("ecmp", 1, 100.0), summary("rps", 1, 80.0)
    growing = msgspec.structs.replace(growing, warnings=("the run is in no steady state: slowdown rises",))
    verdict = judge({"ecmp": [steady], "rps": [growing]})
    assert verdict is not None
    begin = "The run of rps is not in a steady state: its means depend on the number of flows. More flows"
    assert any(said.startswith(begin) for said in verdict.sentences)
    both = judge({"ecmp": [msgspec.structs.replace(growing, label="ecmp", scheme="ecmp")], "rps": [growing]})
    assert both is not None
    begin = "The runs of ecmp and rps are not in a steady state: their means depend on the number of flows. More flows"
    assert any(said.startswith(begin) for said in both.sentences)
    # Collectives begin and end, and are judged all the same.
    waiting = msgspec.structs.replace(growing, collectives=summary(collectives=[collective(50.0)]).collectives)
    told = judge({"rps": [waiting]})
    assert told is not None and not any("steady" in said for said in told.sentences)
    quiet = judge({"ecmp": [steady]})
    assert quiet is not None and not any("steady" in said for said in quiet.sentences)


def priced(retransmissions: int, out_of_order_share: float, mean_us: float = 80.0) -> list[str]:
    """The sentences on the price of rps, beside an ECMP with 3 retransmissions and 2 % of packets out of order."""
    rps = msgspec.structs.replace(
        summary("rps", 1, mean_us), retransmissions=retransmissions, out_of_order_share=out_of_order_share
    )
    verdict = judge({"ecmp": [summary("ecmp", 1, 100.0)], "rps": [rps]})
    assert verdict is not None
    return [said for said in verdict.sentences if said.startswith("Price")]


def test_a_price_names_the_quantities_of_which_the_winner_has_more() -> None:
    assert priced(40, 0.08) == [
        "Price: 40 retransmissions and 8.00 % of packets out of order under rps; "
        "3 retransmissions and 2.00 % of packets out of order under ecmp."
    ]
    assert priced(40, 0.02) == ["Price: 40 retransmissions under rps; 3 retransmissions under ecmp."]
    assert priced(3, 0.08) == [
        "Price: 8.00 % of packets out of order under rps; 2.00 % of packets out of order under ecmp."
    ]
    assert priced(3, 0.02) == priced(0, 0.0) == []
    assert priced(3, 0.020000001) == [], "both numbers would read 2.00 %"


def test_there_is_no_price_without_a_difference_that_matters() -> None:
    assert priced(40, 0.08, mean_us=99.9) == []
