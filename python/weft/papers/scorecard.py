"""The scorecard of a paper: its claims, what was measured, and the verdicts, as Markdown and JSON.

It is put together from the verdicts that stand beside the figures, so that it holds every figure that was run,
whichever command ran it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from weft import _core
from weft.drawing.view import DrawnUnit
from weft.papers.claims import Claim, load_claims
from weft.papers.costs import paper_cpu_s
from weft.papers.declared import LINUX_SCALES, FigureSpec, Paper
from weft.papers.drawing.note import is_cut, numbers_of, scale_words
from weft.papers.drawing.views import field_name, unit_of
from weft.papers.effects import Words
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.special import find_special
from weft.papers.verdict_files import (
    VERDICTS,
    ClaimVerdict,
    FigureRuns,
    FigureVerdicts,
    OtherInterpretation,
    read_verdicts,
    read_whole_card,
)
from weft.papers.verdicts import Judgement, Verdict, in_scenarios, judge, not_run, untestable

__all__ = [
    "SIGNS",
    "Entry",
    "Scorecard",
    "as_markdown",
    "figure_folder",
    "figure_verdicts",
    "judged",
    "kept_scorecard",
    "read_scorecard",
]

SIGNS: Mapping[Verdict, str] = {
    Verdict.REPRODUCED: "✓",
    Verdict.OTHER_INTERPRETATION: "◐",
    Verdict.OTHER_SIZE: "≈",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.UNREACHABLE: "⊘",
    Verdict.UNTESTABLE: "–",
    Verdict.NOT_RUN: "…",
}
"""A sign for each verdict, beside the words."""

NO_BREAK = "\u00a0"
"""A space at which no line ends."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One claim and its verdict."""

    claim: Claim
    judged: ClaimVerdict

    @property
    def verdict(self) -> Verdict:
        """Verdict on the claim, also where it is reproduced in another scenario than the default."""
        return in_scenarios(self.judged.verdict, elsewhere=self.judged.other is not None)

    @property
    def measured(self) -> str:
        """With interval and unit; empty where nothing was measured."""
        return self.judged.measured.text if self.judged.measured is not None else ""

    @property
    def sentence(self) -> str:
        """Why the verdict is what it is."""
        other = self.judged.other
        if other is None or self.verdict is not Verdict.OTHER_INTERPRETATION:
            return self.judged.sentence
        share = f"{other.holds} of {other.scenarios} scenarios"
        there = f"{other.measured} in the scenario {other.scenario}, and reproduced in {share}"
        return f"By default {self.judged.verdict}. {self.judged.sentence} At {other.scale} scale {there}."


