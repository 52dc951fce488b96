"""The Rust core: everything that is true about specs, schemes and runs."""

import collections.abc
from typing import final

@final
class Progress:
    """How far a run has come. Read-only."""

    def __repr__(self, /) -> str: ...
    @property
    def cpu_s(self, /) -> float:
        """CPU time of the run so far, in seconds."""
    @property
    def end_hint_us(self, /) -> float:
        """Simulated time when the last flow starts, in microseconds: a lower bound of the end."""
    @property
    def flows_finished(self, /) -> int:
        """Flows that have ended."""
    @property
    def flows_total(self, /) -> int:
        """Flows that can end."""
    @property
    def packet_hops(self, /) -> int:
        """Packets that reached the far end of a link, each link counted."""
    @property
    def simulated_us(self, /) -> float:
        """Simulated time so far, in microseconds."""

@final
class RunResult:
    """Result of a run, in memory."""

    def __repr__(self, /) -> str: ...
    @property
    def spec(self, /) -> str:
        """`spec.toml`, fully resolved, as text."""
    @property
    def summary(self, /) -> str:
        """`summary.json` as text."""
    def table(self, /, name: str) -> Table:
        """The table with this name, one of `catalog("tables")`. Raises `ValueError` for any other.

        Raises `OSError` for a temporary file that cannot be read.
        """
    def write(self, /, directory: str, *, force: bool = False) -> None:
        """Write the result directory, to a temporary sibling first. Raises `OSError`."""

@final
class Table:
    """A table in Arrow form, that Polars, pyarrow, pandas and `DuckDB` take over without copying."""

    def __arrow_c_stream__(self, /, requested_schema: object | None = None) -> object:
        """The table through the Arrow C stream interface.

        A requested schema is not followed, as the interface allows.
        """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...

def address(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    origin: str = ...,
    variant: str | None = None,
) -> str:
    """Work out the address of a run whose spec was found right with another seed.

    JSON text `{"result_toml", "spec_hash", "seed", "threads"}`, as in the answer of `resolve`;
    `threads` is null unless the spec says it. Fabric and traffic are not made, so that it takes a
    fraction of the time.
    """

def bench(
    hosts: int, scheme: str, *, transport: str = "dctcp", seed: int = 1, threads: int = 1, predict: bool = False
) -> str:
    """Measure the speed of the core on a fabric of `hosts` hosts, on so many threads: 1 to 1024.

    With `predict` on one thread, in the partitions that so many would work on: then it counts how
    well they would share the work.

    JSON text `{"hosts", "fabric", "scheme", "transport", "flows", "active_flows", "packet_hops",
    "events", "cpu_s", "wall_s", "packet_hops_per_cpu_s", "memory_bytes", "memory_bytes_per_host",
    "memory_bytes_per_active_flow", "peak_rss_bytes", "threads", "partitions", "windows",
    "crossings", "busiest_events", "shared_windows", "result"}`; `result` is a fingerprint of all
    tables; events of the busiest thread and windows that are shared are null without `predict`, and
    in a fabric that stays whole.
    """

def bench_memory(hosts: int, scheme: str, *, transport: str = "dctcp", flows: int = 1000000, seed: int = 1) -> str:
    """Measure the memory of a fabric of `hosts` hosts and its flows.

    It takes a short run, and one of `flows` flows of 1 KB. With 0 flows only setting up is
    measured. Right in a process that did nothing else. JSON text `{"hosts", "links", "scheme",
    "transport", "setup_cpu_s", "setup_bytes", "bytes_per_host", "bytes_per_link",
    "bytes_per_active_flow", "flows", "bytes_per_finished_flow", "peak_rss_bytes"}`; null where it
    is resident memory and the system is not Linux, and where nothing was run.
    """

def bench_window() -> float:
    """Measure the seconds that two threads take to begin and end an empty window together.

    Measured now, and right on two cores that nobody else uses.
    """

def build() -> str:
    """The build of the core: "release" (optimised as a whole) or "development" (with assertions)."""

def catalog(kind: str) -> str:
    """List everything of one kind as JSON text.

    Kinds: "schemes", "transports", "workloads", "fabrics", "presets", "models", "bins", "groups",
    "tables". Each entry: `{"name", "title", "source", "parameters": [{"key", "type", "unit",
    "default", "doc", "source"}]}`, and what else is known of its kind: of a table `"columns":
    [{"name", "type", "unit", "null", "only", "doc"}]` and `"asked_by"`; `only` says with what the
    table has a column that is not always there.
    """

def congestion_windows(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    progress: collections.abc.Callable[[Progress], None] | None = None,
    origin: str = ...,
    variant: str | None = None,
    flows: collections.abc.Sequence[int],
    every: str,
) -> Table:
    """Run a spec (TOML text) and return congestion windows, one row per flow and instant, by time.

    `flows` are numbers as in the table of flows; each is looked at every `every` since its start, a
    text with a unit such as "100us", as long as its sender has not everything acknowledged.
    Columns: `time_us`, `flow`, `cwnd` and `ssthresh` (segments; null: nothing has set one),
    `outstanding` (segments sent and not acknowledged), `rtt_us` (smoothed; null: no sample yet).
    The rest is as for `run`.
    """

def convert(spec: str, *, origin: str = "spec") -> str:
    """Rewrite old names of keys in a spec (TOML text) to the names of today, and change nothing else.

    Raises `SpecError` for text that is no TOML; `origin` is what the message calls it.
    """

