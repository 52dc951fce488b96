"""One run: what it is, and doing it, on this machine or on another."""

import json
import os
import platform
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from weft import _core
from weft.conditions import Condition
from weft.decoding import convert
from weft.errors import SpecError, Stopped, no_space
from weft.schemas import TABLES
from weft.scheme import AnyScheme
from weft.simulation import Overrides, Result, override_pairs, run_text
from weft.spec import SpecText

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "SEED",
    "Measured",
    "Outcome",
    "Provenance",
    "Run",
    "Watch",
    "failure",
    "resolved_run",
    "simulate",
    "simulate_far",
]

SEED = "run.seed"

Watch: TypeAlias = Callable[["Run", _core.Progress], None]
"""ProgressArg about five times a second, from any thread, how far a run is."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its resolved spec; it can be sent to another machine."""

    index: int
    """Position among those of the command, from 0."""
    labels: Mapping[str, str]
    """Label here of each field in which runs differ."""
    spec: SpecText
    """Fully resolved; files by absolute paths."""
    spec_hash: str
    """The hash of the resolved spec and of the files that it names."""
    seed: int
    version: str
    results_version: str
    """Version of the build that planned the run: no other may do it."""
    tables: Sequence[str] = TABLES
    """Those to keep."""
    threads: int | None = None
    """How many threads are to work on it, if its spec said so: `spec` does not, since no result depends on it."""
    factory: Callable[[], AnyScheme] | None = None
    """Makes the load balancer, if a program brought its own: then the spec does not decide the result."""
    notes: Sequence[str] = ()
    """Keys of the spec that the run's transport did not keep."""
    conditions: Sequence[Condition] = ()
    """Under which its transport competes with others."""

    @property
    def id(self) -> str:
        """The address of the run: the same resolved spec and version of the results give the same bytes."""
        return sha256(f"{self.results_version} {self.spec_hash}".encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """The point in a line: `traffic.load = 0.2, run.seed = 1`."""
        return ", ".join(f"{key} = {label}" for key, label in self.labels.items()) or "the run"


def resolved_run(
    spec: SpecText,
    index: int,
    labels: Mapping[str, str],
    *,
    overrides: Overrides = (),
    seed: int | None = None,
    variant: str | None = None,
    tables: Sequence[str] = TABLES,
    checked: set[Hashable] | None = None,
) -> Run:
    """Make a run of a spec; raises `SpecError` for whatever a run would refuse, and for what this machine lacks.

    `checked` remembers specs that were found right: with another seed, one of them is not checked again, and its run
    has neither notes nor conditions.
    """
    pairs = override_pairs(overrides)
    how: dict[str, Any] = {"base_dir": spec.base_dir, "seed": seed, "origin": spec.origin, "variant": variant}
    alike = (spec, variant, tuple(pair for pair in pairs if pair[0] != SEED))
    run = partial(
        Run,
        index=index,
        labels=labels,
        version=_core.version(),
        results_version=_core.results_version(),
        tables=tables,
    )
    if checked is not None and alike in checked:
        answer = json.loads(_core.address(spec.text, overrides=pairs, **how))
        text = SpecText(answer["result_toml"], origin="resolved spec")
        return run(spec=text, spec_hash=answer["spec_hash"], seed=answer["seed"], threads=answer["threads"])
    answer = json.loads(_core.resolve(spec.text, overrides=pairs, **how))
    if answer["missing"] is not None:  # told now, and not after other runs of the command have taken their time
        raise SpecError(answer["missing"])
    if checked is not None:
        checked.add(alike)
    return run(
        spec=SpecText(answer["result_toml"], origin="resolved spec"),
        spec_hash=answer["spec_hash"],
        seed=answer["spec"]["run"]["seed"],
        threads=answer["spec"]["run"].get("threads"),
        notes=tuple(answer["notes"]),
        conditions=tuple(msgspec.convert(answer["conditions"], list[Condition])),
    )


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of a summary that differ from one time to the next, kept apart so that the rest can be compared."""

    cpu_s: float
    wall_s: float
    packet_hops_per_cpu_s: float | None
    memory_bytes: int


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which run it was, when and where."""

    run: str
    """Address of the run in the store."""
    version: str
    results_version: str
    spec_hash: str
    seed: int
    host: str | None
    """None if nobody knows: it was lost with its machine."""
    process: int | None
    started: datetime
    took_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a run: its files, or why it failed."""

    provenance: Provenance
    error: str | None = None
    cause: Exception | None = None
    """Exception by which the run failed, if it was done in this process."""
    summary: str = ""
    """As JSON, without what was measured."""
    measured: Measured | None = None
    """None if it failed."""
    tables: Mapping[str, bytes] = field(default_factory=dict)
    """Those to keep, as Parquet."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows each of them has."""
    result: Result | None = None
    """The run itself, if it was done in this process."""


def simulate(run: Run, watch: Watch | None = None, stop: threading.Event | None = None, cores: int = 1) -> Outcome:
    """Do a run on so many cores; what goes wrong in it is part of the outcome, but for a full disk.

    Raises `Stopped` once `stop` is set.
    """
    began, start = datetime.now(UTC), time.monotonic()

    def provenance() -> Provenance:
        return _provenance(run, began, time.monotonic() - start, platform.node(), os.getpid())

    def tell(state: _core.Progress) -> None:
        if stop is not None and stop.is_set():
            raise Stopped
        if watch is not None:
            watch(run, state)

    try:
        if stop is not None and stop.is_set():
            raise Stopped
        result = _done(run, tell, cores)
        frames = {name: _table(result, name) for name in run.tables}
        tables = {name: _parquet(frame) for name, frame in frames.items()}
        raw = result.summary.raw
        measured = {key: raw.pop(key) for key in Measured.__struct_fields__}
        return Outcome(
            provenance(),
            summary=json.dumps(raw, ensure_ascii=False),
            measured=convert(measured, Measured, "summary"),
            tables=tables,
            rows={name: frame.height for name, frame in frames.items()},
            result=result,
        )
    except Stopped:
        raise
    except Exception as error:
        if no_space(error):  # no failure of this run: all others would fail of it, too
            raise
        message = str(error) if isinstance(error, SpecError) else f"{type(error).__name__}: {error}"
        return Outcome(provenance(), message, error)


def simulate_far(run: Run) -> Outcome:
    """Do a run in a process that only sends back what is to be kept; on one core, unless its spec asks for more."""
    return replace(simulate(run, cores=run.threads or 1), result=None, cause=None)


def failure(run: Run, message: str) -> Outcome:
    """Record that a run failed, and nobody knows where and when."""
    return Outcome(_provenance(run, datetime.now(UTC), 0.0, None, None), message)


def _done(run: Run, tell: Callable[[_core.Progress], None], cores: int) -> Result:
    """Do a run, if that is the run that was planned."""
    if _core.results_version() != run.results_version:
        raise SpecError(
            f"weft {_core.version()} with the results {_core.results_version()} is installed on {platform.node()}; "
            f"this run is of {run.version} with the results {run.results_version}"
        )
    scheme = None if run.factory is None else run.factory()
    threads = {} if run.threads is None else {"run.threads": run.threads}
    result = run_text(run.spec, overrides=threads, scheme=scheme, progress=tell, jobs=cores)
    if result.summary.spec_hash != run.spec_hash:
        raise SpecError("a file that the spec names is not here what it was when the runs were planned")
    if result.summary.incomplete:
        raise SpecError("; ".join(result.summary.incomplete))
    return result


def _provenance(run: Run, began: datetime, took_s: float, host: str | None, process: int | None) -> Provenance:
    return Provenance(
        run=run.id,
        version=run.version,
        results_version=run.results_version,
        spec_hash=run.spec_hash,
        seed=run.seed,
        host=host,
        process=process,
        started=began,
        took_s=took_s,
    )


def _table(result: Result, name: str) -> "pl.DataFrame":
    import polars as pl

    assert result.core is not None
    return pl.DataFrame(result.core.table(name))


def _parquet(frame: "pl.DataFrame") -> bytes:
    stream = BytesIO()
    frame.write_parquet(stream, compression="zstd")
    return stream.getvalue()
