"""Box plots: the box holds the middle half, the whiskers reach the 5th and 95th percentile, a diamond is the mean."""

from typing import TYPE_CHECKING, Any

from weft.drawing.axes import empty, set_log, tick_groups
from weft.drawing.bars import slots
from weft.drawing.view import PanelView, scaled_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_boxes"]

_KEYS = {0.05: "whislo", 0.25: "q1", 0.5: "med", 0.75: "q3", 0.95: "whishi", None: "mean"}


def draw_boxes(axes: "Axes", view: PanelView) -> None:
    """Draw a panel: a group for each point of x; one group alone has variants for ticks."""
    boxes = _boxes(view)
    if not boxes:
        empty(axes)
        return
    xs = list(dict.fromkeys(x for _, x in boxes))
    everything = [value for box in boxes.values() for value in box.values()]
    label, divisor = scaled_label(view.y, everything)
    lone = len(xs) == 1
    width, offsets = (0.5, [0.0] * len(view.variants)) if lone else slots(len(view.variants))
    for turn, variant in enumerate(view.variants):
        there = [(turn if lone else column, boxes[variant, x]) for column, x in enumerate(xs) if (variant, x) in boxes]
        if not there:
            continue
        drawn = axes.bxp(
            [{**{key: value / divisor for key, value in box.items()}, "fliers": []} for _, box in there],
            positions=[column + offsets[turn] for column, _ in there],
            widths=width * 0.86,
            showfliers=False,
            showmeans=True,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": "#111111", "linewidth": 1.4},
            meanprops={"marker": "D", "markersize": 4.0, "markerfacecolor": "white", "markeredgecolor": "#111111"},
            whiskerprops={"color": "#444444", "linewidth": 0.9},
            capprops={"color": "#444444", "linewidth": 0.9},
        )
        for patch in drawn["boxes"]:
            patch.set(facecolor=view.looks[variant].colour, edgecolor="#444444", linewidth=0.7, alpha=0.85)
    if view.y.log and min(everything) > 0.0:
        set_log(axes, [value / divisor for value in everything], "y")
    elif min(everything) >= 0.0:
        axes.set_ylim(bottom=0.0)
        if max(everything) == 0.0:
            axes.set_ylim(top=1.0)
    tick_groups(axes, [view.name(variant) for variant in view.variants] if lone else xs)
    axes.set_xlabel(view.x.label)
    axes.set_ylabel(label)


def _boxes(view: PanelView) -> dict[tuple[str, str], dict[str, float]]:
    """Quantiles and mean of each variant at each x that has all of them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for variant, x, share, value in view.curves.select("variant", "x", "share", "value").rows():
        key = _KEYS.get(share if share is None else round(share, 6))
        if key is not None and value is not None:
            found.setdefault((variant, x), {})[key] = value
    return {place: box for place, box in found.items() if len(box) == len(_KEYS)}
