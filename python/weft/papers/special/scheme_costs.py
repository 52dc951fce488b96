"""Cost of schemes: CPU time for each decision, and the state that a switch keeps (TR Fig. 15, QALL Table IV).

The papers show the CPU and memory utilisation of software switches. Here it is what this program takes for each packet
that has a choice of ways, beyond what ECMP takes on the same flows, as `weft bench` works it out: the choice itself,
packets that a scheme looks at, timers, probes, and what its reordering costs at the ends. It depends on the machine and
on what else that does, and no two measurements agree; state does not.

The figure names one experiment, with ECMP among its variants and the table `links`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data
from weft.simulation import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWN", "LEFT_OUT", "decision_ns", "draw", "make"]

LEFT_OUT = "it tells what this program takes, in CPU time and memory, and not what a scenario makes of flows"

_BASE = "ecmp"

_TIME, _STATE = "CPU time per decision", "state per switch"

DRAWN = (
    PanelSpec(
        "(a) CPU time of this program, beyond ECMP",
        "",
        "bars",
        (Measure(label=_TIME, unit="count"),),
        y_label="ns per decision",
    ),
    PanelSpec(
        "(b) State of the scheme",
        "",
        "bars",
        (Measure(label=_STATE, unit="bytes"),),
        y_label="state per switch",
    ),
)


def make(context: SpecialContext) -> FigureData:
    """Work out both from the runs of the figure's experiment; the mean over its varied fields, for each seed."""
    return figure_data(_rows(context), context.runs)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw a bar for each scheme."""
    return draw_panels(paper, DRAWN, data, note)


def decision_ns(result: Result, base: Result) -> float | None:
    """CPU time for each decision beyond that of another run of the same flows, in ns; None without decisions.

    A decision is a packet, data or not, that goes from a rack up: that is given to a link of the tier `leaf`. CPU time
    is taken for each packet-hop, so that a run that sends more again does not count as one that decides more slowly.
    """
    links = result.links
    decisions = int(links.filter(links["tier"] == "leaf")["packets"].sum())
    hops, base_hops = result.summary.packet_hops, base.summary.packet_hops
    cpu_s, base_cpu_s = result.summary.cpu_s, base.summary.cpu_s
    if not decisions or not hops or not base_hops or cpu_s is UNSET or base_cpu_s is UNSET:
        return None
    more_s = cpu_s / hops - base_cpu_s / base_hops
    return 1e9 * more_s * hops / decisions


def _rows(context: SpecialContext) -> Iterator[tuple[Any, ...]]:
    (cases,) = context.cases.values()
    runs = {(case.variant, case.labels, case.seed): context.result(case) for case in cases}
    variants = list(dict.fromkeys(case.variant for case in cases))
    places = list(dict.fromkeys(case.labels for case in cases))
    seeds = list(dict.fromkeys(case.seed for case in cases))
    for variant in variants:
        for seed in seeds:
            pairs = [(runs[variant, place, seed], runs[_BASE, place, seed]) for place in places]
            times = [decision_ns(own, base) for own, base in pairs if own is not None and base is not None]
            yield (0, variant, "", None, seed, _TIME, _mean([time for time in times if time is not None]))
    for variant in variants:
        for seed in seeds:
            kept = [own.summary.state_bytes_per_switch for place in places if (own := runs[variant, place, seed])]
            yield (1, variant, "", None, seed, _STATE, float(max(kept)) if kept else None)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
