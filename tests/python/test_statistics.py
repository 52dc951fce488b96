"""Confidence intervals are those of the textbooks."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.statistics import estimate, paired_difference, student_t_cdf, student_t_quantile


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        (1, 12.7062047),
        (2, 4.30265273),
        (3, 3.18244631),
        (4, 2.77644511),
        (9, 2.26215716),
        (30, 2.04227246),
        (120, 1.97993041),
    ],
)
def test_t_quantile_agrees_with_the_printed_table(degrees: int, expected: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(expected, rel=1e-8)


def test_t_with_one_degree_is_the_cauchy_distribution() -> None:
    for t in (-30.0, -1.0, 0.0, 0.3, 5.0):
        assert student_t_cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-14)


def test_t_with_two_degrees_has_its_closed_form() -> None:
    for t in (-3.0, 0.0, 0.7, 8.0):
        assert student_t_cdf(t, 2) == pytest.approx(0.5 + t / (2.0 * math.sqrt(2.0 + t * t)), abs=1e-14)


@given(st.floats(0.001, 0.999), st.integers(1, 60))
def test_quantile_inverts_the_distribution_function(probability: float, degrees: int) -> None:
    assert student_t_cdf(student_t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1])
def test_quantile_refuses_what_is_no_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        student_t_quantile(probability, 3)


def test_interval_of_three_runs_computed_by_hand() -> None:
    # Mean 2, s = 1, t(0.975; 2) = 4.30265: half-width 4.30265 / sqrt(3) = 2.48414.
    value = estimate([1.0, 2.0, 3.0])
    assert value.mean == pytest.approx(2.0)
    assert value.half_width == pytest.approx(2.484138, rel=1e-6)
    assert not value.excludes_zero


def test_one_run_has_no_interval_and_excludes_nothing() -> None:
    value = estimate([7.0])
    assert (value.mean, value.half_width, value.excludes_zero) == (7.0, None, False)


def test_equal_runs_have_an_interval_of_width_zero() -> None:
    assert estimate([0.1] * 7).half_width == 0.0


def test_pairing_by_seed_removes_the_spread_that_the_seeds_share() -> None:
    reference = [100.0, 200.0, 300.0, 400.0]
    difference = paired_difference(
        [value - offset for value, offset in zip(reference, (9, 11, 10, 10), strict=True)], reference
    )
    # Differences -9, -11, -10, -10: s = sqrt(2/3), t(0.975; 3) = 3.18245, half-width 1.29923.
    assert difference.mean == pytest.approx(-10.0)
    assert difference.half_width == pytest.approx(1.299228, rel=1e-6)
    assert difference.excludes_zero


def test_pairs_must_match() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        paired_difference([1.0], [1.0, 2.0])
