"""Report on collectives: their tables, the pauses, and the time on critical paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.collectives import (
    CRITICAL_PARTS,
    collective_sentences,
    collective_tables,
    critical_parts,
    fabric_metrics,
    schedule_sentences,
)
from weft.palette import CRITICAL_COLOURS
from weft.report.cells import short
from weft.report.tables import Table, metric_table
from weft.summary_words import deadlock_words, pause_words

if TYPE_CHECKING:
    from weft.comparison import Comparison
    from weft.metrics import Metric

__all__ = ["SCRIPTS", "Collectives", "payload", "view"]

SCRIPTS = ("critical",)


@dataclass(frozen=True, slots=True)
class Collectives:
    """Page part of the report on collectives and pauses."""

    tables: dict[str, Table]
    """By kind of collective, and of the packets of whole runs."""
    sentences: Sequence[str]
    """On critical paths and on pauses."""
    deadlocks: Sequence[str]


def view(comparison: "Comparison") -> Collectives | None:
    """Return what the template shows; None unless every run has collectives, or one has pauses."""
    groups = comparison.summaries
    runs = [(label, run) for label, own in groups.items() for run in own]
    paused = [(label, run) for label, run in runs if run.lossless is not None and run.lossless.pauses]
    if not comparison.has_collectives and not paused:
        return None
    tables: dict[str, Table] = {}
    if comparison.has_collectives:
        for title, metrics in collective_tables(groups, comparison.line_rate_mbps):
            tables[title] = _table(comparison, metrics)
    else:
        tables["Pauses"] = _table(comparison, fabric_metrics())
    pauses = [
        f"{label}, seed {run.seed}: {pause_words(run.lossless, run.simulated_us)}."
        for label, run in paused
        if run.lossless is not None
    ]
    deadlocks = [
        f"{label}, seed {run.seed}: {deadlock_words(run.lossless.deadlock)}."
        for label, run in runs
        if run.lossless is not None and run.lossless.deadlock
    ]
    own = [*schedule_sentences(groups), *collective_sentences(groups)] if comparison.has_collectives else []
    return Collectives(tables, [*own, *pauses], deadlocks)


def payload(comparison: "Comparison") -> dict[str, Any] | None:
    """Return the parts of critical paths, and how long each took under each variant; None without any."""
    if not comparison.has_collectives:
        return None
    found = [critical_parts(runs) for runs in comparison.summaries.values()]
    if not any(found):
        return None
    keys = [key for key in CRITICAL_PARTS if any(parts.get(key) for parts in found)]
    return {
        "parts": [{"title": CRITICAL_PARTS[key], "colour": CRITICAL_COLOURS[key]} for key in keys],
        "schemes": [[short(parts[key]) for key in keys] if parts else None for parts in found],
    }


def _table(comparison: "Comparison", metrics: "Sequence[Metric]") -> Table:
    found = comparison.estimates_of(metrics)
    return metric_table({(label,): row for label, row in found.items()}, metrics, apart=comparison.references)
