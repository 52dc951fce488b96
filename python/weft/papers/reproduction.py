"""`weft reproduce`: figures of papers made again, from runs that are shared, kept and gone on with."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import _core
from weft.errors import SpecError
from weft.papers.declared import (
    DATA,
    HOSTS,
    LINUX_SCALES,
    SCALES,
    FigureSpec,
    Hosts,
    Paper,
    Scale,
    load_paper,
    paper_names,
)
from weft.papers.making import Made, Maker
from weft.papers.oracle import with_oracle
from weft.papers.reading import nearest
from weft.papers.runs import Case, Plan, cases_of_figure, needed_tables
from weft.papers.scenarios import choices_of, in_scenario, parse_scenario
from weft.papers.scorecard import Scorecard, read_scorecard
from weft.papers.store import Store
from weft.papers.substitute import slug_of, with_substitute
from weft.papers.verdict_files import OtherInterpretations
from weft.runs.cluster import Cluster
from weft.runs.execution import Executor
from weft.runs.progress import SweepCallback, SweepProgress, Tracker
from weft.runs.run import Outcome, Run
from weft.runs.store import Stored, place_of_store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ALL", "Barred", "Planned", "ProgressListener", "Reproduction", "make_figures", "planned"]

ALL = "all"
"""In place of a paper: every figure of every paper."""


class ProgressListener:
    """Is told how far the making of figures has come. This one is silent: override what is of interest."""

    def begins(self, figures: int, runs: int, kept: int) -> None:
        """Take how many figures will be made, from how many runs, and how many of these are there before."""

    def run(self, state: SweepProgress) -> None:
        """Take how far the runs are: as each ends, and about five times a second."""

    def made(self, made: Made) -> None:
        """Take a figure as it is made."""


class Barred(ProgressListener):
    """Shows how far the runs are."""

    def __init__(self, show: SweepCallback) -> None:
        self._show = show

    def run(self, state: SweepProgress) -> None:
        """Pass it on."""
        self._show(state)


@dataclass(frozen=True, slots=True)
class Planned:
    """A figure with the places of the grid that it needs."""

    figure: FigureSpec
    paper: Paper
    plan: Plan
    cases: tuple[Case, ...]
    linux_hosts: bool
    """Whether there is a set-up for it with Linux hosts."""


@dataclass(frozen=True)
class Reproduction:
    """Result of one reproduction command."""

    path: Path
    scale: Scale
    made: Sequence[Made]
    """In the order of the papers."""
    not_made: Sequence[FigureSpec]
    """Those that cannot be made: each says why."""
    runs: int
    kept: int
    """How many of the runs were there before."""
    failed: Mapping[str, str]
    """Runs that failed, by name, and why."""
    scorecards: Sequence[Scorecard]
    """Scorecard of each paper: all of its claims, with the verdicts of every figure in the directory."""
    beside: "Reproduction | None" = None
    """With Linux hosts: the same figures, of the same flows, with simulated hosts."""

    def __repr__(self) -> str:
        return f"Reproduction({len(self.made)} figures at {self.scale} scale, {self.runs} runs, in {self.path})"

    def _repr_html_(self) -> str:
        from weft.report.in_notebook import reproduction_html

        return reproduction_html(self)

    def plot(self, figure: str = "") -> "Figure":
        """Draw one of the figures that were made, by its key, such as `tr 6`; the only one needs no key.

        Raises `SpecError` for what there is not.
        """
        found = {made.figure.key: made for made in self.made}
        if not figure and len(found) == 1:
            (figure,) = found
        if figure not in found:
            raise nearest("figure", figure, found)
        return found[figure].plot()

    @property
    def ok(self) -> bool:
        """Whether every run and every figure came out."""
        own = not self.failed and all(made.error is None for made in self.made)
        return own and (self.beside is None or self.beside.ok)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the data, ready for JSON."""
        return {
            "version": _core.version(),
            "directory": str(self.path),
            "scale": self.scale,
            "runs": self.runs,
            "kept": self.kept,
            "failed": dict(self.failed),
            "figures": [_as_dict(made) for made in self.made],
            "claims": {card.paper.name: card.summary() for card in self.scorecards},
            "not_made": {figure.key: figure.reason for figure in self.not_made},
            **({} if self.beside is None else {"beside": self.beside.to_dict()}),
        }


