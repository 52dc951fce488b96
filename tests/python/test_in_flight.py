"""Segments in flight of a flow, from its packets."""

import polars as pl
import pytest

from weft.segments_in_flight import INTERVALS, in_flight, means_over, side_by_side


def listed() -> pl.DataFrame:
    """Three segments of flow 7 from host 1 at 10, 11 and 30 us; two acknowledgements; what others send."""
    rows = [
        (10.0, 7, 1, 2, "data", 0),
        (11.0, 7, 1, 2, "data", 1),
        (12.0, 8, 1, 3, "data", 9),
        (15.0, 7, 2, 1, "syn-ack", 0),
        (20.0, 7, 2, 1, "ack", 1),
        (30.0, 7, 1, 2, "data", 1),
        (31.0, 7, 1, 2, "data", 2),
        (40.0, 7, 2, 1, "ack", 3),
    ]
    return pl.DataFrame(rows, schema=["time_us", "flow", "src", "dst", "kind", "segment"], orient="row")


def test_what_is_sent_again_and_what_others_send_is_not_in_flight_twice() -> None:
    steps = in_flight(listed(), 7, 1, 10.0)
    assert steps == [(0.0, 1), (1.0, 2), (10.0, 1), (20.0, 1), (21.0, 2), (30.0, 0)]


def test_every_instant_has_the_same_weight_in_a_mean() -> None:
    steps = in_flight(listed(), 7, 1, 10.0)
    assert means_over(steps, 30.0, 3) == pytest.approx([1.9, 1.0, 1.9])
    assert sum(means_over(steps, 30.0, 7)) * 30.0 / 7 == pytest.approx(48.0)


def test_both_kinds_stand_side_by_side_until_the_later_one_is_done() -> None:
    rows = side_by_side({"simulated": [(0.0, 4), (12.0, 0)], "linux": [(0.0, 2), (24.0, 0)]})
    assert len(rows) == INTERVALS and rows[-1]["until_us"] == 24.0
    assert [row["simulated"] for row in rows] == pytest.approx([4.0] * 6 + [0.0] * 6)
    assert [row["linux"] for row in rows] == pytest.approx([2.0] * 12)
    assert side_by_side({"simulated": [], "linux": []}) == []
