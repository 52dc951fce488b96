"""Verdicts on claims follow the data by one fixed reading, whatever the claim."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papering import Row, data, figure, grid, panel, paper
from weft.errors import SpecError
from weft.papers.claims import Claim, Rule, Where, load_claims
from weft.papers.declared import DATA, AxisValue, Experiment, Paper, load_paper, paper_names
from weft.papers.verdicts import Judgement, Verdict, judge, not_run, untestable

LOADS = (0.3, 0.6, 0.9)


def claim(kind: str, of: str | tuple[str, ...] = "meet", where: Where | None = None, **rule: object) -> Claim:
    """A claim about figure 6."""
    settings = {"of": (of,) if isinstance(of, str) else of, **rule}
    return Claim("id", "text", "place", figure="6", rule=Rule(kind, **settings), where=where or Where())  # type: ignore[arg-type]


def judged(one: Claim, rows: list[Row]) -> Judgement:
    return judge(one, data(rows), unit="us")


def levels(seeds: int = 3, **values: float) -> list[Row]:
    """Each variant at its own level at every load, with the seeds' flows moving all alike by up to 2 %."""
    return grid(list(values), LOADS, lambda scheme, _, seed: values[scheme] * (1.0 + 0.01 * seed), seeds=seeds)


AGAINST_ECMP = claim("reduction", against=("ecmp",), expected=(0.4, 0.4))


