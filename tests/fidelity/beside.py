"""A figure of Weft beside the same figure of another simulator."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Beside:
    """A figure by what each run gave, here and there: their random draws differ, their flows do not."""

    weft: tuple[float, ...]
    other: tuple[float, ...]
    bound: float
    """How far the means may be from each other, as a share of the other's."""
    is_known: bool
    """Whether it is said to be out of its bound."""

    @property
    def relative(self) -> float:
        """By how much the mean of Weft's runs is above the other's."""
        return average(self.weft) / average(self.other) - 1

    @property
    def within(self) -> bool:
        """Whether it is within its bound."""
        return abs(self.relative) <= self.bound

    @property
    def expected(self) -> bool:
        """Whether it is within its bound, or said not to be."""
        return self.within != self.is_known

    @property
    def told(self) -> str:
        """The difference, in red where it is out of its bound."""
        text = f"{self.relative:+.1%}"
        return text if self.within else f"[bold red]{text}[/]"


def average(values: tuple[float, ...]) -> float:
    """The mean."""
    return sum(values) / len(values)


def shown(values: tuple[float, ...], places: int = 1) -> str:
    """The mean of some runs and how far the least and the greatest are from it."""
    middle = average(values)
    text = f"{middle:,.{places}f}"
    return text if len(values) == 1 else f"{text} {min(values) / middle - 1:+.0%} {max(values) / middle - 1:+.0%}"
