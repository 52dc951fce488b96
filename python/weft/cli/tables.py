"""Tables on the terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.console import one_line
from weft.collectives import COLLECTIVE_TITLES, collective_rows, collective_sentences
from weft.comparison import Comparison
from weft.load_sharing import LoadSharing
from weft.metrics import METRICS, Metric, best_labels, bin_metrics
from weft.phases import phase_metrics, reaction_sentences
from weft.quantity import estimate_text, percent, plain, unit_and_scale
from weft.statistics import estimate
from weft.summary import BINS, Summary
from weft.summary_words import summary_lines, summary_table

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "in_parts",
    "new_table",
    "print_comparison",
    "print_load_sharing",
    "print_programs",
    "print_summary",
    "stacked",
]


def new_table(*titles: str, left: Sequence[str] = (), title: str | None = None) -> Table:
    """Make an empty table; columns are right-aligned unless their title is in `left`."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1),
        header_style="bold",
    )  # fmt: skip
    for title in titles:
        table.add_column(title, justify="left" if title in left else "right", overflow="fold")
    return table


def print_comparison(
    console: Console, comparison: Comparison, metrics: Sequence[Metric] = METRICS, *, load_sharing: bool = False
) -> None:
    """Print what was run, the table, in parts if it is too wide, one for each range of sizes, and the verdict."""
    console.print(comparison.set_up)
    for part in _parts(console, comparison, metrics):
        console.print(part)
    for place, sizes in enumerate(comparison.size_bins):
        flows = max(run.summary.size_bins[place].flows for run in comparison.runs)
        console.print(Text(f"flows of {sizes} ({flows:,})", style="bold"))
        for part in _parts(console, comparison, _telling(comparison, bin_metrics(place))):
            console.print(part)
    seeds = max(len(runs) for runs in comparison.groups.values())
    interval = f"; ± is the 95 % confidence half-width over {seeds} seeds" if seeds > 1 else ""
    sizes = f"small {BINS['small']}, medium {BINS['medium']}, large {BINS['large']}"
    console.print(f"* best in its column; {sizes}{interval}", style="dim")
    _print_phases(console, comparison)
    _print_collectives(console, comparison.summaries)
    if load_sharing and comparison.load_sharing:
        console.print(_load_sharing_table(comparison))
    if comparison.verdict is not None:
        console.print()
        for sentence in comparison.verdict.sentences:
            console.print(sentence)


def _print_collectives(console: Console, groups: Mapping[str, Sequence[Summary]]) -> None:
    """Print a row for each collective and scheme, and where the time on critical paths went; nothing without any."""
    rows = list(collective_rows(groups))
    if not rows:
        return
    table = new_table(*(stacked(*_with_unit(title)) for title in COLLECTIVE_TITLES), left=("collective ", "scheme "))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    for sentence in collective_sentences(groups):
        console.print(sentence)


def _with_unit(title: str) -> tuple[str, str]:
    """Cut a title into its words and the unit behind them."""
    words, _, unit = title.partition(" (")
    return words, unit.removesuffix(")")


def _print_phases(console: Console, comparison: Comparison) -> None:
    """Print what faults did: a table of before, during and after, and when each scheme had moved away."""
    if comparison.phases:
        flows = [
            f"{one.flows:,} start {name}"
            for name in comparison.phases
            if (one := comparison.runs[0].summary.phase(name)) is not None
        ]
        console.print(Text(f"before, during and after the faults: of the flows, {', '.join(flows)}", style="bold"))
        for part in _parts(console, comparison, _telling(comparison, phase_metrics(comparison.phases))):
            console.print(part)
    for sentence in reaction_sentences(comparison.faults, comparison.summaries):
        console.print(sentence)


def _telling(comparison: Comparison, metrics: Sequence[Metric]) -> list[Metric]:
    """Leave out the columns that say nothing: how many flows (the heading does), no value, none unfinished or lost."""
    rows = comparison.estimates_of(metrics).values()

    def tells(metric: Metric) -> bool:
        values = [value.mean for row in rows if (value := row[metric.key]) is not None]
        may_be_zero = metric.key != "unfinished" and not metric.key.endswith("_lost_packets")
        return metric.key != "flows" and bool(values) and (may_be_zero or any(values))

    return [metric for metric in metrics if tells(metric)]


def _parts(console: Console, comparison: Comparison, metrics: Sequence[Metric]) -> list[Table]:
    return in_parts(console, metrics, lambda columns: _comparison_table(comparison, columns))


