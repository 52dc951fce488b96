"""Notebook display of a result in place of its `repr`: the table and its sentences; of a paper, its figures."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.collectives import collective_tables
from weft.footnotes import as_sentences, footnotes
from weft.metrics import shown_metrics
from weft.papers.scorecard import SIGNS
from weft.papers.verdicts import Verdict, in_scenarios
from weft.report.page import render_template
from weft.report.tables import Cell, Head, Row, Table, metric_table
from weft.summary_words import summary_lines, summary_table
from weft.sweeps.grid import SEED

if TYPE_CHECKING:
    from weft.comparison import Comparison
    from weft.metrics import Metric
    from weft.papers.making import Made
    from weft.papers.reproduction import Reproduction
    from weft.simulation import Result
    from weft.sweeps import Sweep

__all__ = ["comparison_html", "reproduction_html", "result_html", "sweep_html"]

_SENTENCES = 24
"""Most sentences that are shown below a table."""


@dataclass(frozen=True, slots=True)
class _Part:
    title: str
    table: Table | None = None
    description: str = ""
    """Description of the runs in one sentence."""
    note: str = ""
    lines: Sequence[str] = ()
    picture: str = ""
    """A PNG in base64."""


def result_html(result: "Result") -> str:
    """Return one run."""
    titles, rows = summary_table(result.summary)
    cells = [Row((), row[0], [Cell(text, text, "") for text in row[1:]]) for row in rows]
    warnings = [f"Warning: {warning}" for warning in result.summary.warnings]
    title = f"{result.summary.label}, seed {result.summary.seed}"
    table = Table([Head(one) for one in titles], cells)
    return _html(_Part(title, table, result.description, lines=[*summary_lines(result.summary), *warnings]))


def comparison_html(comparison: "Comparison") -> str:
    """Return the tables of a comparison and its verdict: of collectives, or of flows without any."""
    said = comparison.verdict.sentences if comparison.verdict is not None else ()
    title = f"{_many(len(comparison.groups), 'scheme')} on the same flows"
    lines = [*_notes(comparison.notes), *_first(said)]
    if comparison.has_collectives:
        tables = dict(collective_tables(comparison.summaries, comparison.line_rate_mbps))
    else:
        tables = {"": list(shown_metrics(run.summary for run in comparison.runs))}
    parts = [_Part(name, _compared(comparison, metrics)) for name, metrics in tables.items()]
    starred = any(cell.best for part in parts if part.table for row in part.table.rows for cell in row.cells)
    found = [(metrics, comparison.estimates_of(metrics).values()) for metrics in tables.values()]
    legend = footnotes(found, empty=False)
    note = as_sentences([*(["bold: best in its column"] if starred else []), *legend])
    return _html(_Part(title, description=comparison.description), *parts, _Part("", note=note, lines=lines))


def _compared(comparison: "Comparison", metrics: "Sequence[Metric]") -> Table:
    """A row a scheme."""
    found = comparison.estimates_of(metrics)
    return metric_table({(label,): row for label, row in found.items()}, metrics, apart=comparison.references)


def sweep_html(sweep: "Sweep") -> str:
    """Return the table of a sweep and its verdict."""
    fields = [key for key in sweep.swept if key != SEED] or ["runs"]
    rows = {tuple(point.labels.values()) or ("all",): point.estimates for point in sweep.points}
    said = sweep.verdict.sentences if sweep.verdict is not None else ()
    failed = [f"{_many(len(sweep.failed), 'run')} failed: {sweep.failed[0].error}"] if sweep.failed else []
    title = f"{' × '.join(fields)}: {_many(len(sweep.runs), 'run')}"
    note = as_sentences(footnotes([(sweep.shown_metrics, [point.estimates for point in sweep.points])], empty=False))
    table = metric_table(rows, sweep.shown_metrics, fields, best=False)
    return _html(_Part(title, table, sweep.description, note, lines=[*failed, *_notes(sweep.notes), *_first(said)]))


def reproduction_html(reproduction: "Reproduction") -> str:
    """Return the figures of papers, and what became of the claims that each tests."""
    parts = [_figure(made) for made in reproduction.made]
    parts += [_Part(f"{one.key}: {one.title}", lines=[f"not made: {one.reason}"]) for one in reproduction.not_made]
    return _html(*parts)


def _figure(made: "Made") -> _Part:
    """The picture as it was written, and a row a claim."""
    rows = []
    for one in made.verdicts:
        measured = one["measured"]["text"] if one["measured"] else "-"
        said = in_scenarios(Verdict(one["verdict"]), elsewhere=one["other"] is not None)
        rows.append(Row([one["text"], measured], f"{SIGNS[said]} {said}", ()))
    picture = next((b64encode(file.read_bytes()).decode() for file in made.files if file.suffix == ".png"), "")
    table = Table([Head("claim"), Head("measured"), Head("verdict")], rows)
    lines = [f"not made: {made.error}"] if made.error is not None else []
    return _Part(f"{made.figure.key}: {made.figure.title}", table, lines=lines, picture=picture)


def _html(*parts: _Part) -> str:
    return render_template("notebook.html", parts=parts)


def _notes(notes: Sequence[str]) -> list[str]:
    return [f"Note: {note}" for note in notes]


def _first(sentences: Sequence[str]) -> list[str]:
    shown = list(sentences[:_SENTENCES])
    rest = len(sentences) - len(shown)
    return [*shown, f"{_many(rest, 'sentence')} more: verdict.sentences"] if rest else shown


def _many(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"
