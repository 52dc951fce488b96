"""The verdict of a sweep claims a lead only where the interval of the paired difference excludes zero."""

import json
import math
import re
from collections.abc import Mapping

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from factory import collective, summary
from sweeping import made
from weft.metrics import ALL_METRICS
from weft.ranking import MATTERS, difference, rank
from weft.statistics import paired_difference
from weft.sweeps.verdict import SweepVerdict
from weft.verdict import judge

LOADS = ("0.2", "0.4", "0.8")
SEEDS = (1, 2, 3)


def verdict_of(sweep: weft.Sweep) -> SweepVerdict:
    assert sweep.verdict is not None
    return sweep.verdict


def table(values: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> weft.Sweep:
    """A sweep over load with these mean FCTs, by scheme and load, a value a seed."""
    loads = tuple(next(iter(values.values())))
    swept = {"traffic.load": loads, "scheme": tuple(values)}
    return made(swept, lambda labels, seed: values[labels["scheme"]][labels["traffic.load"]][seed - 1])


@settings(max_examples=150)
@given(st.data())
def test_words_never_claim_a_lead_whose_interval_includes_zero(data: st.DataObject) -> None:
    schemes = data.draw(st.sampled_from([("ecmp", "drill"), ("ecmp", "drill", "letflow", "conga")]))
    # Differences from hopeless to clear, and ties.
    noise = st.sampled_from([0.0, 0.1, 1.0, 10.0])
    values = {
        (scheme, load, seed): 100.0 + data.draw(st.sampled_from([0.0, 3.0, 20.0])) + data.draw(noise) * seed
        for scheme in schemes
        for load in LOADS
        for seed in SEEDS
    }
    found = verdict_of(
        made(
            {"traffic.load": LOADS, "scheme": schemes},
            lambda labels, seed: values[labels["scheme"], labels["traffic.load"], seed],
        )
    )
    sure: dict[str, set[str]] = {}
    for load in LOADS:
        for scheme in schemes:
            others = [other for other in schemes if other != scheme]
            apart = [
                paired_difference(*([values[one, load, seed] for seed in SEEDS] for one in (scheme, other)))
                for other in others
            ]
            mean = {one: math.fsum(values[one, load, seed] for seed in SEEDS) / len(SEEDS) for one in schemes}
            matter = all(1.0 - mean[scheme] / mean[other] >= MATTERS for other in others)
            # Where no result depends on the seed there is no interval.
            alike = {one for one in schemes if len({values[one, load, seed] for seed in SEEDS}) == 1}
            apart = [found for found, other in zip(apart, others, strict=True) if not {scheme, other} <= alike]
            if matter and len(apart) == len(others) and all(one.excludes_zero and one.mean < 0.0 for one in apart):
                sure.setdefault(scheme, set()).add(load)
    for sentence in found.sentences:
        if claimed := re.match(r"(?!Nobody)(\S+) leads(?: at (?:every )?load (?P<where>[^:]*))", sentence):
            where = claimed["where"]
            loads = set(LOADS) if " at every " in sentence else set(re.findall(r"0\.\d", where))
            assert loads == sure[claimed[1]], sentence
        elif passed := re.match(r"The lead passes from (\S+) to (\S+) between load (\S+) and (0\.\d)", sentence):
            assert passed[3] in sure[passed[1]] and passed[4] in sure[passed[2]], sentence
        else:
            said = ("Nobody leads", "No difference that matters", "No result", "At some points no result", "One seed")
            assert sentence.startswith(said) or " has the lowest mean FCT" in sentence, sentence
    claimed_by = {one.leader for one in found.rankings} - {None}
    assert claimed_by == set(sure)


@settings(max_examples=30)
@given(st.lists(st.floats(1.0, 1e8), min_size=1, max_size=6))
def test_differences_with_itself_are_zero(means: list[float]) -> None:
    runs = [summary("ecmp", seed, mean) for seed, mean in enumerate(means, 1)]
    for metric in ALL_METRICS:
        if (found := difference(metric, runs, list(reversed(runs)))) is not None:
            assert found.mean == 0.0 and found.half_width in (0.0, None) and not found.excludes_zero


def test_one_that_is_the_same_as_another_does_not_lead() -> None:
    same = dict.fromkeys(LOADS, (10.0, 20.0, 40.0))
    found = verdict_of(table({"ecmp": same, "drill": same}))
    assert [one.leader for one in found.rankings] == [None] * 3
    assert found.sentences == (
        "Nobody leads at every load from 0.2 to 0.8: drill and ecmp cannot be told apart (ecmp and drill at 0.2: "
        "0 ± 0 µs over 3 seeds; ecmp and drill at 0.4: 0 ± 0 µs over 3 seeds).",
    )


def test_the_words_say_who_leads_where_by_how_much_and_where_that_changes() -> None:
    found = verdict_of(
        table(
            {
                # In steps that differ by 1 µs: a paired interval of about ± 2.5 µs.
                "drill": {"0.2": (109.0, 110.0, 111.0), "0.4": (150.0, 160.0, 200.0), "0.8": (180.0, 181.0, 182.0)},
                "ecmp": {"0.2": (99.0, 101.0, 100.0), "0.4": (150.0, 165.0, 190.0), "0.8": (199.0, 201.0, 200.0)},
            }
        )
    )
    assert [one.leader for one in found.rankings] == ["ecmp", None, "drill"]
    assert found.sentences == (
        "ecmp leads at load 0.2: its mean FCT is 9.09 % below drill (-10.0 ± 2.48 µs over 3 seeds).",
        "drill leads at load 0.8: its mean FCT is 9.50 % below ecmp (-19.0 ± 2.48 µs over 3 seeds).",
        "Nobody leads at load 0.4: drill and ecmp cannot be told apart (ecmp and drill: -1.67 ± 19.0 µs over 3 seeds).",
        "The lead passes from ecmp to drill between load 0.2 and 0.8; nobody leads at 0.4.",
    )
    (change,) = found.to_dict()["changes"]
    assert change == {
        "at": {}, "from": "ecmp", "to": "drill", "left_at": "0.2", "taken_at": "0.8", "nobody_at": ["0.4"],
    }  # fmt: skip


def test_points_are_followed_by_their_numbers_not_in_the_order_of_the_spec() -> None:
    swept = {"run.interval": ("1ms", "50us"), "scheme": ("ecmp", "drill")}
    best = {"50us": "ecmp", "1ms": "drill"}
    found = verdict_of(made(swept, lambda at, seed: seed + (1.0 if best[at["run.interval"]] == at["scheme"] else 90.0)))
    assert "The lead passes from ecmp to drill between interval 50us and 1ms." in found.sentences


def test_other_fields_are_told_apart_and_values_without_an_order_have_no_change() -> None:
    swept = {"fabric.fault": ("[]", "[down]"), "fabric.kind": ("leaf-spine", "fat-tree"), "scheme": ("ecmp", "drill")}
    found = verdict_of(
        made(swept, lambda at, seed: seed + (90.0 if (at["fabric.fault"] == "[]") == (at["scheme"] == "ecmp") else 0))
    )
    assert found.axis == "fabric.fault" and found.changes == ()
    assert found.sentences[0].startswith("With kind = leaf-spine: drill leads at fault none: ")
    assert len(found.sentences) == 4


def test_one_seed_has_no_lead() -> None:
    swept = {"traffic.load": ("0.2",), "scheme": ("ecmp", "drill")}
    whole = made(swept, lambda at, _: 1.0 if at["scheme"] == "drill" else 9.0)
    found = verdict_of(weft.Sweep(whole.path, {**swept, "run.seed": ("1",)}, whole.runs[::3]))
    assert found.rankings[0].leader is None
    assert found.sentences[0] == "drill has the lowest mean FCT."
    assert found.sentences[-1].startswith("One seed gives no confidence interval, and so no lead")


def test_a_bound_is_no_variant_and_one_alone_has_no_verdict() -> None:
    swept = {"traffic.load": LOADS, "scheme": ("oracle", "ecmp", "drill")}
    means = {"oracle": 1.0, "ecmp": 50.0, "drill": 40.0}
    found = verdict_of(made(swept, lambda at, seed: means[at["scheme"]] + seed))
    assert {one.leader for one in found.rankings} == {"drill"}
    assert made({"traffic.load": LOADS, "scheme": ("oracle", "ecmp")}, lambda _, seed: 1.0 + seed).verdict is None
    assert made({"traffic.load": LOADS}, lambda _, seed: 1.0 + seed).verdict is None
    assert made(swept, lambda _, __: None).verdict is None


def test_seeds_that_only_one_has_are_in_no_difference() -> None:
    mine, yours = [summary("ecmp", seed, 10.0 * seed) for seed in (1, 2)], [summary("drill", 2, 15.0)]
    found = rank({}, {"ecmp": mine, "drill": yours})
    assert found is not None and found.leader is None
    (other,) = found.others
    assert other.difference_us is not None and (other.difference_us.mean, other.difference_us.runs) == (5.0, 1)


def test_differences_are_a_frame_with_each_pair_both_ways() -> None:
    found = table({"ecmp": {"0.2": (10.0, 20.0, 30.0)}, "drill": {"0.2": (11.0, 22.0, 33.0)}}).differences
    assert found.columns[:6] == ["traffic.load", "variant", "against", "seeds", "mean_fct_us", "mean_fct_us_ci95"]
    assert found.schema["traffic.load"] == pl.Float64
    rows = found.select("variant", "against", "seeds", "mean_fct_us").rows()
    assert rows == [("ecmp", "drill", 3, -2.0), ("drill", "ecmp", 3, 2.0)]
    # Student's t for 95 % and two degrees of freedom, from a table: 4.303; deviation 1 over three seeds.
    assert found["mean_fct_us_ci95"].to_list() == pytest.approx([4.303 / 3**0.5] * 2, rel=1e-3)
    assert made({"traffic.load": LOADS}, lambda _, seed: 1.0 + seed).differences.height == 0


def test_flows_that_did_not_finish_are_spoken_of() -> None:
    whole = table({"ecmp": {"0.2": (10.0, 20.0, 30.0)}, "drill": {"0.2": (11.0, 22.0, 33.0)}})
    first = whole.runs[0]
    worse = type(first)(first.labels, summary("ecmp", 1, 10.0, unfinished=4), None)
    found = verdict_of(weft.Sweep(whole.path, whole.swept, [worse, *whole.runs[1:]]))
    assert found.sentences == (
        "ecmp left 4 of 30 flows unfinished; a mean that depends on them is a bound, which wins nowhere.",
        "Nobody wins: what did not finish leaves the mean FCT open (drill 22.0 µs, ecmp ≥ 20.0 µs).",
    )
    assert found.to_dict()["points"][0]["lowest"] is None


def waiting(values: Mapping[str, Mapping[str, tuple[float | None, float]]]) -> weft.Sweep:
    """A sweep over load by what collectives and flows took, by scheme and load: a microsecond more a seed."""
    plain = table({scheme: dict.fromkeys(own, (1.0, 2.0, 3.0)) for scheme, own in values.items()})
    runs = []
    for one in plain.runs:
        assert one.summary is not None
        seed, scheme = one.summary.seed, one.labels["scheme"]
        took, fct = values[scheme][one.labels["traffic.load"]]
        found = [] if took is None else [collective(took + seed)]
        runs.append(type(one)(one.labels, summary(scheme, seed, fct + seed, collectives=found), None))
    return weft.Sweep(plain.path, plain.swept, runs)


def test_where_flows_wait_for_each_other_collectives_decide_as_in_a_comparison() -> None:
    # By flows it would be ecmp, at each load.
    sweep = waiting(
        {
            "ecmp": {"0.2": (100.0, 1.0), "0.4": (100.0, 1.0), "0.8": (300.0, 1.0)},
            "drill": {"0.2": (90.0, 5.0), "0.4": (100.0, 5.0), "0.8": (200.0, 5.0)},
        }
    )
    found = verdict_of(sweep)
    assert sweep.has_collectives and found.metric is not None and found.metric.key == "collective_us"
    assert [one.leader for one in found.rankings] == ["drill", None, "drill"]
    assert found.sentences == (
        "drill leads at load 0.2 and 0.8: its completion time of collectives is 9.80 % below ecmp at 0.2 "
        "(-10.0 ± 0 µs over 3 seeds) and 33.1 % below ecmp at 0.8 (-100 ± 0 µs over 3 seeds).",
        "Nobody leads at load 0.4: drill and ecmp cannot be told apart by completion time of collectives (ecmp and "
        "drill: 0 ± 0 µs over 3 seeds).",
    )
    told = found.to_dict()
    assert told["metric"] == "collective_us" and {one["metric"] for one in told["points"]} == {"collective_us"}
    for place, load in enumerate(LOADS):
        groups = {point.labels["scheme"]: point.runs for point in sweep.points if point.labels["traffic.load"] == load}
        compared = judge(groups)
        assert compared is not None and compared.metric is found.metric
        assert (compared.winner, compared.leader) == (found.rankings[place].winner, found.rankings[place].leader)
        assert compared.winner_mean_us == found.rankings[place].mean_us


def test_points_with_and_without_collectives_are_each_judged_by_their_own() -> None:
    found = verdict_of(
        waiting(
            {
                "ecmp": {"0.2": (None, 1.0), "0.4": (50.0, 1.0)},
                "drill": {"0.2": (None, 5.0), "0.4": (40.0, 5.0)},
            }
        )
    )
    assert found.metric is None and found.to_dict()["metric"] is None
    assert [one["metric"] for one in found.to_dict()["points"]] == ["mean_fct_us", "collective_us"]
    assert found.sentences == (
        "ecmp leads at load 0.2: its mean FCT is 57.1 % below drill (-4.00 ± 0 µs over 3 seeds).",
        "drill leads at load 0.4: its completion time of collectives is 19.2 % below ecmp (-10.0 ± 0 µs over 3 seeds).",
        "The lead passes from ecmp to drill between load 0.2 and 0.4.",
    )


def test_collectives_that_did_not_finish_are_spoken_of() -> None:
    whole = waiting({"ecmp": {"0.2": (10.0, 1.0)}, "drill": {"0.2": (20.0, 1.0)}})
    first = whole.runs[0]
    worse = type(first)(first.labels, summary("ecmp", 1, 1.0, collectives=[collective(10.0, unfinished=1)]), None)
    found = verdict_of(weft.Sweep(whole.path, whole.swept, [worse, *whole.runs[1:]]))
    assert found.sentences[0].startswith("ecmp left 1 of 6 collectives unfinished; ")


def test_the_verdict_is_json() -> None:
    found = verdict_of(table({"ecmp": {"0.2": (10.0, 20.0, 30.0)}, "drill": {"0.2": (11.0, 22.0, 33.0)}}))
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_with_one_seed_a_third_scheme_hides_no_tie() -> None:
    means = {"roce": 10_400.0, "irn": 284.0, "dctcp": 284.654}
    swept = {"traffic.load": ("0.2", "0.4"), "scheme": tuple(means)}
    found = verdict_of(made(swept, lambda labels, _: means[labels["scheme"]]))
    assert found.sentences[0].startswith(
        "No difference that matters at load 0.2 and 0.4: dctcp and irn are within 1 % of each other"
    )
    assert "; all others are behind." in found.sentences[0]
    assert not any("has the lowest" in said for said in found.sentences)


def test_a_difference_of_several_seeds_that_are_one_sample_is_not_of_one_seed() -> None:
    swept = {"traffic.load": ("0.2",), "scheme": ("ecmp", "drill")}
    whole = made(swept, lambda at, _: 99.9 if at["scheme"] == "drill" else 100.0)
    [first, second] = verdict_of(whole).sentences
    assert first.endswith("(drill and ecmp: -0.100 µs, one sample).")
    assert second == "No result depends on the seed: 3 seeds are one sample, which has no confidence interval."
    [alone] = verdict_of(weft.Sweep(whole.path, {**swept, "run.seed": ("1",)}, whole.runs[::3])).sentences
    assert alone.endswith("(drill and ecmp: -0.100 µs, one seed).")
