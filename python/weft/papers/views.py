"""Views of a run that measures of figures may read: its tables, and frames that are worked out from them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft.flows import measured
from weft.simulation import Result

if TYPE_CHECKING:
    import polars as pl

__all__ = ["VIEWS", "view"]

VIEWS: Mapping[str, Sequence[str]] = {
    "samples": ("samples", "links"),
    "uplinks": ("samples", "links"),
    "queues": ("samples", "links"),
    "throughput": ("deliveries", "links"),
    "deliveries": ("deliveries", "links"),
    "load-sharing": ("samples", "links"),
}
"""Frames beside the tables, and `samples` with its idle intervals; the tables that each is worked out from.

`uplinks`: a leaf and interval; `queues`: a queue (both as in `weft.series.Series`). `throughput`: an interval, with
`throughput_gbps` of all receivers; `deliveries`: a class of flows and an interval, with the same. `load-sharing`: one
row, with `mean`, `p50` and `p99` of the load sharing accuracy.
"""


def view(result: Result, name: str) -> "pl.DataFrame":
    """Return a frame of a run by name. Raises `SpecError` where it needs samples and there are none."""
    import polars as pl

    match name:
        case "samples":
            return result.series.links()
        case "uplinks":
            return result.series.uplinks()
        case "queues":
            return result.series.queues()
        case "throughput":
            return result.series.throughput()
        case "deliveries":
            return result.series.throughput(("class", "background"))
        case "load-sharing":
            found = result.load_sharing
            return pl.DataFrame([] if found is None else [{"mean": found.mean, "p50": found.p50, "p99": found.p99}])
        case _:
            tables: dict[str, pl.DataFrame] = {
                "flows": measured(result.flows),
                "links": result.links,
                "paths": result.paths,
                "scheme": result.scheme,
            }
            return tables[name]
