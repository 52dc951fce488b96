"""The first sentences of a verdict: who wins, by how much, how sure that is, and what flows leave open."""

from collections.abc import Mapping, Sequence

from weft.collectives import COMPLETION, top_level_collectives, unfinished_collectives
from weft.metrics import Metric
from weft.quantity import in_unit, number, percent, plain, time_scale, unit_and_scale
from weft.ranking import RankedVariant, Ranking, difference_json, listed
from weft.samples import of_one_sample
from weft.statistics import Estimate
from weft.summary import Summary

__all__ = ["bound_words", "first_sentences", "sample_words", "unfinished_words"]

Groups = Mapping[str, Sequence[Summary]]

_MOST_NAMED = 4
"""Variants that one sentence names."""


def first_sentences(ranking: Ranking, other: RankedVariant | None, groups: Groups) -> list[str]:
    """Say who wins against whom, and how sure that is; the first sentence says which flows did not finish."""
    first, *more = _who(ranking, other)
    open_ = unfinished_words(groups, ranking.metric)
    said = [f"{first}; {open_}." if open_ else f"{first}.", *more]
    if ranking.best is None or other is None or not ranking.lowest:
        return said
    tied = ranking.alike or other.share == 0.0
    if tied and not ranking.sure and not ranking.one_sample:
        # No more seeds are needed to learn whether a difference is luck that does not matter.
        return said
    return [*said, _how_sure(ranking, other.difference_us, groups)]


def unfinished_words(groups: Groups, metric: Metric) -> str:
    """Say how many flows, or collectives, each variant left unfinished, and why; nothing if none did."""
    found: list[str] = []
    limits: set[float | None] = set()
    for label, runs in groups.items():
        never = 0
        if metric.key == COMPLETION.key:
            left, all_ = (
                sum(map(unfinished_collectives, runs)),
                sum(one.count for run in runs for one in top_level_collectives(run)),
            )
        else:
            left, all_ = sum(run.without_completion for run in runs), sum(run.flows for run in runs)
            never = sum(run.never_started for run in runs)
        if left:
            what = "" if found else f" {'collectives' if metric.key == COMPLETION.key else 'flows'} unfinished"
            found.append(f"{label} left {left:,} of {all_:,}{what}{f' ({never:,} never began)' if never else ''}")
            limits |= {run.time_limit_us for run in runs if run.without_completion}
    if not found:
        return ""
    shown = (
        found
        if len(found) <= _MOST_NAMED
        else [*found[: _MOST_NAMED - 1], f"{len(found) - _MOST_NAMED + 1} others left some"]
    )
    cut = sorted(limit for limit in limits if limit is not None)
    what = "run" if sum(map(len, groups.values())) == 1 else "runs"
    why = ""
    if len(cut) == len(limits) == 1:
        why = f" when the {what} ended {_exact(cut[0])} after the last start (run.time_limit)"
    elif cut:
        why = f" (run.time_limit ended the {what})" if len(cut) == len(limits) else " (run.time_limit ended some runs)"
    return f"{listed(shown)}{why}"


def sample_words(groups: Groups) -> list[str]:
    """Say which variants' results do not depend on the seed; nothing if all do, or if there is one seed."""
    alike = of_one_sample(groups)
    if not alike:
        return []
    seeds = max(len(groups[label]) for label in alike)
    whose = "No result" if len(alike) == len(groups) else f"No result of {listed(alike)}"
    return [f"{whose} depends on the seed: {seeds} seeds are one sample, which has no confidence interval."]


def bound_words(value: Estimate, metric: Metric) -> str:
    """Write a mean with its unit, or the bound of one: `1.23 ms`, `≥ 1.23 s`."""
    return f"{value.sign} {in_unit(value.mean, metric.unit)}".strip()