@dataclass(frozen=True, slots=True)
class Scorecard:
    """All claims of a paper, in the order of their file."""

    paper: Paper
    entries: Sequence[Entry]
    figures: Mapping[str, FigureRuns]
    """Runs of each figure that was made."""

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many claims have each verdict, in the order of the verdicts; those that no claim has are left out."""
        found = Counter(entry.verdict for entry in self.entries)
        return {verdict: found[verdict] for verdict in Verdict if found[verdict]}

    @property
    def scales(self) -> Sequence[str]:
        """The scales at which figures were run, each once."""
        return sorted({figure.scale for figure in self.figures.values()})

    @property
    def commands(self) -> Sequence[str]:
        """The commands that make the figures on which it rests."""
        able = [name for name, figure in self.paper.figures.items() if figure.reason is None]
        alike: dict[str, list[str]] = {}
        for name in able:
            if name in self.figures:
                alike.setdefault(_options(self.figures[name]), []).append(name)
        return [
            f"weft reproduce {self.paper.name}{'' if names == able else ' ' + ' '.join(names)} {options}"
            for options, names in sorted(alike.items())
        ]

    def in_scenarios(self, others: Mapping[str, OtherInterpretation]) -> "Scorecard":
        """Return it with what is known now of other scenarios; what was known before goes."""
        entries = [
            Entry(one.claim, msgspec.structs.replace(one.judged, other=others.get(one.claim.id)))
            for one in self.entries
        ]
        return replace(self, entries=entries)

    def completed_by(self, other: "Scorecard") -> "Scorecard":
        """Return it with the figures, and their claims, that another card of the same paper has and this one lacks."""
        runs = {**other.figures, **self.figures}
        theirs = {one.claim.id: one for one in other.entries}
        entries = [one if one.claim.figure in self.figures else theirs[one.claim.id] for one in self.entries]
        return replace(self, entries=entries, figures={name: runs[name] for name in self.paper.figures if name in runs})

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "paper": self.paper.name,
            "label": self.paper.short,
            "title": self.paper.title,
            "version": _core.version(),
            "commands": list(self.commands),
            "counts": {str(verdict): number for verdict, number in self.counts.items()},
            "figures": msgspec.to_builtins(self.figures),
            "claims": [msgspec.to_builtins(entry.judged) for entry in self.entries],
        }

    def json(self) -> str:
        """All of it as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    def markdown(self) -> str:
        """The counts, what was run, and a table of the claims."""
        lines = [f"**{self.summary()}**", "", *self._made_by(), ""]
        lines += ["| claim | place | measured | verdict | why |", "|---|---|---|---|---|"]
        lines += [_row(entry) for entry in self.entries]
        return "\n".join([*lines, ""])

    def summary(self) -> str:
        """`41 claims: 12 reproduced; 9 undecided; 15 not reproduced; ...`."""
        parts = "; ".join(f"{number} {verdict}" for verdict, number in self.counts.items())
        total = len(self.entries)
        return f"{total} claim{'s' * (total != 1)}" + (f": {parts}." if parts else ".")

    def _made_by(self) -> list[str]:
        if not self.figures:
            return [f"No figure was run (Weft {_core.version()})."]
        lines = [f"Made by Weft {_core.version()} with {' and '.join(f'`{command}`' for command in self.commands)}."]
        runs: dict[str, list[str]] = {}
        for name, figure in self.figures.items():
            runs.setdefault(figure.text, []).append(name)
        return [*lines, "", *(self._run_for(text, names) for text, names in runs.items()), *self._unsteady()]

    def _unsteady(self) -> list[str]:
        """Say which figures rest on runs in no steady state."""
        told = [
            f"{self.paper.figures[name].heading}: {figure.unsteady:,} of {figure.runs:,} runs"
            for name, figure in self.figures.items()
            if figure.unsteady
        ]
        what = "In no steady state, so that means depend on how many flows there are"
        return [f"- {what} ({'; '.join(told)})"] if told else []

    def _run_for(self, text: str, names: Sequence[str]) -> str:
        """Say what was run for some figures; where that is less than at the paper's scale, what the rest would take."""
        figures = [self.paper.figures[name] for name in names]
        line = f"- {_listed([figure.heading for figure in figures])}: {text}"
        run = self.figures[figures[0].name]
        whole = run.scale == "paper" and run.seeds == run.declared_seeds and not is_cut(run.flows, run.declared_flows)
        cpu_s = None if whole or run.scale in LINUX_SCALES or not run.runs else paper_cpu_s(self.paper, figures)
        return line if cpu_s is None else f"{line}; all of the paper's numbers would take some {_cpu_text(cpu_s)}"


def figure_verdicts(
    paper: Paper, figure: FigureSpec, data: FigureData, others: Mapping[str, OtherInterpretation] | None = None
) -> dict[str, Any]:
    """Judge all claims that a figure tests; what stands beside it in `verdicts.json`.

    `others` says of claims in which other scenario they are reproduced.
    """
    every = judged(paper, figure, data, load_claims(paper))
    told = [ClaimVerdict.of(one, (others or {}).get(one.claim.id)) for one in every]
    return _with_runs(paper, figure, data.runs, told).to_dict()


def judged(paper: Paper, figure: FigureSpec, data: FigureData, claims: Iterable[Claim]) -> list[Judgement]:
    """Judge those of some claims that a figure tests."""
    words = Words(partial(Paper.label, paper), [panel.x_label or field_name(panel.x) for panel in figure.panels])
    own = [claim for claim in claims if claim.figure == figure.name]
    added = paper.added_to(figure, data.runs.scale)
    return [
        judge(claim, _as_claimed(claim, data, added), unit=_unit(claim, figure), words=words, beside=own)
        for claim in own
    ]


def _as_claimed(claim: Claim, data: FigureData, added: Sequence[str]) -> FigureData:
    """Return the data without variants that the paper does not have: all others of a claim are all of the paper."""
    import polars as pl

    others = [one for one in added if claim.rule is None or one not in claim.rule.named]
    if not others:
        return data
    kept = ~pl.col("variant").is_in(others)
    return replace(data, rows=data.rows.filter(kept), ideal=data.ideal.filter(kept))


def read_scorecard(paper: Paper, *directories: Path) -> Scorecard:
    """Put the scorecard together from the verdicts beside the figures of a paper in directories of `weft reproduce`.

    A figure that is in several directories is taken from the first.
    """
    found: dict[str, FigureVerdicts] = {}
    for name in paper.figures:
        folder = figure_folder(paper, name, *directories)
        if folder is not None:
            found[name] = read_verdicts(folder / VERDICTS)
    by_id = {own.id: own for verdicts in found.values() for own in verdicts.claims}
    entries = [_entry(claim, by_id.get(claim.id)) for claim in load_claims(paper)]
    return Scorecard(paper, entries, {name: verdicts.run for name, verdicts in found.items()})


