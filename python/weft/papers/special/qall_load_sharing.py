"""QALL's Fig. 15: load sharing accuracy over time.

In a slot, the utilisation of the busiest of a leaf's uplinks over that of its least busy one, less 1 (section VI-C),
here as the mean of the leaves. Only slots in which flows arrive from their first to their last instant count: later
on, a few flows are left, and some uplinks are idle. The figure names one experiment, with `run.sample_every` and the
tables `flows`, `links` and `samples`, and says by `options.slot` how long a slot is at each scale, in seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.load_sharing import accuracy_of_slots
from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.qall_queue_variance import while_flows_arrive
from weft.papers.special.tidy import figure_data
from weft.simulation import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BY_VARIANT", "DRAWN", "draw", "make", "sharing_by_slot"]

_ACCURACY = "load sharing accuracy"


def _panel(title: str, plot: str, measure: str) -> PanelSpec:
    own = (Measure(label=measure, unit="share"),)
    return PanelSpec(title, "", plot, own, y_label=_ACCURACY, y_scale="log")


DRAWN = (
    _panel("(a) Over time", "over-time", _ACCURACY),
    _panel("(b) Mean over slots", "bars", "mean"),
    _panel("(c) Largest of a slot", "bars", "largest"),
)
"""On logarithmic axes: schemes differ by a factor of a hundred."""

BY_VARIANT = True


def make(context: SpecialContext) -> FigureData:
    """Work out the accuracy of each slot of each run, its mean and its largest value."""
    slot_us = 1e6 * float(context.options["slot"][context.scale])
    (cases,) = context.cases.values()
    found = {case: [] if (run := context.result(case)) is None else sharing_by_slot(run, slot_us) for case in cases}
    curves = [
        (0, case.variant, "", case.seed, place, time, accuracy)
        for case, slots in found.items()
        for place, (time, accuracy) in enumerate(slots)
    ]

    def rows() -> Iterator[tuple[Any, ...]]:
        for panel, name in ((1, "mean"), (2, "largest")):
            for case, slots in found.items():
                values = [accuracy for _, accuracy in slots]
                value = (sum(values) / len(values) if name == "mean" else max(values)) if values else None
                yield (panel, case.variant, "", None, case.seed, name, value)

    return figure_data(rows(), context.runs, curves)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw the first seed over time, and bars of the mean and the largest value of each."""
    import polars as pl

    first = data.curves.filter(pl.col("seed") == pl.col("seed").min())
    data = replace(data, curves=first)
    return draw_panels(paper, DRAWN, data, note)


def sharing_by_slot(result: Result, slot_us: float) -> Sequence[tuple[float, float]]:
    """Return the end of each slot, in microseconds, and its accuracy; without slots in which an uplink was idle."""
    import polars as pl

    last_us = float(while_flows_arrive(result.samples, result.flows)["time_us"].max() or 0.0)  # type: ignore[arg-type]
    own = (pl.col("time_us") / slot_us).ceil().cast(pl.Int64)
    sent = (
        accuracy_of_slots(result.samples, result.links, own)
        .filter((pl.col("slot") <= int(last_us // slot_us)) & pl.col("accuracy").is_not_null())
        .group_by("slot")
        .agg(pl.col("accuracy").mean())
        .sort("slot")
    )
    return [(slot * slot_us, accuracy) for slot, accuracy in sent.iter_rows()]
