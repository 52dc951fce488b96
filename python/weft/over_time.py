"""Time series of a sampled run for figures and the report: few enough points, one interval for all.

Of several seeds of a variant the first is shown: a mean over seeds would hide what happens in any of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weft.series import Series
from weft.summary import FaultFacts

if TYPE_CHECKING:
    from weft.simulation import Result

__all__ = [
    "MEASURES",
    "PAUSES",
    "POINTS",
    "SHARED_BUFFER",
    "Curve",
    "Measure",
    "Shown",
    "any_pauses",
    "any_shared_buffer",
    "busiest_leaf",
    "leaf_to_show",
    "measures",
    "shown",
    "uplink_curves",
]

POINTS = 150
"""Most points in time that a curve keeps."""
MOST_UPLINKS = 16
"""Most uplinks that are drawn one by one."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over time; a value holds for the interval that ends at its time."""

    time_us: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity over time, one curve a variant."""

    key: str
    title: str
    axis: str
    """Label of the axis, with the unit."""
    read: Callable[["Shown"], Curve]


@dataclass(frozen=True)
class Shown:
    """A variant's first run: as it was sampled, and in the longer intervals of curves."""

    run: Series
    curves: Series
    faults: Sequence[FaultFacts]
    """The faults of the fabric."""
    receiver: int | None
    """The receiver that all variants are compared at: most payload of flows that end, in all of them together."""


