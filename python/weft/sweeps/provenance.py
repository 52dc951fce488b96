"""The provenance of a sweep: a row a run, with its point, its address, when and where it was done, and its spec."""

import logging
from collections.abc import Mapping
from datetime import datetime
from glob import escape
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import msgspec

from weft.decoding import convert
from weft.errors import OutputError, unreadable
from weft.runs.run import Measured, Provenance, Run

__all__ = ["FILE", "PROVENANCE", "Row", "read_provenance", "readable_provenance", "row_of", "row_text"]

PROVENANCE = "provenance"
"""The data set that has the rows."""
FILE = "run.parquet"
"""Name of the file of a run, in every data set."""

_LOG = logging.getLogger(__name__)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Row on a run, in the order of the columns."""

    run: str
    """Address of the run in the store."""
    status: Literal["done", "failed"]
    error: str | None
    point: str
    """Empty if nothing is swept."""
    version: str
    results_version: str
    spec_hash: str
    seed: int
    host: str | None
    process: int | None
    started: datetime
    took_s: float
    cpu_s: float | None
    wall_s: float | None
    packet_hops_per_cpu_s: float | None
    memory_bytes: int | None
    tables: list[str]
    """Those that have rows."""
    table_sha256: list[str]
    spec: str

    @property
    def measured(self) -> dict[str, Any]:
        """Measured values of the run, as in its summary."""
        return {name: getattr(self, name) for name in Measured.__struct_fields__}


def row_of(
    run: Run,
    provenance: Provenance,
    *,
    measured: Measured | None = None,
    tables: Mapping[str, str] | None = None,
    error: str | None = None,
) -> Row:
    """Make the row of a run; `tables` are those that have rows, with their SHA-256."""
    nothing = dict.fromkeys(Measured.__struct_fields__)
    return Row(
        **msgspec.structs.asdict(provenance),
        **(nothing if measured is None else msgspec.structs.asdict(measured)),
        status="done" if error is None else "failed",
        error=error,
        point=run.name if run.labels else "",
        tables=list(tables or {}),
        table_sha256=list((tables or {}).values()),
        spec=run.spec.text,
    )


def row_text(row: Row) -> bytes:
    """Write a row as Parquet."""
    import polars as pl

    schema: dict[str, Any] = {
        **dict.fromkeys(("run", "status", "error", "point", "version", "results_version", "spec_hash"), pl.String),
        "seed": pl.Int64,
        "host": pl.String,
        "process": pl.Int64,
        "started": pl.Datetime("us", "UTC"),
        **dict.fromkeys(("took_s", "cpu_s", "wall_s", "packet_hops_per_cpu_s"), pl.Float64),
        "memory_bytes": pl.Int64,
        "tables": pl.List(pl.String),
        "table_sha256": pl.List(pl.String),
        "spec": pl.String,
    }
    stream = BytesIO()
    pl.DataFrame([msgspec.structs.asdict(row)], schema=schema).write_parquet(stream)
    return stream.getvalue()


def read_provenance(directory: Path) -> dict[str, Row]:
    """Read the rows of a sweep, each by the directories of its point; raises `OutputError` if one is damaged."""
    import polars as pl

    place = directory / PROVENANCE
    if next(place.rglob(FILE), None) is None:
        return {}
    try:
        frame = pl.scan_parquet(
            f"{escape(str(place))}/**/{FILE}", hive_partitioning=False, include_file_paths="path"
        ).collect()
    except unreadable() as error:
        raise OutputError(f"{place}: cannot be read: {error}") from None
    rows = {str(row.pop("path")): row for row in frame.to_dicts()}
    return {_point(Path(path), place): convert(row, Row, path) for path, row in rows.items()}


def readable_provenance(directory: Path) -> dict[str, Row]:
    """Read the rows of a sweep; one that is damaged is said, and passed over: its run is to be done again."""
    import polars as pl

    try:
        return read_provenance(directory)
    except OutputError:
        pass
    damage: tuple[type[BaseException], ...] = (OutputError, ValueError, *unreadable())
    place = directory / PROVENANCE
    found: dict[str, Row] = {}
    for file in sorted(place.rglob(FILE)):
        try:
            (row,) = pl.read_parquet(file, glob=False).to_dicts()
            found[_point(file, place)] = convert(row, Row, str(file))
        except damage:
            _LOG.warning("%s: is damaged; the files of its run are written again", file)
    return found


def _point(file: Path, place: Path) -> str:
    """Return the directories of the point that a file is of."""
    return str(file.parent.relative_to(place)).removeprefix(".")
