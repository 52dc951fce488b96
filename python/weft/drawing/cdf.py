"""Cumulative distributions, a curve a variant."""

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.drawing.axes import empty, label_sizes, set_log
from weft.drawing.lines import MEASURE_DASHES
from weft.drawing.view import PanelView, scaled_label
from weft.figures import curve_style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["draw_cdf"]


def draw_cdf(axes: "Axes", view: PanelView) -> None:
    """Draw a panel: values along x, the share of those at or below along y."""
    curves = drawn_curves(view)
    values = [value for _, _, one in curves for value in one.get_column("value").to_list()]
    if not values:
        empty(axes)
        return
    sizes = view.x.log and view.x.unit == "bytes"
    label, divisor = (view.x.label, 1.0) if sizes else scaled_label(view.x, values)
    for turn, (variant, dash, one) in enumerate(curves):
        look = view.looks[variant]
        axes.step(
            (one.get_column("value") / divisor).to_list(),
            one.get_column("share").to_list(),
            where="post",
            **curve_style(look if dash is None else replace(look, dash=dash), one.height, turn, curves),
        )
    if view.x.log and max(values) > 0.0:
        set_log(axes, [value / divisor for value in values], "x")
        if sizes:
            label_sizes(axes)
    elif min(values) >= 0.0:
        axes.set_xlim(left=0.0)
        if max(values) == 0.0:
            axes.set_xlim(right=1.0)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel(label)
    axes.set_ylabel(view.y.label)


def drawn_curves(view: PanelView) -> list[tuple[str, str | None, "pl.DataFrame"]]:
    """Each curve with its variant, and with a dash of its own where a variant has one for each of several x.

    Curves that were pooled over the seeds are taken where there are some; otherwise, at each value that all
    seeds have, the mean of the shares.
    """
    import polars as pl

    frame = view.curves.drop_nulls(["value", "share"])
    pooled = frame.filter(pl.col("seed") < 0)
    if pooled.is_empty() and frame.get_column("seed").n_unique() > 1:
        curve = ("variant", "x")
        means = frame.group_by(*curve, "value", maintain_order=True).agg(pl.col("share").mean(), seeds=pl.len())
        frame = means.filter(pl.col("seeds") == pl.col("seeds").max().over(*curve)).sort("value")
    else:
        frame = (frame if pooled.is_empty() else pooled).sort("position")
    xs = frame.get_column("x").unique(maintain_order=True).to_list()
    found = []
    for variant in view.variants:
        for order, x in enumerate(xs):
            own = frame.filter((pl.col("variant") == variant) & (pl.col("x") == x))
            dash = MEASURE_DASHES[order % len(MEASURE_DASHES)] if len(xs) > 1 else None
            if own.height:
                found.append((variant, dash, own))
    return found
