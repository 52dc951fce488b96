"""Tables of metrics, a row a contender."""

from collections.abc import Mapping, Sequence
from html import escape

from weft.metrics import Metric, best_labels
from weft.quantity import estimate_text, unit_and_scale
from weft.statistics import Estimate
from weft.summary import BINS

__all__ = ["metric_table", "scrolling", "sizes_note"]


def metric_table(
    rows: Mapping[tuple[str, ...], Mapping[str, Estimate | None]],
    metrics: Sequence[Metric],
    heads: Sequence[str] = ("scheme",),
    *,
    best: bool = True,
) -> str:
    """Return a sortable table.

    The keys of `rows` are their first cells, under `heads`; the last of these is a contender. With `best`, the best
    value of each column is marked.
    """
    # What no row has, such as deadlines where there are none, takes no room.
    metrics = [metric for metric in metrics if any(row[metric.key] is not None for row in rows.values())]
    units = {metric.key: _unit(metric, [row[metric.key] for row in rows.values()]) for metric in metrics}
    named = {str(place): row for place, row in enumerate(rows.values())}
    top = {metric.key: best_labels(named, metric) if best else () for metric in metrics}
    head = "".join(_head(escape(title)) for title in heads) + "".join(
        _head(
            escape(metric.title) + (f" <small>{escape(units[metric.key][0])}</small>" if units[metric.key][0] else "")
        )
        for metric in metrics
    )
    body = "".join(
        f"<tr>{_names(names)}"
        + "".join(
            _cell(row[metric.key], metric, units[metric.key][1], str(place) in top[metric.key]) for metric in metrics
        )
        + "</tr>"
        for place, (names, row) in enumerate(rows.items())
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def scrolling(table: str, name: str) -> str:
    """Let a wide table scroll in its own box, with the keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">{table}</div>'


def sizes_note() -> str:
    """Say what small, medium and large are."""
    return f"Small: {BINS['small']}; medium: {BINS['medium']}; large: {BINS['large']}."


def _head(title: str) -> str:
    return f'<th scope="col"><button type="button">{title}</button></th>'


def _names(names: Sequence[str]) -> str:
    *fields, label = names
    swatch = f'<span class="swatch" data-label="{escape(label)}"></span>'
    cells = "".join(f'<td class="field" data-value="{escape(field)}">{escape(field)}</td>' for field in fields)
    return f'{cells}<th scope="row" data-value="{escape(label)}">{swatch}{escape(label)}</th>'


def _unit(metric: Metric, values: list[Estimate | None]) -> tuple[str, float]:
    return unit_and_scale(metric.unit, [value.mean for value in values if value])


def _cell(value: Estimate | None, metric: Metric, scale: float, best: bool) -> str:
    number = "" if value is None else repr(value.mean)
    mean, separator, interval = escape(estimate_text(value, metric.unit, scale)).partition(" ± ")
    spread = f" <small>± {interval}</small>" if separator else ""
    kind = ' class="best" title="best in this column"' if best else ""
    return f'<td data-value="{number}"{kind}>{mean}{spread}</td>'
