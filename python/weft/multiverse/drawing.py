"""The figure of a multiverse: claims by scenarios, what decides each, and the choices of each scenario below."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from weft.figures import new_figure, rendered_all
from weft.multiverse.result import ClaimScenarios, Multiverse, Seen
from weft.multiverse.words import decider_words
from weft.papers.verdicts import Judgement, Verdict
from weft.quantity import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weft.multiverse.exploring import Question

__all__ = ["drawn"]

_WIDTH_IN = 10.0
_ROW_IN = 0.36
_CHOICE_IN = 0.17
_LETTERS = 46
_LOOKS: Sequence[tuple[Verdict, str]] = (
    (Verdict.NOT_REPRODUCED, "#f6d9cf"),
    (Verdict.UNREACHABLE, "#c9a9a0"),
    (Verdict.UNDECIDED, "#e3e3e3"),
    (Verdict.OTHER_SIZE, "#f3d57a"),
    (Verdict.REPRODUCED, "#009e73"),
)
_DEFAULT, _OTHER = "#f0f0f0", ("#0072b2", "#cc79a7", "#56b4e9", "#d55e00", "#e69f00")


def drawn(question: "Question", result: Multiverse) -> Mapping[str, bytes]:
    """Draw the figure; returns its files by name."""
    files = rendered_all(_figure(question, result), whole=True)
    return {f"figure.{kind}": content for kind, content in files.items()}


def _figure(question: "Question", result: Multiverse) -> "Figure":
    varied = _varied(result)
    seen = _ordered(result, varied)
    claims = result.claims
    heights = [max(len(claims), 1) * _ROW_IN, max(len(varied), 1) * _CHOICE_IN]
    with new_figure(_WIDTH_IN, sum(heights) + 1.1) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=heights)
        _draw_claims(above, claims, seen)
        _draw_choices(below, result, varied, seen)
        above.set_title(f"{question.paper.short}: {len(seen):,} scenarios, each a column")
        handles = [Patch(color=colour, label=name) for name, colour in reversed(_LOOKS)]
        figure.legend(
            handles=handles, loc="outside upper center", ncols=len(_LOOKS), columnspacing=1.4, handlelength=1.2
        )
    return figure


def _draw_claims(axes: "Axes", claims: Sequence[ClaimScenarios], seen: Sequence[Seen]) -> None:
    cells = np.array([[_level(one.judgements[own.claim.id]) for one in seen] for own in claims])
    colours = ListedColormap([colour for _, colour in _LOOKS])
    axes.imshow(cells, aspect="auto", interpolation="nearest", cmap=colours, vmin=-0.5, vmax=len(_LOOKS) - 0.5)
    axes.set_yticks(range(len(claims)), [textwrap.fill(own.claim.text, _LETTERS) for own in claims], fontsize=7)
    for place, own in enumerate(claims):
        share = f"{plain(round(100.0 * own.share.share, 1))} %"
        why = decider_words(own.deciders[0]) if own.deciders else "decided by nothing tried"
        axes.annotate(
            f"{share}  {why}",
            (1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
            annotation_clip=False,
        )
    _bare(axes)


def _draw_choices(axes: "Axes", result: Multiverse, varied: Sequence[str], seen: Sequence[Seen]) -> None:
    names = [list(result.choices[name].alternatives) for name in varied]
    cells = np.array(
        [
            [own.index(one.scenario.alternative(result.choices[name])) for one in seen]
            for name, own in zip(varied, names, strict=True)
        ]
        or [[0] * len(seen)]
    )
    colours = ListedColormap([_DEFAULT, *_OTHER])
    axes.imshow(cells, aspect="auto", interpolation="nearest", cmap=colours, vmin=-0.5, vmax=len(_OTHER) + 0.5)
    axes.set_yticks(range(len(varied)), varied, fontsize=7)
    for place, own in enumerate(names):
        right = 1.01
        for number, name in enumerate(own):
            colour = "#888888" if number == 0 else _OTHER[(number - 1) % len(_OTHER)]
            text = axes.annotate(
                name, (right, place), xycoords=("axes fraction", "data"), va="center", fontsize=6.5, color=colour,
                annotation_clip=False,
            )  # fmt: skip
            right += 0.012 * (len(text.get_text()) + 1.5)
    axes.set_xticks([])
    _bare(axes)


def _bare(axes: "Axes") -> None:
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _shown(result: Multiverse) -> Sequence[Seen]:
    """Return the scenarios of the design, of which shares are told; all scenarios where there is none."""
    return list(result.crossed) or result.seen


def _varied(result: Multiverse) -> list[str]:
    """List the choices in which the scenarios that are shown differ: first those that move verdicts most.

    So scenarios with alike verdicts stand side by side, as far as an order of choices can have it.
    """
    changed = {name for one in _shown(result) for name, _ in one.scenario.changed}
    return sorted((name for name in result.choices if name in changed), key=lambda name: -_moved(name, result))


def _moved(name: str, result: Multiverse) -> float:
    """How far verdicts of scenarios with one alternative of a choice are from those of all scenarios, over all claims.

    Of a claim it is twice the share of scenarios whose verdicts would have to be others (the total variation distance
    of the two distributions); of several alternatives the largest counts.
    """
    levels = np.array([[_level(one.judgements[own.claim.id]) for own in result.claims] for one in _shown(result)])
    chosen = np.array([one.scenario.alternative(result.choices[name]) for one in _shown(result)])

    def shares(scenarios: "np.typing.NDArray[np.bool_]") -> "np.typing.NDArray[np.float64]":
        return np.array([(levels[scenarios] == level).mean(axis=0) for level in range(len(_LOOKS))])

    every = shares(np.ones(len(chosen), dtype=bool))
    return max(float(np.abs(shares(chosen == own) - every).sum()) for own in np.unique(chosen))


def _ordered(result: Multiverse, varied: Sequence[str]) -> list[Seen]:
    """Put scenarios side by side that agree in the choices that matter most."""
    order = {name: list(result.choices[name].alternatives) for name in varied}
    return sorted(
        _shown(result),
        key=lambda one: tuple(own.index(one.scenario.alternative(result.choices[name])) for name, own in order.items()),
    )


def _level(judgement: Judgement) -> int:
    names = [name for name, _ in _LOOKS]
    return names.index(judgement.verdict) if judgement.verdict in names else 0
