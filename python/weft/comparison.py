"""Comparing schemes on the same flows."""

import json
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from weft import _core
from weft.catalog import references
from weft.collectives import has_collectives
from weft.decoding import read_json
from weft.description import description_of
from weft.drawing.asked import Asked, Fields, read_asked
from weft.errors import OutputError
from weft.faults import Fault, faults_of
from weft.load_sharing import LoadSharing
from weft.metrics import ALL_METRICS, Metric, bin_metrics, cells, columns, estimates
from weft.output import staged_directory, write_file
from weft.phases import Reaction, phase_metrics, phases_of, reactions
from weft.quantity import plural
from weft.ranking import MATTERS, difference_json
from weft.samples import distinct
from weft.simulation import Result, load
from weft.spec import SpecText, parse_document
from weft.statistics import Estimate
from weft.summary import PhaseName, Summary
from weft.untrusted import one_line
from weft.verdict import Verdict, judge

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from weft.drawing.runs import RunsToDraw

__all__ = ["Comparison", "load_comparison", "run_directory"]


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
    notes: Sequence[str] = field(default=(), kw_only=True)
    """In what the schemes compete under unequal conditions, and which keys of the spec a transport did not take."""
    matters: float = field(default=MATTERS, kw_only=True)
    """The least difference that matters to the verdict, as a share."""

    def __repr__(self) -> str:
        return f"Comparison({one_line(', '.join(self.groups))}; {plural(len(self.runs), 'run')})"

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
    def references(self) -> Set[str]:
        """The labels of those that are references, no schemes, and win nothing."""
        return {label for label, runs in self.summaries.items() if runs[0].scheme in references()}

    @cached_property
    def samples(self) -> int:
        """The most seeds of a scheme that are samples: one, if no result depends on the seed."""
        return max(len(distinct(runs)) for runs in self.summaries.values())

    @cached_property
    def estimates(self) -> Mapping[str, Mapping[str, Estimate | None]]:
        """Every metric of `weft.metrics.ALL_METRICS` for each label, with its interval over the seeds."""
        return self.estimates_of(ALL_METRICS)

    def estimates_of(self, metrics: Sequence[Metric]) -> Mapping[str, Mapping[str, Estimate | None]]:
        """Some metrics for each label, with their intervals over the seeds."""
        return {label: estimates(runs, metrics) for label, runs in self.summaries.items()}

    @cached_property
    def size_bins(self) -> Sequence[str]:
        """Labels of the ranges of flow sizes that `run.bins` of the spec requests."""
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
        """Rate of the slowest host in Mbit/s, with which bus bandwidth is compared."""
        return self.runs[0].line_rate_mbps

    @cached_property
    def description(self) -> str:
        """Description of the comparison in one sentence: fabric, faults, traffic, load, transport, seeds."""
        return description_of(self.groups)

    @cached_property
    def verdict(self) -> Verdict | None:
        """Who wins on mean FCT, or on completion of collectives if there are any; None if nothing finished."""
        by_run = {(run.summary.label, run.summary.seed): run for run in self.runs}
        return judge(self.summaries, lambda of: by_run[of.label, of.seed].flows, matters=self.matters)

    @cached_property
    def table(self) -> "pl.DataFrame":
        """A row per scheme: each metric and, as `<metric>_ci95`, the half-width of its 95 % interval.

        A value that unfinished flows leave open is null; its bound is in `<metric>_at_least` or `<metric>_at_most`.
        """
        import polars as pl

        rows = [
            {"scheme": label, "seeds": len(self.groups[label]), **cells(values, ALL_METRICS)}
            for label, values in self.estimates.items()
        ]
        schema: dict[str, Any] = {"scheme": pl.String, "seeds": pl.Int64}
        return pl.DataFrame(rows, schema=schema | _floats(ALL_METRICS))

    @cached_property
    def bins_table(self) -> "pl.DataFrame":
        """A row per scheme and range of sizes that the spec asked for; no rows if it asked for none."""
        import polars as pl

        rows = [
            {"scheme": label, "seeds": len(self.groups[label]), "sizes": sizes, **cells(values, bin_metrics(place))}
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
            {"scheme": label, "seeds": len(self.groups[label]), **cells(values, metrics)}
            for label, values in (self.estimates_of(metrics) if metrics else {}).items()
        ]
        schema: dict[str, Any] = {"scheme": pl.String, "seeds": pl.Int64}
        return pl.DataFrame(rows, schema=schema | _floats(metrics))

    def _faults_told(self) -> dict[str, Any]:
        """Return the faults as JSON; an empty object without faults."""
        if not self.faults:
            return {}
        told = [
            {"fault": fault.words, **msgspec.to_builtins(facts), "reactions": _by_label(found)}
            for fault, facts, found in zip(self.faults, self.runs[0].summary.faults, self.reactions, strict=False)
        ]
        # What was lost is said of each scheme, not of the first one.
        lost = {"lost_packets", "last_lost_us", "unroutable_packets", "last_unroutable_us", "reaction"}
        faults = [{key: value for key, value in one.items() if key not in lost} for one in told]
        return {"faults": faults, "phases": self.phases_table.to_dicts()}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tables, ready for JSON."""
        verdict = self.verdict
        return {
            "version": _core.version(),
            "command": self.command,
            "matters": self.matters,
            "description": self.description,
            "notes": list(self.notes),
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
                "title": verdict.metric.title,
                "winner": verdict.winner,
                "leader": verdict.leader,
                "against": verdict.other,
                "relative": verdict.relative,
                **{"difference_us": None, f"difference_{verdict.metric.unit}": difference_json(verdict.difference_us)},
                "means": None if verdict.ranking is None else verdict.ranking.means_json(),
                "reason": None if verdict.reason is None else verdict.reason.to_dict(),
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
            self.write_rest(staging, asked)
        return load_comparison(target)

    def write_rest(self, directory: Path, asked: Sequence[Asked] = ()) -> None:
        """Write all but the runs to a directory that is being made."""
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
            figures.save_all(figure, place, name)
        for one in asked:
            figures.save_all(draw_runs(self.to_draw(), one), place, one.name)
        self.report(directory / "report.html")


def _floats(metrics: Sequence[Metric]) -> dict[str, Any]:
    import polars as pl

    return dict.fromkeys(columns(metrics), pl.Float64)


def _by_label(found: Mapping[str, Reaction]) -> dict[str, Any]:
    return {label: asdict(one) for label, one in found.items()}


def run_directory(summary: Summary) -> str:
    """Where the directory of a comparison keeps one run."""
    (called,) = json.loads(_core.variants([(summary.label, True)]))
    return f"runs/{called['slug']}-seed{summary.seed}"


class _Run(Summary, frozen=True, kw_only=True, omit_defaults=True):
    directory: str
    """Where the run is, from the comparison's directory."""


class _Document(msgspec.Struct, frozen=True):
    """Fields of `compare.json` that are read."""

    runs: tuple[_Run, ...]
    command: str | None
    notes: tuple[str, ...] = ()
    matters: float = MATTERS


def load_comparison(directory: str | os.PathLike[str]) -> Comparison:
    """Load the directory of a comparison, or of a single run."""
    path = Path(directory)
    if not (path / "compare.json").is_file():
        if (path / "summary.json").is_file():
            return Comparison([load(path)], path=path)
        raise OutputError(f"{path}: neither compare.json nor summary.json is there; not a result of weft")
    document = read_json(path / "compare.json", _Document)
    runs = [Result(run, load(path / run.directory).spec, path=path / run.directory) for run in document.runs]
    return Comparison(runs, command=document.command, path=path, notes=document.notes, matters=document.matters)
