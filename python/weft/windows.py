"""The congestion windows of flows, over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft import _core
from weft.simulation import Overrides, ProgressCallback, override_pairs
from weft.spec import SpecLike, load_spec

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["congestion_windows", "means_by_interval", "plot_windows"]


def congestion_windows(
    flows: Sequence[int],
    *,
    every: str = "100us",
    contender: str | None = None,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> "pl.DataFrame":
    """Run a contender, as `weft.compare` names them, and return the congestion windows of some flows: a row an instant.

    `flows` are numbers as in the table of flows. Each is looked at every `every` (1 µs at least) since its start, as
    long as its sender has not everything acknowledged. Columns: `time_us`, `flow`, `cwnd` and `ssthresh` in segments
    (null: nothing has set one), `outstanding` (segments sent and not acknowledged), `rtt_us` (smoothed; null: no sample
    yet). Linux hosts say what their kernel's `tcp_info` says. Transports without such a window have no rows.
    """
    import polars as pl

    text = load_spec(spec)
    seen = _core.congestion_windows(
        text.text,
        base_dir=text.base_dir,
        overrides=override_pairs(set),
        seed=seed,
        progress=progress,
        origin=text.origin,
        contender=contender,
        flows=flows,
        every=every,
    )
    return pl.DataFrame(seen)


def means_by_interval(
    samples: Sequence[tuple[float, float | None]], end_us: float, intervals: int
) -> list[float | None]:
    """Return the mean of the samples (time in µs, value) in each of so many intervals from 0 to `end_us`.

    None where there is no sample, or none with a value.
    """
    found: list[list[float]] = [[] for _ in range(intervals)]
    for time, value in samples:
        if value is not None and 0.0 <= time <= end_us:
            found[min(int(time / end_us * intervals), intervals - 1)].append(value)
    return [sum(values) / len(values) if values else None for values in found]


def plot_windows(flows: Mapping[str, "pl.DataFrame"]) -> "Figure":
    """Draw the windows of flows, by title: congestion window, threshold and what is in flight, a panel a kind of hosts.

    Each frame has a row an instant: `hosts`, and the columns of `congestion_windows`.
    """
    import polars as pl

    from weft.figures import legend_above, new_figure
    from weft.quantity import time_scale

    kinds = list(dict.fromkeys(kind for frame in flows.values() for kind in frame["hosts"].unique(maintain_order=True)))
    lines = (
        ("cwnd", "congestion window", "C0", "-"),
        ("ssthresh", "slow-start threshold", "C1", "--"),
        ("outstanding", "in flight", "C2", "-"),
    )
    with new_figure(7.2, 0.6 + 2.2 * len(flows)) as figure:
        grid = figure.subplots(len(flows), len(kinds), squeeze=False)
        for row, (title, frame) in zip(grid, flows.items(), strict=True):
            end_us = max(frame["time_us"].to_list(), default=1.0)
            unit, scale = time_scale([end_us])
            top = 1.05 * max([*frame["cwnd"].to_list(), *frame["outstanding"].to_list()], default=1.0)
            for axes, kind in zip(row, kinds, strict=True):
                own = frame.filter(pl.col("hosts") == kind)
                for name, label, colour, dash in lines:
                    axes.plot(own["time_us"] / scale, own[name], label=label, color=colour, linestyle=dash)
                axes.set_xlim(0.0, end_us / scale)
                axes.set_ylim(0.0, top)
                axes.set_title(f"{title}, {kind}", fontsize="small")
                axes.set_xlabel(f"time since its start ({unit})")
            row[0].set_ylabel("segments")
        legend_above(figure, len(lines))
    return figure
