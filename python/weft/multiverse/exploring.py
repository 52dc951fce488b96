"""`weft multiverse`: one choice at a time, then a design over the few that matter, as far as the budget goes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import SpecError
from weft.multiverse import BUDGET_CPU_MIN
from weft.multiverse.design import Design, Factor, chosen_design, single_changes
from weft.multiverse.forecast import cost_of, is_affordable
from weft.multiverse.judging import Explorer
from weft.multiverse.parts import why_left_out
from weft.multiverse.result import Multiverse, Seen, influence, summed
from weft.papers.claims import Claim, load_claims
from weft.papers.declared import DATA, SCALES, FigureSpec, Paper, Scale, load_paper
from weft.papers.open import Choice
from weft.papers.oracle import with_oracle
from weft.papers.reading import nearest
from weft.papers.scenarios import DEFAULT, Scenario, choices_of_figures
from weft.papers.store import INPUTS
from weft.papers.substitute import with_substitute
from weft.runs.cluster import Cluster
from weft.runs.execution import Executor
from weft.runs.progress import SweepProgress
from weft.runs.store import place_of_store

__all__ = ["ProgressListener", "Question", "asked", "check_budget", "explore"]


SINGLES = 0.5
"""At most this share of a budget goes into single changes: what decides claims is often several choices together."""


class ProgressListener:
    """Is told how far it has come. This one is silent: override what is of interest."""

    def begins(self, question: "Question") -> None:
        """Take what is asked."""

    def run(self, state: SweepProgress) -> None:
        """Take how far the runs of a step are."""

    def says(self, text: str) -> None:
        """Take what happens next."""


@dataclass(frozen=True)
class Question:
    """Question of a multiverse analysis: claims, the figures that test them, and the open choices."""

    paper: Paper
    scale: Scale
    figures: Sequence[FigureSpec]
    claims: Sequence[Claim]
    choices: Mapping[str, Choice]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Claims that no figure tests that scenarios change, and why."""
    arguments: Sequence[str] = ()
    """Arguments of `weft multiverse` for this question."""


def asked(
    paper: str,
    figures: Iterable[str] = (),
    *,
    claims: Iterable[str] = (),
    choices: Iterable[str] = (),
    scale: Scale = "quick",
    seeds: int | None = None,
    oracle: bool = False,
    scheme: str | None = None,
    folder: str | os.PathLike[str] = DATA,
) -> Question:
    """Find what is asked; `SpecError` names the nearest paper, figure, claim or choice."""
    if scale not in SCALES:
        raise nearest("scale", scale, SCALES)
    if seeds is not None and seeds < 1:
        raise SpecError(f"seeds: at least one is needed, not {seeds}")
    declared = load_paper(paper, Path(folder))
    declared = declared.with_at_most(seeds=seeds, flows=None)
    declared = declared if scheme is None else with_substitute(declared, scheme)
    declared = with_oracle(declared) if oracle else declared
    figures = list(figures)
    names = {figure.name for figure in map(declared.figure, figures)}
    known = {claim.id: claim for claim in load_claims(declared)}
    wanted = list(dict.fromkeys(claims))
    for name in wanted:
        if name not in known:
            raise nearest(f"claim of {paper}", name, known)
    chosen = [
        claim for claim in known.values() if (not wanted or claim.id in wanted) and (not names or claim.figure in names)
    ]
    left_out = {claim.id: why for claim in chosen if (why := _why_not(claim, declared)) is not None}
    testable = [claim for claim in chosen if claim.id not in left_out]
    if not testable:
        where = f"figure {', '.join(sorted(names))} of {paper}" if names else paper
        raise SpecError(
            f"{where}: has no claim that scenarios could tell apart" + "".join(f"; {one}" for one in left_out.values())
        )
    shown = [one for name, one in declared.figures.items() if any(claim.figure == name for claim in testable)]
    found = choices_of_figures(shown, declared, scale)
    kept = list(dict.fromkeys(choices))
    for name in kept:
        if name not in found:
            raise nearest(f"open choice of {paper}", name, found)
    if not found:
        raise SpecError(f"{paper}: nothing is declared to be open there")
    own = {name: choice for name, choice in found.items() if not kept or name in kept}
    arguments = [paper, *dict.fromkeys(figures)]
    for option, names_given in (("--claims", wanted), ("--choices", kept)):
        arguments += [option, ",".join(names_given)] if names_given else []
    arguments += ["--scale", scale] if scale != SCALES[0] else []
    arguments += ["--seeds", str(seeds)] if seeds is not None else []
    arguments += ["--oracle"] if oracle else []
    return Question(declared, scale, shown, testable, own, left_out, arguments)


def check_budget(cpu_min: float) -> None:
    """Raise `SpecError` for a budget that is none."""
    if not cpu_min > 0.0:
        raise SpecError(f"budget: expected more than 0 CPU-minutes, not {cpu_min:g}")


def _why_not(claim: Claim, paper: Paper) -> str | None:
    if claim.rule is None or claim.figure is None:
        return f"claim {claim.id} is not testable here"
    why = why_left_out(paper.figures[claim.figure])
    return None if why is None else f"claim {claim.id} is of figure {claim.figure}, which no scenario changes: {why}"


