"""Do hosts pause? The gaps between packets of a flow as its first switch sees them, and the flowlets that they make.

A load balancer that moves flowlets (CONGA, LetFlow, CLOVE, MEET) can move a flow only where its packets pause for
longer than the scheme's gap. So these decide what such a scheme can do at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.errors import SpecError
from weft.packets import packets
from weft.runs.run import resolved_run
from weft.simulation import Overrides, ProgressCallback
from weft.spec import SpecLike, load_spec
from weft.variant import parse_variants

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["THRESHOLDS_US", "Gaps", "measure"]

THRESHOLDS_US: Sequence[float] = tuple(base * 10**power for power in range(5) for base in (1.0, 2.0, 5.0))
"""The gaps in microseconds that may begin a flowlet: 1 µs to 50 ms."""


@dataclass(frozen=True)
class Gaps:
    """The gaps of several variants on the same flows."""

    packets: "pl.DataFrame"
    """A row a data packet that left its host: `variant`, `flow`, `time_us`, `bytes`, and `gap_us` since the one
    before it of its flow; null for the first."""
    variants: Sequence[str]

    @cached_property
    def table(self) -> "pl.DataFrame":
        """A row a variant and gap: flowlets, their mean size, and the share of flows that have more than one."""
        import polars as pl

        def row(variant: str, threshold: float) -> dict[str, object]:
            own = self.packets.filter(pl.col("variant") == variant)
            begins = pl.col("gap_us").is_null() | (pl.col("gap_us") > threshold)
            flows = own.group_by("flow").agg(begins.sum().alias("flowlets"), pl.col("bytes").sum())
            flowlets = int(flows["flowlets"].sum())
            return {
                "variant": variant,
                "gap_us": threshold,
                "flows": flows.height,
                "flowlets": flowlets,
                "mean_flowlet_bytes": flows["bytes"].sum() / flowlets,
                "share_of_flows_with_several": (flows["flowlets"] > 1).mean(),
            }

        return pl.DataFrame([row(variant, gap) for variant in self.variants for gap in THRESHOLDS_US])

    def plot(self) -> "Figure":
        """The mean flowlet, and the share of flows with more than one, over the gap that begins one."""
        import polars as pl

        from weft.figures import legend_above, new_figure
        from weft.palette import looks

        with new_figure(7.2, 2.9 + 0.2 * len(self.variants)) as figure:  # labels are long: a line each
            sizes, shares = figure.subplots(1, 2, sharex=True)
            for label, look in looks(self.variants).items():
                own = self.table.filter(pl.col("variant") == label)
                style = {"label": label, "color": look.colour, "linestyle": look.dash}
                sizes.plot(own["gap_us"], own["mean_flowlet_bytes"] / 1_000.0, **style)
                shares.plot(own["gap_us"], 100.0 * own["share_of_flows_with_several"], **style)
            for axes, title in ((sizes, "mean flowlet (KB)"), (shares, "flows with several (%)")):
                axes.set_xscale("log")
                axes.set_xlabel("gap that begins a flowlet (µs)")
                axes.set_ylabel(title)
            sizes.set_yscale("log")
            shares.set_ylim(bottom=0.0)
            legend_above(figure, len(self.variants))
        return figure


def measure(
    variants: Sequence[str],
    *,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> Gaps:
    """Run each variant, as `weft.compare` names them, and list the data packets that leave hosts.

    A gap is the time from the first bit of one packet on its host's cable to the first bit of the next one of the flow.
    """
    import polars as pl

    labels = [variant.label for variant in parse_variants(variants)]
    text, found = load_spec(spec), []
    for label in labels:  # a mistake in the last one is told before the first one takes its time
        resolved_run(text, 0, {}, overrides=set, seed=seed, variant=label)
    for label in labels:
        listed = packets(["hosts"], variant=label, spec=spec, set=set, seed=seed, progress=progress)
        gap = (pl.col("time_us") - pl.col("time_us").shift(1).over("flow")).alias("gap_us")
        own = listed.filter(pl.col("kind") == "data").select(
            pl.lit(label).alias("variant"), "flow", "time_us", "bytes", gap
        )
        if own.is_empty():
            raise SpecError(f"{label}: no data packet left a host")
        found.append(own)
    return Gaps(pl.concat(found), labels)
