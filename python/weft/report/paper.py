"""The report of a directory of `weft reproduce`: scorecards and figures on one page that needs no network."""

import base64
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from weft import _core
from weft.errors import OutputError
from weft.output import write_file
from weft.papers.declared import DATA, FigureSpec, Paper, load_paper, paper_names
from weft.papers.pictures import alternative, figure_claims, small_png
from weft.papers.scorecard import SIGNS, Entry, Scorecard, figure_folder, read_scorecard
from weft.papers.verdicts import Verdict

__all__ = ["is_reproduction", "render_papers", "write_paper_report"]

_SLOT = re.compile(r"<!--slot:([a-z-]+)-->|/\*slot:([a-z-]+)\*/")
_MANIFEST = "reproduce.json"
_DATA_FILES = ("data.csv", "data.parquet", "curves.csv", "curves.parquet", "figure.pdf", "verdicts.json")

_KINDS = {Verdict.REPRODUCED: "reproduced", Verdict.OTHER_SIZE: "other-size", Verdict.NOT_REPRODUCED: "not-reproduced"}
"""Class of each verdict that has a colour."""

_READING = (
    "Everything is compared seed by seed, where all schemes have the same flows, then estimated over the seeds with "
    "its 95 % interval. Where the best of several places counts, each seed's is chosen by the other seeds.",
    "Reproduced: the interval excludes “no effect”, and the paper's number lies in it or within a quarter of the mean. "
    "Same direction, other size: the interval excludes “no effect”, the size is another. Not reproduced: all else. "
    "No scheme was tuned to make a claim come out.",
)


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
    entries = [entry for one in shown for entry in one.card.entries]
    names = ", ".join(one.card.paper.short for one in shown)
    slots = {
        "title": escape(f"Weft: {names}"),
        "heading": escape(names),
        "subtitle": escape(_subtitle(shown)),
        "filters": _filters(entries),
        "papers": _contents(shown) + "".join(map(_paper, shown)),
        "reading": "".join(f"<p>{escape(text)}</p>" for text in _READING),
        "version": escape(_core.version()),
        "style": _resource("report.css"),
        "paper-style": _resource("paper.css"),
        "script": _resource("paper.js"),
    }
    return _SLOT.sub(lambda match: slots[match[1] or match[2]], _resource("paper.html"))


def _resource(name: str) -> str:
    return resources.files("weft.report").joinpath(name).read_text(encoding="utf-8")


def _subtitle(shown: Sequence[_Shown]) -> str:
    figures = sum(len(one.card.figures) for one in shown)
    scales = sorted({scale for one in shown for scale in one.card.scales})
    claims = sum(len(one.card.entries) for one in shown)
    return f"{figures} figures at {' and '.join(scales)} scale, {claims} claims"


def _filters(entries: Sequence[Entry]) -> str:
    counts = Counter(entry.verdict for entry in entries)
    return "".join(
        f'<button type="button" aria-pressed="true" value="{escape(verdict)}">'
        f"{SIGNS[verdict]} {escape(verdict)} ({counts[verdict]})</button>"
        for verdict in Verdict
        if counts[verdict]
    )


def _contents(shown: Sequence[_Shown]) -> str:
    if len(shown) < 2:
        return ""
    links = "".join(
        f'<li><a href="#{escape(one.card.paper.name)}">{escape(one.card.paper.short)}</a></li>' for one in shown
    )
    return f'<nav aria-label="Papers"><ul>{links}</ul></nav>'


def _paper(one: _Shown) -> str:
    card, paper = one.card, one.card.paper
    name = escape(paper.name)
    commands = "\n".join(card.commands)
    figures = "".join(_figure(one, figure) for figure in paper.figures.values())
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(paper.title)}</h2>'
        f'<p class="subtitle">{escape(paper.venue)}</p>'
        f"{_bar(card)}<p><b>{escape(card.summary())}</b></p>"
        f"<pre><code>{escape(commands)}</code></pre>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Scorecard of {name}">{_table(card)}</div>'
        f"{figures}</section>"
    )


def _bar(card: Scorecard) -> str:
    """The verdicts as shares of a bar, for the eye alone: the sentence below says them."""
    parts = "".join(
        f'<span class="{_KINDS.get(verdict, "")}" style="flex:{number}"></span>'
        for verdict, number in card.counts.items()
    )
    return f'<div class="bar" aria-hidden="true">{parts}</div>'


def _table(card: Scorecard) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in ("claim", "place", "measured", "verdict", "why"))
    rows = "".join(
        f'<tr data-verdict="{escape(entry.verdict)}"><td>{escape(entry.claim.text)}</td>'
        f"<td>{escape(entry.claim.place)}</td><td>{escape(entry.measured or '-')}</td>"
        f'<td><span class="verdict {_KINDS.get(entry.verdict, "")}">{SIGNS[entry.verdict]} {escape(entry.verdict)}'
        f"</span></td><td>{escape(' '.join(filter(None, (entry.sentence, entry.claim.note))))}</td></tr>"
        for entry in card.entries
    )
    return f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _figure(one: _Shown, figure: FigureSpec) -> str:
    paper, title = one.card.paper, f"<b>{escape(figure.heading)}: {escape(figure.title)}.</b>"
    folder = figure_folder(paper, figure.name, one.directory)
    if folder is None:
        missing = f"Not made: {figure.reason}" if figure.reason is not None else "Not run."
        return f"<p>{title} {escape(missing)}</p>"
    picture = base64.b64encode(small_png(folder / "figure.png")).decode("ascii")
    claims = figure_claims(one.card, figure)
    said = [figure.about, f"Claims that it tests: {claims}." if claims else ""]
    return (
        f'<figure><img alt="{escape(alternative(paper, figure))}" src="data:image/png;base64,{picture}" loading="lazy">'
        f"<figcaption>{title} {escape(' '.join(filter(None, said)))} {_links(one, paper, folder)}</figcaption></figure>"
    )


def _links(one: _Shown, paper: Paper, folder: Path) -> str:
    links = []
    for name in _DATA_FILES:
        if (folder / name).is_file():
            place = Path(os.path.relpath(folder / name, one.base)).as_posix()
            links.append(f'<a href="{escape(place)}">{escape(name)}</a>')
    return " · ".join(links)
