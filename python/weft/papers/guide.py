"""What the guide shows of a paper: its scorecard and its figures, as parts of a page, made from results."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.output import write_file
from weft.papers.declared import FigureSpec, Paper
from weft.papers.pictures import alternative, figure_claims, small_png
from weft.papers.scorecard import SIGNS, Scorecard, as_markdown, figure_folder, read_scorecard
from weft.papers.verdicts import Verdict

__all__ = ["write_parts", "write_summary"]


def write_parts(paper: Paper, directories: Sequence[Path], target: Path) -> Scorecard:
    """Write the scorecard, the figures and their pictures of a paper to `target/<paper>/`; what was there goes.

    A figure that is in several directories of `weft reproduce` is taken from the first.
    """
    card = read_scorecard(paper, *directories)
    folder = target / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    parts = []
    for figure in paper.figures.values():
        place = figure_folder(paper, figure.name, *directories)
        if place is not None:
            (folder / f"{figure.name}.png").write_bytes(small_png(place / "figure.png"))
        parts.append(_part(paper, figure, card, made=place is not None))
    write_file(folder / "figures.md", "\n".join(parts))
    write_file(folder / "scorecard.md", card.markdown())
    write_file(folder / "scorecard.json", card.json())
    return card


def write_summary(target: Path) -> None:
    """Write `target/summary.md`: a row for each paper whose scorecard is there, and the sum of all."""
    cards = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(target.glob("*/scorecard.json"))]
    lines = [
        "| paper | figures at its scale | claims | "
        + " | ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
        + " |",
        "|---|" + "---:|" * (2 + len(SIGNS)),
    ]
    rows = [
        (_linked(card, target), _at_paper_scale([card]), card["counts"], card.get("undecided", 0)) for card in cards
    ]
    total = {verdict: sum(row[2].get(verdict, 0) for row in rows) for verdict in SIGNS}
    everything = ("all", _at_paper_scale(cards), total, sum(row[3] for row in rows))
    for name, at_scale, counts, undecided in [*rows, everything]:
        numbers = {verdict: counts.get(verdict, 0) for verdict in SIGNS}
        cells = [
            f"{number} ({undecided} undecided)" if verdict is Verdict.NOT_REPRODUCED and undecided else str(number)
            for verdict, number in numbers.items()
        ]
        lines.append(f"| {name} | {at_scale} | {sum(numbers.values())} | " + " | ".join(cells) + " |")
    write_file(target / "summary.md", "\n".join([*lines, ""]))


def _part(paper: Paper, figure: FigureSpec, card: Scorecard, *, made: bool) -> str:
    lines = [f"### {figure.heading}: {as_markdown(figure.title)}", ""]
    about = " ".join(part for part in (f"{figure.place}." if figure.place else "", figure.about) if part)
    if about:
        lines += [as_markdown(about), ""]
    if figure.reason is not None:
        lines += [f"Not made: {as_markdown(figure.reason)}", ""]
    elif not made:
        lines += ["Not run.", ""]
    else:
        lines += [f"![{as_markdown(alternative(paper, figure))}]({paper.name}/{figure.name}.png)", ""]
        if told := figure_claims(card, figure):
            lines += [f"Claims that it tests: {told}.", ""]
    return "\n".join(lines)


def _at_paper_scale(cards: Sequence[Mapping[str, Any]]) -> str:
    """`6 of 10`: of the figures that need runs, those made at the paper's scale."""
    scales = [figure["scale"] for card in cards for figure in card["figures"].values() if figure["runs"]]
    return f"{scales.count('paper')} of {len(scales)}"


def _linked(card: Mapping[str, Any], target: Path) -> str:
    """Name a paper, with a link if it has a page."""
    page, name = f"{card['paper']}.md", str(card.get("label", card["paper"].upper()))
    return f"[{name}]({page})" if (target / page).exists() else name
