"""The table of a sweep on the terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from weft.cli.console import Text
from weft.cli.layout import new_table, stacked
from weft.cli.tables import in_parts, is_informative
from weft.footnotes import footnotes
from weft.metrics import Metric, estimates
from weft.phases import fault_metrics
from weft.quantity import estimate_text, unit_and_scale
from weft.statistics import Estimate
from weft.sweeps import Sweep
from weft.sweeps.grid import SEED
from weft.sweeps.store import VERDICT

__all__ = ["print_sweep"]

_Value: TypeAlias = Estimate | None

_SENTENCES = 24
"""Most sentences of the verdict that are printed."""


def print_sweep(console: Console, sweep: Sweep, metrics: Sequence[Metric] | None = None) -> None:
    """Print a row per point, means over the seeds, in parts if it is too wide, and the verdict.

    Unasked, it has what variants are judged by: columns of collectives if all runs have some, and else of flows.
    """
    if sweep.description:
        console.print(sweep.description)
    waiting = metrics is None and sweep.has_collectives
    tables = [metrics or sweep.shown_metrics]
    _print_rows(console, sweep, tables[0], lambda _, values: any(values))
    notes = ["flows wait for each other, so their own times say little: --columns shows them"] if waiting else []
    if sweep.phases:
        tables.append(fault_metrics(sweep.phases))
    notes += footnotes((columns, [estimates(point.runs, columns) for point in sweep.points]) for columns in tables)
    if notes:
        console.print("; ".join(notes), style="dim")
    for unequal in sweep.notes:
        console.print(f"note: {unequal}")
    if sweep.phases:
        console.print("before, during and after the faults: a flow belongs to the time in which it starts")
        _print_rows(console, sweep, fault_metrics(sweep.phases), is_informative)
    if sweep.verdict is not None:
        said = sweep.verdict.sentences
        console.print()
        for sentence in said[:_SENTENCES]:
            console.print(sentence)
        if len(said) > _SENTENCES:
            console.print(f"{len(said) - _SENTENCES:,} sentences more: {sweep.path / VERDICT}")


def _print_rows(
    console: Console, sweep: Sweep, metrics: Sequence[Metric], telling: Callable[[Metric, Sequence[_Value]], bool]
) -> None:
    found = [estimates(point.runs, metrics) for point in sweep.points]
    shown = [metric for metric in metrics if telling(metric, [row[metric.key] for row in found])]
    for part in in_parts(console, shown, lambda columns: _table(sweep, columns, found)):
        console.print(part)


def _table(sweep: Sweep, metrics: Sequence[Metric], found: Sequence[Mapping[str, _Value]]) -> Table:
    fields = [key for key in sweep.swept if key != SEED]
    titles = [key.replace(".", ".\n") for key in fields]
    columns: list[list[str]] = []
    for metric in metrics:
        values = [row[metric.key] for row in found]
        unit, scale = unit_and_scale(metric.unit, [value.mean for value in values if value])
        titles.append(stacked(metric.title, unit))
        columns.append([estimate_text(value, metric.unit, scale) for value in values])
    table = new_table(*titles, left=titles[: len(fields)])
    for column in table.columns:
        column.no_wrap = True
    for place, point in enumerate(sweep.points):
        cells = [Text(point.labels[key]) for key in fields]
        table.add_row(*cells, *(column[place] for column in columns))
    return table
