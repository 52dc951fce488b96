"""Page parts of the guide on a paper: its scorecard and its figures, made from results."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from weft.output import write_file
from weft.papers.declared import FigureSpec, Paper
from weft.papers.pictures import alternative, figure_claims, small_png
from weft.papers.scorecard import SIGNS, Scorecard, as_markdown, figure_folder, kept_scorecard, read_scorecard
from weft.papers.verdict_files import KeptCard, OtherInterpretation, read_card
from weft.papers.verdicts import Verdict

__all__ = ["rewrite_card", "write_parts", "write_summary"]

CARD = "scorecard.json"

Others: TypeAlias = Mapping[str, OtherInterpretation]
"""By the name of the claim."""


def write_parts(paper: Paper, directories: Sequence[Path], target: Path, others: Others | None = None) -> Scorecard:
    """Write the scorecard, the figures and their pictures of a paper to `target/<paper>/`.

    A figure that is in several directories of `weft reproduce` is taken from the first; one that is in none stays as
    it is there. `others` says of claims in which other scenario they are reproduced.
    """
    folder = target / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    card = read_scorecard(paper, *directories)
    if (folder / CARD).exists():
        card = card.completed_by(kept_scorecard(paper, folder / CARD))
    card = card.in_scenarios(others or {})
    parts = []
    for figure in paper.figures.values():
        place = figure_folder(paper, figure.name, *directories)
        picture = folder / f"{figure.name}.png"
        if place is not None:
            picture.write_bytes(small_png(place / "figure.png"))
        elif figure.name not in card.figures:
            picture.unlink(missing_ok=True)
        parts.append(_part(paper, figure, card, made=figure.name in card.figures))
    write_file(folder / "figures.md", "\n".join(parts))
    _write_card(card, folder)
    return card


def rewrite_card(paper: Paper, target: Path, others: Others) -> Scorecard:
    """Write the scorecard of a paper that is there anew, with what is known now of other scenarios."""
    folder = target / paper.name
    card = kept_scorecard(paper, folder / CARD).in_scenarios(others)
    _write_card(card, folder)
    return card


def write_summary(target: Path) -> None:
    """Write `target/summary.md`: a row for each paper whose scorecard is there, and the sum of all.

    Raises `OutputError` for a scorecard that cannot be read or lacks a key.
    """
    cards = [read_card(path) for path in sorted(target.glob(f"*/{CARD}"))]
    lines = [
        "| paper | figures at its scale | claims | "
        + " | ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
        + " |",
        "|---|" + "---:|" * (2 + len(SIGNS)),
    ]
    rows = [(_linked(card, target), _at_paper_scale([card]), Counter(card.counts)) for card in cards]
    total = sum((counts for _, _, counts in rows), Counter[Verdict]())
    for name, at_scale, counts in [*rows, ("all", _at_paper_scale(cards), total)]:
        numbers = [counts[verdict] for verdict in SIGNS]
        lines.append(f"| {name} | {at_scale} | {sum(numbers)} | " + " | ".join(map(str, numbers)) + " |")
    write_file(target / "summary.md", "\n".join([*lines, ""]))


def _write_card(card: Scorecard, folder: Path) -> None:
    write_file(folder / "scorecard.md", card.markdown())
    write_file(folder / CARD, card.json())


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


def _at_paper_scale(cards: Sequence[KeptCard]) -> str:
    """`6 of 10`: of the figures that need runs, those made at the paper's scale."""
    scales = [figure.scale for card in cards for figure in card.figures.values() if figure.runs]
    return f"{scales.count('paper')} of {len(scales)}"


def _linked(card: KeptCard, target: Path) -> str:
    """Name a paper, with a link if it has a page."""
    page = f"{card.paper}.md"
    return f"[{card.label}]({page})" if (target / page).exists() else card.label
