"""Figures for papers and slides, drawn without a display.

Each function takes the runs of each variant by label and returns a Matplotlib figure; nothing is shown.
"""

import struct
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, NullFormatter

from weft.curves import link_loads, slowdown_curve
from weft.metrics import over_runs, times
from weft.output import write_file
from weft.palette import TIER_COLOURS, Look, looks
from weft.quantity import time_scale
from weft.samples import distinct
from weft.statistics import Estimate, estimate
from weft.summary import BINS, TIERS, BinName, Summary
from weft.untrusted import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weft.simulation import Result

__all__ = [
    "FORMATS",
    "Groups",
    "ShownFigure",
    "curve_style",
    "fct_by_size",
    "legend_above",
    "link_load_cdf",
    "new_figure",
    "note_below",
    "rendered",
    "rendered_all",
    "save",
    "save_all",
    "slowdown_cdf",
    "waits",
]

Groups: TypeAlias = Mapping[str, Sequence["Result"]]
"""The runs of each variant, by label."""

FORMATS: tuple[str, ...] = ("png", "pdf", "svg")
"""Formats of a figure that a command draws: for pages, for papers, and to be edited."""

_MARKERS = 7
"""Markers on a curve: enough to tell it by, few enough to see it."""

_LETTERS_AN_INCH = 13
"""How many letters of a legend fit into an inch, and how many its line and the space beside it take."""
_LETTERS_OF_A_KEY = 6

_NOTE_POINTS = 7.0
_NOTE_CHARACTERS_PER_IN = 20

_DOTS_PER_INCH = 96.0
"""Resolution of a screen, as browsers count."""

_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    # What the first lacks is taken from the second, letter by letter.
    "font.family": ["Weft Sans", "DejaVu Sans"],
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    # Names within a picture are then the same each time.
    "svg.hashsalt": "weft",
}

for _font in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
    font_manager.fontManager.addfont(_font)


