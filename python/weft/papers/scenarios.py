"""Scenarios: a paper with one alternative of each of its open choices.

A scenario is put into the declarations of a paper: experiments and variants then say what it changes, and all that
makes figures works as ever. A choice is open only where the paper's own experiment does not decide it: what an
experiment or a variant sets, or varies, stays. Numbers that no paper decides, as of flows, may be multiplied.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from weft.catalog import preset
from weft.errors import SpecError
from weft.papers.declared import Experiment, FigureSpec, Paper, Scale
from weft.papers.open import Alternative, Choice, open_of_preset, open_of_schemes
from weft.papers.reading import nearest

__all__ = ["DEFAULT", "Scenario", "choices_of", "choices_of_figures", "in_scenario", "parse_scenario", "relevant"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Scenario: the choices that differ from the default, by name, in the order of the choices."""

    changed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ",".join(f"{choice}={alternative}" for choice, alternative in self.changed) or "default"

    def alternative(self, choice: Choice) -> str:
        """Return the name of the alternative of a choice that holds here."""
        return dict(self.changed).get(choice.name, choice.default)

    def only(self, choices: Iterable[str]) -> "Scenario":
        """Return the scenario that agrees with this one in some choices, and is the default in all others."""
        kept = frozenset(choices)
        return Scenario(tuple(pair for pair in self.changed if pair[0] in kept))

    @staticmethod
    def of(choices: Iterable[Choice], alternatives: Iterable[str]) -> "Scenario":
        """Make a scenario of an alternative for each of some choices."""
        pairs = zip(choices, alternatives, strict=True)
        return Scenario(tuple((choice.name, name) for choice, name in pairs if name != choice.default))


DEFAULT = Scenario()


def parse_scenario(text: str, choices: Mapping[str, Choice]) -> Scenario:
    """Read `window=64KB,drill.memory=rack`; `SpecError` names the nearest choice or alternative."""
    wanted: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign:
            raise SpecError(f"scenario: {part!r}: expected CHOICE=ALTERNATIVE")
        if name not in choices:
            raise nearest("open choice", name, choices)
        if name in wanted:
            raise SpecError(f"scenario: {name} is there twice")
        wanted[name] = choices[name].alternative(value).name
    return Scenario.of(choices.values(), [wanted.get(name, choice.default) for name, choice in choices.items()])


def choices_of_figures(figures: Sequence[FigureSpec], paper: Paper, scale: Scale) -> dict[str, Choice]:
    """List what is open in some figures, by name: of their set-ups first, then of their schemes."""
    names = dict.fromkeys(name for figure in figures for name in _experiments(figure))
    experiments = [paper.experiments[name] for name in names]
    return {
        name: choice
        for name, choice in choices_of(paper).items()
        if any(
            _differs(choice, experiment.at(scale), experiment, variant)
            for experiment in experiments
            for variant in experiment.at(scale).variants
        )
        or any(_options(choice, other, figure) for figure in figures for other in choice.others)
    }


def choices_of(paper: Paper) -> dict[str, Choice]:
    """List all choices that may be open in some figure of a paper, by name."""
    found: dict[str, Choice] = dict(paper.open)
    for experiment in paper.experiments.values():
        if experiment.preset is not None:
            found |= {name: one for name, one in open_of_preset(experiment.preset).items() if name not in found}
    found = {**found, **open_of_schemes()}
    for name, (alternative, why) in paper.reads.items():
        if name not in found:
            raise nearest(f"{paper.name}: reads: open choice", name, found)
        found[name] = found[name].read_as(alternative, why)
    return found


def relevant(variant: str, figure: FigureSpec, paper: Paper, scale: Scale, choices: Iterable[Choice]) -> frozenset[str]:
    """Name the choices that change a variant's runs in a figure, or what the figure makes of all runs."""
    experiments = [paper.experiments[name] for name in _experiments(figure)]
    return frozenset(
        choice.name
        for choice in choices
        if any(
            variant in experiment.at(scale).variants and _differs(choice, experiment.at(scale), experiment, variant)
            for experiment in experiments
        )
        or any(_options(choice, other, figure) for other in choice.others)
    )


def in_scenario(paper: Paper, scenario: Scenario = DEFAULT) -> Paper:
    """Put a scenario into a paper's declarations, and how the paper reads what others leave open."""
    named = {*paper.reads, *(name for name, _ in scenario.changed)}
    if not named:
        return paper
    chosen = [(choice, scenario.alternative(choice)) for name, choice in choices_of(paper).items() if name in named]
    experiments = {name: _experiment(one, one, chosen) for name, one in paper.experiments.items()}
    figures = {name: _figure(one, chosen) for name, one in paper.figures.items()}
    return replace(
        paper, experiments=experiments, figures=figures, scenario="" if scenario == DEFAULT else str(scenario)
    )


def _figure(figure: FigureSpec, changed: Sequence[tuple[Choice, str]]) -> FigureSpec:
    """Tell a figure what a scenario says of its options."""
    found = dict(figure.options)
    for choice, alternative in changed:
        found |= _options(choice, alternative, figure)
    return replace(figure, options=found)


