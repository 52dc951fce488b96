"""Which seeds, and how many, a command takes."""

from collections.abc import Iterable, Sequence
from numbers import Integral

from weft.errors import SpecError

__all__ = ["MOST_SEEDS", "check_seeds", "checked_seeds"]

MOST_SEEDS = 100_000


def check_seeds(number: int) -> None:
    """Raise `SpecError` for more seeds than are taken."""
    if number > MOST_SEEDS:
        raise SpecError(f"seeds: {number:,} of them, and at most {MOST_SEEDS:,} are taken")


def checked_seeds(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds: 1 to a number of them, or those of a list; raises `SpecError` for what is neither."""
    if isinstance(seeds, int):
        check_seeds(seeds)
        chosen = list(range(1, seeds + 1))
    else:
        chosen = [] if isinstance(seeds, str) or not isinstance(seeds, Iterable) else list(seeds)
        check_seeds(len(chosen))
    are_numbers = all(isinstance(seed, Integral) and seed >= 0 for seed in chosen)
    if not chosen or not are_numbers or len(set(chosen)) != len(chosen):
        raise SpecError(f"seeds: expected one or more different numbers from 0, not {seeds!r}")
    return [int(seed) for seed in chosen]
