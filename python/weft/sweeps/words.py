"""The verdict of a sweep in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from weft.drawing.asked import Fields
from weft.drawing.names import field_names, value_words
from weft.lead import bound_words, sample_words, unfinished_words
from weft.quantity import percent
from weft.ranking import MEAN_FCT, listed
from weft.summary import Summary
from weft.verdict import caveats

if TYPE_CHECKING:
    from weft.ranking import Ranking
    from weft.sweeps.verdict import Change

__all__ = ["sentences"]

_MOST_NAMED = 4
"""Variants that one sentence names."""


def sentences(
    rankings: Sequence["Ranking"],
    changes: Sequence["Change"],
    fields: Fields,
    axis: str | None,
    everyone: Mapping[str, Sequence[Summary]],
) -> tuple[str, ...]:
    """Say who leads where, and where that changes; for each combination of the fields beside the axis."""
    names = field_names(fields.values)
    beside = fields.beside(axis, fields.variant)
    rows: dict[tuple[str, ...], dict[str, list[Ranking]]] = {}
    for one in rankings:
        if one.others:
            place = tuple(one.labels[key] for key in beside)
            # Flows and collectives are not spoken of in one sentence, nor are two kinds of collectives.
            rows.setdefault(place, {}).setdefault(one.metric.title, []).append(one)
    metrics = {one.metric.key: one.metric for one in rankings}
    told: list[str] = []
    if left := unfinished_words(everyone, rankings[0].metric if len(metrics) == 1 else MEAN_FCT):
        told.append(f"{left}; a mean that depends on them is a bound, which wins nowhere.")
    for place, by_metric in rows.items():
        before = ", ".join(f"{names[key]} = {value_words(label)}" for key, label in zip(beside, place, strict=True))
        own = [one for one in changes if tuple(one.labels[key] for key in beside) == place]
        called = axis if axis is None else names[axis]
        of_rows = [sentence for row in by_metric.values() for sentence in _row(row, axis, called)]
        said = [*of_rows, *(_passes(one, called or "") for one in own)]
        told += [f"With {before}: {_within(sentence)}" if before else sentence for sentence in said]
    if any(one.one_sample for one in rankings):
        told += sample_words(everyone) or ["At some points no result depends on the seed: these have no interval."]
    elif not any(one.sure for one in rankings) and not all(one.alike for one in rankings if one.others):
        told.append(
            "One seed gives no confidence interval, and so no lead: with --seeds 5 you learn whether anybody leads."
        )
    return (*told, *caveats(everyone))


def _within(sentence: str) -> str:
    """Begin a sentence of the verdict's own words with a small letter; a variant keeps its name."""
    return (
        sentence[0].lower() + sentence[1:]
        if sentence.startswith(("Nobody ", "No difference ", "The lead "))
        else sentence
    )


def _row(row: Sequence["Ranking"], axis: str | None, called: str | None) -> Iterator[str]:
    """Yield the sentences on points along the axis: a sentence a leader, and one for those who cannot be told apart."""
    yield from _open([one for one in row if not one.lowest], row, axis, called)
    row_known = [one for one in row if one.lowest]
    sure = any(one.sure for one in row)
    alike = [one for one in row_known if one.alike]
    rest = [one for one in row_known if one not in alike]
    if not sure:
        for name in dict.fromkeys(one.best for one in rest):
            own = [one for one in rest if one.best == name]
            extreme = "highest" if own[0].metric.more_is_better else "lowest"
            yield f"{name} has the {extreme} {own[0].metric.title}{_at(own, row, axis, called)}."
    for leader in dict.fromkeys(one.leader for one in rest if sure and one.leader is not None):
        own = [one for one in rest if one.leader == leader]
        yield f"{leader} leads{_at(own, row, axis, called)}: {_leads(own, axis)}."
    for names in dict.fromkeys(map(_together, alike)):
        own = [one for one in alike if _together(one) == names]
        yield f"No difference that matters{_at(own, row, axis, called)}: {_apart(own, names, axis, alike=True)}."
    for names in dict.fromkeys(_together(one) for one in rest if sure and one.leader is None):
        own = [one for one in rest if one.leader is None and _together(one) == names]
        yield f"Nobody leads{_at(own, row, axis, called)}: {_apart(own, names, axis)}."


