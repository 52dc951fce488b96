"""Which worlds to look at: one choice at a time, then a factorial design over the few that matter.

The designs are all combinations of two alternatives of each choice, or a regular fraction of them, made by pyDOE3, of
resolution IV or III (Box and Hunter, Technometrics 1961): the effect of one choice is not mixed up with that of another
(III), nor with that of two others together (IV).
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from weft.papers.open import Choice
from weft.papers.worlds import World

__all__ = ["MOST_WORLDS", "Design", "Factor", "chosen_design", "single_changes"]

MOST_WORLDS = 4096
"""More are not judged: of a larger design so many, drawn evenly."""

_WORDS: Mapping[int, str] = {0: "all combinations", 4: "a fraction of resolution IV", 3: "a fraction of resolution III"}


@dataclass(frozen=True, slots=True)
class Factor:
    """A choice that a design varies."""

    choice: Choice
    alternatives: tuple[str, ...]
    """Those that it varies, the default first."""
    shared: bool
    """Whether it concerns several contenders. One that concerns a single one is combined with all the others."""
    place: int
    """Its place among all choices: a world names them in this order."""


@dataclass(frozen=True, slots=True)
class Design:
    """A set of worlds."""

    factors: tuple[Factor, ...]
    rows: tuple[tuple[str, ...], ...]
    """For each combination of what is shared, the alternatives of the shared factors."""
    resolution: int
    """0: all combinations."""

    @property
    def size(self) -> int:
        """How many worlds it has."""
        own = 1
        for factor in self.factors:
            own *= 1 if factor.shared else len(factor.alternatives)
        return len(self.rows) * own

    @property
    def whole(self) -> bool:
        """Whether it has all combinations, and all are judged."""
        return self.resolution == 0 and self.size <= MOST_WORLDS

    @property
    def words(self) -> str:
        """What it is, for people."""
        if not self.factors:
            return "no choice but the default"
        names = ", ".join(factor.choice.name for factor in self.factors)
        drawn = "" if self.size <= MOST_WORLDS else f", of which {MOST_WORLDS:,} were drawn evenly"
        return f"{_WORDS[self.resolution]} of {names}: {self.size:,} worlds{drawn}"

    def worlds(self) -> list[World]:
        """List the worlds to judge: all, or as many drawn from each row."""
        shared = [factor.choice for factor in self.factors if factor.shared]
        own = [factor for factor in self.factors if not factor.shared]
        rest = list(itertools.product(*(factor.alternatives for factor in own)))
        most = max(MOST_WORLDS // max(len(self.rows), 1), 1)
        found: list[World] = []
        for number, row in enumerate(self.rows):
            drawn = rest if len(rest) <= most else Random(number).sample(rest, most)
            found += [self._world([*shared, *(factor.choice for factor in own)], [*row, *names]) for names in drawn]
        return found

    def parts(self, concern: frozenset[str]) -> int:
        """Count the combinations of the factors that concern a contender: so often it has to be run."""
        places = [place for place, one in enumerate(self._shared()) if one.choice.name in concern]
        combined = len({tuple(row[place] for place in places) for row in self.rows})
        for factor in self.factors:
            if not factor.shared and factor.choice.name in concern:
                combined *= len(factor.alternatives)
        return combined

    def _shared(self) -> list[Factor]:
        return [factor for factor in self.factors if factor.shared]

    def _world(self, choices: Sequence[Choice], names: Sequence[str]) -> World:
        order = {factor.choice.name: factor.place for factor in self.factors}
        pairs = sorted(zip(choices, names, strict=True), key=lambda pair: order[pair[0].name])
        return World.of([choice for choice, _ in pairs], [name for _, name in pairs])


def single_changes(choices: Mapping[str, Choice]) -> Iterator[World]:
    """Yield the worlds that differ from the default in one choice."""
    for choice in choices.values():
        for other in choice.others:
            yield World(((choice.name, other),))


def chosen_design(factors: Sequence[Factor], affordable: Callable[[Design], bool]) -> Design | None:
    """Choose a design of as many of the first factors as one can afford, and of those the finest.

    Factors come in the order of how much they matter. A design of resolution III is taken only where no other is
    affordable. None if not even that of the first two is, unless there is but one.
    """
    for resolutions in ((0, 4), (3,)):
        for count in range(len(factors), min(len(factors), 2) - 1, -1):
            for resolution in resolutions:
                design = _design(tuple(factors[:count]), resolution)
                if design is not None and affordable(design):
                    return design
    return None


def _design(factors: tuple[Factor, ...], resolution: int) -> Design | None:
    """Make a design; None if there is no such fraction."""
    shared = [factor for factor in factors if factor.shared]
    if resolution == 0:
        rows = tuple(itertools.product(*(factor.alternatives for factor in shared)))
        return Design(factors, rows, 0)
    if any(len(factor.alternatives) != 2 for factor in shared):
        return None
    signs = _fraction(len(shared), resolution)
    if signs is None:
        return None
    rows = tuple(
        tuple(factor.alternatives[sign > 0] for factor, sign in zip(shared, row, strict=True)) for row in signs
    )
    return Design(factors, rows, resolution)


def _fraction(count: int, resolution: int) -> list[list[float]] | None:
    from pyDOE3 import fracfact_by_res

    try:
        found: list[list[float]] = fracfact_by_res(count, resolution).tolist()
    except ValueError:  # there is none that has fewer combinations
        return None
    return found
