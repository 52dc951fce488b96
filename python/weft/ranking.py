"""The order of variants by one metric where all had the same flows: which leads, and which do not differ.

A variant leads if its mean is better than that of every other one. The 95 % interval of the difference, paired by
seed, excludes zero, and the difference matters: a share of at least `MATTERS` of the other's mean. Otherwise nobody
leads.

If unfinished flows leave a mean open, only its bound is known. Such a variant is never the best one. It is behind if
even its bound is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from weft.errors import SpecError
from weft.metrics import METRICS, Metric, Unit, over_runs
from weft.quantity import plain, unit_and_scale
from weft.samples import distinct, of_one_sample
from weft.statistics import Estimate, interval_mean
from weft.summary import Summary

__all__ = [
    "MATTERS",
    "MEAN_FCT",
    "RankedVariant",
    "Ranking",
    "by_seed",
    "checked_matters",
    "difference",
    "difference_json",
    "difference_words",
    "listed",
    "mean_of",
    "paired",
    "rank",
]

MEAN_FCT = next(metric for metric in METRICS if metric.key == "mean_fct_us")
"""Metric of verdicts, unless flows wait for each other: then it is `weft.metrics.COMPLETION`."""

MATTERS = 0.01
"""A smaller difference, as a share of the other's mean, does not matter."""


@dataclass(frozen=True, slots=True)
class RankedVariant:
    """A variant beside the best one."""

    name: str
    mean: Estimate
    """Mean of the variant over the seeds, or its bound."""
    difference_us: Estimate | None
    """The best one's mean minus this one's, paired by seed; None if it is not known."""
    share: float
    """How much better the best one's mean is, as a share of this one's: below zero if a bound may be better."""
    matters: bool
    """Whether the difference matters."""
    sign: int = -1
    """1 if more is better."""
    one_sample: bool = False
    """Whether there are several seeds, and the results of neither depend on them."""

    @property
    def mean_us(self) -> float:
        """Mean of the variant over the seeds, or its bound."""
        return self.mean.mean

    @property
    def apart(self) -> bool:
        """Whether the interval of the difference says that this one is worse."""
        found = self.difference_us
        return found is not None and found.excludes_zero and (found.low > 0.0 if self.sign > 0 else found.high < 0.0)

    def apart_by(self, unit: Unit) -> str:
        """Write the difference, and over how many seeds it is."""
        return difference_words(self.difference_us, unit, "one sample" if self.one_sample else "one seed")

    @property
    def behind(self) -> bool:
        """Whether it is worse by a difference that matters."""
        return self.apart and self.matters


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of variants at a point of a sweep; a comparison has one point."""

    labels: Mapping[str, str]
    """The value of each swept field but the variant and the seed."""
    best: str | None
    """The variant with the best known mean; the first of several. None if none is known."""
    mean: Estimate | None
    """Mean of the best variant."""
    others: tuple[RankedVariant, ...]
    """All others that have a mean or the bound of one, the best first."""
    metric: Metric = MEAN_FCT
    """Metric of the means."""
    one_sample: bool = False
    """Whether there are several seeds, on which no result depends."""
    matters: float = MATTERS
    """The least difference that matters, as a share."""

    @property
    def mean_us(self) -> float | None:
        """The mean of the best one."""
        return None if self.mean is None else self.mean.mean

    def means_json(self) -> dict[str, dict[str, float | None]]:
        """Return the mean of each variant for JSON, or what it is at least or at most, in the unit of the metric."""
        means = ([] if self.best is None or self.mean is None else [(self.best, self.mean)]) + [
            (other.name, other.mean) for other in self.others
        ]
        bound = "at_most" if self.metric.sign == "≤" else "at_least"
        return {name: {"mean": mean.value, **({bound: mean.mean} if mean.sign else {})} for name, mean in means}

    @property
    def leader(self) -> str | None:
        """The variant that leads; None if another may be as good, or if there is no other."""
        return self.best if self.others and all(other.behind for other in self.others) else None

    @property
    def lowest(self) -> bool:
        """Whether no other mean may be better than the best one of those that are known."""
        return self.best is not None and all(other.share >= 0.0 for other in self.others)

    @property
    def winner(self) -> str | None:
        """The variant with the best mean, by luck or not; None if another is as good, nearly so or may be better."""
        tied = self.alike or any(other.share == 0.0 for other in self.others)
        return self.best if self.lowest and not tied else None

    @property
    def not_apart(self) -> tuple[RankedVariant, ...]:
        """The variants that may be as good as the best one, or nearly."""
        return tuple(other for other in self.others if not other.behind)

    @property
    def alike(self) -> tuple[RankedVariant, ...]:
        """The variants from which the best one differs by too little to matter; none if another may be as good.

        With one seed a difference that matters is enough to be behind.
        """
        near = self.not_apart if self.sure else tuple(other for other in self.others if not other.matters)
        # What is behind a bound may be far off.
        close = all(not other.matters and not other.mean.sign and (other.apart or not self.sure) for other in near)
        return near if self.lowest and close else ()

    @property
    def sure(self) -> bool:
        """Whether any difference has an interval: one seed gives none."""
        return any(
            other.difference_us is not None and other.difference_us.half_width is not None for other in self.others
        )


def checked_matters(share: float) -> float:
    """Return the least difference that matters; raises `SpecError` if it is no share."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 <= share < 1.0:
        raise SpecError(f"matters = {share!r}: expected a share from 0 to below 1, as in 0.01 for 1 %")
    return float(share)


