"""The part of the report about faults: what they did to each scheme, and where packets were lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from weft.phases import phase_metrics, reaction_sentences
from weft.quantity import number, time_us
from weft.report.tables import Cell, Head, Row, Table, metric_table

if TYPE_CHECKING:
    from weft.comparison import Comparison
    from weft.faults import Fault
    from weft.report.picture import Mark
    from weft.simulation import Result
    from weft.statistics import Estimate
    from weft.summary import FaultFacts

__all__ = ["CAUSES", "FaultsTold", "drops_table", "marks", "payload", "view"]

_MOST_PLACES = 40
"""Rows of the table of drops: the places where most was lost."""
CAUSES: Mapping[str, str] = {
    "queue": "the queue was full",
    "down": "the link was down",
    "loss": "the wire lost them",
    "blackhole": "blackhole",
    "no-route": "no way to go",
    "input": "the node's own queue was full",
    "shared-buffer": "the switch's shared buffer was full",
    "headroom": "the headroom behind a pause was full",
}
"""Why packets were lost, as the table of drops names it and as people do."""


def mark_of(facts: "FaultFacts") -> "Mark":
    """Say in one word how a fault is drawn."""
    return "cut" if facts.down else "degraded"


def marks(faults: "Sequence[Fault]", hit: "Sequence[FaultFacts]") -> dict[str, tuple["Mark", str]]:
    """Return, for each link that a fault hits, how it is drawn and what happens to it."""
    found: dict[str, tuple[Mark, str]] = {}
    for fault, facts in zip(faults, hit, strict=False):
        for link in facts.links:
            before = found.get(link)
            mark: Mark = "cut" if "cut" in (mark_of(facts), before and before[0]) else "degraded"
            found[link] = (mark, f"{before[1]}; {fault.effect}" if before else fault.effect)
    return found


def payload(comparison: "Comparison") -> list[dict[str, Any]]:
    """Return what the scripts draw of each fault: when, which links, and how."""
    return [
        {
            "text": fault.words,
            "from": facts.from_us,
            "until": facts.until_us,
            "links": list(facts.links),
            "mark": mark_of(facts),
        }
        for fault, facts in _pairs(comparison)
    ]


def _pairs(comparison: "Comparison") -> list[tuple["Fault", "FaultFacts"]]:
    return list(zip(comparison.faults, comparison.runs[0].summary.faults, strict=False))


@dataclass(frozen=True, slots=True)
class FaultsTold:
    """Page part of the report on faults."""

    table: Table | None
    """Before, during and after; None if the whole run is one of these."""
    flows: str
    """How many flows start in each of them."""
    sentences: Sequence[str]


def view(comparison: "Comparison") -> FaultsTold | None:
    """Return what the template shows; None without anything to tell."""
    sentences = reaction_sentences(comparison.faults, comparison.summaries)
    if not comparison.phases:
        return FaultsTold(None, "", sentences) if sentences else None
    metrics = phase_metrics(comparison.phases)
    estimates = comparison.estimates_of(metrics)
    rows: dict[tuple[str, ...], Mapping[str, Estimate | None]] = {(label,): row for label, row in estimates.items()}
    first = comparison.runs[0].summary
    flows = ", ".join(f"{one.flows:,} {one.phase}" for one in first.phases)
    return FaultsTold(metric_table(rows, metrics, apart=comparison.references), flows, sentences)


def drops_table(comparison: "Comparison") -> Table | None:
    """Return a row for each place, reason and scheme, where most was lost first: sums over the seeds; None without any.

    Runs without faults do not know reasons.
    """
    runs = [(label, run) for label, runs in comparison.groups.items() for run in runs]
    frames = [_drops(run).with_columns(scheme=pl.lit(label)) for label, run in runs]
    lost = pl.concat(frames)
    if lost.is_empty():
        return None
    sums = lost.group_by("scheme", "place", "cause", maintain_order=True).agg(
        pl.col("packets").sum(), pl.col("last_us").max()
    )
    most = sums.group_by("place", "cause").agg(total=pl.col("packets").sum())
    most = most.sort("total", "place", "cause", descending=[True, False, False]).head(_MOST_PLACES)
    order = pl.DataFrame({"scheme": list(comparison.groups)}).with_row_index("order")
    shown = most.join(sums, on=["place", "cause"]).join(order, on="scheme")
    shown = shown.sort("total", "place", "cause", "order", descending=[True, False, False, False])
    rows = [_row(row) for row in shown.iter_rows(named=True)]
    heads = [Head("where"), Head("why"), Head("scheme"), Head("lost packets"), Head("the last at")]
    return Table(heads if comparison.faults else [heads[0], *heads[2:4]], rows)


def _drops(run: "Result") -> pl.DataFrame:
    """Return where a run lost packets: `place`, `cause` (empty where nobody knows), `packets`, `last_us`."""
    if run.summary.faults:
        return run.drops.select("place", "cause", "packets", "last_us")
    lost = run.links.filter(pl.col("dropped_packets") > 0)
    place, packets = pl.col("link").alias("place"), pl.col("dropped_packets").alias("packets")
    return lost.select(place, pl.lit("").alias("cause"), packets, pl.lit(None, pl.Float64).alias("last_us"))


def _row(row: Mapping[str, Any]) -> Row:
    packets = Cell(str(row["packets"]), number(row["packets"]), "")
    if not row["cause"]:
        return Row((row["place"],), row["scheme"], [packets])
    last = Cell(repr(row["last_us"]), time_us(row["last_us"]), "")
    return Row((row["place"], CAUSES[row["cause"]]), row["scheme"], [packets, last])
