"""How evenly a leaf's uplinks share its load, slot by slot: QALL's load sharing accuracy (section VI-C)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.percentiles import percentile

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LoadSharing", "accuracy_of_slots", "load_sharing"]


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
    """Work it out from the tables `samples` and `links`; None without samples, or if no leaf has two uplinks."""
    import polars as pl

    uplinks = _uplinks(links)
    if samples.is_empty() or uplinks.is_empty():
        return None
    slots = accuracy_of_slots(samples, links, pl.col("time_us"))
    accuracy = slots["accuracy"].drop_nulls()
    mean = accuracy.mean()
    return LoadSharing(
        slots=len(accuracy),
        idle=len(slots) - len(accuracy),
        mean=float(mean) if isinstance(mean, int | float) else None,
        p50=percentile(accuracy, 0.5),
        p99=percentile(accuracy, 0.99),
    )


def accuracy_of_slots(samples: "pl.DataFrame", links: "pl.DataFrame", slot: "pl.Expr") -> "pl.DataFrame":
    """Return a row for each slot and leaf that sent something in it: `slot`, `from`, `accuracy`.

    `slot` says to which slot a row of `samples` belongs. The accuracy is null where one of the leaf's uplinks was idle,
    as is a link that is not in a slot of `samples`. The length of a slot cancels out of the ratio; what remains of each
    link is bytes over rate, the mean rate of each interval. A leaf with one uplink shares nothing.
    """
    import polars as pl

    used = (pl.col("sent_bytes") / pl.col("rate_bps")).sum().alias("used")
    busiest, least_busy = pl.col("used").max(), pl.col("used").min()
    return (
        samples.filter(pl.col("sent_bytes") > 0)
        .with_columns(slot.alias("slot"))
        .join(_uplinks(links), on="link")
        .group_by("slot", "from", "link")
        .agg(pl.col("uplinks").first(), used)
        .group_by("slot", "from")
        .agg(pl.when(pl.len() == pl.col("uplinks").first()).then(busiest / least_busy - 1.0).alias("accuracy"))
    )


def _uplinks(links: "pl.DataFrame") -> "pl.DataFrame":
    """Return the links from leaves that have several to the next tier: `link`, `from`, `uplinks`."""
    import polars as pl

    return links.filter((pl.col("tier") == "leaf") & (pl.len().over("from", "tier") > 1)).select(
        "link", "from", pl.len().over("from").alias("uplinks")
    )
