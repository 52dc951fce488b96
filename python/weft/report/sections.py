"""The sections that every report has: what can be chosen, and the charts that follow it."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from weft.report.cells import STATISTICS

__all__ = ["chart", "choice", "controls", "curves", "fct", "overhead", "section", "specs", "why"]

_QUANTITIES = {"fct": "completion time", "slowdown": "slowdown"}
_SPENT_NOTE = (
    "Mean over the flows that finished. One packet of a flow is followed at a time, so the parts add up to the "
    "completion time. Window and recovery: the sender waited for acknowledgements. Reordering: buffers that put "
    "packets in order, and last packets that came late; what reordering costs by halving windows is part of "
    "window and recovery."
)


def section(key: str, title: str, body: str, *, choices: Sequence[str] = (), note: str = "") -> str:
    """A section with a heading; `body`, `choices` and `note` are HTML."""
    head = f'<h2 id="{key}-title">{escape(title)}</h2>'
    if choices:
        head = f'<div class="head">{head}<div class="choices">{"".join(choices)}</div></div>'
    below = f'<p class="note">{note}</p>' if note else ""
    return f'<section aria-labelledby="{key}-title" id="{key}-section">{head}{body}{below}</section>'


def chart(key: str, *, tall: bool = False) -> str:
    """Give room for a chart, named by its section's heading."""
    kind = "chart tall" if tall else "chart"
    return f'<div id="{key}" class="{kind}" role="img" aria-labelledby="{key}-title"></div>'


def choice(key: str, name: str, values: Mapping[str, str], *, wrapping: bool = False) -> str:
    """Buttons of which one is chosen. The arrow keys move between them."""
    buttons = "".join(
        f'<button type="button" data-value="{escape(value)}">{escape(text)}</button>' for value, text in values.items()
    )
    kind = "choice wrapping" if wrapping else "choice"
    return f'<div class="{kind}" role="group" aria-label="{escape(name)}" data-choice="{escape(key)}">{buttons}</div>'


def controls(sizes: Sequence[str], fields: Sequence[Mapping[str, Any]] = ()) -> str:
    """What holds for all charts: schemes, flow sizes, and the values of swept fields."""
    groups = "".join(
        f'<label class="pick">{escape(field["title"])} <select data-field="{place}">'
        + "".join(f'<option value="{at}">{escape(value)}</option>' for at, value in enumerate(field["values"]))
        + "</select></label>"
        for place, field in enumerate(fields)
    )
    options = "".join(f'<option value="{place}">{escape(title)}</option>' for place, title in enumerate(sizes))
    size = f'<label class="pick">flow sizes <select id="size">{options}</select></label>'
    chips = '<div id="schemes" class="chips" role="group" aria-label="Schemes to show in the charts"></div>'
    picks = f'<div class="picks">{size}{groups}</div>'
    return f'<div class="controls" role="region" aria-label="What to show">{chips}{picks}</div>'


def fct() -> str:
    """Completion times and slowdowns by range of sizes."""
    return section(
        "fct",
        "By flow size",
        chart("fct"),
        choices=(choice("quantity", "Quantity", _QUANTITIES), choice("statistic", "Statistic", STATISTICS)),
        note="Logarithmic scale. Whiskers, where there are several seeds, are 95 % confidence intervals.",
    )


def curves() -> str:
    """Distributions, and slowdown by size."""
    distribution = section(
        "curves",
        "Distribution",
        chart("curves"),
        choices=(
            choice("curveOf", "Quantity", _QUANTITIES),
            choice("curve", "Kind of curve", {"cdf": "distribution", "tail": "tail"}),
        ),
        note="Of the flow sizes chosen above. Slowdown is the completion time over the time that the flow would take "
        "alone in the fabric. Distribution: share of flows at or below; tail: share above, both scales logarithmic. "
        "Unfinished flows count as never reached.",
    )
    by_size = section(
        "bysize",
        "Slowdown by size",
        chart("bysize"),
        choices=(choice("bySize", "Statistic", STATISTICS),),
        note="Flows of all seeds, in ranges of sizes with about as many flows in each.",
    )
    return distribution + by_size


def why() -> str:
    """Where the time went."""
    return section(
        "why",
        "Why: where a flow's time went",
        chart("why", tall=True),
        choices=(choice("why", "Unit", {"time": "time", "share": "share", "packet": "waits of a packet"}),),
        note=f"Of the flow sizes chosen above. {_SPENT_NOTE} Waits of a packet: the mean over all that arrived.",
    )


def overhead() -> str:
    """What a scheme cost."""
    return section(
        "overhead",
        "What each scheme paid",
        chart("overhead", tall=True),
        note="Bytes of the scheme's own packets (probes, reports, polls, traces) as a share of all bytes on links; the "
        "most that it keeps at any switch and at any host. Headers that it adds to packets of others are not counted.",
    )


def specs(items: Sequence[tuple[str, str]]) -> str:
    """Resolved specs, each under its name."""
    return "".join(
        f"<details><summary>{escape(name)}</summary><pre><code>{escape(text)}</code></pre></details>"
        for name, text in items
    )