class ShownFigure(Figure):
    """A figure that a notebook shows when it is the value of a cell, whether or not pyplot is in use."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        content = rendered(self, "png")
        # A PNG has its width and height in bytes 16 to 24; at this width screens with fine dots show all of them.
        width, height = struct.unpack(">II", content[16:24])
        scale = _STYLE["savefig.dpi"] / _DOTS_PER_INCH
        return content, {"width": round(width / scale), "height": round(height / scale)}


def fct_by_size(groups: Groups) -> Figure:
    """Mean and 99th-percentile completion time by size bin; bars of confidence where there are several seeds."""
    with new_figure(7.2, 3.3) as figure:
        # A bin without flows, such as large ones in a short run, takes no room.
        bins = [name for name in BINS if any(_fct(runs, name, "mean") for runs in groups.values())]
        everything = [
            value.mean
            for runs in groups.values()
            for name in bins
            for statistic in ("mean", "p99")
            if (value := _fct(runs, name, statistic))
        ]
        unit, scale = time_scale(everything[:1])
        for axes, statistic, title in zip(
            figure.subplots(1, 2, sharey=True), ("mean", "p99"), ("Mean", "99th percentile"), strict=True
        ):
            _fct_panel(axes, groups, bins, statistic, scale)
            axes.set_title(title)
            axes.set_xlabel("flow size")
        figure.axes[0].set_ylabel(f"flow completion time ({unit})")
        legend_above(figure, len(groups))
        if any(run.summary.unfinished for runs in groups.values() for run in runs):
            note_below(figure, "↑ at least: flows did not finish.")
    return figure


def slowdown_cdf(groups: Groups) -> Figure:
    """Cumulative distribution of slowdown: all flows, and the small ones."""
    with new_figure(7.2, 3.3) as figure:
        panels: tuple[BinName, BinName] = ("all", "small")
        for axes, name in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
            for turn, (label, look) in enumerate(looks(groups).items()):
                slowdowns, shares = slowdown_curve(groups[label], name)
                axes.step(slowdowns, shares, where="post", label=label, **curve_style(look, len(shares), turn, groups))
            axes.set_xscale("log")
            axes.set_xlim(left=1.0)
            _plain_ticks(axes, "x")
            axes.set_ylim(0.0, 1.0)
            axes.set_title("All flows" if name == "all" else f"Small flows ({BINS[name]})")
            axes.set_xlabel("slowdown (FCT / ideal FCT)")
        figure.axes[0].set_ylabel("share of flows")
        legend_above(figure, len(groups))
    return figure


def waits(groups: Groups) -> Figure:
    """Mean time that a data packet waited in queues, by tier, stacked."""
    with new_figure(7.2, 0.9 + 0.34 * len(groups)) as figure:
        axes = figure.subplots()
        labels = list(groups)
        left = [0.0] * len(labels)
        for tier, title in TIERS.items():
            widths = [_wait([run.summary for run in groups[label]], tier) for label in labels]
            axes.barh(labels, widths, left=left, height=0.66, label=title, color=TIER_COLOURS[tier])
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("mean wait per data packet (µs)")
        legend_above(figure, len(TIERS))
    return figure


def link_load_cdf(groups: Groups) -> Figure:
    """Cumulative distribution of the links' loads over the run: the steeper, the more even.

    The links between switches are taken, those of leaves and those of all other switches apart.
    """
    with new_figure(7.2, 3.3) as figure:
        panels = {"leaf": "Uplinks of leaves", "spine": "Other links between switches"}
        for axes, (tier, title) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
            for turn, (label, look) in enumerate(looks(groups).items()):
                loads, shares = link_loads(groups[label], tier)
                axes.step(loads, shares, where="post", label=label, **curve_style(look, len(shares), turn, groups))
            axes.set_xlim(left=0.0)
            axes.set_ylim(0.0, 1.0)
            axes.set_title(title)
            axes.set_xlabel("mean load (Gbit/s)")
        figure.axes[0].set_ylabel("share of links")
        legend_above(figure, len(groups))
    return figure


def curve_style(look: Look, points: int, turn: int, curves: Sized) -> dict[str, Any]:
    """Return how a curve of so many points is drawn: its marker at a few of them, each curve's at other ones."""
    every = max(points // _MARKERS, 1)
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "marker": look.marker,
        "markersize": 4.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        "markevery": (turn * every // max(len(curves), 1), every),
    }


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all; the suffix says how (.png, .pdf, .svg)."""
    write_file(path, rendered(figure, path.suffix.lower().removeprefix(".")))


def save_all(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write a figure in each of `FORMATS`; returns the files."""
    paths = []
    for kind, content in rendered_all(figure).items():
        paths.append(directory / f"{name}.{kind}")
        write_file(paths[-1], content)
    return paths


def rendered_all(figure: Figure, *, whole: bool = False) -> dict[str, bytes]:
    """Return a figure as a file of each of `FORMATS`, by kind, as `rendered` does.

    It is laid out once, for the first, which takes longer than to draw it: in the others all has the same place.
    """
    engine = figure.get_layout_engine()
    files = {}
    try:
        for kind in FORMATS:
            files[kind] = rendered(figure, kind, whole=whole)
            figure.set_layout_engine(None)
    finally:
        figure.set_layout_engine(engine)
    return files


def rendered(figure: Figure, kind: str, *, whole: bool = False) -> bytes:
    """Return a figure as a file of this kind ("png", "pdf", "svg"). No date: equal figures have equal bytes.

    `whole` makes room for what stands beyond its edges; a note below it has that anyway.
    """
    undated: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    content = BytesIO()
    for text in figure.findobj(Text):
        lines = text.get_text().split("\n")
        if not all(map(str.isprintable, lines)):
            text.set_text("\n".join(map(one_line, lines)))
    with mpl.rc_context(_STYLE):
        tight = "tight" if whole or figure.texts else None
        figure.savefig(content, format=kind, bbox_inches=tight, metadata=undated.get(kind, {}))
    return content.getvalue()


def _fct_panel(axes: "Axes", groups: Groups, bins: Sequence[BinName], statistic: str, scale: float) -> None:
    step = 0.8 / max(len(groups), 1)
    for position, (label, look) in enumerate(looks(groups).items()):
        offset = (position - (len(groups) - 1) / 2.0) * step
        points = [
            (column + offset, value)
            for column, name in enumerate(bins)
            if (value := _fct(groups[label], name, statistic))
        ]
        axes.errorbar(
            [x for x, _ in points],
            [value.mean / scale for _, value in points],
            yerr=_whiskers([value for _, value in points], scale),
            label=label,
            color=look.colour,
            marker=look.marker,
            markersize=5.0,
            linestyle="none",
            capsize=2.0,
            elinewidth=1.0,
        )
        # A bound has an arrow: the value is anywhere above.
        for x, value in points:
            if value.sign:
                axes.annotate("↑", (x, value.mean / scale), (0, 3), textcoords="offset points", ha="center",
                    color=look.colour, fontsize=9.0)  # fmt: skip
    axes.set_yscale("log")
    _plain_ticks(axes, "y")
    axes.set_xticks(range(len(bins)), [BINS[name].replace(" - ", "–").replace("100 KB–", "0.1–") for name in bins])
    axes.set_xlim(-0.55, len(bins) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    for column in range(1, len(bins)):
        axes.axvline(column - 0.5, color="#dddddd", linewidth=0.6)


def _whiskers(values: Sequence[Estimate], scale: float) -> list[float] | None:
    """Half-widths to draw; None, rather than caps of no height, when there is no interval."""
    if all(value.half_width is None for value in values):
        return None
    return [(value.half_width or 0.0) / scale for value in values]


def _fct(runs: Sequence["Result"], bin_name: BinName, statistic: str) -> Estimate | None:
    metric = times("", "", lambda summary: summary.bins[bin_name].fct_us, "mean" if statistic == "mean" else "p99")
    return over_runs(metric, distinct([run.summary for run in runs]))


def _wait(runs: Sequence[Summary], tier: str) -> float:
    values = [value for run in runs if (value := getattr(run.wait_us, tier)) is not None]
    return estimate(values).mean if values else 0.0


@contextmanager
def new_figure(width_in: float, height_in: float) -> Iterator[Figure]:
    """Yield an empty figure in the common style."""
    with mpl.rc_context(_STYLE):
        yield ShownFigure(figsize=(width_in, height_in), layout="constrained")


def _plain_ticks(axes: "Axes", which: str) -> None:
    """Label a log axis with 1, 10, 100 and, when it spans little, 2 and 5 in between."""
    from matplotlib.ticker import LogLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    narrow = low > 0.0 and high / low < 300.0
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def note_below(figure: Figure, note: str) -> None:
    """Write a note in small letters below all axes."""
    wrapped = "\n".join(
        textwrap.fill(line, int(figure.get_figwidth() * _NOTE_CHARACTERS_PER_IN)) for line in note.split("\n")
    )
    figure.text(0.5, -0.01, wrapped, ha="center", va="top", fontsize=_NOTE_POINTS, color="#555555")


def legend_above(figure: Figure, entries: int, of: "Axes | None" = None) -> None:
    """Put the legend of the first axes, or of those, above all axes: it covers no data and no label is cut off."""
    handles, labels = (figure.axes[0] if of is None else of).get_legend_handles_labels()
    letters = max((len(label) for label in labels), default=0)
    fitting = int(figure.get_figwidth() * _LETTERS_AN_INCH) // (letters + _LETTERS_OF_A_KEY)
    columns = max(1, min(entries, 6, fitting))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=1.6)
