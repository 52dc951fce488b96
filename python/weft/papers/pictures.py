"""Pictures of figures that are small enough for pages, and what they show in words."""

from io import BytesIO
from pathlib import Path

from PIL import Image

from weft.papers.declared import FigureSpec, Paper
from weft.papers.scorecard import Scorecard
from weft.papers.verdicts import Verdict

__all__ = ["alternative", "figure_claims", "small_png"]

_COLOURS = 64
"""Figures have few colours: more make files larger, not better."""


def small_png(path: Path) -> bytes:
    """Return a picture with a palette in place of a colour for each pixel: about a third of the bytes."""
    stream = BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def alternative(paper: Paper, figure: FigureSpec) -> str:
    """Say what a figure shows, for those who do not see it."""
    panels = "; ".join(panel.title for panel in figure.panels if panel.title)
    return f"{paper.short} {figure.heading}, made by Weft: {figure.title}" + (f". Panels: {panels}" if panels else "")


def figure_claims(card: Scorecard, figure: FigureSpec) -> str:
    """Count the verdicts on the claims that a figure tests: `2 reproduced; 1 not reproduced`; empty for none."""
    own = [entry.verdict for entry in card.entries if entry.claim.figure == figure.name]
    return "; ".join(f"{own.count(verdict)} {verdict}" for verdict in Verdict if verdict in own)
