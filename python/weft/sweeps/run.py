"""One run of a sweep: what it is, and doing it, on this machine or on another."""

import json
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from weft import _core
from weft.errors import SpecError, Stopped, retold
from weft.metrics import ALL_METRICS
from weft.schemas import TABLES
from weft.simulation import Result, run_text
from weft.spec import SpecText
from weft.sweeps.grid import Grid

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RUNS", "Outcome", "Run", "Share", "failure", "plan", "simulate"]

RUNS = "runs"
"""The table with a row per run."""

# What differs from one time to the next: it stands in the provenance, so that all else can be compared.
_MEASURED = ("cpu_s", "wall_s", "packet_hops_per_cpu_s", "memory_bytes")

Share: TypeAlias = Callable[["Run", float], None]
"""Told now and then, from any thread, what share of a run's flows has finished."""


@dataclass(frozen=True, slots=True)
class Run:
    """A point of the grid with its resolved spec; it can be sent to another machine."""

    index: int
    """Position in the grid, from 0."""
    labels: Mapping[str, str]
    """What each swept field is called here."""
    directory: str
    """The directories of the point below each table: `traffic.load=0.2/run.seed=1`."""
    spec: SpecText
    """Fully resolved; files by absolute paths."""
    spec_hash: str
    version: str
    tables: Sequence[str] = TABLES
    """Those to keep, if they have rows."""

    @property
    def id(self) -> str:
        """The address of the run: the same resolved spec and version of the results give the same bytes."""
        return sha256(f"{self.version} {_core.results_version()} {self.spec_hash}".encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """The point in a line: `traffic.load = 0.2, run.seed = 1`."""
        return ", ".join(f"{key} = {label}" for key, label in self.labels.items()) or "the run"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind: its tables as Parquet, or why it failed."""

    tables: Mapping[str, bytes]
    provenance: Mapping[str, Any]
    error: str | None = None
    summary: str | None = None
    """As JSON, without what was measured in time; None if it failed."""


def plan(grid: Grid, workers: int) -> list[Run]:
    """Resolve every point, so that a mistake in any of them is found before the first run."""
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="weft") as pool:
        points = list(enumerate(grid.places()))
        futures = [pool.submit(_resolve, grid, index, places) for index, places in points]
        try:
            runs = [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    first: dict[str, Run] = {}
    for run in runs:
        if run.spec_hash in first:
            raise SpecError(f"{grid.spec.origin}: two points are the same run: {first[run.spec_hash].name}; {run.name}")
        first[run.spec_hash] = run
    return runs


def _resolve(grid: Grid, index: int, places: Sequence[int]) -> Run:
    labels = grid.labels_at(places)
    spec = grid.spec
    try:
        answer = _core.resolve(
            spec.text,
            base_dir=spec.base_dir,
            overrides=grid.overrides_at(places),
            origin=spec.origin,
            contender=grid.contender_at(places),
        )
    except SpecError as error:
        # The core is given the values of swept fields as it is given those of --set.
        swept = error.origin == "--set" and any(_is_at(error.path, axis.key) for axis in grid.axes)
        raise retold(error, origin=spec.origin if swept else error.origin, where=_where(labels)) from None
    resolved = json.loads(answer)
    directory = "/".join(axis.partition(place) for axis, place in zip(grid.axes, places, strict=True))
    text = SpecText(resolved["toml"], origin="resolved spec")
    return Run(index, labels, directory, text, resolved["spec_hash"], _core.version())


def _is_at(path: str | None, key: str) -> bool:
    """Whether a key of the core is a swept field, or a part of it."""
    dotted = (path or "").replace("[", ".").replace("]", "")
    return dotted == key or dotted.startswith(f"{key}.")


def _where(labels: Mapping[str, str]) -> str:
    return f" (at {', '.join(f'{key} = {label}' for key, label in labels.items())})" if labels else ""


def simulate(run: Run, share: Share | None = None, stop: threading.Event | None = None) -> Outcome:
    """Do a run; what goes wrong in it is part of the outcome. Raises `Stopped` once `stop` is set."""
    began, start = datetime.now(UTC), time.monotonic()

    def watch(state: _core.Progress) -> None:
        if stop is not None and stop.is_set():
            raise Stopped
        if share is not None and state.flows_total:
            share(run, state.flows_finished / state.flows_total)

    try:
        if stop is not None and stop.is_set():
            raise Stopped
        _check_version(run)
        result = run_text(run.spec, progress=watch)
        found = result.summary.raw["spec_hash"]
        if found != run.spec_hash:
            raise SpecError("a file that the spec names is not here what it was when the sweep was planned")
        tables = {name: _parquet(frame) for name in run.tables if not (frame := _table(result, name)).is_empty()}
        lasting = {key: value for key, value in result.summary.raw.items() if key not in _MEASURED}
        summary = json.dumps(lasting, ensure_ascii=False)
        tables[RUNS] = _parquet(_row(run, result, summary))
        measured = {key: result.summary.raw.get(key) for key in _MEASURED}
        return Outcome(tables, _provenance(run, began, start) | measured, summary=summary)
    except Stopped:
        raise
    except Exception as error:
        message = str(error) if isinstance(error, SpecError) else f"{type(error).__name__}: {error}"
        return failure(run, message, _provenance(run, began, start))


def failure(run: Run, message: str, provenance: Mapping[str, Any] | None = None) -> Outcome:
    """Record that a run failed; without provenance, nobody knows where and when."""
    return Outcome({}, provenance or _provenance(run, datetime.now(UTC), time.monotonic(), host=""), message)


def _check_version(run: Run) -> None:
    if _core.version() != run.version:
        raise SpecError(f"weft {_core.version()} is installed on {platform.node()}; this sweep is of {run.version}")


def _provenance(run: Run, began: datetime, start: float, host: str | None = None) -> dict[str, Any]:
    return {
        "run": run.id,
        "version": run.version,
        "spec_hash": run.spec_hash,
        "host": platform.node() if host is None else host,
        "process": os.getpid() if host is None else None,
        "started": began,
        "took_s": time.monotonic() - start,
        "spec": run.spec.text,
    }


def _table(result: Result, name: str) -> "pl.DataFrame":
    import polars as pl

    assert result.core is not None
    return pl.DataFrame(result.core.table(name))


def _row(run: Run, result: Result, text: str) -> "pl.DataFrame":
    """Make the row of the table of runs: every metric, and the summary as JSON."""
    import polars as pl

    summary = result.summary
    names = {"run": run.id, "scheme": summary.scheme, "seed": summary.seed, "flows": summary.flows}
    metrics = {metric.key: metric.read(summary) for metric in ALL_METRICS}
    schema: dict[str, Any] = {"run": pl.String, "scheme": pl.String, "seed": pl.Int64, "flows": pl.Int64}
    schema |= dict.fromkeys(metrics, pl.Float64) | {"summary": pl.String}
    return pl.DataFrame([names | metrics | {"summary": text}], schema=schema)


def _parquet(frame: "pl.DataFrame") -> bytes:
    stream = BytesIO()
    frame.write_parquet(stream, compression="zstd")
    return stream.getvalue()
