"""Simulated hosts against real Linux ones, flow by flow, on the same fabric, traffic and load balancer."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from weft.comparing import compare
from weft.comparison import Comparison
from weft.errors import SpecError
from weft.flows import counted
from weft.packets import packets
from weft.runs.progress import JobsCallback
from weft.segments_in_flight import INTERVALS, in_flight, side_by_side
from weft.simulation import Overrides, Result
from weft.spec import SpecLike
from weft.summary import FCT_PARTS, LIMITS
from weft.variant import listed_schemes
from weft.windows import congestion_windows, means_by_interval, plot_windows

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["COUNTED", "KINDS", "Parting", "Validation", "first_parting", "validate"]

KINDS: tuple[str, str] = ("simulated", "linux")
"""The two kinds of hosts, as variants name them."""

COUNTED = (
    "segments_sent",
    "retransmissions",
    "timeouts",
    "out_of_order_packets",
    "marked_acks",
    "dropped_segments",
)
"""The columns of flows that are summed up for both kinds of hosts."""


@dataclass(frozen=True)
class Parting:
    """The first data packet at which a flow of simulated hosts and its real twin are not alike."""

    scheme: str
    flow: int
    packet: int
    """Number of the packet among the sender's outgoing data packets, from 0; how many there are, if one has no more."""
    simulated: Mapping[str, Any] | None
    """Packet with simulated hosts: `time_us` since the flow's start, `segment`, `bytes`, `retransmission`."""
    linux: Mapping[str, Any] | None
    """Packet with Linux hosts."""
    windows: Sequence[Mapping[str, float | None]] = ()
    """Segments in flight, as means over intervals of equal length: `until_us` since its start, `simulated`, `linux`.

    Likewise its congestion window and slow-start threshold, `simulated_cwnd`, `linux_cwnd`, `simulated_ssthresh`,
    `linux_ssthresh`: None where the flow is over, or nothing has set a threshold.
    """
    congestion: "pl.DataFrame | None" = None
    """Congestion state in full, one row per instant.

    Columns: `hosts`, `time_us` since the flow's start, `cwnd`, `ssthresh`, `outstanding` (in segments), `rtt_us`.
    """

    @property
    def sentence(self) -> str:
        """In words."""
        return f"data packet {self.packet}: simulated {_told(self.simulated)}; linux {_told(self.linux)}"

    def to_dict(self) -> dict[str, Any]:
        """All of it, tables as lists of rows."""
        congestion = [] if self.congestion is None else self.congestion.to_dicts()
        rows = {"windows": [dict(row) for row in self.windows], "congestion": congestion}
        told = {"simulated": self.simulated, "linux": self.linux}
        return {"scheme": self.scheme, "flow": self.flow, "packet": self.packet, **told, **rows}


