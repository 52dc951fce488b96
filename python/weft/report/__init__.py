"""The HTML report: one file, no network, light and dark, for a laptop and for a phone.

`of_comparison`, `of_sweep`, `paper` and `multiverse` say what stands on a page, as plain texts, tables and numbers;
the templates in `templates/` say how, and `page` puts the two together. Another kind of report is another module and
another template like these, and a line in `render_directory`.
"""

import os
from pathlib import Path

from weft.report.of_comparison import render
from weft.report.of_sweep import render_sweep

__all__ = ["render", "render_directory", "render_sweep"]


def render_directory(directory: str | os.PathLike[str]) -> str:
    """Return the page of what a directory holds; raises `OutputError` if that is no result of Weft."""
    from weft.comparison import load_comparison
    from weft.report.multiverse import is_multiverse, render_multiverse
    from weft.sweeps import load_sweep
    from weft.sweeps.store import MANIFEST

    path = Path(directory)
    if is_multiverse(path):
        return render_multiverse(path)
    if (path / MANIFEST).is_file():
        return render_sweep(load_sweep(path))
    return render(load_comparison(path))
