"""Two copies of one scheme, with random streams of their own, are told apart as often as chance does it: in 5 %."""

from pathlib import Path

from calibration import CUT, binomial_bounds, counts, pairs

PAIRS = 150
"""75, 30 and 15 comparisons with 2, 5 and 10 seeds; `calibration.py` asks thousands."""


def test_the_bounds_are_those_of_a_table() -> None:
    """Check 100 trials at 5 %: P(X <= 1) = 0.037, P(X >= 10) = 0.028, P(X >= 11) = 0.0115."""
    assert binomial_bounds(100) == (1, 10)


def test_the_bounds_of_many_trials_are_those_of_the_normal_distribution() -> None:
    """Check 10,000 trials at 5 %: 500 plus or minus 1.96 times the square root of 475, which is 42.7."""
    low, high = binomial_bounds(10_000)
    assert abs(low - 457.3) < 2.0 and abs(high - 542.7) < 2.0


def test_copies_that_finish_all_flows_are_told_apart_as_often_as_chance_does(tmp_path: Path) -> None:
    found = list(pairs(PAIRS, tmp_path))
    assert not any(run.unfinished for pair in found for run in pair)
    for one in counts(found):
        assert not one.too_often and not one.too_rarely, one


def test_unfinished_flows_tell_no_copies_apart(tmp_path: Path) -> None:
    found = list(pairs(PAIRS, tmp_path, CUT))
    assert sum(run.unfinished > 0 for pair in found for run in pair) > PAIRS // 2
    for one in counts(found):
        assert not one.too_often, one
        if one.known == one.comparisons:
            assert not one.too_rarely, one
    # Medians are known although flows did not finish, and are compared.
    medians = [one for one in counts(found) if one.metric == "p50_fct_us" and one.seeds == 2]
    assert medians[0].known > medians[0].comparisons // 2
