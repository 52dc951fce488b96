"""Small figures with data, for the tests of drawing and of claims."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.measured import FigureData, RunsUsed

Row = tuple[int, str, str, float | None, int, str, float | None]
Curve = tuple[int, str, str, int, int, float, float | None]

MEASURES = {
    "lines": Measure(metric="mean_fct_us"),
    "bars": Measure(metric="mean_fct_us"),
    "table": Measure(metric="mean_fct_us"),
    "cdf": Measure(table="flows", column="fct_us"),
    "box": Measure(table="flows", column="goodput_mbps"),
    "over-time": Measure(table="samples", column="utilisation", statistic="mean"),
}


def paper(figures: Mapping[str, FigureSpec] | None = None) -> Paper:
    """A paper without experiments."""
    return Paper("meet", "A paper", "A venue", {"letflow": "LetFlow"}, {}, figures or {}, Path())


def panel(plot: str, **more: Any) -> PanelSpec:
    """A panel over load."""
    settings: dict[str, Any] = {"title": "(a) Flows below 100 KB", "x": "traffic.load", "y_label": "FCT", **more}
    return PanelSpec(experiment="e", plot=plot, measures=(MEASURES[plot],), **settings)


def figure(*panels: PanelSpec, name: str = "6") -> FigureSpec:
    """A figure of these panels."""
    return FigureSpec("meet", name, "What it shows", place="section 4", panels=panels)


def data(rows: Sequence[Row] = (), curves: Sequence[Curve] = (), *, seeds: int = 1) -> FigureData:
    """The data of a figure."""
    return FigureData(
        pl.DataFrame(list(rows), schema=FigureData.row_schema(), orient="row"),
        pl.DataFrame(list(curves), schema=FigureData.curve_schema(), orient="row"),
        RunsUsed("quick", max(len(rows), 1), seeds=seeds, flows=(400,), points={"traffic.load": 2}),
    )


def grid(
    variants: Sequence[str],
    xs: Sequence[float],
    value: Callable[[str, float, int], float | None],
    *,
    seeds: int = 3,
    panels: int = 1,
    measure: str = "",
) -> list[Row]:
    """A row for each panel, variant, x and seed."""
    return [
        (place, variant, f"{x:g}", x, seed, measure, value(variant, x, seed))
        for place in range(panels)
        for variant in variants
        for x in xs
        for seed in range(1, seeds + 1)
    ]
