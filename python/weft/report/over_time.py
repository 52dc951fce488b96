"""The part of the report about links, queues and receivers over time, of runs that were sampled."""

from html import escape
from typing import TYPE_CHECKING, Any

from weft.over_time import MEASURES, busiest_leaf, shown, uplink_curves
from weft.quantity import estimate_text
from weft.report.cells import short
from weft.report.sections import choice
from weft.statistics import Estimate, estimate

if TYPE_CHECKING:
    from weft.comparison import Comparison
    from weft.over_time import Curve, Shown

__all__ = ["curves", "section"]

# Key of `Series.statistics`, heading, unit under it, kind of number, what is divided by.
_COLUMNS = (
    ("uplink_utilisation", "uplink utilisation", "%", "share", 1.0),
    ("uplink_std", "std. deviation over uplinks", "%", "share", 1.0),
    ("uplink_imbalance", "imbalance of uplinks", "max / mean − 1", "ratio", 1.0),
    ("uplink_backlog_bytes", "mean uplink backlog", "KB", "ratio", 1e3),
    ("uplink_occupancy_variance", "variance of uplink occupancy", "", "ratio", 1.0),
)


def curves(comparison: "Comparison") -> dict[str, Any] | None:
    """Everything over time that the page's script draws; None when no run was sampled."""
    runs = shown(comparison.groups)
    if not runs:
        return None
    leaf = next((name for one in runs.values() if (name := busiest_leaf(one.run)) is not None), None)
    labels = list(comparison.groups)
    return {
        "measures": {key: {"title": one.title, "axis": one.axis} for key, one in MEASURES.items()},
        "curves": {
            key: [_points(measure.read(runs[label])) if label in runs else None for label in labels]
            for key, measure in MEASURES.items()
        },
        "leaf": leaf,
        "uplinks": [_uplinks(runs.get(label), leaf) for label in labels],
    }


def section(comparison: "Comparison") -> str:
    """Return the section as HTML; nothing when no run was sampled."""
    runs = shown(comparison.groups)
    if not runs:
        return ""
    measures = choice("measure", "Quantity", {key: measure.title for key, measure in MEASURES.items()}, wrapping=True)
    # By number: a label is a user's.
    names = {str(place): name for place, name in enumerate(comparison.groups)}
    schemes = choice("uplinks", "Scheme", names, wrapping=True)
    leaf = next((name for one in runs.values() if (name := busiest_leaf(one.run)) is not None), None)
    uplinks = (
        ""
        if leaf is None
        else f'<div class="head"><h3 id="uplinks-title">Each uplink of {escape(leaf)}</h3>{schemes}</div>'
        '<div id="uplinks" class="chart" role="img" aria-labelledby="uplinks-title"></div>'
    )
    seeds = " The curves are those of the first seed." if len(comparison.runs) > len(comparison.groups) else ""
    return (
        '<section aria-labelledby="series-title">'
        f'<div class="head"><h2 id="series-title">Over time</h2>{measures}</div>'
        '<div id="series" class="chart" role="img" aria-labelledby="series-title"></div>'
        f"{uplinks}"
        '<div class="scroll" tabindex="0" role="region" aria-label="Uplinks in numbers">'
        f"{_table(comparison)}</div>"
        '<p class="note">Uplinks are those of leaves. Utilisation counts bytes with headers, throughput delivered '
        "payload. Standard deviation and imbalance: over the uplinks of a leaf in every interval of the samples, then "
        "averaged; imbalance is weighted by traffic. Occupancy is the backlog over the buffer; its variance is taken "
        f"over all uplink queues and all samples.{seeds}</p></section>"
    )


def _table(comparison: "Comparison") -> str:
    head = "".join(
        f'<th scope="col"><button type="button">{title} <small>{unit}</small></button></th>'
        for _, title, unit, _, _ in _COLUMNS
    )
    rows = []
    for label, runs in comparison.groups.items():
        found = [run.series.statistics() for run in runs if run.summary.sample_interval_us is not None]
        cells = "".join(
            _cell([value / scale for one in found if (value := one[key]) is not None], kind)
            for key, _, _, kind, scale in _COLUMNS
        )
        swatch = f'<span class="swatch" data-label="{escape(label)}"></span>'
        rows.append(f'<tr><th scope="row" data-value="{escape(label)}">{swatch}{escape(label)}</th>{cells}</tr>')
    first = '<th scope="col"><button type="button">scheme</button></th>'
    return f"<table><thead><tr>{first}{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(values: list[float], kind: Any) -> str:
    value: Estimate | None = estimate(values) if values else None
    mean, separator, interval = escape(estimate_text(value, kind, 1.0)).partition(" ± ")
    spread = f" <small>± {interval}</small>" if separator else ""
    return f'<td data-value="{"" if value is None else repr(value.mean)}">{mean}{spread}</td>'


def _points(curve: "Curve") -> list[list[float]]:
    return [[short(time) for time in curve.time_us], [short(value) for value in curve.values]]


def _uplinks(one: "Shown | None", leaf: str | None) -> dict[str, Any] | None:
    if one is None or leaf is None:
        return None
    return {name: _points(curve) for name, curve in uplink_curves(one, leaf).items()}
