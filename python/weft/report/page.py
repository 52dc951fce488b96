"""Putting the page together. Whatever comes from a user is escaped here, once."""

import json
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from weft import _core
from weft.metrics import METRICS, MORE_METRICS, Metric, best_labels, bin_metrics
from weft.quantity import estimate_text, unit_and_scale
from weft.report.over_time import section
from weft.report.payload import payload
from weft.statistics import Estimate
from weft.summary import BINS

if TYPE_CHECKING:
    from weft.comparison import Comparison

__all__ = ["render", "script_json"]

_SLOT = re.compile(r"<!--slot:([a-z-]+)-->|/\*slot:([a-z-]+)\*/")


def render(comparison: "Comparison") -> str:
    """Return the page as text."""
    labels = list(comparison.groups)
    title = f"Weft: {', '.join(labels)}"
    slots = {
        "title": escape(title),
        "heading": escape(" · ".join(labels)),
        "subtitle": escape(_subtitle(comparison)),
        "verdict": _verdict(comparison),
        "table": _table(comparison, METRICS),
        "more-tables": _more_tables(comparison),
        "table-note": escape(_table_note(comparison)),
        "over-time": section(comparison),
        "reproduce": _reproduce(comparison),
        "specs": _specs(comparison),
        "version": escape(_core.version()),
        "data": script_json(payload(comparison)),
        "style": _resource("report.css"),
        "script": _resource("report.js"),
        "charts": _resource("vendor/echarts/echarts.common.min.js"),
    }
    # One pass, so that a filled slot is never searched for further slots.
    return _SLOT.sub(lambda match: slots[match[1] or match[2]], _resource("template.html"))


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element: no text in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _resource(name: str) -> str:
    return resources.files("weft.report").joinpath(name).read_text(encoding="utf-8")


def _subtitle(comparison: "Comparison") -> str:
    first = comparison.runs[0].summary
    seeds = [run.summary.seed for run in next(iter(comparison.groups.values()))]
    listed = ", ".join(map(str, seeds)) if len(seeds) <= 8 else f"{len(seeds)} seeds"
    return f"{first.flows:,} flows each, the same for every scheme; seed{'s' * (len(seeds) > 1)} {listed}"


def _verdict(comparison: "Comparison") -> str:
    verdict = comparison.verdict
    if verdict is None:
        return "<p>No flow finished, so there is nothing to compare.</p>"
    first, *rest = (escape(sentence) for sentence in verdict.sentences)
    return f'<p class="lead">{first}</p>' + "".join(f"<p>{sentence}</p>" for sentence in rest)


def _more_tables(comparison: "Comparison") -> str:
    """A table for each range of sizes that the spec asked for, and one of what else there is."""
    tables = [(f"Flows of {sizes}", bin_metrics(place)) for place, sizes in enumerate(comparison.size_bins)]
    tables.append(("Reordering, duplicates, throughput, deadlines, state", MORE_METRICS))
    return "".join(
        f'<details><summary>{escape(title)}</summary><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(title)}">{_table(comparison, metrics)}</div></details>'
        for title, metrics in tables
    )


def _table(comparison: "Comparison", metrics: Sequence[Metric]) -> str:
    estimates = comparison.estimates_of(metrics)
    # What no scheme has, such as deadlines where there are none, takes no room.
    metrics = [metric for metric in metrics if any(row[metric.key] is not None for row in estimates.values())]
    units = {metric.key: _unit(metric, [row[metric.key] for row in estimates.values()]) for metric in metrics}
    head = "".join(
        f'<th scope="col"><button type="button">{escape(metric.title)}'
        + (f" <small>{escape(units[metric.key][0])}</small>" if units[metric.key][0] else "")
        + "</button></th>"
        for metric in metrics
    )
    best = {metric.key: best_labels(estimates, metric) for metric in metrics}
    rows = "".join(
        f'<tr><th scope="row" data-value="{escape(label)}"><span class="swatch" data-label="{escape(label)}"></span>'
        f"{escape(label)}</th>"
        + "".join(_cell(row[metric.key], metric, units[metric.key][1], label in best[metric.key]) for metric in metrics)
        + "</tr>"
        for label, row in estimates.items()
    )
    first = '<th scope="col"><button type="button">scheme</button></th>'
    return f"<table><thead><tr>{first}{head}</tr></thead><tbody>{rows}</tbody></table>"


def _unit(metric: Metric, values: list[Estimate | None]) -> tuple[str, float]:
    return unit_and_scale(metric.unit, [value.mean for value in values if value])


def _cell(value: Estimate | None, metric: Metric, scale: float, best: bool) -> str:
    number = "" if value is None else repr(value.mean)
    mean, separator, interval = escape(estimate_text(value, metric.unit, scale)).partition(" ± ")
    spread = f" <small>± {interval}</small>" if separator else ""
    kind = ' class="best" title="best in this column"' if best else ""
    return f'<td data-value="{number}"{kind}>{mean}{spread}</td>'


def _table_note(comparison: "Comparison") -> str:
    sizes = f"Small: {BINS['small']}; medium: {BINS['medium']}; large: {BINS['large']}. Lower is better."
    seeds = max(len(runs) for runs in comparison.groups.values())
    interval = f" ± is the half-width of the 95 % confidence interval over {seeds} seeds." if seeds > 1 else ""
    return f"Green: best in its column. {sizes}{interval} Choose a heading to sort."


def _reproduce(comparison: "Comparison") -> str:
    lines = []
    if comparison.command:
        lines.append(f"<p>The whole comparison:</p><pre><code>{escape(comparison.command)}</code></pre>")
    lines.append(
        "<p>One run of it: save its spec, which holds every setting and the seed, and run it. The same spec and "
        "the same version give the same result, to the last digit, on any machine.</p>"
        "<pre><code>weft run spec.toml --out again</code></pre>"
    )
    return "".join(lines)


def _specs(comparison: "Comparison") -> str:
    return "".join(
        f"<details><summary>{escape(label)}, seed {runs[0].summary.seed}</summary>"
        f"<pre><code>{escape(runs[0].spec)}</code></pre></details>"
        for label, runs in comparison.groups.items()
    )
