"""Forecast of the cost of runs, from the cost of the default scenario and of each single change.

A part of a figure in a scenario is taken to cost as much as by default, times what each of its changes alone made of
that: small flows, or slow ports, change it by more than a factor of two.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

from weft.multiverse.design import Design
from weft.multiverse.parts import Part
from weft.papers.scenarios import DEFAULT, Scenario

__all__ = ["RESERVE", "cost_of", "is_affordable"]

_PARTS_LOOKED_AT = 1024
"""In a larger design runs that are there are not looked for: to list its runs would take longer than some of them."""

RESERVE = 0.15
"""This share of a budget is left for what a forecast does not see: changes that cost more together than alone.

Designs took up to a sixth more than was foretold.
"""


class Costs(Protocol):
    """Known costs of the runs of parts."""

    @property
    def concern(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """The choices that concern each part of each figure."""

    def cpu_of(self, part: Part) -> float:
        """CPU time of the runs of a part that are done, in seconds; 0 if none is."""

    def share_not_there(self, part: Part) -> float:
        """The share of the runs of a part that are still to be done, 0 to 1."""

    def parts(self, scenarios: Iterable[Scenario]) -> list[Part]:
        """List the parts that some scenarios are made of, each once."""


def cost_of(costs: Costs, scenario: Scenario) -> float:
    """Forecast the CPU time of the runs of a scenario that are still to be done, in seconds."""
    return math.fsum(costs.share_not_there(part) * _cost(costs, part) for part in costs.parts([scenario]))


def is_affordable(costs: Costs, design: Design, left_cpu_s: float) -> bool:
    """Whether a design can be paid for with what is left of a budget.

    Where all its runs together would be too dear, those that are there are found, if there are few to look at.
    """
    pays = (1.0 - RESERVE) * left_cpu_s
    if _cost_of_all(costs, design) <= pays:
        return True
    if sum(design.parts(concern) for concern in costs.concern.values()) > _PARTS_LOOKED_AT:
        return False
    needed = 0.0
    for part in costs.parts(design.scenarios()):
        needed += costs.share_not_there(part) * _cost(costs, part)
        if needed > pays:
            return False
    return True


def _cost_of_all(costs: Costs, design: Design) -> float:
    """Forecast the CPU time of the runs of a design, but for those of its single changes, which are done."""
    needed = 0.0
    for (figure, name), concern in costs.concern.items():
        average, done = 1.0, 1.0
        for factor in design.factors:
            if factor.choice.name in concern:
                times = [_times(costs, figure, name, (factor.choice.name, one)) for one in factor.alternatives[1:]]
                average *= (1.0 + math.fsum(times)) / len(factor.alternatives)
                done += math.fsum(times)
        parts = design.parts(concern)
        needed += max(parts * average - done, 0.0) * costs.cpu_of(Part(figure, name, DEFAULT))
    return needed


def _cost(costs: Costs, part: Part) -> float:
    changes = (_times(costs, part.figure, part.name, change) for change in part.scenario.changed)
    return costs.cpu_of(Part(part.figure, part.name, DEFAULT)) * math.prod(changes)


def _times(costs: Costs, figure: str, name: str, change: tuple[str, str]) -> float:
    """Say how often a part's cost by default one change alone costs; once if that is not known."""
    default, changed = (costs.cpu_of(Part(figure, name, scenario)) for scenario in (DEFAULT, Scenario((change,))))
    return changed / default if default > 0.0 and changed > 0.0 else 1.0