def _options(choice: Choice, alternative: str, figure: FigureSpec) -> dict[str, Any]:
    """Return what an alternative says of the options that a figure has."""
    return {key: one for key, one in choice.alternatives[alternative].options.items() if key in figure.options}


def _differs(choice: Choice, grid: Experiment, whole: Experiment, variant: str) -> bool:
    """Whether some alternative of a choice makes another run of a variant."""
    default = _settings(choice, choice.default, grid, whole, variant)
    return any(_settings(choice, other, grid, whole, variant) != default for other in choice.others)


def _experiment(grid: Experiment, whole: Experiment, changed: Sequence[tuple[Choice, str]]) -> Experiment:
    """Put what a scenario changes into the variants of a grid; `whole` is the experiment at its paper's scale."""
    variants = {variant: {**own, **_changes(changed, grid, whole, variant)} for variant, own in grid.variants.items()}
    quick = None if grid.quick is None else _experiment(grid.quick, whole, changed)
    return _multiplied(replace(grid, variants=variants, quick=quick), grid, whole, changed)


def _multiplied(
    found: Experiment, grid: Experiment, whole: Experiment, changed: Sequence[tuple[Choice, str]]
) -> Experiment:
    """Multiply the numbers of a grid that a scenario multiplies, for all variants alike: they have the same flows."""
    for choice, alternative in changed:
        factors = _as_said(choice, alternative, whole).factors
        if factors and any(_settings(choice, alternative, grid, whole, variant) for variant in grid.variants):
            vary = {
                axis: tuple(replace(one, settings=_times(one.settings, factors)) for one in values)
                for axis, values in found.vary.items()
            }
            found = replace(found, set=_times(found.set, factors), vary=vary)
    return found


def _times(settings: Mapping[str, Any], factors: Mapping[str, float]) -> dict[str, Any]:
    """Multiply some of the numbers that are set; a whole one stays whole."""
    found = dict(settings)
    for key in factors.keys() & found.keys():
        product = found[key] * factors[key]
        found[key] = round(product) if isinstance(found[key], int) else product
    return found


def _as_said(choice: Choice, alternative: str, whole: Experiment) -> Alternative:
    """Return an alternative as the experiment's preset has it, where presets say what it is."""
    if choice.place != "preset" or whole.preset is None:
        return choice.alternatives[alternative]
    return open_of_preset(whole.preset).get(choice.name, choice).alternative(alternative)


def _changes(
    changed: Sequence[tuple[Choice, str]], grid: Experiment, whole: Experiment, variant: str
) -> dict[str, Any]:
    """Return what a scenario sets for a variant of an experiment."""
    found: dict[str, Any] = {}
    for choice, alternative in changed:
        found |= _settings(choice, alternative, grid, whole, variant, found)
    return found


def _settings(
    choice: Choice,
    alternative: str,
    grid: Experiment,
    whole: Experiment,
    variant: str,
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what an alternative sets for a variant of an experiment; nothing where it does not apply.

    `before` is what choices before it set: one of them may choose another transport, to which others do not apply.
    """
    settings = choice.alternatives[alternative].settings
    if choice.schemes and _named("scheme", before or {}, grid, whole, variant) not in choice.schemes:
        return {}
    match choice.place:
        case "scheme" | "transport" as table:
            if _named(table, before or {}, grid, whole, variant) != choice.scheme:
                return {}
            settings = {f"{table}.{key}": value for key, value in settings.items()}
        case "preset":
            own = open_of_preset(whole.preset) if whole.preset is not None else {}
            if choice.name not in own:
                return {}
            settings = own[choice.name].alternative(alternative).settings
    decided = frozenset(_decided(grid, variant))
    return {key: value for key, value in settings.items() if key not in decided}


def _decided(grid: Experiment, variant: str) -> Iterator[str]:
    """Yield the keys that an experiment and its variant set or vary themselves."""
    yield from grid.set
    yield from (key for values in grid.vary.values() for value in values for key in value.settings)
    for key, value in grid.variants[variant].items():
        yield key
        if isinstance(value, str) and key in ("scheme", "transport"):
            yield from (f"{key}.{part.partition('=')[0].strip()}" for part in value.split(":")[1:])


def _named(table: str, before: Mapping[str, Any], grid: Experiment, whole: Experiment, variant: str) -> str:
    """Return the load balancer or transport that a variant runs with."""
    for settings in (before, grid.variants[variant], grid.set):
        value = settings.get(table, settings.get(f"{table}.name"))
        if isinstance(value, str):
            return value.split(":")[0].strip()
    own = whole.spec.get(table)
    return str(own.get("name", "")) if isinstance(own, Mapping) else _of_preset(table, whole.preset)


@cache
def _of_preset(table: str, name: str | None) -> str:
    import tomllib

    if name is None:
        return ""
    own = tomllib.loads(preset(name).spec.text).get(table, {})
    return str(own.get("name", "")) if isinstance(own, Mapping) else str(own).split(":")[0]


def _experiments(figure: FigureSpec) -> list[str]:
    """Name the experiments that a figure reads, each once."""
    return list(dict.fromkeys([*(panel.experiment for panel in figure.panels), *figure.experiments, *figure.set_ups]))