def _open(own: Sequence["Ranking"], row: Sequence["Ranking"], axis: str | None, called: str | None) -> Iterator[str]:
    """Yield a sentence on points at which a mean that is a bound may be the best one."""
    if not own:
        return
    one = own[0]
    best = "" if one.best is None or one.mean is None else f"{one.best} {bound_words(one.mean, one.metric)}, "
    bounds = [f"{ranked.name} {bound_words(ranked.mean, one.metric)}" for ranked in one.others if ranked.share < 0.0]
    where = f" at {value_words(one.labels[axis])}" if axis is not None and len(own) > 1 else ""
    yield (
        f"Nobody wins{_at(own, row, axis, called)}: what did not finish leaves the {one.metric.title} open "
        f"({best}{', '.join(bounds[:_MOST_NAMED])}{where})."
    )


def _together(one: "Ranking") -> tuple[str, ...]:
    near = one.not_apart if one.sure else [ranked for ranked in one.others if not ranked.matters]
    return tuple(sorted([one.best or "", *(ranked.name for ranked in near)]))


def _at(own: Sequence["Ranking"], row: Sequence["Ranking"], axis: str | None, called: str | None) -> str:
    """Say at which values of the axis: ` at load 0.4 and 0.8`."""
    if axis is None or called is None:
        return ""
    if len(own) == len(row) > 2:
        return f" at every {called} from {value_words(row[0].labels[axis])} to {value_words(row[-1].labels[axis])}"
    return f" at {called} {listed([value_words(one.labels[axis]) for one in own])}"


def _leads(own: Sequence["Ranking"], axis: str | None) -> str:
    """Say by how much against the next: at each of two points, or at the smallest and the largest lead of more."""
    # Of those behind, the one that is nearest to it.
    shares = [one.others[0].share for one in own]
    shown = list(range(len(own)))
    if len(own) > 2:
        shown = [shares.index(min(shares)), shares.index(max(shares))]
    parts = []
    for place in dict.fromkeys(shown):
        one, ranked = own[place], own[place].others[0]
        where = f" at {value_words(one.labels[axis])}" if axis is not None and len(own) > 1 else ""
        least = "at least " if ranked.mean.sign else ""
        beyond = "above" if one.metric.more_is_better else "below"
        apart = ranked.apart_by(one.metric.unit)
        parts.append(f"{least}{percent(shares[place])} {beyond} {ranked.name}{where} ({apart})")
    title = own[0].metric.title
    return f"its {title} is {' and '.join(parts)}" if len(own) <= 2 else f"its {title} is from {' to '.join(parts)}"


def _apart(own: Sequence["Ranking"], names: Sequence[str], axis: str | None, *, alike: bool = False) -> str:
    """Say who cannot be told apart, and show the difference that is nearest to saying so."""
    shown = list(names) if len(names) <= _MOST_NAMED else [*names[: _MOST_NAMED - 1], f"{len(names) - 3} others"]
    parts = []
    for one in own[:2]:
        ranked = (one.not_apart if one.sure else one.others)[0]
        where = f" at {value_words(one.labels[axis])}" if axis is not None and len(own) > 1 else ""
        apart = ranked.apart_by(one.metric.unit)
        parts.append(f"{one.best} and {ranked.name}{where}: {apart}")
    rest = "; all others are behind" if any(len(one.others) + 1 > len(names) for one in own) else ""
    metric = own[0].metric
    by = "" if metric is MEAN_FCT else f" by {metric.title}"
    said = f"are within {100.0 * own[0].matters:g} % of each other" if alike else "cannot be told apart"
    return f"{listed(shown)} {said}{by} ({'; '.join(parts)}){rest}"


def _passes(change: "Change", called: str) -> str:
    nobody = f"; nobody leads at {listed(list(change.between))}" if change.between else ""
    return (
        f"The lead passes from {change.before} to {change.after} between {called} {change.left_at} and "
        f"{change.taken_at}{nobody}."
    )