@dataclass(frozen=True)
class Validation:
    """Runs in pairs: each load balancer with simulated hosts and with Linux hosts."""

    comparison: Comparison
    schemes: Sequence[str]
    partings: Sequence[Parting] = ()

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """A row a flow that finished with both kinds of hosts; columns of Linux hosts end in `_linux`."""
        import polars as pl

        return pl.concat(list(self._pairs()))

    def _runs(self) -> Mapping[str, Sequence[tuple[Result, Result]]]:
        """The runs of each load balancer in pairs, one a seed."""
        groups = list(self.comparison.groups.values())
        pairs = [list(zip(groups[n], groups[n + 1], strict=True)) for n in range(0, len(groups), 2)]
        return dict(zip(self.schemes, pairs, strict=True))

    def _pairs(self) -> Iterator["pl.DataFrame"]:
        import polars as pl

        size = pl.col("size_bytes")
        sizes = pl.coalesce(
            pl.when(size.is_between(least, pl.lit(most).fill_null(size))).then(pl.lit(name))
            for name, (least, most) in LIMITS.items()
            if name != "all"
        )
        for scheme, pairs in self._runs().items():
            for simulated, real in pairs:
                known = [name for name in _COLUMNS if name in simulated.flows.columns]
                frames = [counted(run.flows).select("id", "size_bytes", *known) for run in (simulated, real)]
                joined = frames[0].join(frames[1], on=["id", "size_bytes"], suffix="_linux")
                yield joined.filter(pl.col("fct_us").is_not_null() & pl.col("fct_us_linux").is_not_null()).select(
                    pl.lit(scheme).alias("scheme"),
                    pl.lit(simulated.summary.seed, pl.Int64).alias("seed"),
                    sizes.alias("bin"),
                    pl.all(),
                )

    @cached_property
    def table(self) -> "pl.DataFrame":
        """A row a load balancer and range of sizes: means of both kinds, and how single flows differ."""
        import polars as pl

        ratio = pl.col("fct_us_linux") / pl.col("fct_us")
        cells = [
            pl.len().alias("flows"),
            pl.col("fct_us").mean().alias("simulated_us"),
            pl.col("fct_us_linux").mean().alias("linux_us"),
            (pl.col("fct_us").mean() / pl.col("fct_us_linux").mean() - 1.0).alias("difference"),
            ratio.median().alias("median_ratio"),
            ratio.quantile(0.1).alias("p10_ratio"),
            ratio.quantile(0.9).alias("p90_ratio"),
        ]
        binned = self.flows.group_by("scheme", "bin").agg(cells)
        whole = self.flows.with_columns(pl.lit("all").alias("bin")).group_by("scheme", "bin").agg(cells)
        order = pl.Enum(list(LIMITS))
        schemes = pl.Enum(list(self.schemes))
        both = pl.concat([binned, whole]).with_columns(pl.col("bin").cast(order), pl.col("scheme").cast(schemes))
        return both.sort("scheme", "bin").with_columns(pl.col("bin", "scheme").cast(pl.String))

    @cached_property
    def counts(self) -> "pl.DataFrame":
        """A row a load balancer and kind of hosts: what happened to packets of the flows."""
        import polars as pl

        def row(scheme: str, kind: str) -> dict[str, Any]:
            end = "" if kind == "simulated" else "_linux"
            own = self.flows.filter(pl.col("scheme") == scheme)
            sums = {name: own[f"{name}{end}"].sum() for name in COUNTED}
            return {"scheme": scheme, "hosts": kind, "flows": own.height, **sums}

        return pl.DataFrame([row(scheme, kind) for scheme in self.schemes for kind in KINDS])

    @cached_property
    def breakdown(self) -> "pl.DataFrame":
        """A row a load balancer and part of the completion time: its mean with both kinds of hosts, in microseconds."""
        import polars as pl

        def row(scheme: str, part: str) -> dict[str, Any]:
            own = self.flows.filter(pl.col("scheme") == scheme)
            simulated, linux = (own[f"fct_{part}_us{end}"].mean() for end in ("", "_linux"))
            return {"scheme": scheme, "part": part, "simulated_us": simulated, "linux_us": linux}

        parts = [part for part in FCT_PARTS if f"fct_{part}_us" in self.flows.columns]
        return pl.DataFrame([row(scheme, part) for scheme in self.schemes for part in parts])

    def apart(self, count: int, scheme: str) -> "pl.DataFrame":
        """The flows of a load balancer that differ most, by the difference of their completion times."""
        import polars as pl

        away = (pl.col("fct_us") - pl.col("fct_us_linux")).abs()
        return (
            self.flows.filter(pl.col("scheme") == scheme).sort(away, descending=True, maintain_order=True).head(count)
        )

    def to_dict(self) -> dict[str, Any]:
        """All tables as lists of rows."""
        return {
            "fct": self.table.to_dicts(),
            "counts": self.counts.to_dicts(),
            "breakdown": self.breakdown.to_dicts(),
            "partings": [parting.to_dict() for parting in self.partings],
        }

    def plot(self) -> "Figure":
        """Draw the windows of the flow of each load balancer that differs most, over time, with both kinds of hosts."""
        flows = {
            f"{parting.scheme}, flow {parting.flow}": parting.congestion
            for parting in self.partings
            if parting.congestion is not None and not parting.congestion.is_empty()
        }
        if not flows:
            raise SpecError("no flow has a congestion window: there is nothing to draw")
        return plot_windows(flows)


_SAMPLES = 20
"""Looks at the windows of a flow in each interval."""

_COLUMNS = ("src", "dst", "start_us", "fct_us", *COUNTED, *(f"fct_{part}_us" for part in FCT_PARTS))