def model(name: str, inputs: collections.abc.Sequence[tuple[str, str]] = ...) -> str:
    """Work out an analytic model from its inputs, pairs of key and value.

    Raises `SpecError` for a mistake in them. JSON text `{"model", "inputs", "quantities":
    [{"key", "equation", "symbol", "meaning", "unit", "value"}], "conclusions": [str]}`; the value
    of what is infinite is null.
    """

def observe(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    progress: collections.abc.Callable[[Progress], None] | None = None,
    origin: str = ...,
    window: str,
    time_constant: str,
) -> Table:
    """Run a spec (TOML text) and return one row per window of time and port between switches.

    Columns: `time_us` (the end of the window), `link`, `tier`, `packets`, `bytes`, `traffic` (what
    left the queue, as a share of what the rate allows), `occupancy` and `mean_occupancy` (what the
    last packet, or each of them, found queued, as a share of the buffer; null without a limit),
    `interval` and `mean_interval` (since the packet before, as a share of `time_constant`, at most
    1). Both times are texts with a unit, such as "1ms". The rest is as for `run`.
    """

def packets(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    progress: collections.abc.Callable[[Progress], None] | None = None,
    origin: str = ...,
    variant: str | None = None,
    at: collections.abc.Sequence[str],
    flows: collections.abc.Sequence[int] | None = None,
    most: int,
) -> Table:
    """Run a spec (TOML text) and return the first `most` packets of some links, one row each, by time.

    `at` names links, or hosts and switches, which stand for all links from and to them, or is
    "hosts" for the cables of all hosts; `flows` are numbers of flows whose packets alone are
    wanted, and without any name in `at` every link is meant. Columns: `time_us`, `link`, `flow`,
    `src`, `dst`, `kind`, `segment`, `bytes`, `ecn_capable`, `marked`, `echo`, `retransmission`. The
    rest is as for `run`.
    """

def pcapng(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    progress: collections.abc.Callable[[Progress], None] | None = None,
    origin: str = ...,
    variant: str | None = None,
    at: collections.abc.Sequence[str],
    flows: collections.abc.Sequence[int] | None = None,
    most: int,
) -> bytes:
    """Run a spec (TOML text) and return the first `most` packets of some links as a pcapng file.

    An interface is a link that sent any, and 128 bytes of each packet are kept. The rest is as for
    `packets`.
    """

def quantity(text: str, kind: str) -> int:
    """Read a number with a unit as in a spec, such as "50us".

    Returns a "time" in picoseconds, a "size" in bytes, a "rate" in bits per second.
    Raises `SpecError` for what is none.
    """

def record(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    progress: collections.abc.Callable[[Progress], None] | None = None,
    origin: str = ...,
    variant: str | None = None,
    most: int,
) -> str:
    """Run a spec (TOML text) and return each call of the load balancer at every switch.

    JSON text `{"scheme", "rack_of_host", "switches": [{"switch", "tier", "ports",
    "neighbour_tiers", "calls", "beyond"}]}`: the calls of a switch end with its decision number
    `most`, and `beyond` says how many came behind it. The rest is as for `run`.
    """

def refuse_code() -> None:
    """From now on reject every spec that runs code.

    Code is a load balancer in Python, Linux hosts, and programs on them.
    """

def resolve(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    origin: str = ...,
    variant: str | None = None,
    jobs: int | None = None,
) -> str:
    """Resolve a spec (TOML text).

    JSON text `{"spec", "origins": [{"key", "value", "origin", "doc"}], "notes", "conditions":
    [{"quantity", "key", "value", "asked"}], "toml", "result_toml", "spec_hash", "missing",
    "cores"}`. `origin` is what error messages call the text, such as a file name. Raises
    `SpecError` for a mistake in the spec. `variant` stands in place of the spec's transport, load
    balancer, or both. What passes can be run, unless `missing` says what this machine lacks for it.
    `notes` say what a transport in the place of the spec's did not keep of its keys, `conditions`
    under which it competes with others. `result_toml` is the spec without what no result depends
    on. With `jobs`, `cores` says on how many threads a run on so many cores works, and why:
    `{"threads", "partitions", "reason", "text"}`; it is null without.
    """

def results_version() -> str:
    """The version of the results: a hash of all that decides what a run gives."""

def run(
    spec: str,
    *,
    base_dir: str = ...,
    overrides: collections.abc.Sequence[tuple[str, str]] = ...,
    seed: int | None = None,
    progress: collections.abc.Callable[[Progress], None] | None = None,
    python_scheme: object | None = None,
    origin: str = ...,
    variant: str | None = None,
    jobs: int | None = None,
) -> RunResult:
    """Run a spec (TOML text). Releases the GIL.

    `jobs` is on how many cores at most it works: at least 1, all that there are unless told.
    Results do not depend on it. `progress` is called about five times a second; an exception that
    it raises ends the run and is raised here. So does one that a load balancer in Python raises,
    `python_scheme` or the spec's, or a signal such as Ctrl-C. The rest is as for `resolve`.
    """

def schema() -> str:
    """The JSON Schema of the whole spec, as text."""

def variants(texts: collections.abc.Sequence[tuple[str, bool]]) -> str:
    """Read variants, as on the command line of `weft compare`.

    Returns JSON text `[{"label", "slug", "parts": {table: text}}]`. Each is a text and whether
    it is only the label of an external one. None, and two of one name, are refused.
    """

def version() -> str:
    """The version of the core, such as "0.1.0"."""

class SpecError(Exception):
    """A spec with a mistake. The message names the key, what was found and what is allowed; the attributes have its parts."""

    path: str | None
    found: str | None
    allowed: str | None
    nearest: str | None
    origin: str | None
    line: int | None
