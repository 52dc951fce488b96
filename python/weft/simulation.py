"""Running one spec, and what comes out of it."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from weft import _core
from weft.description import description_words
from weft.errors import OutputError, SpecError, unreadable
from weft.load_sharing import LoadSharing, load_sharing
from weft.progress_bar import ProgressArg, run_bar
from weft.quantity import plural
from weft.schemas import LATER_TABLES, TABLES, empty_table
from weft.scheme import AnyScheme
from weft.spec import SpecLike, SpecText, check_text, load_spec, to_toml_value
from weft.summary import Summary
from weft.untrusted import one_line

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from weft.series import Series

__all__ = ["Overrides", "ProgressCallback", "Result", "checked_jobs", "load", "run", "run_text"]

Overrides: TypeAlias = Mapping[str, object] | Sequence[tuple[str, str]]
"""Keys of the spec and the values that replace the spec's own: `{"fabric.leaves": 4}`."""

ProgressCallback: TypeAlias = Callable[[_core.Progress], None]
"""Called about five times a second, possibly from another thread; an exception in it ends the run."""


class Result:
    """One finished run: its summary, its resolved spec and its tables.

    The tables are Polars frames; the columns carry their units in their names. A result that comes from a run
    shares its memory with the core; one that was loaded reads its Parquet files when first asked.
    """

    def __init__(
        self, summary: Summary, spec: str, *, core: _core.RunResult | None = None, path: Path | None = None
    ) -> None:
        self.summary = summary
        """The statistics of the run."""
        self.spec = spec
        """The fully resolved spec, as TOML."""
        self.path = path
        """The directory that the result was loaded from or written to, if any."""
        self.core = core
        """Run in the core; None once it is only on disk."""
        self._frames: dict[str, pl.DataFrame] = {}

    def __repr__(self) -> str:
        mean, bound = self.summary.fct_us.mean, self.summary.fct_us.at_least
        fct = "no flow that ends" if mean is None else f"mean FCT {mean:,.1f} µs"
        if bound is not None and bound.mean is not None:
            fct = f"mean FCT ≥ {bound.mean:,.1f} µs"
        flows = plural(self.summary.flows, "flow")
        return f"Result({one_line(self.summary.label)}, seed {self.summary.seed}, {flows}, {fct})"

    def _repr_html_(self) -> str:
        from weft.report.in_notebook import result_html

        return result_html(self)

    @property
    def flows(self) -> "pl.DataFrame":
        """A row per flow: sizes, times, slowdown, retransmissions, reordering, waits."""
        return self._frame("flows")

    @property
    def links(self) -> "pl.DataFrame":
        """A row per link direction: packets, bytes, drops, marks, utilisation."""
        return self._frame("links")

    @property
    def samples(self) -> "pl.DataFrame":
        """A row per link and interval in which it was not idle; empty unless the spec has `run.sample_every`."""
        return self._frame("samples")

    @cached_property
    def line_rate_mbps(self) -> float | None:
        """Rate of the slowest host over all of its cables, in Mbit/s; None if the tables lack rates."""
        import polars as pl

        links = self.links
        if "rate_bps" not in links.columns:
            return None
        hosts = links.filter(pl.col("tier") == "host").group_by("from").agg(pl.col("rate_bps").cast(pl.Float64).sum())
        slowest = hosts.get_column("rate_bps").min()
        return None if slowest is None else float(slowest) / 1e6  # type: ignore[arg-type]

    @cached_property
    def load_sharing(self) -> LoadSharing | None:
        """How evenly leaves' uplinks shared the load, slot by slot; None without samples."""
        return load_sharing(self.samples, self.links)

    @property
    def deliveries(self) -> "pl.DataFrame":
        """A row per receiver, kind of flow and interval in which something arrived; empty as `samples` is."""
        return self._frame("deliveries")

    @property
    def series(self) -> "Series":
        """Links, queues and receivers over time; raises `SpecError` unless the spec has `run.sample_every`."""
        from weft.series import Series

        return Series.of(self)

    @property
    def paths(self) -> "pl.DataFrame":
        """A row per path from rack to rack, and what it carried; empty unless the spec has `run.paths_of`."""
        return self._frame("paths")

    @property
    def traces(self) -> "pl.DataFrame":
        """A row per traced flow, link and interval: packets; empty unless the spec has `run.trace_flows`."""
        return self._frame("traces")

    @property
    def scheme(self) -> "pl.DataFrame":
        """The load balancer's own counters: name, value."""
        return self._frame("scheme")

    @property
    def programs(self) -> "pl.DataFrame":
        """A row per program on a Linux host: how it ended, and what it wrote; empty without."""
        return self._frame("programs")

    @property
    def connections(self) -> "pl.DataFrame":
        """A row per connection of programs and direction: packets and bytes, sent and arrived; empty without."""
        return self._frame("connections")

    @property
    def subflows(self) -> "pl.DataFrame":
        """A row per subflow of an MPTCP flow of Linux hosts: what the kernel counted; empty without."""
        return self._frame("subflows")

    @property
    def faults(self) -> "pl.DataFrame":
        """A row per fault and link that it hits: what, when, and what was lost there; empty without faults."""
        return self._frame("faults")

    @property
    def phases(self) -> "pl.DataFrame":
        """A row per stretch of the run between two changes of its faults: flows, FCT, losses; empty without faults."""
        return self._frame("phases")

    @property
    def drops(self) -> "pl.DataFrame":
        """A row per place where packets were lost, reason and stretch of the run; empty without faults."""
        return self._frame("drops")

    @property
    def collectives(self) -> "pl.DataFrame":
        """A row per collective or step of a job, each time: completion, bus bandwidth, stragglers; empty without."""
        return self._frame("collectives")

    @property
    def critical_path(self) -> "pl.DataFrame":
        """A row per flow on the critical path of a collective: what it waited for, and where it was late."""
        return self._frame("critical_path")

    @property
    def classes(self) -> "pl.DataFrame":
        """A row per link and class of its port: packets, drops, marks, packets cut; empty without classes."""
        return self._frame("classes")

    @property
    def pauses(self) -> "pl.DataFrame":
        """A row per paused link, class and link to blame: how often and how long; empty where nobody pauses."""
        return self._frame("pauses")

    @property
    def shared_buffers(self) -> "pl.DataFrame":
        """A row per switch and interval in which something waited in its shared buffer; empty unless sampled."""
        return self._frame("shared_buffers")

    @property
    def port_classes(self) -> "pl.DataFrame":
        """A row per class of the ports of switches: what it holds, packets, drops, pauses, flows; empty with one."""
        from weft.port_classes import port_classes

        return port_classes(self)

    def write(self, directory: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write a result directory; raises `OutputError` if it exists (unless `force`) or cannot be written.

        A deadlock has its picture there, `figures/deadlock.svg` and as PNG and PDF.
        """
        from weft.output import staged_directory

        target = Path(directory)
        with staged_directory(target, force=force) as staging:
            if self.core is not None:
                made = staging / "made"  # the core wants to make it
                self.core.write(str(made))
                for file in made.iterdir():
                    file.rename(staging / file.name)
                made.rmdir()
            else:
                self._copy(staging)
            self._draw_deadlock(staging / "figures")
        self.path = target
        return target

    def _draw_deadlock(self, directory: Path) -> None:
        # Figures take long to load: not for runs that end well.
        if self.summary.lossless is None or not self.summary.lossless.deadlock:
            return
        from weft import figures

        drawn = self.plot_deadlock()
        assert drawn is not None
        directory.mkdir()
        figures.save_all(drawn, directory, "deadlock")

    def _copy(self, directory: Path) -> None:
        """Write a result that is only on disk to another place there."""
        from weft.durable import copy_file, write_file

        assert self.path is not None
        for name in TABLES:
            if name in LATER_TABLES and not (self.path / f"{name}.parquet").is_file():
                continue
            copy_file(self.path / f"{name}.parquet", directory / f"{name}.parquet")
        write_file(directory / "spec.toml", self.spec.encode())
        summary = json.dumps(self.summary.raw, indent=2, ensure_ascii=False)
        write_file(directory / "summary.json", f"{summary}\n".encode())

    @property
    def description(self) -> str:
        """Description of the run in one sentence: fabric, faults, traffic, load, transport, seed."""
        return description_words([tomllib.loads(self.spec)], [self.summary.seed])

    def plot(self, figure: str) -> "Figure":
        """Draw a figure that is asked for in words, such as `slowdown by size` or `CDF of fct_us`.

        Raises `SpecError`, with the nearest right name, for what there is not.
        """
        from weft.comparison import Comparison

        return Comparison([self]).plot(figure)

    def plot_fct(self) -> "Figure":
        """Draw flow completion time by size bin."""
        from weft import figures

        return figures.fct_by_size({self.summary.label: [self]})

    def plot_slowdown(self) -> "Figure":
        """Draw the cumulative distribution of slowdown."""
        from weft import figures

        return figures.slowdown_cdf({self.summary.label: [self]})

    def plot_waits(self) -> "Figure":
        """Draw where a data packet waited, by tier."""
        from weft import figures

        return figures.waits({self.summary.label: [self]})

    def plot_deadlock(self) -> "Figure | None":
        """Draw the circle of paused links that a run ended by; None unless it did."""
        from weft.figures_deadlock import deadlock

        return deadlock(self)

    def _frame(self, name: str) -> "pl.DataFrame":
        import polars as pl

        if name not in self._frames:
            if self.core is not None:
                self._frames[name] = pl.DataFrame(self.core.table(name))
            else:
                assert self.path is not None
                file = self.path / f"{name}.parquet"
                lacks = name in LATER_TABLES and not file.is_file()
                self._frames[name] = empty_table(name) if lacks else _read_table(file)
        return self._frames[name]


def run(
    spec: SpecLike = "",
    *,
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    scheme: str | AnyScheme | None = None,
    progress: ProgressArg[_core.Progress] = None,
    jobs: int | None = None,
) -> Result:
    """Run one spec to its end.

    `spec` is a path, TOML text or nested dictionaries; without it every setting has its default. `set` replaces
    single keys of it, `seed` its seed and `scheme` its load balancer: a variant as in `weft.compare`, or one that
    is written in Python. `jobs` is how many cores of this machine it may use: all unless told; no result depends on it.
    `progress` is told how far it is; without it there is a bar in a notebook and on a terminal, unless it is False.
    Raises `SpecError` when something in the spec is wrong.
    """
    text, cores = load_spec(spec), checked_jobs(jobs)
    variant, own = (scheme, None) if isinstance(scheme, str) else (None, scheme)
    with run_bar(progress) as tell:
        return run_text(text, overrides=set, seed=seed, variant=variant, scheme=own, progress=tell, jobs=cores)


def run_text(
    spec: SpecText,
    *,
    overrides: Overrides = (),
    seed: int | None = None,
    variant: str | None = None,
    scheme: AnyScheme | None = None,
    progress: ProgressCallback | None = None,
    jobs: int | None = None,
) -> Result:
    """Run a spec that is already text."""
    core = _core.run(
        spec.text,
        base_dir=spec.base_dir,
        overrides=override_pairs(overrides),
        seed=seed,
        origin=spec.origin,
        variant=variant,
        progress=progress,
        python_scheme=scheme,
        jobs=jobs,
    )
    return Result(Summary.parse(core.summary), core.spec, core=core)


def checked_jobs(jobs: int | None) -> int | None:
    """Return a number of cores to use as it is; raises `SpecError` for less than one."""
    if jobs is not None and jobs < 1:
        raise SpecError(f"jobs: at least one core is needed, not {jobs}")
    return jobs


def load(directory: str | os.PathLike[str]) -> Result:
    """Load a result directory written by `Result.write` or `weft run --out`."""
    path = Path(directory)
    try:
        summary = (path / "summary.json").read_bytes()
        spec = (path / "spec.toml").read_text(encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: not a result directory: {error.strerror}: {error.filename}") from None
    except UnicodeDecodeError:
        raise OutputError(f"{path / 'spec.toml'}: not a text file") from None
    return Result(Summary.parse(summary, str(path / "summary.json")), spec, path=path)


def override_pairs(overrides: Overrides) -> list[tuple[str, str]]:
    """Bring overrides into the form that the core takes: pairs of strings."""
    pairs = overrides.items() if isinstance(overrides, Mapping) else overrides
    return [(key, _override_text(value, key)) for key, value in pairs]


def _override_text(value: object, key: str) -> str:
    if isinstance(value, str):
        check_text(value)
        return value
    return to_toml_value(value, key)


def _read_table(path: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        return pl.read_parquet(path, glob=False)
    except unreadable() as error:
        raise OutputError(f"{path}: cannot be read: {error}") from None