def explore(
    question: Question,
    *,
    budget_cpu_min: float = BUDGET_CPU_MIN,
    out: str | os.PathLike[str],
    jobs: int | None = None,
    cluster: Cluster | None = None,
    store: str | os.PathLike[str] | None = None,
    told: ProgressListener | None = None,
) -> Multiverse:
    """Judge claims in the scenarios that a budget allows: the default, those with one change, and those of a design.

    Only runs that were not done before count for the budget, so the same command again goes further.
    """
    check_budget(budget_cpu_min)
    told = told or ProgressListener()
    told.begins(question)
    with Executor(place_of_store(out, store), jobs=jobs, cluster=cluster) as executor:
        explorer = Explorer(
            question.paper,
            question.figures,
            question.scale,
            question.claims,
            question.choices,
            executor,
            Path(out).absolute() / INPUTS,
            told.run,
        )
        return _Search(question, explorer, 60.0 * budget_cpu_min, told).done()


@dataclass
class _Search:
    """A search, step by step."""

    question: Question
    explorer: Explorer
    budget_cpu_s: float
    told: ProgressListener
    impossible: dict[Scenario, str] = field(default_factory=dict)

    def done(self) -> Multiverse:
        """Take all steps."""
        self.told.says("the default scenario")
        self.explorer.do([DEFAULT])
        default = self.explorer.judge(DEFAULT)
        single, untried = self._one_at_a_time()
        design = self._design(default, single)
        crossed: list[Seen] = []
        if design is not None:
            self.told.says(f"a design: {design.words}")
            scenarios = design.scenarios()
            self.explorer.do(scenarios)
            able = [scenario for scenario in scenarios if self._why_not(scenario) is None]
            crossed = [self.explorer.judge(scenario) for scenario in able]
        return Multiverse(
            claims=summed(self.question.claims, default, single, design, crossed),
            choices=self.question.choices,
            untried=untried,
            design=design,
            default=default,
            single=single,
            crossed=crossed,
            runs=len(self.explorer.runs),
            kept=len(self.explorer.kept),
            cpu_s=self.explorer.cpu_s,
            all_cpu_s=self.explorer.all_cpu_s,
            failed=self.explorer.failed,
            impossible=self.impossible,
        )

    def _seen(self, scenario: Scenario) -> Seen | None:
        """Judge a scenario; None if there is no such scenario."""
        self.explorer.do([scenario])
        return None if self._why_not(scenario) is not None else self.explorer.judge(scenario)

    def _why_not(self, scenario: Scenario) -> str | None:
        reason = self.explorer.why_not(scenario)
        if reason is not None:
            self.impossible[scenario] = reason
        return reason

    def _one_at_a_time(self) -> tuple[list[Seen], list[Scenario]]:
        """Try single changes, the cheapest first, as far as their share of the budget goes; return the others, too."""
        scenarios = list(single_changes(self.question.choices))
        costs = {scenario: cost_of(self.explorer, scenario) for scenario in scenarios}
        seen: dict[Scenario, Seen] = {}
        untried: set[Scenario] = set()
        for place, scenario in enumerate(sorted(scenarios, key=costs.__getitem__)):
            if costs[scenario] > 0.0 and self.explorer.cpu_s + costs[scenario] > SINGLES * self.budget_cpu_s:
                untried.add(scenario)
                continue
            self.told.says(f"one choice at a time, {place + 1} of {len(scenarios)}: {scenario}")
            if (one := self._seen(scenario)) is not None:
                seen[scenario] = one
        return [seen[scenario] for scenario in scenarios if scenario in seen], [
            scenario for scenario in scenarios if scenario in untried
        ]

    def _design(self, default: Seen, single: Sequence[Seen]) -> Design | None:
        """Choose what the rest of the budget pays for: the choices that matter most, together."""
        tried = {one.scenario.changed[0][0] for one in single}
        choices = [choice for name, choice in self.question.choices.items() if name in tried]
        factors = [self._factor(choice, default, single) for choice in choices]
        if not factors:
            return None
        ranked = sorted(factors, key=lambda factor: self._rank(factor, default, single), reverse=True)
        left = self.budget_cpu_s - self.explorer.cpu_s
        return chosen_design(ranked, lambda design: is_affordable(self.explorer, design, left))

    @staticmethod
    def _rank(factor: Factor, default: Seen, single: Sequence[Seen]) -> tuple[bool, bool, float]:
        """Return the sort key of a factor: first those that change a verdict, then those of one variant."""
        turns, shift = influence(factor.choice, default, single)
        return turns, not factor.shared, shift

    def _factor(self, choice: Choice, default: Seen, single: Sequence[Seen]) -> Factor:
        """Vary all alternatives of what concerns one variant; of what several share, that which matters most."""
        # A scheme is the same one in all figures.
        about = {name for (_, name), concern in self.explorer.concern.items() if choice.name in concern}
        shared = len(about) > 1
        tried = [one for one in single if one.scenario.changed[0][0] == choice.name]
        if shared:
            tried = [max(tried, key=lambda one: influence(choice, default, [one]))]
        alternatives = (choice.default, *(one.scenario.changed[0][1] for one in tried))
        return Factor(choice, alternatives, shared, list(self.question.choices).index(choice.name))