def in_parts(console: Console, metrics: Sequence[Metric], make: Callable[[Sequence[Metric]], Table]) -> list[Table]:
    """Lay out the columns in as few tables as fit the console's width; `make` makes a table of some of them."""
    unbounded = console.options.update(max_width=10_000)
    parts: list[Table] = []
    columns = list(metrics)
    while columns:
        taken = len(columns)
        table = make(columns)
        while taken > 1 and console.measure(table, options=unbounded).maximum > console.width:
            taken -= 1
            table = make(columns[:taken])
        parts.append(table)
        columns = columns[taken:]
    return parts


def _comparison_table(comparison: Comparison, metrics: Sequence[Metric]) -> Table:
    estimates = comparison.estimates_of(metrics)
    cells: dict[str, list[Text]] = {label: [] for label in estimates}
    titles = ["scheme"]
    for metric in metrics:
        values = [value.mean for row in estimates.values() if (value := row[metric.key])]
        unit, scale = unit_and_scale(metric.unit, values)
        titles.append(stacked(metric.title, unit))
        best = best_labels(estimates, metric, comparison.bounds)
        for label, row in estimates.items():
            text = estimate_text(row[metric.key], metric.unit, scale)
            cells[label].append(Text(f"{text}*", style="bold") if label in best else Text(f"{text} "))
    table = new_table(*titles, left=("scheme",))
    for column in table.columns:
        column.no_wrap = True
    for label, texts in cells.items():
        table.add_row(Text(label), *texts)
    return table


def stacked(title: str, unit: str) -> str:
    """Break a title over lines, its unit last, so that columns stay narrow."""
    words = title.replace("out of order", "out of|order").replace(" ", "\n").replace("out\nof|", "out of\n")
    return f"{words}\n({unit}) " if unit else f"{words} "


def print_summary(console: Console, summary: Summary) -> None:
    """Print the statistics of one run."""
    titles, rows = summary_table(summary)
    table = new_table(*titles, left=titles[:1])
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in summary_lines(summary):
        console.print(line)
    _print_collectives(console, {summary.label: [summary]})
    for warning in summary.warnings:
        console.print(f"warning: {warning}")
    console.print(_speed_line(summary), style="dim")


def _load_sharing_table(comparison: Comparison) -> Table:
    """Lay out how evenly uplinks shared the load: means over the seeds."""
    table = new_table("load sharing accuracy", "mean (%)", "p50 (%)", "p99 (%)", "slots", "with an idle uplink",
        left=("load sharing accuracy",),
    )  # fmt: skip
    for label, shares in comparison.load_sharing.items():
        cells = []
        for name in ("mean", "p50", "p99"):
            values = [value for one in shares if (value := getattr(one, name)) is not None]
            cells.append(estimate_text(estimate(values), "share", 1.0) if values else "-")
        counts = (f"{sum(one.slots for one in shares):,}", f"{sum(one.idle for one in shares):,}")
        table.add_row(Text(label), *cells, *counts)
    return table


def print_load_sharing(console: Console, shares: LoadSharing) -> None:
    """Print how evenly uplinks shared the load in one run."""
    accuracy = (
        "no slot in which all uplinks of a leaf sent"
        if shares.mean is None or shares.p99 is None
        else f"mean {percent(shares.mean)}, p99 {percent(shares.p99)} over {shares.slots:,} slots"
    )
    console.print(f"load sharing accuracy of uplinks: {accuracy}, {shares.idle:,} with an idle uplink")


def print_programs(console: Console, programs: "pl.DataFrame") -> None:
    """Print how each program of the traffic ended, a line each, with the last line that it wrote."""
    table = new_table("program", "host", "command", "outcome", "from (ms)", "to (ms)", "its last line",
        left=("command", "outcome", "its last line"),
    )  # fmt: skip
    for row in programs.iter_rows(named=True):
        ends = (None if row[key] is None else row[key] / 1000.0 for key in ("start_us", "end_us"))
        code = "" if not row["exit_code"] else f" with {row['exit_code']}"
        said = (row["output"].strip() or row["errors"].strip()).splitlines()
        words = (row["command"], f"{row['outcome']}{code}", *map(_cell, ends), said[-1] if said else "")
        table.add_row(str(row["program"]), str(row["host"]), *(Text(_short(one_line(word))) for word in words))
    console.print(table)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cell(value: float | None) -> str:
    return "-" if value is None else plain(value)


def _speed_line(summary: Summary) -> str:
    hops, speed = f"{summary.packet_hops:,} packet-hops", summary.packet_hops_per_cpu_s
    if summary.cpu_s is UNSET:
        return hops
    rate = "" if speed is UNSET or speed is None else f", {plain(speed / 1e6)} million per CPU-second"
    return f"{hops} in {summary.cpu_s:.2f} CPU-seconds{rate}"
