"""The observations behind QALL's Fig. 3 and Table I, as `weft fit qall` makes them (section III-B)."""

from collections.abc import Sequence
from functools import cache

from weft.catalog import preset
from weft.fitting import DEGREES, Observations, Report, Source, observe, report
from weft.papers.declared import Scale
from weft.papers.measured import RunsUsed

__all__ = ["TIME_CONSTANT_MS", "observed", "reports", "runs_used"]

_WORKLOADS = ("web-search", "data-mining")
"""The paper's background traffic, half of the observations from each."""

_SAMPLES = {"quick": 20_000, "paper": 200_000}
"""The paper's own number, 150,000 to fit to and 50,000 to test with; and that of the quick scale."""

_SEEDS: Sequence[int] = (1, 101, 201, 301, 401)
"""Where each set of observations begins: it goes on with the next seeds until there are enough."""

TIME_CONSTANT_MS = 10
"""Intervals are shares of this: tau in QALL, section IV-C."""

_WINDOW, _PORTS = "1ms", "spine"
"""As `weft fit qall` has them."""


@cache
def observed(scale: Scale) -> dict[int, Observations]:
    """Return a set of observations for each seed that it begins with."""
    text = preset("qall-symmetric").spec
    found = {}
    for seed in _SEEDS:
        sources = [Source(text, (("traffic.workload", workload),), seed, workload) for workload in _WORKLOADS]
        found[seed], _ = observe(
            sources,
            _SAMPLES[scale],
            window=_WINDOW,
            time_constant=f"{TIME_CONSTANT_MS}ms",
            ports=_PORTS,
            reading="latest",
        )
    return found


@cache
def reports(scale: Scale) -> dict[int, Report]:
    """Return the correlations and fits of each set."""
    return {seed: report(observations, DEGREES) for seed, observations in observed(scale).items()}


def runs_used(scale: Scale) -> RunsUsed:
    """Say what was observed: a run for each workload and seed, as the grid of a figure would."""
    return RunsUsed(scale, runs=len(_SEEDS) * len(_WORKLOADS), seeds=len(_SEEDS))
