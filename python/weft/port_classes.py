"""Packets of each class of ports, and the flows that a class held up."""

import tomllib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weft.flows import counted
from weft.quantity import estimate_text, unit_and_scale
from weft.statistics import Estimate, estimate

if TYPE_CHECKING:
    from weft.metrics import Unit
    from weft.simulation import Result

__all__ = ["ClassTable", "class_table", "port_classes"]

_FLOWS = ("unknown", "short", "long", "best-effort", "tc4", "tc5", "tc6", "tc7")
_COLUMNS: Mapping[str, "tuple[str, Unit, bool]"] = {
    "megabytes": ("volume", "ratio", False),
    "dropped": ("dropped", "count", False),
    "marked": ("marked", "count", True),
    "trimmed": ("cut", "count", True),
    "pauses": ("pauses", "count", True),
    "paused_us": ("paused time", "us", True),
    "flows": ("flows", "count", False),
    "mean_slowdown": ("mean slowdown", "ratio", True),
}
"""Title, unit, and whether a column is left out where nothing is in it."""
_COUNTS = ("packets", "bytes", "dropped", "marked", "trimmed")
_SCHEMA: Mapping[str, type[pl.DataType]] = {
    "class": pl.Int64,
    "holds": pl.String,
    **dict.fromkeys((*_COUNTS, "pauses"), pl.Int64),
    "paused_us": pl.Float64,
    "flows": pl.Int64,
    "mean_slowdown": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A row a variant and class, as people read it."""

    heads: Sequence[tuple[str, str]]
    """Titles and units of the columns of numbers."""
    rows: Sequence[tuple[str, str, Sequence[Estimate | None], Sequence[str]]]
    """Variant, class, the numbers, over the seeds, and how they are written."""


def port_classes(result: "Result") -> pl.DataFrame:
    """Return a row a class of the ports of switches; empty unless they have more than one.

    `class` is its place at the port, `holds` what it is for. Packets, bytes, drops, marks and packets cut are those of
    the ports of all switches; a packet counts at each. Pauses are of all links, those of hosts too. `flows` and
    `mean_slowdown` are of the flows whose data it held, as in the summary; a slowdown is null where one did not end.
    """
    if result.classes.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    ports = result.classes.join(result.links.select("link", "tier"), on="link").filter(pl.col("tier") != "host")
    found = (
        ports.group_by("class", maintain_order=True).agg(pl.col(_COUNTS).sum()).sort("class").cast({"class": pl.Int64})
    )
    pauses = result.pauses.group_by(pl.col("class").cast(pl.Int64), maintain_order=True).agg(
        pl.col("pauses", "paused_us").sum()
    )
    held = _holds(result.spec)
    of_flows = {name for own in held.values() for name in own if name in _FLOWS}
    names = [", ".join(_shorter(held.get(place, ()), of_flows)) for place in found.get_column("class")]
    place = {name: at for at, own in held.items() for name in own if name in _FLOWS}
    flows = counted(result.flows).select(
        pl.col("slowdown"), pl.col("class").replace_strict(place, default=None, return_dtype=pl.Int64)
    )
    own = flows.group_by("class", maintain_order=True).agg(
        flows=pl.len().cast(pl.Int64),
        # A flow that did not finish leaves the mean open.
        mean_slowdown=pl.when(pl.col("slowdown").is_not_null().all()).then(pl.col("slowdown").mean()),
    )
    table = (
        found.with_columns(pl.Series("holds", names, dtype=pl.String))
        .join(pauses, on="class", how="left", maintain_order="left")
        .join(own, on="class", how="left", maintain_order="left")
        .with_columns(pl.col("pauses", "paused_us", "flows").fill_null(0))
        .select(*_SCHEMA)
    )
    return table.cast(pl.Schema(_SCHEMA)) if table.height > 1 else pl.DataFrame(schema=_SCHEMA)


def class_table(groups: "Mapping[str, Sequence[Result]]") -> ClassTable | None:
    """Return the classes of each variant, means over its seeds; None unless there are several classes."""
    found: list[tuple[str, str, dict[str, Estimate | None]]] = []
    for label, runs in groups.items():
        tables = [table for run in runs if not (table := port_classes(run)).is_empty()]
        if not tables:
            continue
        together = pl.concat(tables).with_columns(megabytes=pl.col("bytes") / 1e6)
        for place, holds in together.select("class", "holds").unique(maintain_order=True).sort("class").iter_rows():
            rows = together.filter(pl.col("class") == place)
            title = f"{place}: {holds}" if holds else str(place)
            found.append((label, title, {key: _estimate(rows.get_column(key)) for key in _COLUMNS}))
    if not found:
        return None
    keys = [
        key
        for key, (_, _, if_any) in _COLUMNS.items()
        if not if_any or any(one is not None and one.mean for *_, row in found if (one := row[key]) is not None)
    ]
    heads, scales = [], {}
    for key in keys:
        title, unit, _ = _COLUMNS[key]
        name, scales[key] = unit_and_scale(unit, [one.mean for *_, row in found if (one := row[key]) is not None])
        heads.append((title, "MB" if key == "megabytes" else name))
    return ClassTable(
        heads,
        [
            (
                label,
                title,
                [row[key] for key in keys],
                [estimate_text(row[key], _COLUMNS[key][1], scales[key]) for key in keys],
            )
            for label, title, row in found
        ],
    )


def _estimate(values: pl.Series) -> Estimate | None:
    known = values.drop_nulls().cast(pl.Float64).to_list()
    return estimate(known) if known else None


def _holds(spec: str) -> Mapping[int, Sequence[str]]:
    """Return what each class of a switch's port holds by the resolved spec; empty where it does not name classes."""
    classes = tomllib.loads(spec).get("fabric", {}).get("switch_queue", {}).get("class", [])
    return {place: tuple(one.get("holds", ())) for place, one in enumerate(classes)}


def _shorter(holds: Sequence[str], of_flows: Set[str]) -> list[str]:
    """Say `flows` of a class that holds the flows of every class that the port has a place for."""
    if not of_flows or not of_flows <= set(holds):
        return list(holds)
    return ["flows", *(name for name in holds if name not in _FLOWS)]
