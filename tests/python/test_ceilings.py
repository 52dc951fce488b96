"""Ceilings: a claim that no scheme can reach is reported with the bound, and one that some scheme can reach is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papering import Row, data, grid
from test_paper_claims import claim
from weft.papers.ceilings import without_oracle
from weft.papers.claims import Claim, Where
from weft.papers.declared import Measure, load_paper
from weft.papers.exclusions import exclusions
from weft.papers.measured import FigureData
from weft.papers.oracle import with_oracle as beside_the_oracle
from weft.papers.values import ideal_of, ideals_of, value_of, values_of
from weft.papers.verdicts import Judgement, Verdict, judge
from weft.simulation import Result, run_text
from weft.spec import load_spec


def judged(one: Claim, measured: list[Row], ideal: list[Row]) -> Judgement:
    """A claim about data of which the ideal is known."""
    return judge(one, replace(data(measured), ideal=data(ideal).rows), unit="us")


def levels(meet: float, ecmp: float) -> list[Row]:
    """Both variants at one load, with seeds that hardly differ."""
    own = {"meet": meet, "ecmp": ecmp}
    return grid(list(own), [0.5], lambda scheme, _, seed: own[scheme] * (1.0 + 0.001 * seed))


HALF = claim("reduction", against=("ecmp",), expected=(0.5, 0.5))


@pytest.mark.parametrize(
    ("ideal", "verdict"),
    [
        (55.0, Verdict.OTHER_SIZE),  # 45 % could be had: within a quarter of 50 %
        (64.0, Verdict.UNREACHABLE),  # 36 % at most
        (78.0, Verdict.UNREACHABLE),
    ],
)
def test_a_reduction_that_an_idle_fabric_would_not_give_is_not_reachable(ideal: float, verdict: Verdict) -> None:
    """20 % were measured, half is claimed."""
    found = judged(HALF, levels(80.0, 100.0), levels(ideal, ideal))
    assert found.verdict is verdict
    assert ("if its flows took the time that they take alone" in found.sentence) == (verdict is Verdict.UNREACHABLE)


def test_what_is_reproduced_needs_no_bound() -> None:
    """Even if the claim of more would be out of reach."""
    assert judged(HALF, levels(52.0, 100.0), levels(51.0, 51.0)).verdict is Verdict.REPRODUCED


def test_a_claim_of_a_little_less_is_out_of_reach_only_where_nothing_less_can_be_had() -> None:
    """Check the largest value of such a claim, and not the least."""
    a_little = claim("reduction", against=("ecmp",), bound=0.2)
    assert judged(a_little, levels(105.0, 100.0), levels(95.0, 95.0)).verdict is Verdict.NOT_REPRODUCED
    assert judged(a_little, levels(105.0, 100.0), levels(101.0, 100.0)).verdict is Verdict.UNREACHABLE


@pytest.mark.parametrize(
    "one",
    [
        claim("reduction", against=("ecmp",), expected=(-0.5, -0.5)),  # that it is worse
        claim("ratio", against=("ecmp",), expected=(2.0, 2.0)),
        claim("at-least", against=("ecmp",), bound=2.0),
        claim("slope", trend="rises"),
    ],
)
def test_a_claim_that_wants_more_time_has_no_bound(one: Claim) -> None:
    """An idle fabric bounds times from below alone."""
    assert judged(one, levels(80.0, 100.0), levels(79.0, 79.0)).verdict is not Verdict.UNREACHABLE


def test_bounds_of_other_rules_are_on_their_own_side() -> None:
    """A ratio, a value, and a bound that is to be kept."""
    ideal = levels(78.0, 78.0)
    for one in (
        claim("ratio", against=("ecmp",), expected=(0.4, 0.5)),
        claim("value", expected=(40.0, 50.0)),
        claim("at-most", against=("ecmp",), bound=0.6),
        claim("at-most", bound=70.0),
    ):
        assert judged(one, levels(80.0, 100.0), ideal).verdict is Verdict.UNREACHABLE, one.rule
    rates = claim("gain", against=("ecmp",), expected=(1.0, 1.0))
    assert judged(rates, levels(110.0, 100.0), levels(120.0, 120.0)).verdict is Verdict.UNREACHABLE
    assert judged(rates, levels(110.0, 100.0), levels(190.0, 190.0)).verdict is Verdict.OTHER_SIZE


@given(meet=st.floats(1.0, 1e3), gain=st.floats(0.0, 1.0), ecmp=st.floats(1.0, 1e3), wanted=st.floats(0.01, 0.99))
def test_what_is_not_reachable_is_never_reached(meet: float, gain: float, ecmp: float, wanted: float) -> None:
    """Whatever lies between the ideal and the measured is judged no better than the claim that is out of reach."""
    ideal = meet * (1.0 - gain)
    one = claim("reduction", against=("ecmp",), expected=(wanted, wanted))
    if judged(one, levels(meet, ecmp), levels(ideal, ideal)).verdict is Verdict.UNREACHABLE:
        best = judged(one, levels(ideal, ecmp), levels(ideal, ideal))
        assert best.verdict is not Verdict.REPRODUCED


@pytest.fixture(scope="module")
def result() -> Result:
    """A run in which flows wait for each other."""
    settings = {
        "run.bins": "0-100KB,100KB-",
        "fabric": "leaf-spine:leaves=2:spines=2:hosts_per_leaf=4",
        "traffic.workload": "web-search",
        "traffic.load": 0.8,
        "traffic.flows": 200,
        "transport.name": "dctcp",
    }
    return run_text(load_spec(""), overrides=settings)


@pytest.mark.parametrize(
    "measure",
    [
        Measure(metric="mean_fct_us"),
        Measure(metric="p99_fct_us"),
        Measure(metric="mean_fct_us", bin=0),
        Measure(metric="small_mean_fct_us"),
        Measure(table="flows", column="fct_us", statistic="mean", where={"size_bytes_below": 100_000}),
        Measure(table="flows", column="slowdown", statistic="p99"),
    ],
)
def test_no_time_is_below_its_ideal(result: Result, measure: Measure) -> None:
    """Check the flows of a summary and those of a table alike."""
    ideal, real = ideal_of(result, measure), value_of(result, measure)
    assert ideal is not None and real is not None
    assert 0.0 < ideal < real


def test_ideals_of_the_summary_and_of_the_table_agree(result: Result) -> None:
    """And rates are those of the ideal times."""
    mean = Measure(table="flows", column="fct_us", statistic="mean")
    assert ideal_of(result, mean) == pytest.approx(ideal_of(result, Measure(metric="mean_fct_us")))
    rates = Measure(table="flows", column="goodput_mbps")
    assert (ideals_of(result, rates) >= values_of(result, rates)[1] - 1e-6).all()
    assert ideal_of(result, Measure(metric="retransmissions")) is None
    assert ideal_of(result, Measure(table="flows", column="timeouts", statistic="sum")) is None


def three(meet: float, conga: float, drill: float) -> FigureData:
    """Three variants whose flows would take 10 if they were alone."""
    own = {"meet": meet, "conga": conga, "drill": drill}
    rows = grid(list(own), [0.5], lambda scheme, _, seed: own[scheme] * (1.0 + 0.001 * seed))
    return replace(data(rows), ideal=data(grid(list(own), [0.5], lambda *_: 10.0)).rows)


def test_a_claim_that_a_baseline_contradicts_excludes_the_other() -> None:
    """CONGA is 20 % faster than DRILL; who is no faster than CONGA is not 25 % faster than DRILL."""
    faster = replace(claim("reduction", against=("drill",), expected=(0.25, 0.5)), id="faster")
    for said in (
        claim("ratio", against=("conga",), expected=(1.0, 1.0)),
        claim("at-least", against=("conga",), bound=1.0),
        claim("reduction", of=("conga",), against=("meet",), expected=(0.0, 0.1)),
        claim("order", of=("conga", "meet", "drill")),
    ):
        other = replace(said, id="no-better")
        found = exclusions([faster, other], three(90.0, 80.0, 100.0))
        assert [(one.claim, one.other, one.baseline) for one in found] == [("faster", "no-better", "conga")], said
        assert found[0].most == pytest.approx(0.2, abs=0.001)
        assert exclusions([faster, other], three(90.0, 70.0, 100.0)) == [], "30 % are left"


def test_a_claim_about_other_places_excludes_nothing() -> None:
    """Nor does one that says of the baseline that it is slower."""
    faster = replace(claim("reduction", against=("drill",), expected=(0.25, 0.5)), id="faster")
    elsewhere = replace(claim("ratio", against=("conga",), expected=(1.0, 1.0)), id="elsewhere", where=Where(x_to=0.1))
    slower = replace(claim("reduction", against=("conga",), expected=(0.1, 0.1)), id="slower")
    assert exclusions([faster, elsewhere, slower], three(90.0, 80.0, 100.0)) == []


NO_BETTER = claim("at-least", against=("conga",), over="worst", bound=1.0)
AS_LONG = claim("ratio", against=("conga",), expected=(1.0, 1.0))
HALF_OF_DRILL = replace(claim("reduction", against=("drill",), expected=(0.5, 0.5)), id="half")


@pytest.mark.parametrize(
    ("said", "conga", "verdict"),
    [
        (NO_BETTER, 65.0, Verdict.UNREACHABLE),  # 35 % at most
        (NO_BETTER, 60.0, Verdict.OTHER_SIZE),  # 40 %: half, nearly
        (AS_LONG, 65.0, Verdict.OTHER_SIZE),  # 0.75 would be as long
        (AS_LONG, 85.0, Verdict.UNREACHABLE),
        (claim("at-least", against=("conga",), over="best", bound=1.0), 65.0, Verdict.OTHER_SIZE),  # somewhere alone
        (claim("order", of=("conga", "meet", "drill")), 65.0, Verdict.OTHER_SIZE),  # a quarter may be out of it
    ],
)
def test_a_claim_is_not_reachable_where_a_baseline_leaves_too_little_to_it(
    said: Claim, conga: float, verdict: Verdict
) -> None:
    """MEET is said to halve DRILL's time, and to be no faster than CONGA; it takes 90, and DRILL 100."""
    other = replace(said, id="no-better")
    found = judge(HALF_OF_DRILL, three(90.0, conga, 100.0), unit="us", beside=[HALF_OF_DRILL, other])
    assert found.verdict is verdict
    assert ("the least that no-better leaves it" in found.sentence) == (verdict is Verdict.UNREACHABLE)


