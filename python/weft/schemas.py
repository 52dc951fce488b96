"""The tables of a run as the core declares them: their names, and their columns in Polars."""

from functools import cache
from typing import TYPE_CHECKING, Any

from weft.catalog import entries

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LATER_TABLES", "TABLES", "empty_table"]

TABLES: tuple[str, ...] = tuple(table.name for table in entries("tables"))
"""The tables of a run, in the order in which they are written."""

LATER_TABLES = frozenset(
    {"faults", "phases", "drops", "collectives", "critical_path", "classes", "pauses", "shared_buffers"}
)
"""Those that results of earlier versions lack: they are read as tables without rows."""


def empty_table(name: str) -> "pl.DataFrame":
    """Return the table of this name without rows: with the columns that it always has."""
    import polars as pl

    return pl.DataFrame(schema=_schemas()[name])


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    import polars as pl

    kinds: dict[str, Any] = {
        "u16": pl.UInt16,
        "u32": pl.UInt32,
        "u64": pl.UInt64,
        "f64": pl.Float64,
        "bool": pl.Boolean,
        "text": pl.String,
    }
    return {
        table.name: {column["name"]: kinds[column["type"]] for column in table.raw["columns"] if column["only"] is None}
        for table in entries("tables")
    }
