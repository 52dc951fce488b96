"""One definition of a percentile, wherever a number of a run is worked out."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from conftest import SMALL
from weft.papers.declared import Measure
from weft.papers.measuring import DISTRIBUTION
from weft.papers.values import value_of, values_of
from weft.percentiles import percentile


@pytest.mark.parametrize(("share", "expected"), [(0.0, 10.0), (0.25, 20.0), (0.6, 34.0), (0.95, 48.0), (1.0, 50.0)])
def test_percentiles_are_those_of_the_core_s_hand_computed_table(share: float, expected: float) -> None:
    values = pl.Series([30.0, 10.0, None, 50.0, 20.0, 40.0])
    assert percentile(values, share) == pytest.approx(expected)
    assert values.to_frame("a").select(percentile(pl.col("a"), share)).item() == pytest.approx(expected)
    assert percentile(pl.Series([], dtype=pl.Float64), share) is None


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.floats(0.0, 1.0))
def test_a_percentile_lies_at_its_position_between_two_ranks(values: list[int], share: float) -> None:
    position = share * (len(values) - 1)
    below = int(position)
    low, high = (sorted(values)[min(rank, len(values) - 1)] for rank in (below, below + 1))
    assert percentile(pl.Series(values), share) == pytest.approx(low + (high - low) * (position - below), abs=1e-3)


@pytest.mark.parametrize("name", ["p50", "p95", "p99", "p999"])
def test_a_figure_of_a_paper_has_the_percentiles_of_the_summary(name: str) -> None:
    run = weft.run({}, set=SMALL)
    expected = getattr(run.summary.fct_us, name)
    assert value_of(run, Measure(table="flows", column="fct_us", statistic=name)) == pytest.approx(expected)
    share = DISTRIBUTION.get(name)
    if share is not None:
        assert percentile(values_of(run, Measure(table="flows", column="fct_us"))[0], share) == pytest.approx(expected)
