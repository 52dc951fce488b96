"""Declaration of a paper: its experiments, which are grids of runs, and its figures, which show them.

Each paper is data: `data/<paper>.toml` beside this file. Its claims are in `data/<paper>-claims.toml`, which
`weft.papers.claims` reads.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from weft.catalog import schemes, transports
from weft.errors import SpecError
from weft.papers.open import Choice, read_choices
from weft.papers.reading import Section, nearest, read_toml

__all__ = [
    "DATA",
    "HOSTS",
    "LINUX_SCALES",
    "PLOTS",
    "SCALES",
    "STATISTICS",
    "AxisValue",
    "Experiment",
    "FigureSpec",
    "Hosts",
    "Measure",
    "PanelSpec",
    "Paper",
    "Scale",
    "load_paper",
    "paper_names",
]

DATA = Path(__file__).with_name("data")
"""Where the papers that come with Weft are."""

Scale: TypeAlias = Literal["quick", "paper", "beside-linux", "linux"]
SCALES: tuple[Scale, ...] = ("quick", "paper")
"""Those with simulated hosts, which a command may ask for."""
LINUX_SCALES: tuple[Scale, ...] = ("beside-linux", "linux")
"""Scales of figures with Linux hosts: the same numbers with simulated hosts, and then with Linux hosts."""

Hosts: TypeAlias = Literal["simulated", "linux"]
HOSTS: tuple[Hosts, ...] = ("simulated", "linux")

PLOTS = ("lines", "bars", "cdf", "box", "over-time", "table")

STATISTICS = (
    "mean",
    "p1",
    "p5",
    "p25",
    "p50",
    "p75",
    "p95",
    "p99",
    "p999",
    "min",
    "max",
    "sum",
    "std",
    "count",
    "share",
)
"""Statistics that a measure computes from the rows of a table.

`count` counts them; `share` tells how many are true, or above 0.
"""


@dataclass(frozen=True, slots=True)
class AxisValue:
    """A place on an axis of an experiment: what it is called, the number that it stands for, what it sets."""

    label: str
    number: float | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A grid of runs: variants, axes and seeds."""

    name: str
    preset: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Top-level tables of a spec; beside a preset, each stands in place of the preset's."""
    set: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Key of each variant, and what it sets; a scheme of the command line sets `scheme`."""
    added: tuple[str, ...] = ()
    """Those that the paper does not have: figures say so, and no claim is about them that does not name them."""
    vary: Mapping[str, tuple[AxisValue, ...]] = field(default_factory=dict)
    seeds: int = 1
    at_most: int | None = None
    """How many of the seeds are run; None: all."""
    most_flows: int | None = None
    """How many flows a run has at most; None: as many as are declared."""
    tables: tuple[str, ...] = ()
    """Tables to keep beside those that the panels read."""
    quick: "Experiment | None" = None
    """Experiment that replaces this one at quick scale."""
    linux: "Experiment | None" = None
    """Experiment that replaces this one with Linux hosts; None: there is no such experiment."""

    def has(self, scale: Scale) -> bool:
        """Whether there is the experiment at this scale."""
        return scale in SCALES or self.linux is not None

    def at(self, scale: Scale) -> "Experiment":
        """Return the experiment as it is at a scale that it has."""
        if scale == "quick" and self.quick is not None:
            return self.quick
        if scale in LINUX_SCALES and self.linux is not None:
            # Beside them, simulated hosts are those of the experiment's own set-up.
            return self.linux if scale == "linux" else replace(self.linux, preset=self.preset, spec=self.spec)
        return replace(self, quick=None, linux=None)

    def with_at_most(self, *, seeds: int | None, flows: int | None) -> "Experiment":
        """Return the experiment with no more than its first seeds, and no more flows a run, at every scale."""

        def fewer(one: "Experiment | None") -> "Experiment | None":
            return None if one is None else one.with_at_most(seeds=seeds, flows=flows)

        return replace(self, at_most=seeds, most_flows=flows, quick=fewer(self.quick), linux=fewer(self.linux))

    @property
    def seeds_run(self) -> range:
        """The seeds that are run."""
        return range(1, (self.seeds if self.at_most is None else min(self.seeds, self.at_most)) + 1)


@dataclass(frozen=True, slots=True)
class Measure:
    """Measured quantity of a run: a metric of its summary, or a statistic of a column of one of its tables."""

    label: str = ""
    """Label of the group of bars, or of the column, where a panel has several measures."""
    metric: str | None = None
    bin: int | None = None
    """Place of the range of sizes in `run.bins`; None for the metrics of the whole run."""
    table: str | None = None
    column: str | None = None
    statistic: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    """Rows of the table: `column = value` or a list of values, `column_from` (included), `column_below` (not)."""
    unit: str | None = None
    """`us`, `mbps`, `bytes`, `share`, `ratio`, `count`; None: what the metric or the column says."""
    factor: float = 1.0
    """Multiplies the values."""


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One plot of a figure."""

    title: str
    experiment: str
    plot: str
    measures: tuple[Measure, ...]
    x: str | None = None
    """A varied field; "bins" or "metrics" where several measures stand side by side; None: one place."""
    x_label: str | None = None
    y_label: str | None = None
    x_scale: str = "linear"
    y_scale: str = "linear"
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For varied fields, the labels of the values to keep; default: all."""
    variants: tuple[str, ...] = ()
    """Those to show, in this order; none: all."""
    relative_to: str | Mapping[str, str] | None = None
    """A variant (at the same place and seed), or a label of a varied field, by which values are divided."""


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure or table of a paper."""

    paper: str
    name: str
    title: str
    place: str = ""
    about: str = ""
    reason: str | None = None
    """Why it cannot be made; then there are no panels."""
    panels: tuple[PanelSpec, ...] = ()
    special: str | None = None
    """The function of `weft.papers.special` that makes it, in place of panels."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of that function."""
    experiments: tuple[str, ...] = ()
    """Experiments whose runs that function reads."""
    set_ups: tuple[str, ...] = ()
    """Experiments whose set-ups its own runs have: the places of their grids, with other traffic or observed."""

    @property
    def key(self) -> str:
        """Paper and name: `meet 6`."""
        return f"{self.paper} {self.name}"

    @property
    def heading(self) -> str:
        """`Fig. 6` or `Table 3`."""
        return f"Table {self.name.removeprefix('table-')}" if self.name.startswith("table-") else f"Fig. {self.name}"


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its experiments and figures."""

    name: str
    title: str
    venue: str
    labels: Mapping[str, str]
    experiments: Mapping[str, Experiment]
    figures: Mapping[str, FigureSpec]
    folder: Path
    """Where its file is: files that a spec names are relative to it."""
    open: Mapping[str, Choice] = field(default_factory=dict)
    """Open choices of the paper's experiments, beyond those of its presets, by name."""
    reads: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """How it reads what others leave open, where that is not as Weft does by default: by name of the choice the
    alternative, and why."""
    scenario: str = ""
    """The scenario that its experiments are in; empty: the default."""
    substitute: str = ""
    """The load balancer in the place of its own; empty: none."""

    @property
    def short(self) -> str:
        """Short name of the paper: as its title writes it, or in capitals."""
        found = re.search(rf"\b{re.escape(self.name)}\b", self.title, re.IGNORECASE)
        return found[0] if found else self.name.upper()

    def label(self, variant: str) -> str:
        """Return what a variant is called in legends."""
        if variant in self.labels:
            return self.labels[variant]
        name, *parameters = variant.split(":")
        return ":".join([self.labels.get(name, name.upper() if name in _schemes() else name), *parameters])

    def added_to(self, figure: FigureSpec, scale: Scale) -> tuple[str, ...]:
        """Name the variants of a figure that the paper does not have there."""
        shown = [(panel.experiment, panel.variants) for panel in figure.panels]
        shown += [(name, ()) for name in figure.experiments]
        grids = [(self.experiments[name].at(scale), chosen) for name, chosen in shown if name in self.experiments]
        return tuple(
            dict.fromkeys(one for grid, chosen in grids for one in grid.added if one in (chosen or grid.variants))
        )

    def with_at_most(self, *, seeds: int | None, flows: int | None) -> "Paper":
        """Return the paper with no more than the first seeds of each experiment, and no more flows a run."""
        fewer = {key: one.with_at_most(seeds=seeds, flows=flows) for key, one in self.experiments.items()}
        return replace(self, experiments=fewer)

    def figure(self, name: str) -> FigureSpec:
        """Find a figure; `SpecError` names the nearest one if there is none."""
        if name not in self.figures:
            raise nearest(f"figure of {self.name}", name, self.figures)
        return self.figures[name]


