"""How evenly a leaf's uplinks share its load, slot by slot: QALL's load sharing accuracy (section VI-C)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LoadSharing", "load_sharing"]


@dataclass(frozen=True, slots=True)
class LoadSharing:
    """Load sharing accuracy: utilisation of the busiest of a leaf's uplinks over that of the least busy one, less 1.

    0 is even. A slot is an interval of the samples, at one leaf.
    """

    slots: int
    """Slots in which every uplink of the leaf sent something: the numbers below are over these."""
    idle: int
    """Slots in which the leaf sent something and one of its uplinks nothing: the accuracy has no finite value."""
    mean: float | None
    p50: float | None
    p99: float | None
    """None of the three if there are no slots."""


def load_sharing(samples: "pl.DataFrame", links: "pl.DataFrame") -> LoadSharing | None:
    """Work it out from the tables `samples` and `links`; None without samples, or if no leaf has two uplinks.

    A link that is not in a slot of `samples` was idle. The length of a slot cancels out of the ratio; what remains of
    each link is bytes over rate, the rate at the end of the slot. A leaf with one uplink shares nothing.
    """
    import polars as pl

    uplinks = links.filter((pl.col("tier") == "leaf") & (pl.len().over("from", "tier") > 1))
    if samples.is_empty() or uplinks.is_empty():
        return None
    uplinks = uplinks.select("link", "from").with_columns(pl.len().over("from").alias("uplinks"))
    sent = samples.filter(pl.col("sent_bytes") > 0).join(uplinks, on="link")
    used = pl.col("sent_bytes") / pl.col("rate_bps")
    slots = sent.group_by("time_us", "from").agg(
        (used.max() / used.min() - 1.0).alias("accuracy"), (pl.len() < pl.col("uplinks").first()).alias("idle")
    )
    accuracy = slots.filter(~pl.col("idle"))["accuracy"]
    mean, p50, p99 = (
        None if accuracy.is_empty() else value
        for value in (accuracy.mean(), accuracy.quantile(0.5, "nearest"), accuracy.quantile(0.99, "nearest"))
    )
    return LoadSharing(len(accuracy), len(slots) - len(accuracy), _number(mean), _number(p50), _number(p99))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
