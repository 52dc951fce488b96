"""The HTML report: one file, no network, light and dark, for a laptop and for a phone.

`page` puts a page together from sections and data; `of_comparison` and `of_sweep` say what stands on one. Another kind
of report is another module like these two, and a line in `render_directory`.
"""

import os
from pathlib import Path

from weft.report.of_comparison import render
from weft.report.of_sweep import render_sweep

__all__ = ["render", "render_directory", "render_sweep"]


def render_directory(directory: str | os.PathLike[str]) -> str:
    """Return the page of what a directory holds; raises `OutputError` if that is no result of Weft."""
    from weft.comparison import load_comparison
    from weft.sweeps import load_sweep
    from weft.sweeps.store import MANIFEST

    path = Path(directory)
    if (path / MANIFEST).is_file():
        return render_sweep(load_sweep(path))
    return render(load_comparison(path))
