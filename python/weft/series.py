"""Links, queues and receivers over time: what follows from the tables `samples` and `deliveries`.

The formulae stand in docs/results.md. Intervals in which nothing happened have no row in the tables; here they count,
with zeros. A statistic over time weighs each interval by its length, since the last one of a run is shorter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from weft.errors import SpecError
from weft.paths import shortest_paths

if TYPE_CHECKING:
    from weft.simulation import Result

__all__ = ["Series"]

_SUMS = ("sent_bytes", "dropped_packets", "marked_packets")
_PAUSED = "paused_us"
"""A column of sums that samples have only with lossless classes."""
_KINDS = ("host", "class", "background")
_SHARED_BUFFERS: Mapping[str, type[pl.DataType]] = {
    "time_us": pl.Float64,
    "interval_us": pl.Float64,
    "switch": pl.String,
    "held_bytes": pl.UInt64,
    "largest_bytes": pl.UInt64,
}
# Times in microseconds are whole numbers of picoseconds: far above rounding, far below any interval.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Series:
    """One run over time. Every method returns a new frame, ordered by time."""

    samples: pl.DataFrame
    """A row a link and interval in which it was not idle, as in `samples.parquet`."""
    deliveries: pl.DataFrame
    """A row a receiver, kind of flow and interval in which something arrived, as in `deliveries.parquet`."""
    link_table: pl.DataFrame
    """A row a link, as in `links.parquet`."""
    interval_us: float
    """Length of an interval; the last one may be shorter."""
    end_us: float
    """When the run ended."""
    memories: pl.DataFrame = field(default_factory=pl.DataFrame)
    """A row a switch and interval in which something waited in its shared buffer, as in `shared_buffers.parquet`."""

    @classmethod
    def of(cls, result: "Result") -> "Series":
        """Take a run apart. Raises `SpecError` if it was not sampled."""
        interval_us = result.summary.sample_interval_us
        if interval_us is None:
            raise SpecError(
                'run.sample_every: the run was not sampled; set it, as in set={"run.sample_every": "100us"} or '
                "--sample-every 100us"
            )
        return cls(
            result.samples,
            result.deliveries,
            result.links,
            interval_us,
            result.summary.simulated_us,
            result.shared_buffers,
        )

    @cached_property
    def intervals(self) -> pl.DataFrame:
        """A row an interval: `interval` (from 1), `time_us` (its end), `interval_us` (its length)."""
        count = max(int(-(-(self.end_us / self.interval_us - _ROUNDING) // 1)), 0)
        number = pl.int_range(1, count + 1, dtype=pl.Int64, eager=True).alias("interval")
        end = pl.min_horizontal(pl.col("interval") * self.interval_us, pl.lit(self.end_us))
        return pl.DataFrame(number).with_columns(
            time_us=end, interval_us=end - (pl.col("interval") - 1) * self.interval_us
        )

    def coarser(self, interval_us: float) -> "Series":
        """Return the same run in longer intervals: the smallest multiple of its own that is at least `interval_us`."""
        factor = max(int(-(-(interval_us / self.interval_us - _ROUNDING) // 1)), 1)
        if factor == 1:
            return self
        merged = (-(-pl.col("interval") // factor)).alias("merged")
        last = pl.col("interval") == pl.col("interval").max().over("merged")
        longer = Series(pl.DataFrame(), pl.DataFrame(), self.link_table, factor * self.interval_us, self.end_us)
        ends = self.intervals.with_columns(merged).filter(last).select("merged", final="interval")
        samples = (
            self._numbered(self.samples)
            .with_columns(merged)
            .join(ends, on="merged", how="left")
            .group_by("merged", "link", maintain_order=True)
            .agg(
                pl.col("tier").last(),
                _mean_rate(),
                pl.col(self._sums).sum(),
                # A link without a row in the last interval held nothing at its end.
                pl.col("backlog_bytes").filter(pl.col("interval") == pl.col("final")).sum(),
                pl.col("largest_backlog_bytes").max(),
            )
        )
        deliveries = (
            self._numbered(self.deliveries)
            .with_columns(merged)
            .group_by("merged", *_KINDS, maintain_order=True)
            .agg(pl.col("payload_bytes").sum())
        )
        samples, deliveries = (
            frame.rename({"merged": "interval"}).join(longer.intervals, on="interval").drop("interval")
            for frame in (samples, deliveries)
        )
        samples = samples.with_columns(utilisation=_utilisation()).select(self.samples.columns).sort("time_us", "link")
        deliveries = deliveries.select(self.deliveries.columns).sort("time_us", *_KINDS)
        memories = self._coarser_memories(merged, ends, longer.intervals)
        return Series(samples, deliveries, self.link_table, longer.interval_us, self.end_us, memories)

    def _coarser_memories(self, merged: pl.Expr, ends: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
        """Put intervals of memories together: what was held at the end of the last one, and the most of all."""
        if self.memories.is_empty():
            return self.memories
        return (
            self._numbered(self.memories)
            .with_columns(merged)
            .join(ends, on="merged", how="left")
            .group_by("merged", "switch", maintain_order=True)
            .agg(
                # A switch without a row in the last interval held nothing at its end.
                pl.col("held_bytes").filter(pl.col("interval") == pl.col("final")).sum(),
                pl.col("largest_bytes").max(),
            )
            .rename({"merged": "interval"})
            .join(intervals.select("interval", "time_us"), on="interval")
            .select(self.memories.columns)
            .sort("time_us", "switch")
        )

    def links(self, tier: str | Iterable[str] | None = None) -> pl.DataFrame:
        """Return a row a link and interval, idle ones too: the columns of `samples`, `from`, `to`, `throughput_gbps`.

        `tier` names the tiers of links that are wanted: "host", "leaf", "spine", "last".
        """
        wanted = self.link_table
        if tier is not None:
            wanted = wanted.filter(pl.col("tier").is_in([tier] if isinstance(tier, str) else list(tier)))
        wanted = wanted.with_row_index("order").select("order", "link", "from", "to", "tier", initial="rate_bps")
        known = self._numbered(self.samples).drop("tier", "time_us", "interval_us", "utilisation")
        counted = (*self._sums, "backlog_bytes", "largest_backlog_bytes")
        return (
            self.intervals.join(wanted, how="cross")
            .join(known, on=["interval", "link"], how="left")
            .sort("order", "interval")
            # A link that is idle keeps its rate.
            .with_columns(pl.col("rate_bps").forward_fill().over("order").fill_null(pl.col("initial")))
            .with_columns(pl.col(counted).fill_null(0))
            .with_columns(
                utilisation=_utilisation(), throughput_gbps=pl.col("sent_bytes") * 8e-3 / pl.col("interval_us")
            )
            .sort("interval", "order")
            .drop("interval", "order", "initial")
        )

    def tiers(self) -> pl.DataFrame:
        """Return a row a tier and interval.

        `utilisation` is the bytes of all links of the tier over what they could have sent; `utilisation_min` and
        `utilisation_max` are those of the idlest and the busiest link.
        """
        return (
            self.links()
            .group_by("time_us", "interval_us", "tier", maintain_order=True)
            .agg(
                _together(),
                utilisation_min=pl.col("utilisation").min(),
                utilisation_max=pl.col("utilisation").max(),
            )
        )

    def pauses(self) -> pl.DataFrame:
        """Return a row a tier and interval: how long its links were paused.

        `paused_us` is the time of all of them together, `paused_links` how many that is at a time. Of a link with
        several classes each counts. All is 0 without lossless classes.
        """
        links = self.links()
        if _PAUSED not in links.columns:
            links = links.with_columns(pl.lit(0.0).alias(_PAUSED))
        return (
            links.group_by("time_us", "interval_us", "tier", maintain_order=True)
            .agg(pl.col(_PAUSED).sum())
            .with_columns(paused_links=pl.col(_PAUSED) / pl.col("interval_us"))
        )

    def shared_buffers(self) -> pl.DataFrame:
        """Return a row a switch and interval: what waited in its shared buffer, in bytes.

        `held_bytes` is at the end of the interval, `largest_bytes` the most at any instant of it. Empty where nothing
        ever waited in shared buffer, or there is none.
        """
        if self.memories.is_empty():
            return pl.DataFrame(schema=_SHARED_BUFFERS)
        switches = self.link_table.filter(pl.col("tier") != "host").select(switch="from").unique(maintain_order=True)
        known = self._numbered(self.memories).drop("time_us")
        return (
            self.intervals.join(switches.with_row_index("order"), how="cross")
            .join(known, on=["interval", "switch"], how="left")
            .with_columns(pl.col("held_bytes", "largest_bytes").fill_null(0))
            .sort("interval", "order")
            .select(*_SHARED_BUFFERS)
            .cast(pl.Schema(_SHARED_BUFFERS))
        )

    def paths(self, source: str | None = None, target: str | None = None) -> pl.DataFrame:
        """Return a row a path and interval; a path is a shortest way over switches from one leaf to another.

        `path` is its links, `utilisation_mean` their mean utilisation, `utilisation_min` and `utilisation_max` that of
        the idlest and the busiest. `source` and `target` name leaves, as in "leaf0"; without them, all are taken.
        """
        found = shortest_paths(self.link_table, source, target)
        between = self.links(("leaf", "spine")).select("time_us", "interval_us", "link", "utilisation")
        used = pl.col("utilisation")
        return (
            found.explode("link")
            .join(between, on="link")
            .group_by("time_us", "interval_us", "source", "target", "path", maintain_order=True)
            .agg(utilisation_mean=used.mean(), utilisation_min=used.min(), utilisation_max=used.max())
            .sort("time_us", "source", "target", "path")
        )

    def uplinks(self) -> pl.DataFrame:
        """Return a row a leaf and interval: how evenly the leaf's traffic is spread over its uplinks.

        Standard deviations are over the uplinks, of the population. `imbalance` is max / mean - 1 of their
        utilisations, `spread` is (max - min) / mean; null where the leaf sent nothing.
        """
        used, rate = pl.col("utilisation"), pl.col("throughput_gbps")
        mean = pl.when(used.mean() > 0.0).then(used.mean())
        return (
            self.links("leaf")
            .group_by("time_us", "interval_us", "from", maintain_order=True)
            .agg(
                pl.len().alias("uplinks"),
                utilisation_mean=used.mean(),
                utilisation_std=used.std(ddof=0),
                throughput_mean_gbps=rate.mean(),
                throughput_std_gbps=rate.std(ddof=0),
                imbalance=used.max() / mean - 1.0,
                spread=(used.max() - used.min()) / mean,
            )
            .rename({"from": "leaf"})
        )

    def queues(self) -> pl.DataFrame:
        """Return a row a queue: mean and variance of its backlog over the run, in bytes and as a share of its buffer.

        `largest_backlog_bytes` is the most that it held at any instant. Occupancies are null without a buffer limit.
        """
        weight, backlog = pl.col("interval_us"), pl.col("backlog_bytes").cast(pl.Float64)
        moments = self.samples.group_by("link").agg(
            first=(weight * backlog).sum() / self.end_us,
            second=(weight * backlog**2).sum() / self.end_us,
            largest_backlog_bytes=pl.col("largest_backlog_bytes").max(),
        )
        columns = ("first", "second", "largest_backlog_bytes")
        size = pl.col("buffer_bytes").cast(pl.Float64)
        mean, variance = pl.col("backlog_mean_bytes"), pl.col("backlog_variance_bytes2")
        return (
            self.link_table.select("link", "from", "to", "tier", "buffer_bytes")
            .join(moments, on="link", how="left", maintain_order="left")
            .with_columns(pl.col(columns).fill_null(0))
            .rename({"first": "backlog_mean_bytes"})
            .with_columns(backlog_variance_bytes2=(pl.col("second") - mean**2).clip(lower_bound=0.0))
            .with_columns(occupancy_mean=mean / size, occupancy_variance=variance / size**2)
            .drop("second")
        )

    def queue_tiers(self) -> pl.DataFrame:
        """Return a row a tier: mean and variance of the backlogs of all its queues at all times.

        A variance is that of all backlogs of the tier's queues taken together: the mean of the queues' variances, and
        the variance of their means.
        """

        def pooled(name: str, unit: str, unit2: str) -> list[pl.Expr]:
            mean, variance = pl.col(f"{name}_mean{unit}"), pl.col(f"{name}_variance{unit2}")
            return [mean.mean(), (variance.mean() + mean.var(ddof=0)).alias(f"{name}_variance{unit2}")]

        return (
            self.queues()
            .group_by("tier", maintain_order=True)
            .agg(
                pl.len().alias("queues"),
                *pooled("backlog", "_bytes", "_bytes2"),
                *pooled("occupancy", "", ""),
                pl.col("largest_backlog_bytes").max(),
            )
        )

    def throughput(self, by: Sequence[str] = ()) -> pl.DataFrame:
        """Return delivered payload over time: a row an interval and group, with `payload_bytes` and `throughput_gbps`.

        `by` groups by "host" (the receiver), "class" and "background"; without it all deliveries are one group.
        """
        if unknown := [name for name in by if name not in _KINDS]:
            raise ValueError(f"throughput: cannot group by {unknown[0]!r}: allowed are {', '.join(_KINDS)}")
        keys = list(by)
        known = self._numbered(self.deliveries).group_by("interval", *keys).agg(pl.col("payload_bytes").sum())
        groups = self.deliveries.select(keys).unique().sort(keys) if keys else None
        every = self.intervals if groups is None else self.intervals.join(groups, how="cross")
        return (
            every.join(known, on=["interval", *keys], how="left")
            .with_columns(pl.col("payload_bytes").fill_null(0))
            .with_columns(throughput_gbps=pl.col("payload_bytes") * 8e-3 / pl.col("interval_us"))
            .sort("interval", *keys)
            .drop("interval")
        )

    def statistics(self) -> dict[str, float | None]:
        """Return the run in a few numbers, all of the leaves' uplinks, where a load balancer chooses.

        `uplink_utilisation`; `uplink_std`, the mean over leaves and time of `utilisation_std`; `uplink_imbalance`, that
        of `imbalance`, weighted by traffic; `uplink_backlog_bytes`, mean; `uplink_occupancy_variance`.
        """
        uplinks = self.uplinks()
        weight, mean = pl.col("interval_us"), pl.col("utilisation_mean")
        over = weight * mean * pl.col("imbalance").fill_null(0.0)
        spread = uplinks.select(
            uplink_utilisation=(weight * mean).sum() / weight.sum(),
            uplink_std=(weight * pl.col("utilisation_std")).sum() / weight.sum(),
            uplink_imbalance=over.sum() / (weight * mean).sum(),
        )
        queues = self.queue_tiers().filter(pl.col("tier") == "leaf")
        queued = queues.select(
            uplink_backlog_bytes="backlog_mean_bytes", uplink_occupancy_variance="occupancy_variance"
        )
        found: dict[str, float | None] = {}
        for frame in (spread, queued):
            row = frame.row(0, named=True) if frame.height else dict.fromkeys(frame.columns)
            found |= {name: None if value is None or value != value else float(value) for name, value in row.items()}
        return found

    @property
    def _sums(self) -> tuple[str, ...]:
        """The columns of samples that add up over intervals."""
        return (*_SUMS, _PAUSED) if _PAUSED in self.samples.columns else _SUMS

    def _numbered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the number of the interval, from 1."""
        number = (pl.col("time_us") / self.interval_us - _ROUNDING).ceil().cast(pl.Int64)
        return frame.with_columns(number.alias("interval"))


def _mean_rate() -> pl.Expr:
    """Mean rate of several intervals."""
    rate = (pl.col("rate_bps") * pl.col("interval_us")).sum() / pl.col("interval_us").sum()
    return rate.round().cast(pl.UInt64).alias("rate_bps")


def _utilisation() -> pl.Expr:
    """Bytes sent over bytes that could have been sent."""
    return pl.col("sent_bytes") * 8e6 / (pl.col("rate_bps") * pl.col("interval_us"))


def _together() -> pl.Expr:
    """Bytes that links sent together over bytes that they could have sent together."""
    capacity = (pl.col("rate_bps") * pl.col("interval_us")).sum()
    return (pl.col("sent_bytes").sum() * 8e6 / capacity).alias("utilisation")
