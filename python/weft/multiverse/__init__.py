"""Multiverse analysis: in which worlds, of all that a paper's text allows, its claims hold.

Steegen et al., "Increasing transparency through a multiverse analysis", Perspectives on Psychological Science 11, 2016.
"""

from weft.multiverse.exploring import Question, asked, explore
from weft.multiverse.result import Multiverse

__all__ = ["Multiverse", "Question", "asked", "explore"]
