"""The notes below tables: what sizes, signs and indices mean that the tables show, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence

from weft.metrics import Metric
from weft.ranking import listed
from weft.statistics import Estimate
from weft.summary import BINS

__all__ = ["Shown", "as_sentences", "footnotes"]

Shown = tuple[Sequence[Metric], Iterable[Mapping[str, Estimate | None]]]
"""The columns of a table, and the values of each row by the columns' keys."""


def footnotes(tables: Iterable[Shown], *, empty: bool = True) -> list[str]:
    """Explain the sizes of flows, Jain's index, bounds and intervals, each if the tables have it.

    Without `empty`, a table leaves out the columns that have no value.
    """
    keys: set[str] = set()
    found: list[Estimate] = []
    for metrics, rows in tables:
        for row in rows:
            values = {metric.key: row[metric.key] for metric in metrics}
            keys |= {key for key, value in values.items() if empty or value is not None}
            found += [value for value in values.values() if value is not None]
    notes = []
    if sizes := [f"{name} {BINS[name]}" for name in BINS if any(key.startswith(f"{name}_") for key in keys)]:
        notes.append(", ".join(sizes))
    if "background_fairness" in keys:
        notes.append("fairness is Jain's index: 1 if all carry as much")
    if signs := [sign for sign in ("≥", ">", "≤") if any(value.sign == sign for value in found)]:
        stands = "stands before a bound" if len(signs) == 1 else "stand before bounds"
        notes.append(f"{listed(signs)} {stands}: what is unfinished leaves the value open")
    if seeds := max((value.runs for value in found if value.half_width is not None), default=0):
        notes.append(f"± is the 95 % confidence half-width over {seeds:,} seeds")
    return notes


def as_sentences(notes: Iterable[str]) -> str:
    """Write notes as sentences of a paragraph."""
    return " ".join(f"{note[0].upper()}{note[1:]}." for note in notes)
