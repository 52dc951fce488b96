"""Which scenarios to look at: one choice at a time, then a factorial design over the few that matter.

The designs are all combinations of two alternatives of each choice, or a regular fraction of them, made by pyDOE3, of
resolution IV (Box and Hunter, Technometrics 1961): the effect of one choice is not mixed up with that of another, nor
with that of two others together. One of resolution III has four combinations or more, as two choices have: no budget
pays for it that does not pay for these.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from weft.papers.open import Choice
from weft.papers.scenarios import Scenario

__all__ = ["MOST_SCENARIOS", "Design", "Factor", "chosen_design", "single_changes"]

MOST_SCENARIOS = 2048
"""More are not judged: of a larger design so many, drawn evenly."""

_RESOLUTION = 4
_FRACTION = "a fraction of resolution IV"


@dataclass(frozen=True, slots=True)
class Factor:
    """A choice that a design varies."""

    choice: Choice
    alternatives: tuple[str, ...]
    """Those that it varies, the default first."""
    shared: bool
    """Whether it concerns several variants. One that concerns a single one is combined with all the others."""
    place: int
    """Position of the choice among all choices: a scenario names them in this order."""


@dataclass(frozen=True, slots=True)
class Design:
    """A set of scenarios."""

    factors: tuple[Factor, ...]
    rows: tuple[tuple[str, ...], ...]
    """For each combination of what is shared, the alternatives of the shared factors."""
    fraction: bool
    """Whether the rows are a fraction of all combinations."""

    @property
    def size(self) -> int:
        """How many scenarios it has."""
        own = 1
        for factor in self.factors:
            own *= 1 if factor.shared else len(factor.alternatives)
        return len(self.rows) * own

    @property
    def whole(self) -> bool:
        """Whether it has all combinations, and all are judged."""
        return not self.fraction and self.size <= MOST_SCENARIOS

    @property
    def words(self) -> str:
        """Description of the choice, for people."""
        if not self.factors:
            return "no choice but the default"
        names = ", ".join(factor.choice.name for factor in self.factors)
        drawn = "" if self.size <= MOST_SCENARIOS else f", of which {MOST_SCENARIOS:,} were drawn evenly"
        what = _FRACTION if self.fraction else "all combinations"
        return f"{what} of {names}: {self.size:,} scenarios{drawn}"

    def scenarios(self) -> list[Scenario]:
        """List the scenarios to judge: all, or as many drawn from each row."""
        shared = [factor.choice for factor in self.factors if factor.shared]
        own = [factor for factor in self.factors if not factor.shared]
        rest = list(itertools.product(*(factor.alternatives for factor in own)))
        most = max(MOST_SCENARIOS // max(len(self.rows), 1), 1)
        found: list[Scenario] = []
        for number, row in enumerate(self.rows):
            drawn = rest if len(rest) <= most else Random(number).sample(rest, most)
            found += [self._scenario([*shared, *(factor.choice for factor in own)], [*row, *names]) for names in drawn]
        return found

    def parts(self, concern: frozenset[str]) -> int:
        """Count the combinations of the factors that concern a variant: so often it has to be run."""
        places = [place for place, one in enumerate(self._shared()) if one.choice.name in concern]
        combined = len({tuple(row[place] for place in places) for row in self.rows})
        for factor in self.factors:
            if not factor.shared and factor.choice.name in concern:
                combined *= len(factor.alternatives)
        return combined

    def _shared(self) -> list[Factor]:
        return [factor for factor in self.factors if factor.shared]

    def _scenario(self, choices: Sequence[Choice], names: Sequence[str]) -> Scenario:
        order = {factor.choice.name: factor.place for factor in self.factors}
        pairs = sorted(zip(choices, names, strict=True), key=lambda pair: order[pair[0].name])
        return Scenario.of([choice for choice, _ in pairs], [name for _, name in pairs])


def single_changes(choices: Mapping[str, Choice]) -> Iterator[Scenario]:
    """Yield the scenarios that differ from the default in one choice."""
    for choice in choices.values():
        for other in choice.others:
            yield Scenario(((choice.name, other),))


def chosen_design(factors: Sequence[Factor], affordable: Callable[[Design], bool]) -> Design | None:
    """Choose a design of those of some factors, in their order, that one can afford together, and of these the finest.

    Factors come in the order in which they are to be had. One that would make the design too dear is passed over, so
    that a cheap one behind it comes in. None if not even two can be paid for, unless there is but one.
    """
    design: Design | None = None
    for factor in factors:
        wanted = (*(design.factors if design is not None else ()), factor)
        made = (_design(wanted, fraction=fraction) for fraction in (False, True))
        design = next((one for one in made if one is not None and affordable(one)), design)
    return design if design is not None and len(design.factors) >= min(len(factors), 2) else None


def _design(factors: tuple[Factor, ...], *, fraction: bool) -> Design | None:
    """Make a design; None if there is no fraction of it."""
    shared = [factor for factor in factors if factor.shared]
    if not fraction:
        rows = tuple(itertools.product(*(factor.alternatives for factor in shared)))
        return Design(factors, rows, fraction=False)
    if any(len(factor.alternatives) != 2 for factor in shared):
        return None
    signs = _signs(len(shared))
    if signs is None:
        return None
    rows = tuple(
        tuple(factor.alternatives[sign > 0] for factor, sign in zip(shared, row, strict=True)) for row in signs
    )
    return Design(factors, rows, fraction=True)


def _signs(count: int) -> list[list[float]] | None:
    from pyDOE3 import fracfact_by_res

    try:
        found: list[list[float]] = fracfact_by_res(count, _RESOLUTION).tolist()
    except ValueError:  # there is none that has fewer combinations
        return None
    return found
