"""Structure of `result.json`, which `weft multiverse` writes and which reports and the guide read."""

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from weft import _core
from weft.decoding import read_json
from weft.errors import OutputError
from weft.multiverse import BUDGET_CPU_MIN
from weft.multiverse.exploring import Question
from weft.multiverse.result import ClaimScenarios, Decider, Excluded, Multiverse, Share
from weft.papers.open import Choice
from weft.papers.verdict_files import OtherInterpretation, OtherInterpretations
from weft.papers.verdicts import Verdict

__all__ = ["RESULT", "KeptClaim", "ResultFile", "kept", "other_interpretations", "read_scenarios"]

RESULT = "result.json"
"""The name of a `ResultFile`; it is written last."""


class KeptVerdict(msgspec.Struct, frozen=True):
    """A verdict, and what was measured, with its interval."""

    verdict: Verdict
    measured: str


class KeptClaim(msgspec.Struct, frozen=True):
    """A claim over all scenarios."""

    id: str
    text: str
    figure: str
    default: KeptVerdict
    share: Share
    deciders: Sequence[Decider]
    nearest: str | None
    """The nearest scenario in which it holds; None: it holds in none."""
    nearest_measured: str
    """Measured value in the nearest scenario; empty if the claim holds in none."""
    nearest_differs: bool = False
    """Whether that is not what the default has, beyond what seeds do."""

    @property
    def elsewhere(self) -> bool:
        """Whether another interpretation makes it hold: what is measured there is something else than by default."""
        return self.nearest_differs and self.default.verdict is not Verdict.REPRODUCED


class KeptChoice(msgspec.Struct, frozen=True):
    """An open choice, with the source of each alternative."""

    name: str
    question: str
    default: str
    alternatives: Mapping[str, str]


class KeptBest(msgspec.Struct, frozen=True):
    """The scenario in which most claims hold."""

    scenario: str
    holds: Sequence[str]


class ResultFile(msgspec.Struct, frozen=True):
    """Verdicts on claims over all scenarios."""

    format: int
    version: str
    paper: str
    scale: str
    figures: Sequence[str]
    choices: Sequence[KeptChoice]
    scenarios: int
    """How many were judged."""
    design: str | None
    """None: no choices were combined."""
    untried: Sequence[str]
    claims: Sequence[KeptClaim]
    apart: Sequence[tuple[str, str]]
    """Claims that hold in some scenario each, and together in none."""
    excluded: Sequence[Excluded]
    """Claims of which, to the letter, one cannot be so where the other is, by what a baseline measures."""
    left_out: Mapping[str, str]
    best: KeptBest
    failed: Mapping[str, str]
    impossible: Mapping[str, str]
    command: str = ""
    """The command that does all of it, if nothing was done before; empty in results of format 2."""
    runs: int = 0
    cpu_min: float = 0.0
    """Cost of the runs, in CPU-minutes."""

    def text(self, claim: str) -> str:
        """Return what a claim says."""
        return next(one.text for one in self.claims if one.id == claim)


def kept(question: Question, result: Multiverse) -> ResultFile:
    """Sum up what is to stay."""
    best = result.best
    return ResultFile(
        format=3,
        version=_core.version(),
        paper=question.paper.name,
        scale=question.scale,
        figures=[figure.name for figure in question.figures],
        choices=[_choice(choice) for choice in question.choices.values()],
        scenarios=len(result.seen),
        design=None if result.design is None else result.design.words,
        untried=[str(scenario) for scenario in result.untried],
        claims=[_claim(one, result) for one in result.claims],
        apart=list(result.apart),
        excluded=list(result.excluded),
        left_out=dict(question.left_out),
        best=KeptBest(str(best.scenario), [claim for claim in best.judgements if best.holds(claim)]),
        failed=dict(result.failed),
        impossible={str(scenario): why for scenario, why in result.impossible.items()},
        command=_command(question, result),
        runs=result.runs,
        cpu_min=round(result.all_cpu_s / 60.0, 1),
    )


def read_scenarios(path: Path) -> ResultFile:
    """Read what `weft multiverse` wrote: its directory, or the file. Raises `OutputError`, which says what to do."""
    file = path / RESULT if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise OutputError(f"{path}: holds no result of weft multiverse yet; the same command goes on")
    return read_json(file, ResultFile)


def other_interpretations(directories: Iterable[str | os.PathLike[str]]) -> OtherInterpretations:
    """Say of claims that do not hold by default, but in another scenario, in which.

    Of several results of a claim the one counts in which it holds in the largest share of scenarios.
    Raises `OutputError` for what is no directory, or file, of `weft multiverse`.
    """
    found: dict[str, dict[str, OtherInterpretation]] = {}
    for one in map(read_scenarios, map(Path, directories)):
        own = found.setdefault(one.paper, {})
        for claim in one.claims:
            if claim.elsewhere and claim.nearest is not None:
                other = OtherInterpretation(
                    scenario=claim.nearest,
                    measured=claim.nearest_measured,
                    holds=claim.share.holds,
                    scenarios=claim.share.scenarios,
                    scale=one.scale,
                )
                own[claim.id] = max(own.get(claim.id, other), other, key=lambda it: it.holds / it.scenarios)
    return found


def _command(question: Question, result: Multiverse) -> str:
    """Return the command that repeats the analysis; one done in several goes takes the budget of all of them."""
    needed = math.ceil(result.all_cpu_s / 60.0)
    budget = ["--budget", str(needed)] if needed > BUDGET_CPU_MIN else []
    return shlex.join(["weft", "multiverse", *question.arguments, *budget])


def _choice(choice: Choice) -> KeptChoice:
    alternatives = {one.name: one.source for one in choice.alternatives.values()}
    return KeptChoice(choice.name, choice.question, choice.default, alternatives)


def _claim(one: ClaimScenarios, result: Multiverse) -> KeptClaim:
    there = next((seen for seen in result.seen if seen.scenario == one.nearest), None)
    return KeptClaim(
        id=one.claim.id,
        text=one.claim.text,
        figure=one.claim.figure or "",
        default=KeptVerdict(one.default.verdict, one.default.measured_text),
        share=one.share,
        deciders=one.deciders,
        nearest=None if one.nearest is None else str(one.nearest),
        nearest_measured="" if there is None else there.judgements[one.claim.id].measured_text,
        nearest_differs=one.nearest_differs,
    )
