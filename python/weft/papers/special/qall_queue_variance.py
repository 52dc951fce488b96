"""QALL's Table III: the variance of queue occupancy under each scheme.

The occupancy of a queue is its backlog as a share of what it holds. It is looked at at equal intervals, an idle queue
counting as empty; the paper notes it at every packet that enters a queue. Queues are those between switches, and the
time is that in which flows arrive: after that, all schemes have empty queues. The figure names one experiment, with
`run.sample_every` and the tables `flows`, `links` and `samples`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.flows import measured
from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data
from weft.simulation import Result

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["BY_VARIANT", "DRAWN", "draw", "make", "occupancy_variance", "while_flows_arrive"]

_VARIANCE = "variance of queue occupancy"

_THOUSANDTHS = 1e3

DRAWN = (PanelSpec("", "", "table", (Measure(label=f"{_VARIANCE} (thousandths)", unit="ratio"),)),)

BY_VARIANT = True


def make(context: SpecialContext) -> FigureData:
    """Work out the variance of each run."""
    return figure_data(_rows(context), context.runs)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw a table with a row for each scheme, in thousandths: most variances are smaller than that."""
    import polars as pl

    label, value = pl.lit(DRAWN[0].measures[0].label).alias("measure"), pl.col("value") * _THOUSANDTHS
    return draw_panels(paper, DRAWN, replace(data, rows=data.rows.with_columns(label, value)), note)


def while_flows_arrive(frame: "pl.DataFrame", flows: "pl.DataFrame") -> "pl.DataFrame":
    """Keep the rows of `samples` up to the start of the last flow that is measured, from that of the first one on."""
    starts = measured(flows)["start_us"]
    if "measured" in flows.columns:
        frame = frame.filter(frame["time_us"] >= flows.filter("measured")["start_us"].min())
    return frame.filter(frame["time_us"] <= starts.max())


def occupancy_variance(result: Result) -> float | None:
    """Variance of the occupancy of all queues between switches over queues and looks; None if there are none."""
    import polars as pl

    queues = result.links.filter(pl.col("tier").is_in(["leaf", "spine"]) & pl.col("buffer_bytes").is_not_null())
    looked = while_flows_arrive(result.samples, result.flows)
    many = looked["time_us"].n_unique() * queues.height
    if not many:
        return None
    # A link that is idle has no row: it adds nothing to either sum, and counts among `many`.
    occupancy = (
        looked.join(queues.select("link", "buffer_bytes"), on="link")
        .select(pl.col("backlog_bytes") / pl.col("buffer_bytes"))
        .to_series()
    )
    return float((occupancy * occupancy).sum()) / many - (float(occupancy.sum()) / many) ** 2


def _rows(context: SpecialContext) -> Iterator[tuple[Any, ...]]:
    (cases,) = context.cases.values()
    for case in cases:
        result = context.result(case)
        value = None if result is None else occupancy_variance(result)
        yield (0, case.variant, "", None, case.seed, _VARIANCE, value)
