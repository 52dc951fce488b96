"""Comparing schemes on the same flows."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from weft import _core
from weft.catalog import bounds
from weft.collectives import has_collectives
from weft.decoding import read_json
from weft.drawing.asked import Asked, Fields, read_asked
from weft.errors import OutputError, SpecError
from weft.faults import Fault, faults_of
from weft.load_sharing import LoadSharing
from weft.metrics import ALL_METRICS, Metric, bin_metrics, estimates
from weft.output import staged_directory, write_file
from weft.phases import Reaction, phase_metrics, phases_of, reactions
from weft.progress_bar import Told, jobs_bar
from weft.runs.cluster import Cluster
from weft.runs.execution import Executor
from weft.runs.progress import JobsCallback, RunProgress, RunWatch
from weft.runs.run import Outcome, Run, resolved_run
from weft.runs.store import Stored, named_store, place_of_store
from weft.schemas import TABLES
from weft.set_up import set_up_of
from weft.simulation import Overrides, Result, load
from weft.spec import SpecLike, SpecText, load_spec, parse_document
from weft.statistics import Estimate
from weft.summary import PhaseName, Summary
from weft.variant import SchemeLike, parse_variants
from weft.verdict import Verdict, judge

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from weft.drawing.runs import RunsToDraw

__all__ = ["Comparison", "compare", "load_comparison"]


@dataclass(frozen=True)
class Comparison:
    """Several schemes, each run on the same flows, once for each seed."""

    runs: Sequence[Result]
    """Every run: all seeds of the first scheme, then of the second, and so on."""
    kept: int = field(default=0, kw_only=True)
    """How many of the runs were there before the command that returned this."""
    command: str | None = field(default=None, kw_only=True)
    """The command line that makes this comparison, if it came from one."""
    path: Path | None = field(default=None, kw_only=True)
    """The directory that it was written to or loaded from, if any."""

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.groups)}; {len(self.runs)} runs)"

    def _repr_html_(self) -> str:
        from weft.report.in_notebook import comparison_html

        return comparison_html(self)

    @cached_property
    def groups(self) -> Mapping[str, Sequence[Result]]:
        """The runs by label, in the order of the comparison."""
        found: dict[str, list[Result]] = {}
        for run in self.runs:
            found.setdefault(run.summary.label, []).append(run)
        return found

    @cached_property
    def summaries(self) -> Mapping[str, Sequence[Summary]]:
        """The summaries by label."""
        return {label: [run.summary for run in runs] for label, runs in self.groups.items()}

    @cached_property
    def bounds(self) -> Set[str]:
        """The labels of those that are no schemes but bounds, and win nothing."""
        return {label for label, runs in self.summaries.items() if runs[0].scheme in bounds()}

    @cached_property
    def estimates(self) -> Mapping[str, Mapping[str, Estimate | None]]:
        """Every metric of `weft.metrics.ALL_METRICS` for each label, with its interval over the seeds."""
        return self.estimates_of(ALL_METRICS)

    def estimates_of(self, metrics: Sequence[Metric]) -> Mapping[str, Mapping[str, Estimate | None]]:
        """Some metrics for each label, with their intervals over the seeds."""
        return {label: estimates(runs, metrics) for label, runs in self.summaries.items()}

    @cached_property
    def size_bins(self) -> Sequence[str]:
        """What the ranges of sizes are called that the spec asked for with `run.bins`."""
        return [one.label for one in self.runs[0].summary.size_bins]

    @cached_property
    def faults(self) -> Sequence[Fault]:
        """The faults of the fabric, in the order of the spec."""
        return faults_of(parse_document(SpecText(self.runs[0].spec)).get("fabric", {}))

    @cached_property
    def phases(self) -> Sequence[PhaseName]:
        """Which of before, during and after its faults the comparison has; none if the whole run is one of them."""
        return phases_of(self.summaries)

    @cached_property
    def reactions(self) -> Sequence[Mapping[str, Reaction]]:
        """For each fault, what each scheme lost into it and when it had moved away; nothing if it loses no packets."""
        return reactions(self.summaries)

    @cached_property
    def load_sharing(self) -> Mapping[str, Sequence[LoadSharing]]:
        """How evenly leaves' uplinks shared the load, for each run of each label; no label without samples."""
        found = {label: [run.load_sharing for run in runs] for label, runs in self.groups.items()}
        kept = {label: [one for one in shares if one is not None] for label, shares in found.items()}
        return {label: shares for label, shares in kept.items() if shares}

    @cached_property
    def has_collectives(self) -> bool:
        """Whether every run has flows that wait for each other: then it is collectives that are compared."""
        return has_collectives(self.summaries)

    @cached_property
    def line_rate_mbps(self) -> float | None:
        """What the slowest host can send at, in Mbit/s: what bus bandwidth is held against."""
        return self.runs[0].line_rate_mbps

    @cached_property
    def set_up(self) -> str:
        """What was run, in one sentence: fabric, faults, traffic, load, transport, seeds."""
        return set_up_of(self.groups)

    @cached_property
    def verdict(self) -> Verdict | None:
        """Who wins on mean FCT, or on completion of collectives if there are any; None if nothing finished."""
        return judge(self.summaries)

    @cached_property
    def table(self) -> "pl.DataFrame":
        """A row per scheme: each metric and, as `<metric>_ci95`, the half-width of its 95 % interval."""
        import polars as pl

        rows = [
            {"scheme": label, "seeds": len(self.groups[label]), **_cells(values, ALL_METRICS)}
            for label, values in self.estimates.items()
        ]
        schema: dict[str, Any] = {"scheme": pl.String, "seeds": pl.Int64}
        return pl.DataFrame(rows, schema=schema | _floats(ALL_METRICS))

    @cached_property
    def bins_table(self) -> "pl.DataFrame":
        """A row per scheme and range of sizes that the spec asked for; no rows if it asked for none."""
        import polars as pl

        rows = [
            {"scheme": label, "seeds": len(self.groups[label]), "sizes": sizes, **_cells(values, bin_metrics(place))}
            for place, sizes in enumerate(self.size_bins)
            for label, values in self.estimates_of(bin_metrics(place)).items()
        ]
        schema: dict[str, Any] = {"scheme": pl.String, "seeds": pl.Int64, "sizes": pl.String}
        return pl.DataFrame(rows, schema=schema | _floats(bin_metrics(0)))

    @cached_property
    def phases_table(self) -> "pl.DataFrame":
        """A row per scheme: FCT, slowdown and losses before, during and after faults; no rows without such phases."""
        import polars as pl

        metrics = phase_metrics(self.phases)
        rows = [
            {"scheme": label, "seeds": len(self.groups[label]), **_cells(values, metrics)}
            for label, values in (self.estimates_of(metrics) if metrics else {}).items()
        ]
        schema: dict[str, Any] = {"scheme": pl.String, "seeds": pl.Int64}
        return pl.DataFrame(rows, schema=schema | _floats(metrics))

    def _faults_told(self) -> dict[str, Any]:
        """What JSON says of faults; nothing without any."""
        if not self.faults:
            return {}
        told = [
            {"fault": fault.words, **msgspec.to_builtins(facts), "reactions": _by_label(found)}
            for fault, facts, found in zip(self.faults, self.runs[0].summary.faults, self.reactions, strict=False)
        ]
        # What was lost is said of each scheme, not of the first one.
        lost = {"lost_packets", "last_lost_us", "unroutable_packets", "last_unroutable_us"}
        faults = [{key: value for key, value in one.items() if key not in lost} for one in told]
        return {"faults": faults, "phases": self.phases_table.to_dicts()}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tables, ready for JSON."""
        verdict = self.verdict
        return {
            "version": _core.version(),
            "command": self.command,
            "set_up": self.set_up,
            "runs": [
                {**run.summary.raw, "label": run.summary.label, "directory": run_directory(run.summary)}
                for run in self.runs
            ],
            "schemes": self.table.to_dicts(),
            "load_sharing": {label: [asdict(one) for one in shares] for label, shares in self.load_sharing.items()},
            "bins": self.bins_table.to_dicts(),
            **self._faults_told(),
            "verdict": None
            if verdict is None
            else {
                "metric": verdict.metric.key,
                "winner": verdict.winner,
                "leader": verdict.leader,
                "against": verdict.other,
                "relative": verdict.relative,
                "difference_us": None
                if verdict.difference_us is None
                else {
                    "mean": verdict.difference_us.mean,
                    "ci95": verdict.difference_us.half_width,
                    "excludes_zero": verdict.difference_us.excludes_zero,
                },
                "sentences": list(verdict.sentences),
            },
        }

    def plot(self, figure: str) -> "Figure":
        """Draw a figure that is asked for in words, such as `p99 FCT by scheme`, `slowdown by size`, `CDF of fct_us`.

        Raises `SpecError`, with the nearest right name, for what there is not.
        """
        from weft.drawing.runs import draw_in_words

        return draw_in_words(self.to_draw(), figure)

    def to_draw(self) -> "RunsToDraw":
        """Return what figures may show."""
        from weft.drawing.runs import Group, RunsToDraw

        groups = [Group({"scheme": label}, runs) for label, runs in self.summaries.items()]

        def flows(group: Group) -> "pl.DataFrame":
            import polars as pl

            return pl.concat([run.flows for run in self.groups[group.labels["scheme"]]], how="diagonal")

        return RunsToDraw(Fields({"scheme": list(self.groups)}), groups, flows)

    def plot_fct(self) -> "Figure":
        """Draw flow completion time by size bin: mean and 99th percentile."""
        from weft import figures

        return figures.fct_by_size(self.groups)

    def plot_slowdown(self) -> "Figure":
        """Draw the cumulative distribution of slowdown, all flows and small ones."""
        from weft import figures

        return figures.slowdown_cdf(self.groups)

    def plot_waits(self) -> "Figure":
        """Draw where data packets waited, by tier."""
        from weft import figures

        return figures.waits(self.groups)

    def plot_link_load(self) -> "Figure":
        """Draw how evenly links were loaded over the run: cumulative distributions."""
        from weft import figures

        return figures.link_load_cdf(self.groups)

    def plot_collectives(self) -> "Figure | None":
        """Draw how long collectives took, and where the time on their critical paths went; None without any."""
        from weft.figures_collectives import collectives

        return collectives(self.summaries, self.line_rate_mbps)

    def plot_over_time(self) -> "Mapping[str, Figure]":
        """Draw uplinks, queues and throughput over time, by name of figure; nothing unless runs were sampled."""
        from weft.figures_over_time import figures_over_time

        return figures_over_time(self.groups)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML file; replaces an older one."""
        from weft.report import render

        target = Path(path)
        write_file(target, render(self))
        return target

    def write(
        self, directory: str | os.PathLike[str], *, force: bool = False, figures: Sequence[str] = ()
    ) -> "Comparison":
        """Write runs, tables, figures and report to a directory; returns the comparison as loaded from it.

        `figures` are drawn beside those that are always there, in words as for `plot`.
        """
        asked = read_asked(figures, Fields({"scheme": list(self.groups)}))
        target = Path(directory)
        with staged_directory(target, force=force) as staging:
            for run in self.runs:
                run.write(staging / run_directory(run.summary))
            self._write_rest(staging, asked)
        return load_comparison(target)

    def _write_rest(self, directory: Path, asked: Sequence[Asked] = ()) -> None:
        from weft import figures
        from weft.drawing.runs import draw_runs

        (directory / "compare.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        (directory / "table.csv").write_text(self.table.write_csv(), encoding="utf-8")
        if self.phases:
            (directory / "phases.csv").write_text(self.phases_table.write_csv(), encoding="utf-8")
        if self.size_bins:
            (directory / "bins.csv").write_text(self.bins_table.write_csv(), encoding="utf-8")
        # By way of memory: a full disk is then an OSError, as everywhere else.
        parquet = BytesIO()
        self.table.write_parquet(parquet)
        (directory / "table.parquet").write_bytes(parquet.getvalue())
        place = directory / "figures"
        place.mkdir()
        drawn = {
            "fct-by-size": self.plot_fct(),
            "slowdown-cdf": self.plot_slowdown(),
            "waits": self.plot_waits(),
            "link-load-cdf": self.plot_link_load(),
            **self.plot_over_time(),
        }
        if (critical := self.plot_collectives()) is not None:
            drawn["collectives"] = critical
        for name, figure in drawn.items():
            for suffix in ("png", "pdf"):
                figures.save(figure, place / f"{name}.{suffix}")
        for one in asked:
            figure = draw_runs(self.to_draw(), one)
            for suffix in figures.FORMATS:
                figures.save(figure, place / f"{one.name}.{suffix}")
        self.report(directory / "report.html")


def _cells(values: Mapping[str, Estimate | None], metrics: Sequence[Metric]) -> dict[str, float | None]:
    cells: dict[str, float | None] = {}
    for metric in metrics:
        value = values[metric.key]
        cells[metric.key] = value.mean if value else None
        cells[f"{metric.key}_ci95"] = value.half_width if value else None
    return cells


def _floats(metrics: Sequence[Metric]) -> dict[str, Any]:
    import polars as pl

    return dict.fromkeys((f"{metric.key}{end}" for metric in metrics for end in ("", "_ci95")), pl.Float64)


def _by_label(found: Mapping[str, Reaction]) -> dict[str, Any]:
    return {label: asdict(one) for label, one in found.items()}


def run_directory(summary: Summary) -> str:
    """Where the directory of a comparison keeps one run."""
    (called,) = json.loads(_core.contenders([(summary.label, True)]))
    return f"runs/{called['slug']}-seed{summary.seed}"


def compare(
    schemes: Iterable[SchemeLike],
    *,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    store: str | os.PathLike[str] | None = None,
    progress: Told[RunProgress] = None,
    command: str | None = None,
    figures: Sequence[str] = (),
) -> Comparison:
    """Run every scheme on the same flows, once for each seed, several runs at a time.

    A scheme is a name (`"letflow"`), a name with parameters (`"letflow:gap=100us"`) or a class that follows
    `weft.SwitchBalancer` or `weft.SwitchFactory`. `seeds` is a number of seeds (5 means 1 to 5) or the seeds
    themselves; without it the spec's own seed is used. With `out`, everything is written to that directory, and runs
    are kept in a store as they end (`store`, by default `.weft` beside the directory): a comparison that was stopped
    goes on where it was, and runs that another command did are not done again. `jobs` is how many cores of this
    machine to use in all, one for each run, or several if there are fewer runs; `cluster` is the address of a Dask
    scheduler, or a `Batch`, to run them elsewhere. `figures` are drawn into that directory beside those that are always
    there, in words as for `Comparison.plot`. `progress` is told how far each run is; without it there is a bar in a
    notebook and on a terminal, unless it is False.

    Raises `SpecError` for a bad spec before anything runs, `OutputError` if the directory exists (without `force`) or
    cannot be written, and `ClusterError`.
    """
    kept_in = named_store(store) if out is None else place_of_store(out, store)
    if cluster is not None and kept_in is None:
        raise SpecError("runs of a cluster come back as files: say where to with --out or --store")
    if figures and out is None:
        raise SpecError("figures are files: say where to with --out")
    executor = Executor(kept_in, jobs=jobs, cluster=cluster)
    runs = _plan(schemes, spec, set, seeds, tables=() if kept_in is None else TABLES)
    asked = read_asked(figures, Fields({"scheme": list(dict.fromkeys(run.labels["scheme"] for run in runs))}))
    if out is None:
        with executor, jobs_bar(progress, len(runs)) as tell:
            work = _Work(runs, executor, tell, None)
            return Comparison(work.do(), kept=work.kept, command=command)
    with staged_directory(Path(out), force=force) as staging, executor, jobs_bar(progress, len(runs)) as tell:
        (staging / "runs").mkdir()
        work = _Work(runs, executor, tell, staging)
        Comparison(work.do(), command=command)._write_rest(staging, asked)
    return replace(load_comparison(out), kept=work.kept)


class _Work:
    """The runs of a comparison: those that were done before, and those to do."""

    def __init__(
        self, runs: Sequence[Run], executor: Executor, progress: JobsCallback | None, directory: Path | None
    ) -> None:
        self._runs, self._executor, self._directory = runs, executor, directory
        self._watch = None if progress is None else RunWatch(progress)
        self._results: dict[int, Result] = {}
        self.kept = 0

    def do(self) -> list[Result]:
        """Do the runs that are not there, and return all; the first error stops them. Each is in the directory."""
        todo: list[Run] = []
        for run in self._runs:
            if (stored := self._executor.find(run)) is not None:
                self._take(run, stored.result, 0.0)
            else:
                todo.append(run)
        self.kept = len(self._runs) - len(todo)
        self._executor.do(todo, self._done, None if self._watch is None else self._watch.running)
        return [self._results[run.index] for run in self._runs]

    def _done(self, run: Run, outcome: Outcome, stored: Stored | None) -> None:
        if outcome.cause is not None:
            raise outcome.cause
        result = stored.result if stored is not None else outcome.result
        if result is None:
            raise SpecError(f"{run.name}: {outcome.error}")
        self._take(run, result, outcome.provenance.took_s)

    def _take(self, run: Run, result: Result, took_s: float) -> None:
        # As the comparison names it.
        summary = msgspec.structs.replace(result.summary, label=run.labels["scheme"])
        path = result.path
        if self._directory is not None:
            path = result.write(self._directory / run_directory(summary))
        # What is on disk need not be held in memory.
        core = result.core if path is None else None
        self._results[run.index] = Result(summary, result.spec, core=core, path=path)
        if self._watch is not None:
            self._watch.done(run, summary, took_s)


class _Run(Summary, frozen=True, kw_only=True, omit_defaults=True):
    directory: str
    """Where the run is, from the comparison's directory."""


class _Document(msgspec.Struct, frozen=True):
    """What is read of `compare.json`."""

    runs: tuple[_Run, ...]
    command: str | None


def load_comparison(directory: str | os.PathLike[str]) -> Comparison:
    """Load the directory of a comparison, or of a single run."""
    path = Path(directory)
    if not (path / "compare.json").is_file():
        if (path / "summary.json").is_file():
            return Comparison([load(path)], path=path)
        raise OutputError(f"{path}: neither compare.json nor summary.json is there; not a result of weft")
    document = read_json(path / "compare.json", _Document)
    runs = [Result(run, load(path / run.directory).spec, path=path / run.directory) for run in document.runs]
    return Comparison(runs, command=document.command, path=path)


def _plan(
    schemes: Iterable[SchemeLike],
    spec: SpecLike,
    overrides: Overrides,
    seeds: int | Sequence[int] | None,
    *,
    tables: Sequence[str],
) -> list[Run]:
    """Lay out the runs; the core checks each of them before anything runs."""
    text = load_spec(spec)
    runs: list[Run] = []
    for variant in parse_variants(schemes):
        for seed in _seeds(seeds):
            run = resolved_run(
                text,
                len(runs),
                {"scheme": variant.label},
                overrides=overrides,
                seed=seed,
                contender=variant.contender,
                tables=tables,
            )
            labels = {**run.labels, "seed": str(run.seed)}
            runs.append(replace(run, labels=labels, factory=variant.factory))
    return runs


def _seeds(seeds: int | Sequence[int] | None) -> Sequence[int | None]:
    if seeds is None:
        return [None]
    chosen = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not chosen or len(set(chosen)) != len(chosen) or min(chosen) < 0:
        raise SpecError(f"seeds: expected one or more different numbers from 0, not {seeds}")
    return chosen
