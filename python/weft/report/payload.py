"""The numbers behind the report's charts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.curves import slowdown_curve
from weft.palette import TIER_COLOURS, looks
from weft.report.over_time import curves
from weft.statistics import estimate
from weft.summary import BINS, TIERS, BinName, Summary

if TYPE_CHECKING:
    from weft.comparison import Comparison

__all__ = ["payload"]


def payload(comparison: "Comparison") -> dict[str, Any]:
    """Everything that the page's script draws."""
    groups = comparison.groups
    return {
        "schemes": [
            {"label": label, "colour": look.colour, "dark": look.dark_colour, "dash": look.dash}
            for label, look in looks(groups).items()
        ],
        "bins": [{"name": name, "title": title} for name, title in BINS.items()],
        "tiers": [{"name": name, "title": title, "colour": TIER_COLOURS[name]} for name, title in TIERS.items()],
        "fct": {
            statistic: [
                [_fct(summaries, name, statistic) for name in BINS] for summaries in comparison.summaries.values()
            ]
            for statistic in ("mean", "p50", "p99")
        },
        "slowdown": {name: [_curve(slowdown_curve(runs, name)) for runs in groups.values()] for name in BINS},
        "time": curves(comparison),
        "waits": [[_wait(summaries, tier) for tier in TIERS] for summaries in comparison.summaries.values()],
    }


def _fct(summaries: Sequence[Summary], name: BinName, statistic: str) -> list[float] | None:
    """Mean and the ends of its interval, in microseconds."""
    values = [getattr(summary.bins[name].fct_us, statistic) for summary in summaries]
    present = [value for value in values if value is not None]
    if not present:
        return None
    value = estimate(present)
    return [_short(value.mean), _short(value.low), _short(value.high)]


def _curve(curve: tuple[list[float], list[float]]) -> list[list[float]]:
    return [[_short(value) for value in curve[0]], [round(share, 5) for share in curve[1]]]


def _wait(summaries: Sequence[Summary], tier: str) -> float | None:
    values = [value for summary in summaries if (value := summary.wait_us.get(tier)) is not None]
    return _short(estimate(values).mean) if values else None


def _short(value: float) -> float:
    """Five significant digits: more than a screen can show."""
    return float(f"{value:.5g}")
