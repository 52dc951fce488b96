"""The congestion windows of flows, over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft import _core
from weft.simulation import Overrides, ProgressCallback, override_pairs
from weft.spec import SpecLike, load_spec

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["congestion_windows", "means_by_interval", "plot_windows", "plot_windows_of"]


def congestion_windows(
    flows: Sequence[int],
    *,
    every: str = "100us",
    variant: str | None = None,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> "pl.DataFrame":
    """Run a variant, as `weft.compare` names them, and return the congestion windows of some flows: a row an instant.

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
        variant=variant,
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

    kinds = list(dict.fromkeys(kind for frame in flows.values() for kind in frame["hosts"].unique(maintain_order=True)))
    with new_figure(7.2, 0.6 + 2.2 * len(flows)) as figure:
        grid = figure.subplots(len(flows), len(kinds), squeeze=False)
        for row, (title, frame) in zip(grid, flows.items(), strict=True):
            for axes, kind in zip(row, kinds, strict=True):
                _draw(axes, frame.filter(pl.col("hosts") == kind), frame, f"{title}, {kind}")
            row[0].set_ylabel("segments")
        legend_above(figure, len(_LINES) + 1)
    return figure


def plot_windows_of(title: str, frame: "pl.DataFrame", schemes: Sequence[str]) -> "Figure":
    """Draw the windows of one flow, a panel for each scheme, all over the same time: the frame has `scheme` besides."""
    import polars as pl

    from weft.figures import legend_above, new_figure

    with new_figure(7.2, 0.7 + 1.9 * len(schemes)) as figure:
        panels = figure.subplots(len(schemes), 1, squeeze=False)[:, 0]
        for axes, scheme in zip(panels, schemes, strict=True):
            _draw(axes, frame.filter(pl.col("scheme") == scheme), frame, f"{title}, {scheme}")
            axes.set_ylabel("segments")
            if axes is not panels[-1]:
                axes.set_xlabel("")
        legend_above(figure, len(_LINES) + 1)
    return figure


_LINES = (("cwnd", "congestion window", "C0", "-"), ("ssthresh", "slow-start threshold", "C1", "--"))
"""Columns, what they are called, and how they are drawn."""


def _draw(axes: "Axes", own: "pl.DataFrame", together: "pl.DataFrame", title: str) -> None:
    """Draw a panel; its axes are those of all that stands beside it."""
    from weft.quantity import time_scale

    end_us = max(together["time_us"].to_list(), default=1.0)
    unit, scale = time_scale([end_us])
    # Mostly as much is in flight as the window allows: a line would hide the other.
    axes.fill_between(own["time_us"] / scale, own["outstanding"], label="in flight", color="C2", alpha=0.3, linewidth=0)
    for name, label, colour, dash in _LINES:
        axes.plot(own["time_us"] / scale, own[name], label=label, color=colour, linestyle=dash)
    axes.set_xlim(0.0, end_us / scale)
    axes.set_ylim(0.0, 1.05 * max([*together["cwnd"].to_list(), *together["outstanding"].to_list()], default=1.0))
    axes.set_title(title, fontsize="small")
    axes.set_xlabel(f"time since its start ({unit})")