def test_a_baseline_that_the_scheme_beats_bounds_nothing() -> None:
    """Whatever the paper says of it: MEET takes 63 here, and CONGA 65."""
    other = replace(NO_BETTER, id="no-better")
    found = judge(HALF_OF_DRILL, three(63.0, 65.0, 100.0), unit="us", beside=[other])
    assert found.verdict is Verdict.OTHER_SIZE


def with_oracle(meet: float, ecmp: float, oracle: float) -> FigureData:
    """Two variants and a perfect per-packet choice, far from what idle flows would take."""
    own = {"meet": meet, "ecmp": ecmp, "oracle": oracle}
    rows = grid(list(own), [0.5], lambda scheme, _, seed: own[scheme] * (1.0 + 0.001 * seed))
    return replace(data(rows), ideal=data(grid(list(own), [0.5], lambda *_: 10.0)).rows)


@pytest.mark.parametrize("oracle", [55.0, 70.0, 90.0])
def test_a_reference_changes_no_verdict(oracle: float) -> None:
    """20 % were measured, half is claimed: what a perfect per-packet choice takes is no bound of it."""
    found = judge(HALF, with_oracle(80.0, 100.0, oracle), unit="us")
    assert found == judge(HALF, without_oracle(with_oracle(80.0, 100.0, oracle)), unit="us")
    assert found.verdict is Verdict.OTHER_SIZE


def test_the_oracle_joins_experiments_whose_variants_are_load_balancers() -> None:
    """And no claim is about it."""
    tr, maxpass = (beside_the_oracle(load_paper(name)) for name in ("tr", "maxpass"))
    assert any("oracle" in one.variants for one in tr.experiments.values())
    for paper in (tr, maxpass):
        own_experiments = load_paper(paper.name).experiments
        for one in paper.experiments.values():
            schemes_alone = all(set(own) == {"scheme"} for own in one.variants.values())
            assert ("oracle" in one.variants) == (schemes_alone and bool(one.variants))
            for other in one.at("quick").variants:
                assert other == "oracle" or other in own_experiments[one.name].at("quick").variants
