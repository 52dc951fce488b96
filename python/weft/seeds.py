"""How many seeds a command takes."""

from collections.abc import Sequence

from weft.errors import SpecError

__all__ = ["MOST_SEEDS", "check_seeds", "listed_seeds"]

MOST_SEEDS = 100_000


def check_seeds(number: int) -> None:
    """Raise `SpecError` for more seeds than are taken."""
    if number > MOST_SEEDS:
        raise SpecError(f"seeds: {number:,} of them, and at most {MOST_SEEDS:,} are taken")


def listed_seeds(seeds: int | Sequence[int]) -> list[int]:
    """List the seeds that were asked for, by their number or one by one."""
    check_seeds(seeds if isinstance(seeds, int) else len(seeds))
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