def _who(ranking: Ranking, other: RankedVariant | None) -> list[str]:
    """Say who wins; without the point at the end of the first sentence."""
    metric, best, mean = ranking.metric, ranking.best, ranking.mean
    if best is None or mean is None:
        bounds = ", ".join(
            f"{ranked.name} {bound_words(ranked.mean, metric)}" for ranked in ranking.others[:_MOST_NAMED]
        )
        if len(ranking.others) == 1:
            return [f"{ranking.others[0].name}: {metric.title} {bound_words(ranking.others[0].mean, metric)}"]
        end = "upper" if metric.sign == "≤" else "lower"
        return [f"Nobody wins: only {end} bounds of the {metric.title} are known ({bounds})"]
    if other is None:
        return [f"{best}: {metric.title} {bound_words(mean, metric)}"]
    if not ranking.lowest:
        bounds = ", ".join(
            f"{ranked.name} {bound_words(ranked.mean, metric)}" for ranked in ranking.others if ranked.share < 0.0
        )
        return [
            f"Nobody wins: the {metric.title} of {best} is {bound_words(mean, metric)}, but others may be better "
            f"({bounds})"
        ]
    by_how_much = f"{bound_words(mean, metric)}, {_share(other, metric)}"
    close = ranking.alike
    if other.mean == mean and len(close) <= 1:
        return [f"{best} and {other.name} have the same {metric.title}: {bound_words(mean, metric)}"]
    if close:
        return [
            *_alike(ranking, close),
            *([] if other in close else [f"The best {metric.title} is that of {best}: {by_how_much}."]),
        ]
    if ranking.leader is None and ranking.sure:
        return [_nobody(ranking), f"The {_extreme(metric)} {metric.title} is that of {best}: {by_how_much}."]
    return [f"{best} has the {_extreme(metric)} {metric.title}: {by_how_much}"]


def _extreme(metric: Metric) -> str:
    return "highest" if metric.more_is_better else "lowest"


def _share(other: RankedVariant, metric: Metric) -> str:
    """Say how much better the best mean is: `12 % less than ecmp (1.23 ms)`."""
    bound = "at least " if other.mean.sign else ""
    more = "more" if metric.more_is_better else "less"
    return f"{bound}{percent(abs(other.share))} {more} than {other.name} ({bound_words(other.mean, metric)})"


def _alike(ranking: Ranking, close: Sequence[RankedVariant]) -> list[str]:
    """Say whose difference from the best one does not matter."""
    names = _some([ranking.best or "", *(ranked.name for ranked in close)], len(close) + 1)
    nearest = max(close, key=lambda ranked: ranked.share)
    apart = f"{ranking.best} and {nearest.name}: {percent(nearest.share)}"
    if ranking.sure:
        apart += f", {nearest.apart_by(ranking.metric.unit)}"
    rest = "; all others are behind" if len(close) < len(ranking.others) else ""
    least = f"{100.0 * ranking.matters:g} %"
    return [
        f"No difference that matters: {listed(names)} are within {least} of each other by {ranking.metric.title} "
        f"({apart}){rest}"
    ]


def _nobody(ranking: Ranking) -> str:
    """Say who cannot be told from the best one, and show the nearest difference."""
    names = [ranking.best or "", *(ranked.name for ranked in ranking.not_apart)]
    names = _some(names, len(names))
    nearest = ranking.not_apart[0]
    rest = "; all others are behind" if len(ranking.not_apart) < len(ranking.others) else ""
    apart = f"{ranking.best} and {nearest.name}: {nearest.apart_by(ranking.metric.unit)}"
    return f"Nobody leads: {listed(names)} cannot be told apart by {ranking.metric.title} ({apart}){rest}"


def _some(names: Sequence[str], count: int) -> list[str]:
    if count <= _MOST_NAMED:
        return list(names)
    return [*names[: _MOST_NAMED - 1], f"{count - _MOST_NAMED + 1} others"]


def _how_sure(ranking: Ranking, difference: Estimate | None, groups: Groups) -> str:
    if difference is None or difference.half_width is None:
        if ranking.one_sample:
            return sample_words(groups)[0]
        return "One seed gives no confidence interval: with --seeds 5 you learn whether the difference is luck."
    unit, scale = unit_and_scale(ranking.metric.unit, [difference.mean, difference.half_width])
    verb = "excludes" if difference.excludes_zero else "includes"
    if difference.sign:
        # What is left open may be anything beyond.
        end = difference_json(difference) or {}
        most = "at_most" in end
        bound = end["at_most" if most else "at_least"]
        return (
            f"Paired over {difference.runs} seeds the difference is {'at most' if most else 'at least'} "
            f"{plain(float(bound or 0.0) / scale)} {unit} (95 % confidence): the interval {verb} zero."
        )
    return (
        f"Paired over {difference.runs} seeds the difference is {plain(difference.mean / scale)} "
        f"± {plain(difference.half_width / scale)} {unit} (95 % confidence): the interval {verb} zero."
    )


def _exact(time_us: float) -> str:
    """Write a time as a spec has it: `30 s`, `1.5 ms`."""
    unit, scale = time_scale([time_us])
    return f"{number(time_us / scale) if (time_us / scale).is_integer() else f'{time_us / scale:.6g}'} {unit}"
