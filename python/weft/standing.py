"""How contenders stand on one metric where all had the same flows: who leads, and who cannot be told from whom.

A contender leads if its mean is lower than that of every other one, by an amount whose 95 % interval, paired by seed,
excludes zero. Where that is not so, nobody leads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from weft.metrics import METRICS, Metric
from weft.quantity import plain, time_scale
from weft.statistics import Estimate, paired_difference
from weft.summary import Summary

__all__ = [
    "MEAN_FCT",
    "Rival",
    "Standing",
    "by_seed",
    "difference",
    "difference_words",
    "listed",
    "mean_of",
    "paired",
    "stand",
]

MEAN_FCT = next(metric for metric in METRICS if metric.key == "mean_fct_us")
"""What verdicts judge by, unless flows wait for each other: then by `weft.metrics.COMPLETION`."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A contender beside the one with the lowest mean."""

    name: str
    mean_us: float
    difference_us: Estimate | None
    """The lowest one's mean minus this one's, paired by seed; None without a seed that both have."""

    @property
    def behind(self) -> bool:
        """Whether the interval of the difference lies below zero."""
        return self.difference_us is not None and self.difference_us.excludes_zero and self.difference_us.mean < 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How contenders stand at a point of a sweep; a comparison has one point."""

    labels: Mapping[str, str]
    """The value of each swept field but the contender and the seed."""
    best: str
    """The one with the lowest mean; the first of several."""
    mean_us: float
    rivals: tuple[Rival, ...]
    """All others that have a mean, the lowest first."""
    metric: Metric = MEAN_FCT
    """What the means are of."""

    @property
    def leader(self) -> str | None:
        """Who leads; None if the interval of a difference includes zero, or if there is nobody else."""
        return self.best if self.rivals and all(rival.behind for rival in self.rivals) else None

    @property
    def not_apart(self) -> tuple[Rival, ...]:
        """Those that may be as good as the one with the lowest mean."""
        return tuple(rival for rival in self.rivals if not rival.behind)

    @property
    def sure(self) -> bool:
        """Whether any difference has an interval: one seed gives none."""
        return any(
            rival.difference_us is not None and rival.difference_us.half_width is not None for rival in self.rivals
        )


def stand(
    labels: Mapping[str, str], groups: Mapping[str, Sequence[Summary]], metric: Metric = MEAN_FCT
) -> Standing | None:
    """Say how contenders stand at a point, from the runs of each; None if none has a value of the metric."""
    means = {name: mean for name, runs in groups.items() if (mean := mean_of(metric, runs)) is not None}
    if not means:
        return None
    best = min(means, key=lambda name: means[name])
    rest = sorted((name for name in means if name != best), key=lambda name: means[name])
    rivals = (Rival(name, means[name], difference(metric, groups[best], groups[name])) for name in rest)
    return Standing(labels, best, means[best], tuple(rivals), metric)


def difference(metric: Metric, mine: Sequence[Summary], yours: Sequence[Summary]) -> Estimate | None:
    """Mean of `mine - yours` over the seeds that both have a value for; None without one."""
    return paired(by_seed(metric, mine), by_seed(metric, yours))


def by_seed(metric: Metric, runs: Sequence[Summary]) -> dict[int, float]:
    """Return the value of each run that has one, by its seed."""
    return {run.seed: value for run in runs if (value := metric.read(run)) is not None}


def paired(mine: Mapping[int, float], yours: Mapping[int, float]) -> Estimate | None:
    """Mean of `mine - yours` over the seeds of both; None without one."""
    seeds = [seed for seed in mine if seed in yours]
    return paired_difference([mine[seed] for seed in seeds], [yours[seed] for seed in seeds]) if seeds else None


def difference_words(found: Estimate | None) -> str:
    """Write a difference with its interval: `-0.313 ± 0.120 ms over 5 seeds`."""
    if found is None:
        return "no seed that both have"
    unit, scale = time_scale([found.mean, found.half_width or 0.0])
    seeds = f"over {found.runs} seeds" if found.runs > 1 else "one seed"
    if found.half_width is None:
        return f"{plain(found.mean / scale)} {unit}, {seeds}"
    return f"{plain(found.mean / scale)} ± {plain(found.half_width / scale)} {unit} {seeds}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Write `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def mean_of(metric: Metric, runs: Sequence[Summary]) -> float | None:
    """Mean of a metric over the runs that have a value; None if none has."""
    values = list(by_seed(metric, runs).values())
    return fsum(values) / len(values) if values else None
