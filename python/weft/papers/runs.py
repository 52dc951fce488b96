"""From an experiment to its runs: every variant at every place of the grid, with every seed, resolved.

A run is addressed as those of all commands are, by the hash of its resolved spec and the version of the results:
figures and papers whose experiments meet in a run share it.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.catalog import preset
from weft.errors import SpecError, retold
from weft.papers.declared import Experiment, FigureSpec, Measure, PanelSpec, Paper, Scale
from weft.papers.views import VIEWS
from weft.runs.run import Run, resolved_run
from weft.spec import SpecText, load_spec, to_toml_value
from weft.sweeps.grid import SEED

__all__ = ["Case", "Plan", "cases_of_experiment", "cases_of_figure", "cases_of_panel", "needed_tables"]


_FLOWS = "traffic.flows"


@dataclass(frozen=True, slots=True)
class Case:
    """A place of an experiment's grid: one run, as a figure sees it."""

    experiment: str
    variant: str
    labels: tuple[tuple[str, str], ...]
    """For each varied field, the label of its value here."""
    seed: int

    def label(self, key: str) -> str:
        """Return what the value of a varied field is called here."""
        return dict(self.labels)[key]


def cases_of_experiment(experiment: Experiment) -> Iterator[Case]:
    """List every place of an experiment that is at its scale already; the seed changes fastest."""
    return _cases(experiment, list(experiment.variants), {})


def cases_of_panel(panel: PanelSpec, experiment: Experiment) -> Iterator[Case]:
    """List the places that a panel shows, and then those that it divides by."""
    shown = list(panel.variants or experiment.variants)
    relative = panel.relative_to
    if isinstance(relative, str) and relative not in shown:
        shown.append(relative)
    yield from _cases(experiment, shown, panel.where)
    if isinstance(relative, Mapping):
        yield from _cases(experiment, shown, {**panel.where, **{key: (label,) for key, label in relative.items()}})


def _cases(experiment: Experiment, variants: Sequence[str], where: Mapping[str, Sequence[str]]) -> Iterator[Case]:
    axes = [
        [(key, value.label) for value in values if key not in where or value.label in where[key]]
        for key, values in experiment.vary.items()
    ]
    for variant, labels in itertools.product(variants, itertools.product(*axes)):
        for seed in experiment.seeds_run:
            yield Case(experiment.name, variant, labels, seed)


def cases_of_figure(figure: FigureSpec, paper: Paper, scale: Scale) -> list[Case]:
    """List the places that a figure needs, each once, in the order in which its panels show them."""
    found: dict[Case, None] = {}
    for panel in figure.panels:
        found.update(dict.fromkeys(cases_of_panel(panel, paper.experiments[panel.experiment].at(scale))))
    for name in figure.experiments:
        found.update(dict.fromkeys(cases_of_experiment(paper.experiments[name].at(scale))))
    return list(found)


def needed_tables(figure: FigureSpec, paper: Paper) -> dict[str, set[str]]:
    """Return the tables that a figure reads, by experiment."""
    found: dict[str, set[str]] = {}
    for panel in figure.panels:
        own = found.setdefault(panel.experiment, set(paper.experiments[panel.experiment].tables))
        for measure in panel.measures:
            own.update(_tables(measure))
    for name in figure.experiments:
        found.setdefault(name, set()).update(paper.experiments[name].tables)
    return found


def _tables(measure: Measure) -> Iterable[str]:
    return () if measure.table is None else VIEWS.get(measure.table, (measure.table,))


class Plan:
    """Resolves the places of one paper's experiments at one scale, each once."""

    def __init__(self, paper: Paper, scale: Scale) -> None:
        self.paper = paper
        self.scale = scale
        self._specs: dict[str, SpecText] = {}
        self._flows: dict[str, Any] = {}
        self._runs: dict[Case, Run] = {}

    def run(self, case: Case) -> Run:
        """Return the run of a place; `SpecError` says where a spec has a mistake."""
        if case not in self._runs:
            self._runs[case] = self._resolve(case)
        return self._runs[case]

    def declared_flows(self, case: Case) -> int | None:
        """Return how many flows the run of a place is declared to have; None where it lasts for a time instead."""
        experiment = self.paper.experiments[case.experiment].at(self.scale)
        own = dict(_settings(experiment, case))
        flows = own.get(_FLOWS, self._flows_of_base(experiment))
        return flows if isinstance(flows, int) and "traffic.duration" not in own else None

    def _resolve(self, case: Case) -> Run:
        experiment = self.paper.experiments[case.experiment].at(self.scale)
        base = self._base(experiment)
        settings = _settings(experiment, case)
        declared = self.declared_flows(case)
        if experiment.most_flows is not None and declared is not None and declared > experiment.most_flows:
            settings.append((_FLOWS, experiment.most_flows))
        settings.append((SEED, case.seed))
        overrides = [_override(key, value) for key, value in settings]
        labels = {"experiment": f"{self.paper.name} {case.experiment}", "variant": case.variant}
        labels |= dict(case.labels) | {"seed": str(case.seed)}
        try:
            return resolved_run(base, 0, labels, overrides=overrides, tables=())
        except SpecError as error:
            where = ", ".join(f"{key} = {label}" for key, label in labels.items())
            raise retold(error, origin=error.origin, where=f" (at {self.scale} scale, {where})") from None

    def _flows_of_base(self, experiment: Experiment) -> Any:
        if experiment.name not in self._flows:
            self._flows[experiment.name] = self._base(experiment).table("traffic").get("flows")
        return self._flows[experiment.name]

    def _base(self, experiment: Experiment) -> SpecText:
        """Return the spec of an experiment: the preset's, with the tables that the experiment has in its place."""
        if experiment.name not in self._specs:
            spec = load_spec("") if experiment.preset is None else preset(experiment.preset).spec
            for table, values in experiment.spec.items():
                spec = spec.with_table(table, values)
            origin = f"{self.paper.name}.toml: experiment.{experiment.name}"
            self._specs[experiment.name] = replace(spec, base_dir=str(self.paper.folder), origin=origin)
        return self._specs[experiment.name]


def _settings(experiment: Experiment, case: Case) -> list[tuple[str, Any]]:
    """Return the settings of an experiment at a place of its grid, in order: the last one for a key holds."""
    settings = [*experiment.set.items(), *experiment.variants[case.variant].items()]
    for key, label in case.labels:
        value = next(value for value in experiment.vary[key] if value.label == label)
        settings += value.settings.items()
    return settings


def _override(key: str, value: Any) -> tuple[str, str]:
    """Write a setting as the core takes it. A scheme leaves no parameters of another one behind."""
    if key == "scheme.name":
        key = "scheme"
    return key, to_toml_value(value, key)