def make_figures(
    paper: str,
    figures: Iterable[str] = (),
    *,
    scale: Scale = "quick",
    hosts: Hosts = "simulated",
    seeds: int | None = None,
    flows: int | None = None,
    scenario: str | None = None,
    oracle: bool = False,
    scheme: str | None = None,
    others: OtherInterpretations | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    force: bool = False,
    store: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] = DATA,
    watch: ProgressListener | None = None,
) -> Reproduction:
    """Do what `weft.reproduce` says, with the papers whose declarations are in `folder`."""
    if scale not in SCALES:
        raise nearest("scale", scale, SCALES)
    if hosts not in HOSTS:
        raise nearest("kind of hosts", hosts, HOSTS)
    if hosts == "linux" and scale != "quick":
        raise SpecError(f"scale: figures with Linux hosts have one scale of their own, not {scale}")
    default = f"reproduce-{scale if hosts == 'simulated' else hosts}" + (f"-{scenario}" if scenario else "")
    default += f"-{slug_of(scheme)}" if scheme is not None else ""
    if oracle and hosts != "simulated":
        raise SpecError("oracle: looks into the whole fabric at once, which is not to be had beside Linux hosts")
    target = Path(out) if out is not None else Path("out") / default

    def at(one: Scale, place: Path) -> Callable[[], Reproduction]:
        """Find what is to be made at a scale, so that a mistake is told before anything is run; then make it."""
        chosen = planned(
            paper,
            figures,
            scale=one,
            seeds=seeds,
            flows=flows,
            scenario=scenario,
            oracle=oracle,
            scheme=scheme,
            folder=folder,
        )
        feasible = [found for found in chosen if found.figure.reason is None]
        runs = _runs(feasible)

        def make() -> Reproduction:
            executor = Executor(place_of_store(target, store), jobs=jobs, cluster=cluster)
            with Store(place, paper_names(Path(folder))) as view, executor:
                work = _Work(view, feasible, runs, executor, others or {}, force=force)
                results = work.do(watch, one)
                return Reproduction(
                    path=place,
                    scale=one,
                    made=results,
                    not_made=[found.figure for found in chosen if found.figure.reason is not None],
                    runs=len(work.runs),
                    kept=len(work.kept),
                    failed=work.failed,
                    scorecards=_scorecards(view, chosen),
                )

        return make

    if hosts == "simulated":
        return at(scale, target)()
    simulated, linux = at("beside-linux", target / "simulated"), at("linux", target / "linux")
    beside = simulated()
    return replace(linux(), beside=beside)


def planned(
    paper: str,
    figures: Iterable[str] = (),
    *,
    scale: Scale = "quick",
    seeds: int | None = None,
    flows: int | None = None,
    scenario: str | None = None,
    oracle: bool = False,
    scheme: str | None = None,
    folder: str | os.PathLike[str] = DATA,
) -> list[Planned]:
    """Find figures, and what each needs; `SpecError` names the nearest paper, figure, scale or open choice."""
    for what, most in (("seeds", seeds), ("flows", flows)):
        if most is not None and most < 1:
            raise SpecError(f"{what}: at least one is needed, not {most}")
    place = Path(folder)
    if scale not in (*SCALES, *LINUX_SCALES):
        raise nearest("scale", scale, SCALES)
    names, known = list(dict.fromkeys(figures)), paper_names(place)
    if paper == ALL and names:
        raise SpecError(f"all: stands for every figure of every paper; name a paper to choose {names[0]!r} of it")
    if paper not in known and paper != ALL:
        raise nearest("paper", paper, [*known, ALL])
    if paper == ALL and scenario:
        raise SpecError("all: a scenario is of one paper; name it")
    if paper == ALL and scheme is not None:
        raise SpecError("all: a load balancer stands in for that of one paper; name it")
    found = []
    for name in known if paper == ALL else [paper]:
        one = load_paper(name, place)
        one = one.with_at_most(seeds=seeds, flows=flows)
        one = one if scheme is None else with_substitute(one, scheme)
        one = with_oracle(one) if oracle else one
        one = in_scenario(one, parse_scenario(scenario or "", choices_of(one)))
        plan = Plan(one, scale)
        for declared in [one.figure(key) for key in names] if names else one.figures.values():
            figure = _at_scale(declared, one, scale)
            cases = tuple(cases_of_figure(figure, one, scale))
            found.append(Planned(figure, one, plan, cases, _has_linux_hosts(declared, one)))
    return found


