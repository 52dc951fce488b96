"""The report of a directory of `weft reproduce`: scorecards and figures on one page that needs no network."""

import base64
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from weft.errors import OutputError
from weft.output import write_file
from weft.papers.declared import DATA, FigureSpec, load_paper, paper_names
from weft.papers.pictures import alternative, figure_claims, small_png
from weft.papers.scorecard import SIGNS, Entry, Scorecard, figure_folder, read_scorecard
from weft.papers.verdicts import Verdict
from weft.report.page import render_template

__all__ = ["is_reproduction", "render_papers", "write_paper_report"]

_MANIFEST = "reproduce.json"
_DATA_FILES = ("data.csv", "data.parquet", "curves.csv", "curves.parquet", "figure.pdf", "figure.svg", "verdicts.json")

_KINDS = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.OTHER_INTERPRETATION: "other-interpretation",
    Verdict.OTHER_SIZE: "other-size",
    Verdict.NOT_REPRODUCED: "not-reproduced",
    Verdict.UNREACHABLE: "not-reproduced",
}
"""Class of each verdict that has a colour."""


@dataclass(frozen=True, slots=True)
class _Count:
    """How many claims got a verdict."""

    verdict: Verdict
    sign: str
    kind: str
    """The class that gives it its colour; empty for none."""
    count: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A claim of a scorecard."""

    claim: str
    place: str
    measured: str
    verdict: Verdict
    sign: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure, or why there is none."""

    title: str
    text: str
    picture: str | None = None
    """A PNG in base64; None where the figure was not made."""
    alternative: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    """Where its files are, by name."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A paper as it stands on the page."""

    name: str
    short: str
    title: str
    venue: str
    bar: Sequence[_Count]
    summary: str
    commands: str
    rows: Sequence[_Row]
    figures: Sequence[_Figure]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A paper with what there is of it, and where links to its files start."""

    card: Scorecard
    directory: Path
    base: Path


def is_reproduction(directory: Path) -> bool:
    """Whether a directory is one of `weft reproduce`."""
    return (directory / _MANIFEST).is_file()


def write_paper_report(directory: Path, target: Path, folder: Path = DATA) -> None:
    """Write the page of a directory to a file; raises `OutputError` where no figure is in it."""
    write_file(target, render_papers(directory, target.absolute().parent, folder))


def render_papers(directory: Path, base: Path, folder: Path = DATA) -> str:
    """Return the page as text; links to data are relative to `base`."""
    cards = [read_scorecard(load_paper(name, folder), directory) for name in paper_names(folder)]
    shown = [_Shown(card, directory, base) for card in cards if card.figures]
    if not shown:
        raise OutputError(f"{directory}: holds no figure yet; weft reproduce makes some")
    names = ", ".join(one.card.paper.short for one in shown)
    return render_template(
        "papers.html",
        title=f"Weft: {names}",
        heading=names,
        subtitle=_subtitle(shown),
        filters=_counts(Counter(entry.verdict for one in shown for entry in one.card.entries)),
        papers=[_section(one) for one in shown],
    )


def _subtitle(shown: Sequence[_Shown]) -> str:
    figures = sum(len(one.card.figures) for one in shown)
    scales = sorted({scale for one in shown for scale in one.card.scales})
    claims = sum(len(one.card.entries) for one in shown)
    return f"{figures} figures at {' and '.join(scales)} scale, {claims} claims"


def _counts(numbers: Mapping[Verdict, int]) -> list[_Count]:
    """The verdicts that there are, in their order."""
    return [
        _Count(verdict, SIGNS[verdict], _KINDS.get(verdict, ""), numbers[verdict])
        for verdict in Verdict
        if numbers.get(verdict)
    ]


def _section(one: _Shown) -> _Section:
    card, paper = one.card, one.card.paper
    return _Section(
        paper.name,
        paper.short,
        paper.title,
        paper.venue,
        _counts(card.counts),
        card.summary(),
        "\n".join(card.commands),
        [_row(entry) for entry in card.entries],
        [_figure(one, figure) for figure in paper.figures.values()],
    )


def _row(entry: Entry) -> _Row:
    return _Row(
        entry.claim.text,
        entry.claim.place,
        entry.measured or "-",
        entry.verdict,
        SIGNS[entry.verdict],
        _KINDS.get(entry.verdict, ""),
        " ".join(filter(None, (entry.sentence, entry.claim.note))),
    )


def _figure(one: _Shown, figure: FigureSpec) -> _Figure:
    paper, title = one.card.paper, f"{figure.heading}: {figure.title}."
    folder = figure_folder(paper, figure.name, one.directory)
    if folder is None:
        return _Figure(title, f"Not made: {figure.reason}" if figure.reason is not None else "Not run.")
    claims = figure_claims(one.card, figure)
    return _Figure(
        title,
        " ".join(filter(None, (figure.about, f"Claims that it tests: {claims}." if claims else ""))),
        base64.b64encode(small_png(folder / "figure.png")).decode("ascii"),
        alternative(paper, figure),
        {name: _link(folder / name, one.base) for name in _DATA_FILES if (folder / name).is_file()},
    )


def _link(file: Path, base: Path) -> str:
    """Where a file is, as seen from the page: each name quoted, so that a `#` or `?` in one stays part of it."""
    return quote(Path(os.path.relpath(file, base)).as_posix())
