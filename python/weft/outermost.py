"""The collectives that somebody waits for: steps of jobs, and those that are part of none."""

from collections.abc import Sequence
from math import fsum

from weft.summary import CollectiveFacts, Summary

__all__ = ["completion_of", "finished", "longest_of", "outermost", "unfinished_collectives", "weighted"]


def outermost(run: Summary) -> list[CollectiveFacts]:
    """Return the steps of jobs, and the collectives that are part of none."""
    # What a job's steps are made of has the job's label and a point before its own.
    jobs = tuple(f"{one.label}." for one in run.collectives if one.kind == "step")
    return [one for one in run.collectives if one.kind == "step" or not one.label.startswith(jobs)]


def completion_of(run: Summary) -> float | None:
    """Mean completion time of the outermost collectives, in microseconds; None if of some none finished."""
    found = outermost(run)
    means = [one.completion_us.mean for one in found]
    return None if None in means or not found else weighted(found, [mean for mean in means if mean is not None])


def longest_of(run: Summary) -> float | None:
    """Return how long the slowest of the outermost collectives took that finished, in microseconds."""
    return max((one.longest_us for one in outermost(run) if one.longest_us is not None), default=None)


def unfinished_collectives(run: Summary) -> int:
    """How many of the outermost collectives did not finish."""
    return sum(one.unfinished for one in outermost(run))


def finished(one: CollectiveFacts) -> int:
    """Return how many of them finished."""
    return one.count - one.unfinished


def weighted(found: Sequence[CollectiveFacts], values: Sequence[float]) -> float:
    """Mean over all collectives that finished, of which there may be more of one kind than of another."""
    weights = [finished(one) for one in found]
    return fsum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)