def _has_linux_hosts(figure: FigureSpec, paper: Paper) -> bool:
    return _at_scale(figure, paper, "linux").reason is None


def _at_scale(figure: FigureSpec, paper: Paper, scale: Scale) -> FigureSpec:
    """Return the figure; without what it shows, and with the reason, if there is no set-up for it at this scale."""
    names = [*(panel.experiment for panel in figure.panels), *figure.experiments]
    if figure.reason is not None or scale in SCALES:
        return figure
    if names and all(paper.experiments[one].has(scale) for one in names):
        return figure
    reason = "there is no set-up for it with Linux hosts"
    return replace(figure, reason=reason, panels=(), special=None, options={}, experiments=())


class _Work:
    """The runs of some figures, and the figures as their runs are done."""

    def __init__(
        self,
        store: Store,
        figures: Sequence[Planned],
        runs: Mapping[str, Run],
        executor: Executor,
        others: OtherInterpretations,
        *,
        force: bool,
    ) -> None:
        self._store, self._figures, self._executor, self._others = store, figures, executor, others
        self.runs = runs
        there = [] if force else [stored for run in runs.values() if (stored := executor.find(run)) is not None]
        for stored in there:
            store.found(stored)
        self.kept = frozenset(stored.run.id for stored in there)
        self.failed: dict[str, str] = {}
        self._made: dict[str, Made] = {}

    def do(self, watch: ProgressListener | None, scale: Scale) -> list[Made]:
        """Do the runs in the order of the figures; make each figure once its runs are done, special ones last."""
        told = watch or ProgressListener()
        told.begins(len(self._figures), len(self.runs), len(self.kept))
        maker = Maker(self._store, scale, self._executor, self.kept, self._others)
        todo = [run for key, run in self.runs.items() if key not in self.kept]
        tracker = Tracker(len(self.runs), len(self.kept), told.run)
        waiting = {one.figure.key: {one.plan.run(case).id for case in one.cases} - self.kept for one in self._figures}

        def make(ready: Iterator[Planned]) -> None:
            if (one := next(ready, None)) is not None:
                self._made[one.figure.key] = maker.make(one.figure, one.paper, one.plan, one.cases)
                told.made(self._made[one.figure.key])

        def keep(run: Run, outcome: Outcome, stored: Stored | None) -> None:
            self._store.note(run, outcome, stored)
            if outcome.error is not None:
                self.failed[run.name] = outcome.error
            for needed in waiting.values():
                needed.discard(run.id)
            tracker.done(run, outcome)
            # One figure at a time: the others wait while the cores have runs to do.
            make(one for one in self._left() if not waiting[one.figure.key] and one.figure.special is None)

        self._executor.do(todo, keep, watch=tracker.running if watch else None)
        while rest := self._left():
            make(iter(rest))
        return [self._made[one.figure.key] for one in self._figures]

    def _left(self) -> list[Planned]:
        """List the figures that are not made yet, special ones last."""
        rest = [one for one in self._figures if one.figure.key not in self._made]
        return sorted(rest, key=lambda one: one.figure.special is not None)


def _runs(figures: Iterable[Planned]) -> dict[str, Run]:
    """List the runs of all figures by their address, each once, with the tables that any of the figures reads."""
    found: dict[str, Run] = {}
    for one in figures:
        tables = needed_tables(one.figure, one.paper)
        for case in one.cases:
            run = one.plan.run(case)
            known = found.get(run.id, replace(run, index=len(found), tables=()))
            found[run.id] = replace(known, tables=tuple(sorted({*known.tables, *tables.get(case.experiment, ())})))
    return found


def _scorecards(store: Store, figures: Iterable[Planned]) -> list[Scorecard]:
    """Write the scorecard of each paper, from the verdicts of all its figures that are there."""
    found = [read_scorecard(paper, store.path) for paper in {one.paper.name: one.paper for one in figures}.values()]
    for card in found:
        store.put(f"{card.paper.name}/scorecard.md", card.markdown().encode())
        store.put(f"{card.paper.name}/scorecard.json", card.json().encode())
    return found


def _as_dict(made: Made) -> dict[str, Any]:
    return {
        "figure": made.figure.key,
        "title": made.figure.title,
        "files": [str(path) for path in made.files],
        "runs": made.data.runs.runs if made.data is not None else None,
        "seconds": round(made.seconds, 1),
        "verdicts": list(made.verdicts),
        "error": made.error,
    }
