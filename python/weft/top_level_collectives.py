"""The collectives that somebody waits for: steps of jobs, and those that are part of none."""

from weft.summary import CollectiveFacts, Summary

__all__ = [
    "awaited",
    "completion_of",
    "least_completion_of",
    "least_longest_of",
    "longest_of",
    "top_level_collectives",
    "unfinished_collectives",
]


def top_level_collectives(run: Summary) -> list[CollectiveFacts]:
    """Return the steps of jobs, and the collectives that are part of no job and no file."""
    return [one for one in run.collectives if one.part_of is None]


def awaited(run: Summary) -> CollectiveFacts | None:
    """Return the collectives that a run is judged by: the steps of its jobs or, without jobs, all top-level ones.

    Unlike collectives are never averaged: of several jobs or kinds it is the one that takes longest on average. None if
    one of them never finished: nobody knows how long it takes.
    """
    found = _judged(run)
    known = [(mean, one) for one in found if one.count > one.unfinished and (mean := _least(one)) is not None]
    return max(known, key=lambda timed: timed[0])[1] if known and len(known) == len(found) else None


def _judged(run: Summary) -> list[CollectiveFacts]:
    found = top_level_collectives(run)
    return [one for one in found if one.kind == "step"] or found


def _least(one: CollectiveFacts) -> float | None:
    """Return the mean completion time, or what it is at least."""
    times = one.completion_us
    return times.mean if times.mean is not None or times.at_least is None else times.at_least.mean


def completion_of(run: Summary) -> float | None:
    """Mean completion time of what a run is judged by, in microseconds; None if some did not finish."""
    means = [one.completion_us.mean for one in _judged(run)]
    return None if None in means else max((mean for mean in means if mean is not None), default=None)


def least_completion_of(run: Summary) -> float | None:
    """Return what that mean is at least, where some did not finish; None without any."""
    return max((least for one in _judged(run) if (least := _least(one)) is not None), default=None)


def longest_of(run: Summary) -> float | None:
    """Return how long the slowest of the top-level collectives took, in microseconds; None if one did not finish."""
    found = [one.longest_us for one in top_level_collectives(run)]
    return None if None in found else max((one for one in found if one is not None), default=None)


def least_longest_of(run: Summary) -> float | None:
    """Return what the longest is at least, where one did not finish; None without any."""
    found = [(one.longest_us, one.longest_at_least_us) for one in top_level_collectives(run)]
    return max((one for pair in found for one in pair if one is not None), default=None)


def unfinished_collectives(run: Summary) -> int:
    """How many of the top-level collectives did not finish."""
    return sum(one.unfinished for one in top_level_collectives(run))
