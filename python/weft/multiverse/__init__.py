"""Multiverse analysis: in which scenarios, of all that a paper's text allows, its claims hold.

Steegen et al., "Increasing transparency through a multiverse analysis", Perspectives on Psychological Science 11, 2016.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.multiverse.exploring import Question, asked, explore
    from weft.multiverse.result import Multiverse

__all__ = ["BUDGET_CPU_MIN", "Multiverse", "Question", "asked", "explore"]

BUDGET_CPU_MIN = 30.0
"""CPU-minutes of runs, unless told otherwise."""

_WHERE = {
    "Multiverse": "weft.multiverse.result",
    "Question": "weft.multiverse.exploring",
    "asked": "weft.multiverse.exploring",
    "explore": "weft.multiverse.exploring",
}


def __getattr__(name: str) -> object:
    """Load what judges when it is asked for: `weft --help` has no use for it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
