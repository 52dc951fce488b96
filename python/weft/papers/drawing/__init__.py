"""Drawing a paper's figure from its declaration and its data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.papers.declared import FigureSpec, PanelSpec, Paper
from weft.papers.drawing.note import note_below
from weft.papers.drawing.views import panel_views
from weft.papers.measured import FigureData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_panels", "note_below"]


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str | None = None) -> "Figure":
    """Draw a declared figure. The note below says what is shown and at which scale, unless another one is given."""
    return draw_panels(paper, figure.panels, data, note_below(paper, figure, data.runs) if note is None else note)


def draw_panels(paper: Paper, panels: Sequence[PanelSpec], data: FigureData, note: str) -> "Figure":
    """Draw panels that need not be those of a declaration, such as a special figure's own."""
    from weft.drawing.figure import compose  # Matplotlib takes longer to load than most commands take

    return compose(panel_views(paper, panels, data), note)
