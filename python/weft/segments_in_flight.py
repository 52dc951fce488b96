"""How much of a flow is in flight, over time: from the packets at the cable of its sender's host."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["INTERVALS", "in_flight", "means_over", "side_by_side"]

INTERVALS = 12
"""Parts of equal length into which the time of two flows is cut."""

Steps = Sequence[tuple[float, int]]
"""From when on how many segments are in flight, by time."""


def in_flight(listed: "pl.DataFrame", flow: int, host: int, start_us: float) -> Steps:
    """Return what of a flow from `host` is in flight, over the time since its start.

    That is from the first segment that is not acknowledged to the last that was sent. `listed` are the packets at the
    host's cable, both ways; an acknowledgement counts when it leaves the switch.
    """
    import polars as pl

    ours = listed.filter((pl.col("flow") == flow) & pl.col("kind").is_in(["data", "ack"])).sort("time_us")
    sent = pl.when((pl.col("src") == host) & (pl.col("kind") == "data")).then(pl.col("segment").cast(pl.Int64) + 1)
    told = pl.when((pl.col("dst") == host) & (pl.col("kind") == "ack")).then(pl.col("segment").cast(pl.Int64))
    steps = ours.select(
        (pl.col("time_us") - start_us).alias("time_us"),
        sent.cum_max().forward_fill().fill_null(0).alias("sent"),
        told.cum_max().forward_fill().fill_null(0).alias("told"),
    )
    left = (pl.col("sent") - pl.col("told")).clip(lower_bound=0)
    return steps.select("time_us", left).rows()


def means_over(steps: Steps, end_us: float, intervals: int = INTERVALS) -> list[float]:
    """Return the mean over each of so many intervals from 0 to `end_us`, every instant with the same weight."""
    length = end_us / intervals
    sums = [0.0] * intervals
    bounds = [(max(time, 0.0), count) for time, count in steps]
    for (since, count), (until, _) in zip(bounds, [*bounds[1:], (end_us, 0)], strict=True):
        place = min(int(since / length), intervals)
        while place < intervals and place * length < until:
            shared = min(until, (place + 1) * length) - max(since, place * length)
            sums[place] += count * max(shared, 0.0)
            place += 1
    return [total / length for total in sums]


def side_by_side(steps: Mapping[str, Steps]) -> list[dict[str, float]]:
    """Return a row an interval: until when it lasts, and the mean of each kind of hosts in it."""
    end_us = max((times[-1][0] for times in steps.values() if times), default=0.0)
    if end_us <= 0.0:
        return []
    means = {kind: means_over(times, end_us) for kind, times in steps.items()}
    return [
        {"until_us": end_us * (place + 1) / INTERVALS, **{kind: mean[place] for kind, mean in means.items()}}
        for place in range(INTERVALS)
    ]