def validate(
    schemes: Sequence[str],
    *,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    partings: bool = True,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    store: str | os.PathLike[str] | None = None,
    progress: JobsCallback | None = None,
) -> Validation:
    """Run each load balancer (or transport and load balancer) with simulated and with Linux hosts, on the same flows.

    With `partings`, the flow of each load balancer that differs most is run again, packet by packet. The rest is as for
    `weft.compare`.
    """
    variants = [f"{kind}+{scheme}" for scheme in listed_schemes(schemes) for kind in KINDS]
    compared = compare(
        variants, spec=spec, set=set, seeds=seeds, jobs=jobs, out=out, force=force, store=store, progress=progress
    )
    result = Validation(compared, tuple(schemes))
    if result.flows.is_empty():
        raise SpecError("no flow finished with both kinds of hosts: there is nothing to compare")
    found = [_parting(result, scheme, spec, set) for scheme in schemes] if partings else []
    return Validation(compared, tuple(schemes), found)


def _parting(result: Validation, scheme: str, spec: SpecLike, changes: Overrides) -> Parting:
    own = result.apart(1, scheme).row(0, named=True)
    return first_parting(scheme, own["id"], own["src"], own["start_us"], spec=spec, set=changes, seed=own["seed"])


def first_parting(
    scheme: str,
    flow: int,
    host: int,
    start_us: float,
    *,
    spec: SpecLike,
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
) -> Parting:
    """Run both kinds of hosts and return the first data packet of a flow from `host` at which they part.

    They part where one sends another segment than the other, or sends one again. With it comes how much of the flow
    was in flight with each, over time, and its congestion windows.
    """
    import polars as pl

    told, steps = [], {}
    for kind in KINDS:
        listed = packets([f"host{host}"], variant=f"{kind}+{scheme}", spec=spec, set=set, seed=seed)
        ours = (pl.col("flow") == flow) & (pl.col("src") == host) & (pl.col("kind") == "data")
        told.append(listed.filter(ours).with_columns(pl.col("time_us") - start_us).to_dicts())
        steps[kind] = in_flight(listed, flow, host, start_us)
    simulated, real = told
    same = ("segment", "retransmission")
    packet = next(
        (n for n, (a, b) in enumerate(zip(simulated, real, strict=False)) if any(a[key] != b[key] for key in same)),
        min(len(simulated), len(real)),
    )
    windows: list[dict[str, float | None]] = [dict(row) for row in side_by_side(steps)]
    congestion = None
    if windows:
        end_us = windows[-1]["until_us"] or 0.0
        every = f"{max(end_us * 1e3 / (INTERVALS * _SAMPLES), 1e3):.0f}ns"
        seen = []
        for kind in KINDS:
            own = congestion_windows([flow], every=every, variant=f"{kind}+{scheme}", spec=spec, set=set, seed=seed)
            own = own.select(pl.lit(kind).alias("hosts"), pl.all().exclude("flow"))
            seen.append(own.with_columns(pl.col("time_us") - start_us))
        congestion = pl.concat(seen)
        _add_windows(windows, congestion, end_us)
    return Parting(scheme, flow, packet, _shown(simulated, packet), _shown(real, packet), windows, congestion)


def _add_windows(rows: list[dict[str, float | None]], congestion: "pl.DataFrame", end_us: float) -> None:
    import polars as pl

    for name in ("cwnd", "ssthresh"):
        for kind in KINDS:
            samples = congestion.filter(pl.col("hosts") == kind).select("time_us", name).rows()
            for row, mean in zip(rows, means_by_interval(samples, end_us, len(rows)), strict=True):
                row[f"{kind}_{name}"] = mean


def _shown(rows: Sequence[Mapping[str, Any]], number: int) -> Mapping[str, Any] | None:
    if number >= len(rows):
        return None
    return {key: rows[number][key] for key in ("time_us", "segment", "bytes", "retransmission")}


def _told(packet: Mapping[str, Any] | None) -> str:
    if packet is None:
        return "has sent all"
    again = " again" if packet["retransmission"] else ""
    return f"sends segment {packet['segment']}{again} ({packet['bytes']} B) at {packet['time_us']:,.3f} µs"