def kept_scorecard(paper: Paper, path: Path) -> Scorecard:
    """Make a scorecard of a `scorecard.json` that was kept; raises `OutputError`."""
    whole = read_whole_card(path)
    by_id = {one.id: one for one in whole.claims}
    return Scorecard(paper, [_entry(claim, by_id.get(claim.id)) for claim in load_claims(paper)], whole.figures)


def figure_folder(paper: Paper, name: str, *directories: Path) -> Path | None:
    """Find the first directory in which a figure was made; None if it was made in none."""
    folders = [directory / paper.name / name for directory in directories]
    return next((folder for folder in folders if (folder / VERDICTS).is_file()), None)


def _unit(claim: Claim, figure: FigureSpec) -> DrawnUnit:
    """Unit of the values that a claim is about; what a special figure tells beside what it draws has none."""
    every = figure.panels if figure.special is None else find_special(figure.special).drawn
    panels = [every[place] for place in claim.panels if place < len(every)] or (() if claim.panels else every)
    measures = [measure for panel in panels for measure in panel.measures]
    if any(panel.relative_to is not None for panel in panels):
        return "ratio"
    named = [measure for measure in measures if measure.label in claim.where.measure]
    units = {unit_of(measure) for measure in named or measures}
    return next(iter(units)) if len(units) == 1 else "ratio"


def _with_runs(paper: Paper, figure: FigureSpec, runs: RunsUsed, claims: Sequence[ClaimVerdict]) -> FigureVerdicts:
    many = f"{runs.runs:,} run{'s' * (runs.runs != 1)}" if runs.runs else "no run of the simulator"
    text = f"{many} ({numbers_of(runs)})" if runs.runs else many
    failed = f"; not as by default: {paper.scenario}" if paper.scenario else ""
    failed += f"; {runs.failed} failed" if runs.failed else ""
    failed += f"; {runs.unfinished:,} flows did not finish" if runs.unfinished else ""
    return FigureVerdicts(
        figure=figure.key,
        version=_core.version(),
        scale=runs.scale,
        runs=runs.runs,
        failed=runs.failed,
        unfinished=runs.unfinished,
        seeds=runs.seeds,
        declared_seeds=runs.declared_seeds,
        flows=runs.flows,
        declared_flows=runs.declared_flows,
        points=runs.points,
        unsteady=runs.unsteady,
        oracle=runs.oracle,
        text=f"{scale_words(runs.scale)}, {text}{failed}",
        claims=claims,
    )


def _options(figure: FigureRuns) -> str:
    """The options of the command that makes a figure as it was made."""
    own = "--hosts linux" if figure.scale in LINUX_SCALES else f"--scale {figure.scale}"
    own += f" --seeds {figure.seeds}" if figure.seeds < figure.declared_seeds else ""
    own += f" --flows {max(figure.flows)}" if is_cut(figure.flows, figure.declared_flows) else ""
    return own + (" --oracle" if figure.oracle else "")


def _cpu_text(cpu_s: float) -> str:
    """`20 CPU-minutes`, `3.5 CPU-hours`: no more figures than a forecast is worth."""
    minutes = float(f"{cpu_s / 60.0:.2g}")
    if minutes < 1.0:
        return "CPU-minute"
    return f"{minutes:.0f} CPU-minutes" if minutes < 100.0 else f"{float(f'{cpu_s / 3600.0:.2g}'):g} CPU-hours"


def _listed(headings: Sequence[str]) -> str:
    """`Fig. 6, 7, Table 3`."""
    shown = [
        heading if not place or not heading.startswith("Fig. ") else heading[5:]
        for place, heading in enumerate(headings)
    ]
    return ", ".join(shown)


def _entry(claim: Claim, found: ClaimVerdict | None) -> Entry:
    if found is None:
        found = ClaimVerdict.of(untestable(claim) if claim.rule is None else not_run(claim))
    # The words of the claim are those of its file, also where the verdict was written before they were changed.
    return Entry(claim, msgspec.structs.replace(found, text=claim.text, place=claim.place, note=claim.note))


def _row(entry: Entry) -> str:
    why = " ".join(part for part in (entry.sentence, entry.claim.note) if part)
    # A number stays beside its interval, and a sign beside its word.
    measured = entry.measured.replace(" ", NO_BREAK) or "-"
    verdict = f"{SIGNS[entry.verdict]}{NO_BREAK}{entry.verdict}"
    cells = (entry.claim.text, entry.claim.place, measured, verdict, why)
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return as_markdown(re.sub(r"[ \t\r\n]+", " ", text))


def as_markdown(plain: str) -> str:
    """Return text in which nothing is markup, nor the end of a cell."""
    for mark in ("\\", "|", "<", "*", "_", "`", "["):
        plain = plain.replace(mark, "\\" + mark)
    return plain
