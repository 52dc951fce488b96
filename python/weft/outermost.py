"""The collectives that somebody waits for: steps of jobs, and those that are part of none."""

from weft.summary import CollectiveFacts, Summary

__all__ = ["awaited", "completion_of", "longest_of", "outermost", "unfinished_collectives"]


def outermost(run: Summary) -> list[CollectiveFacts]:
    """Return the steps of jobs, and the collectives that are part of no job and no file."""
    return [one for one in run.collectives if one.part_of is None]


def awaited(run: Summary) -> CollectiveFacts | None:
    """Return the collectives that a run is judged by: the steps of its jobs or, without jobs, all outermost ones.

    Unlike collectives are never averaged: of several jobs or kinds it is the one that takes longest on average. None if
    one of them never finished: nobody knows how long it takes.
    """
    found = outermost(run)
    found = [one for one in found if one.kind == "step"] or found
    times = [(one.completion_us.mean, one) for one in found]
    known = [(mean, one) for mean, one in times if mean is not None]
    return max(known, key=lambda timed: timed[0])[1] if known and len(known) == len(times) else None


def completion_of(run: Summary) -> float | None:
    """Mean completion time of what a run is judged by, in microseconds; None if it is not known."""
    found = awaited(run)
    return None if found is None else found.completion_us.mean


def longest_of(run: Summary) -> float | None:
    """Return how long the slowest of the outermost collectives took that finished, in microseconds."""
    return max((one.longest_us for one in outermost(run) if one.longest_us is not None), default=None)


def unfinished_collectives(run: Summary) -> int:
    """How many of the outermost collectives did not finish."""
    return sum(one.unfinished for one in outermost(run))
