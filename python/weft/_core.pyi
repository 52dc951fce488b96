"""The Rust core (crate `weft-python`): everything that is true about specs, schemes and runs."""

from collections.abc import Callable, Sequence
from typing import Protocol

class SpecError(Exception):
    """A spec with a mistake. The message names the key, what was found and what is allowed."""

class Progress:
    """How far a run has come. Read-only."""

    @property
    def simulated_us(self) -> float:
        """Simulated time so far, in microseconds."""

    @property
    def end_hint_us(self) -> float:
        """Simulated time when the last flow starts, in microseconds: a lower bound of the end."""

    @property
    def flows_finished(self) -> int: ...
    @property
    def flows_total(self) -> int: ...
    @property
    def packet_hops(self) -> int: ...
    @property
    def cpu_s(self) -> float:
        """CPU time of the run so far, in seconds."""

class ArrowTable(Protocol):
    """A table that Polars, pyarrow, pandas and DuckDB take over without copying."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class RunResult:
    """What a run leaves behind, in memory."""

    @property
    def summary(self) -> str:
        """`summary.json` as text."""

    @property
    def spec(self) -> str:
        """`spec.toml`, fully resolved, as text."""

    def table(self, name: str) -> ArrowTable:
        """Return the table "flows", "links", "samples", "deliveries", "paths" or "scheme"."""

    def write(self, directory: str, *, force: bool = False) -> None:
        """Write the result directory, to a temporary sibling first. Raises OSError."""

def resolve(
    spec: str,
    *,
    base_dir: str = ".",
    overrides: Sequence[tuple[str, str]] = (),
    seed: int | None = None,
    origin: str = "spec",
) -> str:
    """Resolve a spec (TOML text); JSON text `{"spec", "origins": [{"key", "value", "origin"}], "toml"}`."""

def run(
    spec: str,
    *,
    base_dir: str = ".",
    overrides: Sequence[tuple[str, str]] = (),
    seed: int | None = None,
    origin: str = "spec",
    progress: Callable[[Progress], None] | None = None,
    python_balancer: object | None = None,
) -> RunResult:
    """Run a spec (TOML text). Releases the GIL.

    `origin` is what error messages call the text, such as a file name. `progress` is called about five times a
    second; an exception that it raises ends the run and is raised here.
    """

def observe(
    spec: str,
    *,
    base_dir: str = ".",
    overrides: Sequence[tuple[str, str]] = (),
    seed: int | None = None,
    origin: str = "spec",
    progress: Callable[[Progress], None] | None = None,
    window: str,
    time_constant: str,
) -> ArrowTable:
    """Run a spec, and return what each port of a switch to a switch did in each window of time, a row each.

    Columns: `time_us` (the end of the window), `link`, `tier`, `packets`, `bytes`, `traffic` (what left the queue, as
    a share of what the rate allows), `occupancy` and `mean_occupancy` (what the last packet, or each of them, found
    queued, as a share of the buffer; null without a limit), `interval` and `mean_interval` (since the packet before,
    as a share of `time_constant`, at most 1). Both times are texts with a unit, such as "1ms".
    """

def schema() -> str:
    """Return the JSON Schema of the whole spec, as text."""

def catalog(kind: str) -> str:
    """List "schemes", "transports", "workloads", "fabrics", "presets" or "models" as JSON text.

    Each entry: `{"name", "title", "source", "parameters": [{"key", "type", "unit", "default", "doc", "source"}]}`.
    """

def model(name: str, inputs: Sequence[tuple[str, str]] = ()) -> str:
    """Work out an analytic model from its inputs, pairs of key and value; raises `SpecError` for a mistake in them.

    JSON text `{"model", "inputs", "quantities": [{"key", "equation", "symbol", "meaning", "unit", "value"}],
    "conclusions": [str]}`; the value of what is infinite is null.
    """

def bench(hosts: int, scheme: str, *, transport: str = "dctcp", seed: int = 1) -> str:
    """Measure the speed of the core on a fabric of `hosts` hosts.

    JSON text `{"hosts", "fabric", "scheme", "transport", "flows", "active_flows", "packet_hops", "events", "cpu_s",
    "wall_s", "packet_hops_per_cpu_s", "memory_bytes", "memory_bytes_per_host", "memory_bytes_per_active_flow",
    "peak_rss_bytes"}`.
    """

def version() -> str:
    """Return the version of the core, such as "0.1.0"."""
