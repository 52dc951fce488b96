"""The observations behind QALL's Fig. 3 and Table I, as `weft fit qall` makes them (section III-B).

The figure names one set-up, which varies the workload: the paper's background traffic, the same number of observations
from each. Its options: `samples` at each scale; `window`, `ports`, `reading` and `time_constant` as `weft fit qall` has
them. Every seed of the set-up is a set of observations, which goes on with the next seeds until there are enough.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from weft.errors import SpecError
from weft.fitting import DEGREES, Observations, Reading, Report, Source, observe, report
from weft.papers.measured import RunsUsed
from weft.papers.reading import nearest
from weft.papers.special import SpecialContext

__all__ = ["Observing", "observing", "runs_used"]

_APART = 100
"""Seeds from the first of one set to the first of the next."""

_HELD = 2
"""Scenarios whose observations stay in memory: figures of one scenario follow each other."""


@dataclass(frozen=True, slots=True)
class Observing:
    """Settings of the observation of ports."""

    sources: tuple[tuple[int, tuple[Source, ...]], ...]
    """By the seed of the set-up."""
    samples: int
    """Number of observations in each set: the paper's own number is 150,000 to fit to and 50,000 to test with."""
    window: str
    ports: str
    reading: Reading
    time_constant: str
    """Intervals are shares of this: tau in QALL, section IV-C."""

    def observed(self) -> Mapping[int, Observations]:
        """Return a set of observations for each seed."""
        return _observed(self)

    def reports(self) -> Mapping[int, Report]:
        """Return the correlations and fits of each set."""
        return _reports(self)


def observing(context: SpecialContext) -> Observing:
    """Find what a figure observes; `SpecError` says which option is wrong."""
    (cases,) = context.set_ups.values()
    by_seed: dict[int, list[Source]] = {}
    for case in cases:
        first, name = 1 + _APART * (case.seed - 1), ", ".join(label for _, label in case.labels)
        by_seed.setdefault(first, []).append(Source(context.spec(case), (), first, name))
    options, place = context.options, f"{context.figure.key}: options"
    reading = _text(options, "reading", place)
    if reading not in get_args(Reading):
        raise SpecError(f"{place}: {nearest('reading', reading, get_args(Reading))}")
    return Observing(
        tuple((seed, tuple(sources)) for seed, sources in by_seed.items()),
        int(options["samples"][context.scale]),
        _text(options, "window", place),
        _text(options, "ports", place),
        "mean" if reading == "mean" else "latest",
        _text(options, "time_constant", place),
    )


def runs_used(context: SpecialContext) -> RunsUsed:
    """Say what was observed: a run for each place of the set-up, as the grid of a figure would."""
    (name,), (cases,) = context.set_ups.keys(), context.set_ups.values()
    declared = context.paper.experiments[name].at(context.scale).seeds
    seeds = len({case.seed for case in cases})
    return RunsUsed(context.scale, runs=len(cases), seeds=seeds, declared_seeds=declared)


def _text(options: Mapping[str, Any], name: str, place: str) -> str:
    value = options.get(name)
    if not isinstance(value, str):
        raise SpecError(f"{place}: {name} = {value!r}: expected a text, as of weft fit qall")
    return value


@lru_cache(_HELD)
def _observed(what: Observing) -> Mapping[int, Observations]:
    found = {}
    for seed, sources in what.sources:
        found[seed], _ = observe(
            sources,
            what.samples,
            window=what.window,
            time_constant=what.time_constant,
            ports=what.ports,
            reading=what.reading,
        )
    return found


@lru_cache(_HELD)
def _reports(what: Observing) -> Mapping[int, Report]:
    return {seed: report(observations, DEGREES) for seed, observations in _observed(what).items()}
