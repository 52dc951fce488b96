"""Thinned curves stay true to the distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory import result, summary
from weft.curves import CURVE_POINTS, cumulative, slowdown_curve


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=3000), st.integers(0, 50))
def test_every_point_is_a_point_of_the_whole_curve(values: list[float], unfinished: int) -> None:
    total = len(values) + unfinished
    xs, shares = cumulative(np.array(values), total=total)
    assert len(xs) == len(shares) <= CURVE_POINTS
    assert (xs[0], xs[-1]) == (min(values), max(values))
    assert shares[-1] == pytest.approx(len(values) / total)
    assert xs == sorted(xs)
    ordered = np.sort(values)
    for x, share in zip(xs, shares, strict=True):
        below, at_or_below = np.searchsorted(ordered, x, "left"), np.searchsorted(ordered, x, "right")
        assert below < round(share * total) <= at_or_below


def test_unfinished_flows_keep_the_curve_below_one() -> None:
    xs, shares = slowdown_curve([result(summary(), [2.0, None, 1.0, None])], "all")
    assert (xs, shares) == ([1.0, 2.0], [0.25, 0.5])


def test_a_bin_without_flows_has_an_empty_curve() -> None:
    assert slowdown_curve([result(summary())], "large") == ([], [])
