"""The small print below a figure: what it shows, and on how much it rests."""

from collections.abc import Sequence

from weft.papers.declared import FigureSpec, Paper, Scale
from weft.papers.measured import RunsUsed

__all__ = ["is_cut", "note_below", "numbers_of", "scale_words"]


def note_below(paper: Paper, figure: FigureSpec, runs: RunsUsed) -> str:
    """Title, scale, and the numbers of flows, points and seeds; those of the paper's scale where this is another."""
    parts = [numbers_of(runs)] if runs.runs else []
    if runs.scale != "paper" and runs.runs and (full := _paper_numbers(paper, figure)):
        parts.append(f"at the paper's scale {full}")
    lines = [f"{paper.short} {figure.heading}: {figure.title}."]
    if added := paper.added_to(figure, runs.scale):
        lines[0] += f" Added here, the paper does not have it: {', '.join(map(paper.label, added))}."
    if paper.substitute:
        lines[0] += f" Not of the paper: {paper.substitute}, in the place of {paper.short}."
    if paper.scenario:
        lines[0] += f" Not as by default: {paper.scenario}."
    scale = "the paper's scale" if runs.scale == "paper" else scale_words(runs.scale)
    if parts:  # what needs no run is the same at every scale
        lines.append(f"{scale[0].upper()}{scale[1:]}: {'; '.join(parts)}.")
    if runs.seeds > 1:
        lines[-1] += _spread({panel.plot for panel in figure.panels})
    if runs.failed:
        lines[-1] += f" {runs.failed} of {_many(runs.runs, 'run')} failed."
    if runs.unfinished:
        lines[-1] += f" {_many(runs.unfinished, 'flow')} did not finish: what they leave open is not drawn."
    if runs.unsteady:
        lines[-1] += f" {runs.unsteady:,} of {_many(runs.runs, 'run')} in no steady state."
    return "\n".join(lines)


def scale_words(scale: Scale) -> str:
    """`quick scale`; of figures with Linux hosts what the hosts are."""
    if scale == "linux":
        return "Linux hosts"
    return "simulated hosts, as with Linux hosts" if scale == "beside-linux" else f"{scale} scale"


def _spread(plots: set[str]) -> str:
    """Return the sentence on how the figure shows the spread over seeds."""
    told = " Bars of confidence: 95 % over seeds." if plots & {"lines", "bars"} else ""
    told += " Curves over time: mean over seeds." if "over-time" in plots else ""
    told += " ±: 95 % confidence over seeds." if "table" in plots else ""
    return told + (" Values of all seeds together." if plots & {"cdf", "box"} else "")


def numbers_of(runs: RunsUsed) -> str:
    """`400 flows, 3 loads, 3 seeds`, or `3 of 10 seeds`."""
    parts = []
    if runs.flows:
        low, high = min(runs.flows), max(runs.flows)
        flows = _many(low, "flow") if low == high else f"{low:,} to {high:,} flows"
        cut = is_cut(runs.flows, runs.declared_flows)
        parts.append(f"{high:,} of {runs.declared_flows:,} flows at most" if cut else flows)
    parts += [_places(count, key) for key, count in runs.points.items() if count > 1]
    whole = runs.seeds >= runs.declared_seeds
    parts.append(_many(runs.seeds, "seed") if whole else f"{runs.seeds:,} of {_many(runs.declared_seeds, 'seed')}")
    return ", ".join(parts)


def is_cut(flows: Sequence[int], declared: int) -> bool:
    """Whether runs had fewer flows than they are declared to have."""
    return bool(flows) and max(flows) < declared


def _paper_numbers(paper: Paper, figure: FigureSpec) -> str:
    names = [*(panel.experiment for panel in figure.panels), *figure.experiments]
    full = [paper.experiments[name].at("paper") for name in dict.fromkeys(names) if name in paper.experiments]
    if not full:
        return ""
    points: dict[str, int] = {}
    for one in full:
        for key, values in one.vary.items():
            points[key] = max(points.get(key, 0), len(values))
    flows = {value for one in full if isinstance(value := one.set.get("traffic.flows"), int)}
    parts = [_many(max(flows), "flow")] if len(flows) == 1 else []
    parts += [_places(count, key) for key, count in points.items() if count > 1]
    return ", ".join([*parts, _many(max(one.seeds for one in full), "seed")])


def _places(count: int, key: str) -> str:
    """`3 loads`, `4 numbers of spines`."""
    name = key.rpartition(".")[2].replace("_", " ")
    return f"{count:,} numbers of {name}" if name.endswith("s") else _many(count, name)


def _many(number: int, name: str) -> str:
    if name.endswith("s"):  # 4 numbers of spines
        return f"{number:,} number{'s' * (number != 1)} of {name}"
    return f"{number:,} {name}{'s' * (number != 1)}"
