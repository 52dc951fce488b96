"""Structure of `verdicts.json` beside a figure, and of the `scorecard.json` of a paper.

A key that is missing, or has a value of another type, is an error that names file and key. One that is not declared
belongs to a later version, and is passed over.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from weft.decoding import read_json
from weft.drawing.view import DrawnUnit
from weft.papers.verdicts import Judgement, Verdict

__all__ = [
    "VERDICTS",
    "ClaimVerdict",
    "FigureRuns",
    "FigureVerdicts",
    "KeptCard",
    "Measured",
    "OtherInterpretation",
    "OtherInterpretations",
    "WholeCard",
    "read_card",
    "read_verdicts",
    "read_whole_card",
]

VERDICTS = "verdicts.json"
"""The name of a `FigureVerdicts`, beside its figure."""


class Measured(msgspec.Struct, frozen=True):
    """Measured value for a claim: a mean over seeds with its 95 % interval."""

    mean: float
    half_width: float | None
    """None where there was one seed."""
    seeds: int
    unit: DrawnUnit
    text: str
    """With interval and unit, as it is shown."""


class OtherInterpretation(msgspec.Struct, frozen=True):
    """A scenario of what the paper leaves open in which a claim is reproduced that is not by default."""

    scenario: str
    """The nearest one, as `weft reproduce --scenario` takes it."""
    measured: str
    """Measured value in the scenario, with its interval."""
    holds: int
    """In how many scenarios it is reproduced."""
    scenarios: int
    """Number of scenarios that were judged."""
    scale: str
    """At which `weft multiverse` judged them."""


OtherInterpretations: TypeAlias = Mapping[str, Mapping[str, OtherInterpretation]]
"""By the names of paper and claim."""


class ClaimVerdict(msgspec.Struct, frozen=True):
    """A claim and its verdict."""

    id: str
    text: str
    place: str
    figure: str | None
    """The figure that tests it; None where none can."""
    verdict: Verdict
    measured: Measured | None
    points: Sequence[str]
    """The comparisons that it rests on, in words."""
    sentence: str
    """Why the verdict is what it is."""
    note: str
    other: OtherInterpretation | None = None
    """Where it is reproduced, if not by default; None where it is, or where no other scenario was looked at."""

    @classmethod
    def of(cls, judgement: Judgement, other: OtherInterpretation | None = None) -> "ClaimVerdict":
        """Write a judgement down, and where it would be another one."""
        claim, value = judgement.claim, judgement.measured
        measured = None
        if value is not None:
            measured = Measured(value.mean, value.half_width, value.runs, judgement.unit, judgement.measured_text)
        return cls(
            id=claim.id,
            text=claim.text,
            place=claim.place,
            figure=claim.figure,
            verdict=judgement.verdict,
            measured=measured,
            points=judgement.points,
            sentence=judgement.sentence,
            note=claim.note,
            other=other,
        )


class FigureRuns(msgspec.Struct, frozen=True):
    """Runs of a figure."""

    scale: str
    runs: int
    failed: int
    seeds: int
    declared_seeds: int
    """As many as the scale has; more than were run if only some were asked for."""
    flows: Sequence[int]
    """Numbers of flows of its runs, each once, in order."""
    points: Mapping[str, int]
    """For each varied field, how many values of it there are."""
    text: str
    """All of it in words."""
    oracle: bool = False
    """Whether a perfect per-packet choice (reference) is beside the others."""
    declared_flows: int = 0
    """As many as the scale has at most; more than any run had if fewer were asked for. 0: it has no number of flows."""
    unsteady: int = 0
    """Runs that were in no steady state."""


class FigureVerdicts(FigureRuns, frozen=True, kw_only=True):
    """A figure with the verdicts on the claims that it tests."""

    figure: str
    version: str
    unfinished: int
    """Flows that its runs left unfinished."""
    claims: Sequence[ClaimVerdict]

    @property
    def run(self) -> FigureRuns:
        """Runs of the figure."""
        return FigureRuns(**{name: getattr(self, name) for name in FigureRuns.__struct_fields__})

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        first = ("figure", "version", "scale", "runs", "failed", "unfinished")
        return {name: found[name] for name in first} | found


class _CardRuns(msgspec.Struct, frozen=True):
    """Fields on a figure's runs that a sum over papers reads."""

    scale: str
    runs: int


class WholeCard(msgspec.Struct, frozen=True):
    """All of a `scorecard.json` that another one can be made of."""

    figures: Mapping[str, FigureRuns]
    claims: Sequence[ClaimVerdict]


class KeptCard(msgspec.Struct, frozen=True):
    """Fields of a `scorecard.json` that a sum over papers reads."""

    paper: str
    label: str
    counts: Mapping[Verdict, int]
    """How many claims have each verdict; those that no claim has are left out."""
    figures: Mapping[str, _CardRuns]


def read_verdicts(path: Path) -> FigureVerdicts:
    """Read the verdicts beside a figure; raises `OutputError`, which says what to do."""
    return read_json(path, FigureVerdicts)


def read_whole_card(path: Path) -> WholeCard:
    """Read a `scorecard.json` to make another one of it; raises `OutputError`."""
    return read_json(path, WholeCard)


def read_card(path: Path) -> KeptCard:
    """Read what a sum over papers needs of a `scorecard.json`; raises `OutputError`."""
    return read_json(path, KeptCard)
