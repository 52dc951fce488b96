"""Forecast of the cost of a design, from the cost of each change alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft.multiverse.design import Design, Factor, chosen_design
from weft.multiverse.forecast import RESERVE, cost_of, is_affordable
from weft.multiverse.parts import Part
from weft.papers.open import Alternative, Choice
from weft.papers.scenarios import DEFAULT, Scenario

DEAR, CHEAP = ("dear", "yes"), ("cheap", "yes")


@dataclass
class MadeCosts:
    """One part of a figure: seconds by scenario of what is done, and scenarios whose runs are there besides."""

    cpu_s: Mapping[Scenario, float]
    there: frozenset[Scenario] = frozenset()
    concern: Mapping[tuple[str, str], frozenset[str]] = field(
        default_factory=lambda: {("1", "ecmp"): frozenset({"dear", "cheap"})}
    )

    def cpu_of(self, part: Part) -> float:
        return self.cpu_s.get(part.scenario, 0.0)

    def share_not_there(self, part: Part) -> float:
        return 0.0 if part.scenario in self.cpu_s or part.scenario in self.there else 1.0

    def parts(self, scenarios: Iterable[Scenario]) -> list[Part]:
        return [Part("1", "ecmp", scenario) for scenario in scenarios]


def design() -> Design:
    pair = {name: Alternative(name, "made up", {}) for name in ("no", "yes")}
    factors = [
        Factor(Choice(name, "?", pair, "paper"), ("no", "yes"), shared=True, place=place)
        for place, name in enumerate(("dear", "cheap"))
    ]
    made = chosen_design(factors, lambda _: True)
    assert made is not None and len(made.scenarios()) == 4
    return made


def test_a_scenario_costs_what_each_of_its_changes_makes_of_the_default() -> None:
    """One change makes runs three times as dear, one half as dear: the scenario with both takes 10 s x 3 / 2 = 15 s.

    The other three are done. A share of what is left is kept back, so 15 s take a budget that much larger.
    """
    costs = MadeCosts({DEFAULT: 10.0, Scenario((DEAR,)): 30.0, Scenario((CHEAP,)): 5.0})
    assert is_affordable(costs, design(), 15.0 / (1.0 - RESERVE) + 0.01)
    assert not is_affordable(costs, design(), 15.0 / (1.0 - RESERVE) - 0.01)


def test_a_change_that_was_not_tried_costs_what_the_default_does() -> None:
    costs = MadeCosts({DEFAULT: 10.0, Scenario((DEAR,)): 30.0})
    assert is_affordable(costs, design(), 30.0 / (1.0 - RESERVE) + 0.01)
    assert not is_affordable(costs, design(), 30.0 / (1.0 - RESERVE) - 0.01)


def test_a_single_change_is_taken_to_cost_what_the_default_did_as_far_as_it_is_not_done() -> None:
    costs = MadeCosts({DEFAULT: 10.0, Scenario((DEAR,)): 30.0})
    assert [cost_of(costs, scenario) for scenario in (Scenario((CHEAP,)), Scenario((DEAR,)), DEFAULT)] == [
        10.0,
        0.0,
        0.0,
    ]
    assert cost_of(MadeCosts({DEFAULT: 10.0}, frozenset({Scenario((CHEAP,))})), Scenario((CHEAP,))) == 0.0


def test_runs_that_are_there_cost_nothing() -> None:
    done = {DEFAULT: 10.0, Scenario((DEAR,)): 30.0, Scenario((CHEAP,)): 5.0}
    assert is_affordable(MadeCosts(done, frozenset({Scenario((DEAR, CHEAP))})), design(), 0.0)
