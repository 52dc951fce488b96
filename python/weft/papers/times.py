"""Time to make figures: seconds on two cores, as measured.

`data/times.toml` has those that come with Weft.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from weft.errors import SpecError
from weft.papers.declared import DATA, SCALES, Scale
from weft.papers.reading import read_toml
from weft.spec import to_toml

if TYPE_CHECKING:
    from weft.papers.making import Made

__all__ = ["Times", "read_times", "times_text"]

_MEASURED: tuple[Scale, ...] = (*SCALES, "linux")
"""The scales of which there are times."""

Times: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Seconds by scale, paper and figure."""

_HEAD = "# Seconds that a figure takes by itself on two cores, written by `weft reproduce --write-times FILE`.\n"


def read_times(path: Path = DATA / "times.toml") -> Times:
    """Read measured times; there are none where there is no file. Raises `SpecError` for another kind of file."""
    if not path.exists():
        return {}
    top = read_toml(path)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for scale in _MEASURED:
        section = top.section(scale)
        papers = section.values
        for paper, figures in papers.items():
            if not isinstance(figures, Mapping) or not all(isinstance(one, int | float) for one in figures.values()):
                raise section.error(f"{paper}: expected a table of figures and their seconds")
            found.setdefault(scale, {})[paper] = {key: float(value) for key, value in figures.items()}
    top.end()
    return found


def times_text(known: Times, scale: str, made: "Iterable[Made]") -> str:
    """Write times with those of figures that were made now in place of what was known of them."""
    times = {one: {paper: dict(figures) for paper, figures in papers.items()} for one, papers in known.items()}
    for one in made:
        if one.error is None:
            times.setdefault(scale, {}).setdefault(one.figure.paper, {})[one.figure.name] = max(round(one.seconds), 1)
    if not times:
        raise SpecError("--write-times: no figure was made")
    ordered = {one: {paper: times[one][paper] for paper in sorted(times[one])} for one in _MEASURED if one in times}
    whole: dict[str, Any] = {
        one: {paper: {key: round(value) for key, value in figures.items()} for paper, figures in papers.items()}
        for one, papers in ordered.items()
    }
    return _HEAD + to_toml(whole)