def rank(
    labels: Mapping[str, str],
    groups: Mapping[str, Sequence[Summary]],
    metric: Metric = MEAN_FCT,
    matters: float = MATTERS,
) -> Ranking | None:
    """Order the variants at a point by their runs; None if none has a value of the metric or a bound."""
    found = {name: mean for name, runs in groups.items() if (mean := over_runs(metric, distinct(runs))) is not None}
    if not found:
        return None
    sign = 1 if metric.more_is_better else -1
    ordered = sorted(found, key=lambda name: (bool(found[name].sign), -sign * found[name].mean))
    best = None if found[ordered[0]].sign else ordered[0]
    alike = of_one_sample(groups)
    others = []
    for name in ordered if best is None else ordered[1:]:
        gap = None if best is None else difference(metric, groups[best], groups[name])
        share = -inf
        if best is not None and found[best].mean == found[name].mean:
            share = 0.0
        elif best is not None and found[name].mean:
            share = sign * (found[best].mean / found[name].mean - 1.0)
        one_sample = best in alike and name in alike
        others.append(RankedVariant(name, found[name], gap, share, share >= matters, sign, one_sample))
    own = None if best is None else found[best]
    return Ranking(labels, best, own, tuple(others), metric, bool(alike) and len(alike) == len(groups), matters)


def difference(metric: Metric, mine: Sequence[Summary], yours: Sequence[Summary]) -> Estimate | None:
    """Mean of `mine - yours` over the seeds that both have a value for; None without one.

    Where the results of neither depend on the seed, there is one pair.
    """
    return paired(by_seed(metric, mine), by_seed(metric, yours), one=len(distinct(mine)) == len(distinct(yours)) == 1)


def by_seed(metric: Metric, runs: Sequence[Summary]) -> dict[int, tuple[float, float]]:
    """Return the bounds of the value of each run that has one, by its seed: equal ones where it is known."""
    return {run.seed: found for run in runs if (found := metric.interval(run)) is not None}


def paired(
    mine: Mapping[int, tuple[float, float]], yours: Mapping[int, tuple[float, float]], *, one: bool = False
) -> Estimate | None:
    """Mean of `mine - yours` over the seeds of both, or `one` of them; None if it is not known."""
    seeds = [seed for seed in mine if seed in yours][: 1 if one else None]
    if not seeds:
        return None
    return interval_mean([(mine[seed][0] - yours[seed][1], mine[seed][1] - yours[seed][0]) for seed in seeds])


def difference_words(found: Estimate | None, of: Unit = "us", alone: str = "one seed") -> str:
    """Write a difference with its interval: `-0.313 ± 0.120 ms over 5 seeds`, or its bound: `at most -0.313 ms`.

    `alone` names the one pair where there is no other.
    """
    if found is None:
        return "nothing is known of the difference"
    unit, scale = unit_and_scale(of, [found.mean, found.half_width or 0.0])
    seeds = f"over {found.runs} seeds" if found.runs > 1 else alone
    if found.sign:
        most = found.sign == "≤"
        end = found.mean + (found.half_width or 0.0) * (1.0 if most else -1.0)
        return f"{'at most' if most else 'at least'} {plain(end / scale)} {unit} {seeds}"
    if found.half_width is None:
        return f"{plain(found.mean / scale)} {unit}, {seeds}"
    return f"{plain(found.mean / scale)} ± {plain(found.half_width / scale)} {unit} {seeds}"


def difference_json(found: Estimate | None) -> dict[str, float | bool | int | None] | None:
    """Return a difference for JSON: its mean and interval or, where it is open, the bound at 95 % confidence."""
    if found is None:
        return None
    bound = {"≤": "at_most", "≥": "at_least", ">": "at_least"}.get(found.sign)
    end = (
        {} if bound is None else {bound: found.mean + (found.half_width or 0.0) * (1.0 if bound == "at_most" else -1.0)}
    )
    return {
        "mean": found.value,
        "ci95": found.spread,
        **end,
        "seeds": found.runs,
        "excludes_zero": found.excludes_zero,
    }


def listed(names: Sequence[str], last: str = "and") -> str:
    """Write `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def mean_of(metric: Metric, runs: Sequence[Summary]) -> float | None:
    """Mean of a metric over runs; None if it is not known."""
    found = over_runs(metric, distinct(runs))
    return None if found is None else found.value