@pytest.mark.parametrize(
    ("meet", "verdict"),
    [
        (60.0, Verdict.REPRODUCED),
        (50.5, Verdict.REPRODUCED),  # 49.5 %: within a quarter of 40 %
        (69.5, Verdict.REPRODUCED),  # 30.5 %
        (49.0, Verdict.OTHER_SIZE),
        (71.0, Verdict.OTHER_SIZE),
        (100.0, Verdict.NOT_REPRODUCED),
        (140.0, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_reduction_is_reproduced_within_a_quarter_of_its_size(meet: float, verdict: Verdict) -> None:
    assert judged(AGAINST_ECMP, levels(meet=meet, ecmp=100.0)).verdict is verdict


@given(value=st.floats(1.0, 1e6), seeds=st.integers(1, 5), over=st.sampled_from(("best", "mean", "worst")))
def test_a_reduction_between_equal_data_is_not_reproduced(value: float, seeds: int, over: str) -> None:
    rows = levels(seeds, meet=value, ecmp=value)
    assert judged(claim("reduction", against=("ecmp",), over=over), rows).verdict is Verdict.NOT_REPRODUCED


@given(low=st.floats(1.0, 1e3), factor=st.floats(1.05, 100.0), seeds=st.integers(1, 4))
def test_the_verdict_on_a_direction_flips_when_the_data_flip(low: float, factor: float, seeds: int) -> None:
    ways = levels(seeds, meet=low, ecmp=low * factor), levels(seeds, meet=low * factor, ecmp=low)
    for kind in ("reduction", "at-most"):
        one = claim(kind, against=("ecmp",), bound=1.0)
        assert [judged(one, rows).verdict for rows in ways] == [Verdict.REPRODUCED, Verdict.NOT_REPRODUCED]
    order = claim("order", of=("meet", "ecmp"))
    assert [judged(order, rows).verdict for rows in ways] == [Verdict.REPRODUCED, Verdict.NOT_REPRODUCED]


def test_seeds_are_paired() -> None:
    """Seeds differ by a factor of 100, both variants alike: unpaired, nothing could be said; paired, it is exact."""
    rows = grid(["meet", "ecmp"], LOADS, lambda scheme, _, seed: 10.0**seed * (6.0 if scheme == "meet" else 10.0))
    measured = judged(AGAINST_ECMP, rows).measured
    assert measured is not None
    assert measured.mean == pytest.approx(0.4)
    assert measured.half_width == pytest.approx(0.0, abs=1e-12)


def test_an_interval_that_includes_no_effect_establishes_nothing() -> None:
    """Reductions of 90, 60 and -30 %: a mean of 40 % as claimed, an interval of +- 155 %."""
    reductions = {1: 0.9, 2: 0.6, 3: -0.3}
    rows = grid(["meet", "ecmp"], [0.5], lambda scheme, _, seed: 1.0 - reductions[seed] * (scheme == "meet"))
    found = judged(AGAINST_ECMP, rows)
    assert found.measured is not None and found.measured.mean == pytest.approx(0.4)
    assert found.verdict is Verdict.UNDECIDED
    assert "includes no effect" in found.sentence
    assert judged(AGAINST_ECMP, levels(meet=140.0, ecmp=100.0)).verdict is Verdict.NOT_REPRODUCED


def test_an_interval_that_is_far_from_the_paper_is_not_undecided() -> None:
    """Reductions of -1, 0 and 1 %: no effect, and surely not 40 %."""
    rows = grid(["meet", "ecmp"], [0.5], lambda scheme, _, seed: 1.0 - 0.01 * (seed - 2) * (scheme == "meet"))
    found = judged(AGAINST_ECMP, rows)
    assert found.verdict is Verdict.NOT_REPRODUCED
    vague = judged(replace(AGAINST_ECMP, rule=Rule("reduction", ("meet",), ("ecmp",))), rows)
    assert vague.verdict is Verdict.UNDECIDED


def test_a_single_seed_is_told_to_have_no_interval() -> None:
    found = judged(AGAINST_ECMP, levels(1, meet=60.0, ecmp=100.0))
    assert found.verdict is Verdict.REPRODUCED
    assert "one seed, which gives no interval" in found.sentence
    assert found.measured_text == "40.0 %"


def test_best_mean_and_worst_are_over_points_and_opponents() -> None:
    """Reductions against ecmp 10, 20, 30 % and against conga 0, 10, 20 % at loads 0.3, 0.6 and 0.9."""
    base = {"meet": 0.0, "ecmp": 0.0, "conga": 0.1}
    rows = grid(
        ["meet", "ecmp", "conga"],
        LOADS,
        lambda scheme, x, _: 100.0 * (1.0 - (x / 3.0 - base["ecmp"])) if scheme == "meet" else 100.0,
    )
    rows = [(*row[:6], row[6] * 0.9) if row[1] == "conga" and row[6] else row for row in rows]
    measured = {
        over: judged(claim("reduction", against=("ecmp", "conga"), over=over), rows).measured
        for over in ("best", "mean", "worst")
    }
    # Against conga, whose values are 90: 1 - 90/90, 1 - 80/90, 1 - 70/90.
    every = [0.1, 0.2, 0.3, 0.0, 1 / 9, 2 / 9]
    assert {over: value.mean for over, value in measured.items() if value} == pytest.approx(
        {"best": 0.3, "mean": sum(every) / 6, "worst": 0.0}
    )


def test_the_best_of_many_is_not_chosen_for_its_luck() -> None:
    """In each seed another load is lucky: chosen by the other seeds, no load is better than any."""
    lucky = {1: 0.3, 2: 0.6, 3: 0.9}
    rows = grid(["meet", "ecmp"], LOADS, lambda scheme, x, seed: 0.5 if scheme == "meet" and lucky[seed] == x else 1.0)
    found = judged(claim("reduction", against=("ecmp",), over="best"), rows)
    assert found.measured is not None and found.measured.mean == 0.0
    assert found.verdict is Verdict.NOT_REPRODUCED


def test_a_bound_has_to_be_kept() -> None:
    within = claim("at-most", against=("conga",), bound=1.09, over="worst")
    assert judged(within, levels(meet=109.0, conga=100.0)).verdict is Verdict.REPRODUCED
    assert judged(within, levels(meet=110.0, conga=100.0)).verdict is Verdict.NOT_REPRODUCED
    twice = claim("at-least", against=("conga",), bound=2.0, over="worst")
    assert judged(twice, levels(meet=210.0, conga=100.0)).verdict is Verdict.REPRODUCED
    assert judged(twice, levels(meet=150.0, conga=100.0)).verdict is Verdict.OTHER_SIZE
    assert judged(twice, levels(meet=90.0, conga=100.0)).verdict is Verdict.NOT_REPRODUCED
    value = claim("at-most", bound=300.0, over="worst")
    assert judged(value, levels(meet=280.0)).verdict is Verdict.REPRODUCED
    assert judged(value, levels(meet=320.0)).verdict is Verdict.NOT_REPRODUCED


def test_what_is_a_little_better_is_better_and_no_more_than_a_little() -> None:
    a_little = claim("reduction", against=("conga",), bound=0.2)
    assert judged(a_little, levels(meet=90.0, conga=100.0)).verdict is Verdict.REPRODUCED
    assert judged(a_little, levels(meet=70.0, conga=100.0)).verdict is Verdict.OTHER_SIZE
    assert judged(a_little, levels(meet=110.0, conga=100.0)).verdict is Verdict.NOT_REPRODUCED
    # Reductions of 20, 25 and 30 %: a mean of 25 %, an interval of +- 12 %, which holds the bound.
    reductions = {1: 0.2, 2: 0.25, 3: 0.3}
    wide = grid(["meet", "conga"], [0.5], lambda scheme, _, seed: 1.0 - reductions[seed] * (scheme == "meet"))
    assert judged(a_little, wide).verdict is Verdict.REPRODUCED


def test_a_claim_of_no_difference_is_reproduced_by_small_ones_alone() -> None:
    same = claim("ratio", against=("conga",), expected=(1.0, 1.0))
    assert judged(same, levels(meet=110.0, conga=100.0)).verdict is Verdict.REPRODUCED
    assert judged(same, levels(meet=140.0, conga=100.0)).verdict is Verdict.NOT_REPRODUCED
    # Ratios of 0.5, 1 and 1.5: a mean of 1, and an interval that holds nearly anything.
    vague = judged(same, grid(["meet", "conga"], [0.5], lambda scheme, _, seed: seed if scheme == "meet" else 2.0))
    assert vague.measured is not None and vague.measured.mean == pytest.approx(1.0)
    assert vague.verdict is Verdict.UNDECIDED


def test_a_bare_value_of_which_not_even_the_sign_is_known_is_undecided() -> None:
    value = claim("value", expected=(0.7, 0.7))
    # 0.3 and 0.5 have the interval 0.4 +- 1.27, which holds 0.7 and zero.
    rows: list[Row] = [(0, "meet", "", None, seed, "", found) for seed, found in ((1, 0.3), (2, 0.5))]
    vague = judged(value, rows)
    assert vague.verdict is Verdict.UNDECIDED
    assert "not even the sign" in vague.sentence
    assert judged(value, rows[1:]).verdict is Verdict.OTHER_SIZE
    zero = claim("value", expected=(0.0, 0.0))
    assert judged(zero, [(*row[:-1], 0.0) for row in rows]).verdict is Verdict.REPRODUCED


def test_a_bare_value_counts_as_another_size_within_a_factor_of_two() -> None:
    value = claim("value", expected=(621.0, 621.0))
    for level, verdict in ((600, Verdict.REPRODUCED), (1000, Verdict.OTHER_SIZE), (1500, Verdict.NOT_REPRODUCED)):
        assert judged(value, levels(meet=level)).verdict is verdict


def test_zero_is_zero_everywhere() -> None:
    zero = claim("zero")
    assert judged(zero, levels(meet=0.0)).verdict is Verdict.REPRODUCED
    once = grid(["meet"], LOADS, lambda _, x, seed: float(x == 0.9 and seed == 2))
    assert judged(zero, once).verdict is Verdict.NOT_REPRODUCED


def test_an_order_counts_neighbours() -> None:
    order = claim("order", of=("meet", "conga", "ecmp"))
    assert judged(order, levels(meet=1.0, conga=2.0, ecmp=3.0)).verdict is Verdict.REPRODUCED
    assert judged(order, levels(meet=1.0, conga=3.0, ecmp=2.0)).verdict is Verdict.NOT_REPRODUCED
    more = claim("order", of=("meet", "conga", "ecmp"), more_is_better=True)
    assert judged(more, levels(meet=3.0, conga=2.0, ecmp=1.0)).verdict is Verdict.REPRODUCED


def test_a_slope_is_the_change_along_the_axis_over_the_mean() -> None:
    rises = grid(["meet"], LOADS, lambda _, x, seed: seed * (1.0 + x))
    found = judged(claim("slope", trend="rises"), rises)
    assert found.measured is not None and found.measured.mean == pytest.approx(0.6 / 1.6)
    assert found.verdict is Verdict.REPRODUCED
    assert judged(claim("slope", trend="falls"), rises).verdict is Verdict.NOT_REPRODUCED
    assert judged(claim("slope", trend="flat"), rises).verdict is Verdict.NOT_REPRODUCED
    assert judged(claim("slope", trend="flat", bound=0.4), rises).verdict is Verdict.REPRODUCED


def test_a_flat_slope_is_established_by_its_whole_interval() -> None:
    def slopes(*changes: float) -> list[Row]:
        """A line for each seed, from 1 at the first load to `1 + change` at the last."""
        return grid(["meet"], (0.0, 1.0), lambda _, x, seed: 1.0 + changes[seed - 1] * x, seeds=len(changes))

    flat = claim("slope", trend="flat")
    assert judged(flat, slopes(0.05, 0.06, 0.07)).verdict is Verdict.REPRODUCED
    # One seed rises by a half, the other falls as much: the mean alone would be flat.
    wide = judged(flat, slopes(0.5, -0.4))
    assert wide.verdict is Verdict.UNDECIDED
    steep = judged(flat, slopes(0.9, 0.91, 0.92))
    assert steep.verdict is Verdict.NOT_REPRODUCED


def distribution(scale: float, variant: str) -> list[Row]:
    """Rows of a panel of distributions: a middle half from 10 to 30, scaled."""
    numbers = {"mean": 20, "std": 8, "p5": 1, "p25": 10, "p50": 20, "p75": 30, "p95": 40, "p99": 50}
    return [(0, variant, "", None, 1, name, scale * value) for name, value in numbers.items()]


def test_a_spread_is_that_of_the_middle_half() -> None:
    narrow = distribution(0.5, "meet") + distribution(1.0, "ecmp")
    spread = claim("spread", against=("ecmp",))
    found = judged(spread, narrow)
    assert found.measured is not None and found.measured.mean == pytest.approx(0.5)
    assert found.verdict is Verdict.REPRODUCED
    assert judged(spread, distribution(2.0, "meet") + distribution(1.0, "ecmp")).verdict is Verdict.NOT_REPRODUCED


def test_of_a_distribution_the_mean_is_taken_unless_another_number_is_named() -> None:
    rows = distribution(1.0, "meet")
    for where, value in ((Where(), 20.0), (Where(measure=("p99",)), 50.0)):
        measured = judged(claim("value", expected=(20.0, 20.0), where=where), rows).measured
        assert measured is not None and measured.mean == value


def test_a_variant_can_be_compared_with_itself_at_another_point() -> None:
    rows = grid(["meet"], LOADS, lambda _, x, seed: seed * x)
    sixth = claim("ratio", against_x="0.9", expected=(1 / 3, 1 / 3), where=Where(x=("0.3",)))
    found = judged(sixth, rows)
    assert found.measured is not None and found.measured.mean == pytest.approx(1 / 3)
    assert found.verdict is Verdict.REPRODUCED


def test_only_the_points_of_a_claim_count() -> None:
    rows = grid(["meet", "ecmp"], LOADS, lambda scheme, x, _: 60.0 if scheme == "meet" and x > 0.5 else 100.0)
    high = replace(AGAINST_ECMP, where=Where(x_from=0.6))
    assert judged(high, rows).verdict is Verdict.REPRODUCED
    assert judged(replace(AGAINST_ECMP, where=Where(x=("0.3",))), rows).verdict is Verdict.NOT_REPRODUCED


def test_a_claim_without_data_is_not_testable_and_says_why() -> None:
    missing = grid(["meet", "ecmp"], LOADS, lambda scheme, *_: None if scheme == "meet" else 1.0)
    found = judged(AGAINST_ECMP, missing)
    assert (found.verdict, found.measured) == (Verdict.UNTESTABLE, None)
    assert "no value at its points" in found.sentence
    assert untestable(Claim("id", "t", "p", untestable="about products")).sentence == "About products."
    assert not_run(AGAINST_ECMP).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("name", paper_names())
def test_every_claim_that_comes_with_weft_names_what_there_is(name: str) -> None:
    for one in load_claims(load_paper(name)):
        assert one.text and one.place


def small_paper(folder: Path) -> Paper:
    """A paper with one figure of two schemes at three loads."""
    loads = tuple(AxisValue(f"{load}", load, {}) for load in LOADS)
    experiment = Experiment("e", variants={"meet": {}, "ecmp": {}}, vary={"traffic.load": loads})
    return replace(paper({"6": figure(panel("lines"))}), experiments={"e": experiment}, folder=folder)


GOOD = """
[[claim]]
id = "small"
text = "small flows take 40 % less"
place = "section 4"
figure = "6"
panel = 0
where = { x = [0.3, "0.6"] }
rule = { kind = "reduction", of = "meet", against = ["ecmp"], over = "best", expected = 0.4 }
"""


REDUCTION = 'kind = "reduction", of = "meet", against = ["ecmp"], over = "best", expected = 0.4 }'


@pytest.mark.parametrize(
    ("kind", "word", "bound"),
    [
        ("at-most", "much", 0.8),
        ("at-least", "much", 1.25),
        ("at-most", "slightly", 1.25),
        ("reduction", "slightly", 0.2),
        ("gain", "slightly", 0.25),
    ],
)
def test_a_word_is_a_quarter_for_all_claims(tmp_path: Path, kind: str, word: str, bound: float) -> None:
    """Check that a value within a quarter is the same size."""
    rule = f'kind = "{kind}", of = "meet", against = ["ecmp"], bound = "{word}" }}'
    (tmp_path / "meet-claims.toml").write_text(GOOD.replace(REDUCTION, rule))
    (one,) = load_claims(small_paper(tmp_path))
    assert one.rule is not None and one.rule.bound == pytest.approx(bound)


WORD = re.compile(r"\b(much|significantly|slightly|a little)\b(.*)", re.IGNORECASE)
BOUNDS = {"much": "much", "significantly": "much", "slightly": "slightly", "a little": "slightly"}


@pytest.mark.parametrize("name", paper_names())
def test_a_claim_with_a_word_has_the_bound_of_the_word_unless_a_number_follows(name: str) -> None:
    """One reading for all: no claim with `much` is judged by its direction alone."""
    for one in tomllib.loads((DATA / f"{name}-claims.toml").read_text())["claim"]:
        found = WORD.search(one["text"])
        if "rule" in one and found is not None and not re.search(r"\d ?(%|ms|us|x\b|times)", found[2]):
            assert one["rule"].get("bound") == BOUNDS[found[1].lower()], one["id"]


def test_claims_are_read(tmp_path: Path) -> None:
    (tmp_path / "meet-claims.toml").write_text(GOOD)
    (one,) = load_claims(small_paper(tmp_path))
    assert one.rule == Rule("reduction", ("meet",), ("ecmp",), over="best", expected=(0.4, 0.4))
    assert one.where.x == ("0.3", "0.6")
    assert load_claims(small_paper(tmp_path / "elsewhere")) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"meet"', '"mete"', "there is no variant 'mete'; did you mean 'meet'"),
        ('"ecmp"', '"conga"', "there is no variant 'conga'"),
        ('figure = "6"', 'figure = "7"', "there is no figure '7'"),
        ("panel = 0", "panel = 1", "has 1 panels"),
        ("[0.3,", "[0.4,", "there is no point of x '0.4'"),
        ("x = [0.3", 'measure = "p99", x = [0.3', "there is no measure 'p99'"),
        ('"reduction"', '"reductoin"', "did you mean 'reduction'"),
        (REDUCTION, 'kind = "at-most", of = "meet", bound = "much" }', "words are for comparisons"),
        (
            REDUCTION,
            'kind = "at-most", of = "meet", against = ["ecmp"], bound = "more" }',
            "expected a number, or much",
        ),
        ("expected", "expcted", "unknown key 'expcted'"),
        ("expected = 0.4", "expected = [0.4, 0.3]", "expected a number, or two as"),
        ("expected = 0.4", "expected = 0.4, bound = 0.5", "expected and bound: one of them"),
        ('against = ["ecmp"], ', "", "needs against"),
        ("rule =", 'untestable = "why"\nrule =', "one of them"),
        (REDUCTION, 'kind = "zero", bound = 1.0, of = "meet" }', "takes no bound"),
    ],
)
def test_a_slip_in_a_claim_is_answered(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "meet-claims.toml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        load_claims(small_paper(tmp_path))
    assert message in str(caught.value)
    assert str(caught.value).startswith("meet-claims.toml: claim[0] (small)")


def test_two_claims_cannot_share_an_id(tmp_path: Path) -> None:
    (tmp_path / "meet-claims.toml").write_text(GOOD + GOOD)
    with pytest.raises(SpecError, match="two claims have the id 'small'"):
        load_claims(small_paper(tmp_path))