@cache
def _schemes() -> frozenset[str]:
    """Names that stand for abbreviations in papers: those of load balancers and transports."""
    return frozenset(entry.name for entry in (*schemes(), *transports()))


def paper_names(folder: Path = DATA) -> list[str]:
    """List the papers of a folder, by name."""
    files = sorted(folder.glob("*.toml"))
    return [file.stem for file in files if not file.stem.endswith("-claims") and file.stem not in ("open", "times")]


def load_paper(name: str, folder: Path = DATA) -> Paper:
    """Read and check the declarations of a paper; `SpecError` says which file and key is wrong."""
    from weft.papers.reading_papers import read_experiment, read_figure

    names = paper_names(folder)
    if name not in names:
        raise nearest("paper", name, names)
    top = read_toml(folder / f"{name}.toml")
    paper = top.section("paper")
    if (found := paper.need("name", str)) != name:
        raise paper.error(f"name = {found!r}, and the file is called {name}.toml")
    title, venue = paper.take("title", str, name.upper()), paper.take("venue", str, "")
    labels = paper.take("labels", dict, {})
    paper.end()
    experiments = {key: read_experiment(key, section) for key, section in top.sections("experiment").items()}
    figures = {key: read_figure(name, key, section, experiments) for key, section in top.sections("figure").items()}
    left_open = {choice.name: choice for choice in read_choices(top, "open", "paper")}
    reads = {key: _read(section) for key, section in top.sections("reads").items()}
    top.end()
    if not figures:
        raise SpecError(f"{name}.toml: has no figure")
    _check_options(left_open.values(), figures.values(), name)
    return Paper(name, title, venue, labels, experiments, figures, folder, left_open, reads)


def _read(section: Section) -> tuple[str, str]:
    found = section.need("alternative", str), section.need("why", str)
    section.end()
    return found


def _check_options(choices: Iterable[Choice], figures: Iterable[FigureSpec], name: str) -> None:
    """Check that each option that an alternative sets is an option of some figure."""
    known = dict.fromkeys(option for figure in figures for option in figure.options)
    for choice in choices:
        for one in choice.alternatives.values():
            for option in one.options:
                if option not in known:
                    raise SpecError(
                        f"{name}.toml: open.{choice.name}.alternatives.{one.name}: options: "
                        f"{nearest('option of a figure', option, known)}"
                    )