def shown(groups: Mapping[str, Sequence["Result"]]) -> dict[str, Shown]:
    """Return the variants whose first run was sampled, by label."""
    found = {
        label: runs[0].series
        for label, runs in groups.items()
        if runs and runs[0].summary.sample_interval_us is not None
    }
    if not found:
        return {}
    longest = max(series.end_us for series in found.values())
    # Intervals of one comparison differ at most by a power of two, so all can have the longest or a multiple of it.
    own = max(series.interval_us for series in found.values())
    interval_us = own * max(1, -(-longest // (own * POINTS)))
    receiver = _busiest_receiver(found.values())
    return {
        label: Shown(series, series.coarser(interval_us), groups[label][0].summary.faults, receiver)
        for label, series in found.items()
    }


def _busiest_receiver(runs: Iterable[Series]) -> int | None:
    got = pl.concat([series.deliveries for series in runs])
    # Long-lived flows deliver the more the longer a run takes, and are what others disturb.
    ended = got.filter(~pl.col("background"))
    ordered = (ended if ended.height else got).group_by("host").agg(pl.col("payload_bytes").sum())
    ordered = ordered.sort("payload_bytes", "host", descending=[True, False])
    return int(ordered.item(0, "host")) if ordered.height else None


def any_pauses(runs: Iterable[Shown]) -> bool:
    """Whether a link was paused in any of these runs."""
    frames = [one.run.samples for one in runs if "paused_us" in one.run.samples.columns]
    return any((frame.get_column("paused_us") > 0.0).any() for frame in frames)


def any_shared_buffer(runs: Iterable[Shown]) -> bool:
    """Whether anything waited in the shared buffer of a switch in any of these runs."""
    return any(not one.run.memories.is_empty() for one in runs)


def measures(runs: Iterable[Shown]) -> dict[str, Measure]:
    """Return what is shown of these runs, in the order of `MEASURES`."""
    runs = list(runs)
    hidden = (() if any_pauses(runs) else PAUSES) + (() if any_shared_buffer(runs) else SHARED_BUFFER)
    return {key: measure for key, measure in MEASURES.items() if key not in hidden}


def leaf_to_show(runs: Iterable[Shown]) -> str | None:
    """Name the leaf whose uplinks are drawn: of those with a fault, else the busiest; None where no leaf has uplinks.

    One leaf for all, so that variants can be compared.
    """
    runs = list(runs)
    for one in runs:
        hit = {link for fault in one.faults for link in fault.links}
        uplinks = one.run.link_table.filter((pl.col("tier") == "leaf") & pl.col("link").is_in(list(hit)))
        if uplinks.height:
            return str(uplinks.item(0, "from"))
    return next((name for one in runs if (name := busiest_leaf(one.run)) is not None), None)


def busiest_leaf(series: Series) -> str | None:
    """Name the leaf whose uplinks sent most; None where no leaf has one."""
    sent = series.link_table.filter(pl.col("tier") == "leaf").group_by("from").agg(pl.col("bytes").sum())
    ordered = sent.sort("bytes", "from", descending=[True, False])
    return str(ordered.item(0, "from")) if ordered.height else None


def uplink_curves(shown: Shown, leaf: str) -> dict[str, Curve]:
    """Return the utilisation of each uplink of a leaf, by link; of more than `MOST_UPLINKS`, the first ones."""
    mine = shown.curves.links("leaf").filter(pl.col("from") == leaf)
    names = mine.get_column("link").unique(maintain_order=True).to_list()[:MOST_UPLINKS]
    return {name: _curve(mine.filter(pl.col("link") == name), "utilisation") for name in names}


def _utilisation(shown: Shown) -> Curve:
    return _curve(shown.curves.tiers().filter(pl.col("tier") == "leaf"), "utilisation")


def _spread(shown: Shown) -> Curve:
    # Over the intervals of the curve, not of the run: what is even over a millisecond counts as even there.
    mean = shown.curves.uplinks().group_by("time_us", maintain_order=True).agg(pl.col("utilisation_std").mean())
    return _curve(mean, "utilisation_std")


def _queue_mean(shown: Shown) -> Curve:
    """Return the mean backlog, over the looks of each interval of the curve and the queues."""
    uplinks = shown.run.link_table.filter(pl.col("tier") == "leaf").height
    looks = shown.run.samples.filter(pl.col("tier") == "leaf")
    held = looks.select("time_us", area=pl.col("backlog_bytes") * pl.col("interval_us"))
    every = shown.curves.intervals
    number = (pl.col("time_us") / shown.curves.interval_us - 1e-9).ceil().cast(pl.Int64).alias("interval")
    sums = held.with_columns(number).group_by("interval").agg(pl.col("area").sum())
    backlog = pl.col("area").fill_null(0.0) / pl.col("interval_us") / max(uplinks, 1) / 1e3
    return _curve(every.join(sums, on="interval", how="left", maintain_order="left").with_columns(kb=backlog), "kb")


def _queue_largest(shown: Shown) -> Curve:
    largest = (
        shown.curves.links("leaf")
        .group_by("time_us", maintain_order=True)
        .agg(kb=pl.col("largest_backlog_bytes").max() / 1e3)
    )
    return _curve(largest, "kb")


def _throughput(shown: Shown) -> Curve:
    return _curve(shown.curves.throughput(), "throughput_gbps")


def _receiver(shown: Shown) -> Curve:
    return _curve(shown.curves.throughput(["host"]).filter(pl.col("host") == shown.receiver), "throughput_gbps")


def _paused_hosts(shown: Shown) -> Curve:
    return _paused(shown, "host")


def _paused_switches(shown: Shown) -> Curve:
    return _paused(shown, "leaf", "spine")


def _paused(shown: Shown, *tiers: str) -> Curve:
    of_tiers = shown.curves.pauses().filter(pl.col("tier").is_in(tiers))
    return _curve(of_tiers.group_by("time_us", maintain_order=True).agg(pl.col("paused_links").sum()), "paused_links")


def _shared_buffer_mean(shown: Shown) -> Curve:
    return _memory(shown, pl.col("held_bytes").mean())


def _shared_buffer_largest(shown: Shown) -> Curve:
    return _memory(shown, pl.col("largest_bytes").max())


def _memory(shown: Shown, of_switches: pl.Expr) -> Curve:
    """Return bytes over time, in KB; zeros where nothing ever waited in the memory of a switch."""
    held = shown.curves.shared_buffers().group_by("time_us", maintain_order=True).agg(kb=of_switches / 1e3)
    every = shown.curves.intervals.join(held, on="time_us", how="left", maintain_order="left")
    return _curve(every.with_columns(pl.col("kb").fill_null(0.0)), "kb")


def _curve(frame: pl.DataFrame, column: str) -> Curve:
    return Curve(frame.get_column("time_us").to_list(), frame.get_column(column).to_list())


MEASURES: Mapping[str, Measure] = {
    measure.key: measure
    for measure in (
        Measure("utilisation", "Utilisation of all uplinks", "utilisation", _utilisation),
        Measure("spread", "Spread over a leaf's uplinks", "std. deviation of utilisation", _spread),
        Measure("queue_mean", "Uplink queues, mean", "backlog (KB)", _queue_mean),
        Measure("queue_largest", "Uplink queues, the longest", "backlog (KB)", _queue_largest),
        Measure("throughput", "Throughput, all receivers", "throughput (Gbit/s)", _throughput),
        Measure("receiver", "Throughput, busiest receiver", "throughput (Gbit/s)", _receiver),
        Measure("paused_hosts", "Links of hosts that are paused", "links, mean", _paused_hosts),
        Measure("paused_switches", "Links between switches that are paused", "links, mean", _paused_switches),
        Measure("shared_buffer_mean", "Shared buffer, mean of switches", "held (KB)", _shared_buffer_mean),
        Measure("shared_buffer_largest", "Shared buffer, the fullest switch", "held (KB)", _shared_buffer_largest),
    )
}
"""Measures that can be shown, in this order."""

PAUSES = ("paused_hosts", "paused_switches")
"""Measures that are shown only if something was paused."""

SHARED_BUFFER = ("shared_buffer_mean", "shared_buffer_largest")
"""Measures that are shown only if a packet waited in the shared buffer of a switch."""
