"""Cumulative distributions, thinned so that a figure or a report stays small."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.flows import counted
from weft.summary import LIMITS, BinName

if TYPE_CHECKING:
    import polars as pl

    from weft.simulation import Result

__all__ = ["CURVE_POINTS", "cumulative", "link_loads", "slowdown_curve"]

CURVE_POINTS = 400
"""Most points that a curve keeps."""


def slowdown_curve(runs: Sequence["Result"], bin_name: BinName) -> tuple[list[float], list[float]]:
    """Slowdowns and the share of flows at or below each, over all runs of a variant.

    Unfinished flows count as flows without ever being reached, so their curve ends below 1.
    """
    slowdowns = [_slowdowns(run.flows, bin_name) for run in runs]
    values = np.concatenate([finished for finished, _ in slowdowns]) if slowdowns else np.empty(0)
    return cumulative(values, total=sum(flows for _, flows in slowdowns))


def link_loads(runs: Sequence["Result"], tier: str) -> tuple[list[float], list[float]]:
    """Mean loads of the links of a tier, in Gbit/s, and the share of links at or below each, over all runs."""
    loads = [_loads(run, tier) for run in runs]
    values = np.concatenate(loads) if loads else np.empty(0)
    xs, shares = cumulative(values, total=values.size)
    # A curve begins at zero: otherwise links of equal load, the best there is, would show no line.
    return ([xs[0], *xs], [0.0, *shares]) if xs else ([], [])


def cumulative(
    values: NDArray[np.float64], *, total: int, points: int = CURVE_POINTS
) -> tuple[list[float], list[float]]:
    """Empirical distribution of `values` among `total` flows, in at most `points` points.

    Three quarters of the points are spread evenly, the rest over the last percent, where tails are compared.
    """
    if values.size == 0:
        return [], []
    ordered = np.sort(values)
    last = ordered.size - 1
    if ordered.size <= points:
        kept = np.arange(ordered.size)
    else:
        tail = points // 4
        even = np.linspace(0.0, last, points - tail)
        end = np.linspace(0.99 * last, last, tail)
        kept = np.unique(np.rint(np.concatenate([even, end])).astype(np.int64))
    shares = (kept + 1) / total
    return ordered[kept].tolist(), shares.tolist()


def _slowdowns(flows: "pl.DataFrame", bin_name: BinName) -> tuple[NDArray[np.float64], int]:
    import polars as pl

    smallest, largest = LIMITS[bin_name]
    wanted = pl.col("size_bytes").is_between(smallest, largest if largest is not None else pl.col("size_bytes"))
    # What the summary leaves out, the curves do.
    chosen = counted(flows).filter(wanted).get_column("slowdown")
    return chosen.drop_nulls().to_numpy().astype(np.float64), chosen.len()


def _loads(run: "Result", tier: str) -> NDArray[np.float64]:
    import polars as pl

    sent = run.links.filter(pl.col("tier") == tier).get_column("bytes").to_numpy().astype(np.float64)
    return sent * 8e-3 / run.summary.simulated_us if run.summary.simulated_us > 0.0 else sent[:0]
