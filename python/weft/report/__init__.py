"""The HTML report."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.comparison import Comparison


def render(comparison: "Comparison") -> str:
    """Render."""
    return repr(comparison)
