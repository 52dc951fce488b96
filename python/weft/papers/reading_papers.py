"""Reading experiments and figures from the tables of a paper's file."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.metrics import ALL_METRICS, bin_metrics
from weft.papers.declared import (
    LINUX_SCALES,
    PLOTS,
    SCALES,
    STATISTICS,
    AxisValue,
    Experiment,
    FigureSpec,
    Measure,
    PanelSpec,
)
from weft.papers.reading import Section, nearest
from weft.papers.views import VIEWS
from weft.schemas import TABLES
from weft.variant import parse_variants

__all__ = ["read_experiment", "read_figure", "value_label", "value_number"]

MEASURES = ("bins", "metrics")
"""Names of `x` where measures are side by side."""

_MOST_SEEDS = 10
_POOLED = ("cdf", "box")
_SCALES_OF_AXES = ("linear", "log")
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z%µ]*)")
_UNITS = {
    "": 1.0, "%": 1.0, "packets": 1.0,
    "ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6,
    "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2,
    "bps": 1e-6, "Kbps": 1e-3, "Mbps": 1.0, "Gbps": 1e3,
}  # fmt: skip
"""Units of values on an axis, in microseconds, bytes or megabits a second: order and distance are what counts."""


def read_experiment(name: str, section: Section) -> Experiment:
    """Read `[experiment.NAME]` and what differs at quick scale, and with Linux hosts."""
    preset, spec = section.maybe("preset", str), section.take("spec", dict, {})
    if preset is None and not spec:
        raise section.error("needs a preset, or the tables of a spec")
    tables = section.texts("tables")
    for table in tables:
        if table not in TABLES:
            raise section.error(f"tables: {nearest('table', table, TABLES)}")
    paper = _grid(Experiment(name, preset=preset, spec=spec, tables=tables), section)
    if not paper.variants:
        raise section.error("needs schemes, or variants")
    inner = section.section("quick")
    quick = _grid(paper, inner)
    for key in quick.vary:
        if key not in paper.vary:
            raise inner.error(f"vary: {key} is not varied at paper scale")
    inner.end()
    linux = _with_linux_hosts(quick, section.section("linux")) if "linux" in section else None
    section.end()
    return replace(paper, quick=quick, linux=linux)


def _with_linux_hosts(quick: Experiment, section: Section) -> Experiment:
    """Take the preset of Linux hosts, and what differs from quick scale."""
    linux = replace(_grid(quick, section), preset=section.need("preset", str), spec={})
    for key in linux.vary:
        if key not in quick.vary:
            raise section.error(f"vary: {key} is not varied at quick scale")
    section.end()
    return linux


def _grid(base: Experiment, section: Section) -> Experiment:
    """Take what a scale says of the grid, over what it is otherwise."""
    seeds = section.take("seeds", int, base.seeds)
    if not 1 <= seeds <= _MOST_SEEDS:
        raise section.error(f"seeds = {seeds}: expected 1 to {_MOST_SEEDS}")
    vary = dict(base.vary)
    for key, values in section.take("vary", dict, {}).items():
        if not isinstance(values, list) or not values:
            raise section.error(f"vary: {key} needs a list of one or more values")
        vary[key] = tuple(_axis_value(key, value, section) for value in values)
        labels = [value.label for value in vary[key]]
        if len(set(labels)) < len(labels):
            raise section.error(f"vary: {key} has a value twice")
    variants, added = _variants(section, base)
    settings = {**base.set, **section.take("set", dict, {})}
    lost = [key for key in settings if key.split(".")[0] == "scheme"]
    if lost and any({"scheme", "scheme.name"} & set(own) for own in variants.values()):
        raise section.error(f"set: {lost[0]} would be lost, since variants set their scheme: say it there")
    return replace(
        base,
        set=settings,
        variants=variants,
        added=added,
        vary=vary,
        seeds=seeds,
    )


def _variants(section: Section, base: Experiment) -> tuple[dict[str, Mapping[str, Any]], tuple[str, ...]]:
    """Take the variants, or those of `base`, and the names of those among them that the paper does not have."""
    own = _own_variants(section)
    schemes = section.texts("added")
    added = {one.label: one.parts for one in parse_variants(schemes)} if schemes else {}
    if not own and not added:
        return dict(base.variants), base.added
    own = own or {key: one for key, one in base.variants.items() if key not in base.added}
    if twice := sorted(own.keys() & added.keys()):
        raise section.error(f"added: {twice[0]} is one of the schemes too")
    return {**own, **added}, tuple(added)


def _own_variants(section: Section) -> dict[str, Mapping[str, Any]]:
    schemes = section.texts("schemes")
    found: dict[str, Mapping[str, Any]] = {}
    for variant in parse_variants(schemes) if schemes else ():
        found[variant.label] = variant.parts
    for key, settings in section.take("variants", dict, {}).items():
        if key in found:
            raise section.error(f"variants: {key} is one of the schemes too")
        if not isinstance(settings, dict):
            raise section.error(f"variants: {key} needs a table of settings")
        found[key] = settings
    return found


def _axis_value(key: str, value: Any, section: Section) -> AxisValue:
    if isinstance(value, dict) and "set" in value:
        own = Section(value, f"{section.place}.vary.{key}")
        label, number, settings = own.need("label", str), own.maybe("number", float), own.need("set", dict)
        own.end()
        return AxisValue(label, number if number is not None else value_number(label), settings)
    return AxisValue(value_label(value), value_number(value), {key: value})


def value_label(value: Any) -> str:
    """Return what a value is called: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def value_number(value: Any) -> float | None:
    """Return the number that a value stands for: times in microseconds, sizes in bytes, rates in Mbit/s."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else None


def read_figure(paper: str, name: str, section: Section, experiments: Mapping[str, Experiment]) -> FigureSpec:
    """Read `[figure.NAME]` and its panels."""
    figure = FigureSpec(
        paper,
        name,
        title=section.need("title", str),
        place=section.take("place", str, ""),
        about=section.take("about", str, ""),
        reason=section.maybe("reason", str),
        panels=tuple(_panel(one, experiments) for one in section.listed("panel")),
        special=section.maybe("special", str),
        options=section.take("options", dict, {}),
        experiments=section.texts("experiments"),
        set_ups=section.texts("set_ups"),
    )
    if (figure.reason is not None) + (figure.special is not None) + bool(figure.panels) != 1:
        raise section.error("needs panels, or special, or the reason why it cannot be made: one of them")
    for names, which in ((figure.experiments, "experiments"), (figure.set_ups, "set_ups")):
        for key in names:
            if key not in experiments:
                raise section.error(f"{which}: {nearest('experiment', key, experiments)}")
    if figure.special is None and (figure.options or figure.experiments or figure.set_ups):
        raise section.error("options, experiments and set_ups are for a special figure")
    section.end()
    return figure


def _panel(section: Section, experiments: Mapping[str, Experiment]) -> PanelSpec:
    name = section.need("experiment", str)
    if name not in experiments:
        raise section.error(f"experiment: {nearest('experiment', name, experiments)}")
    plot = section.choice("plot", PLOTS, "lines")
    raw = section.any("measure")
    given: Sequence[Any] = raw if isinstance(raw, list) else [raw]
    panel = PanelSpec(
        title=section.take("title", str, ""),
        experiment=name,
        plot=plot,
        measures=tuple(_measure(one, plot, section) for one in given),
        x=section.maybe("x", str),
        x_label=section.maybe("x_label", str),
        y_label=section.maybe("y_label", str),
        x_scale=section.choice("x_scale", _SCALES_OF_AXES, "linear"),
        y_scale=section.choice("y_scale", _SCALES_OF_AXES, "linear"),
        where={key: _labels(value) for key, value in section.take("where", dict, {}).items()},
        variants=section.texts("variants"),
        relative_to=_relative_to(section),
    )
    section.end()
    for scale in (*SCALES, *LINUX_SCALES):
        if experiments[name].has(scale):
            _check_points(panel, experiments[name].at(scale), section, scale)
    return panel


def _relative_to(section: Section) -> str | Mapping[str, str] | None:
    value = section.any("relative_to")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        return {key: value_label(one) for key, one in value.items()}
    raise section.error("relative_to: expected a variant, or a table of one varied field and its value")


def _labels(value: Any) -> tuple[str, ...]:
    return tuple(map(value_label, value if isinstance(value, list) else [value]))


def _check_points(panel: PanelSpec, experiment: Experiment, section: Section, scale: str) -> None:
    """Every name of a panel is one of its experiment, and nothing varies that the panel does not show."""
    at = f"at {scale} scale"
    if panel.relative_to is not None and panel.plot in (*_POOLED, "over-time"):
        raise section.error(f"relative_to: a {panel.plot} plot shows values as they are")
    fields = {key: [value.label for value in values] for key, values in experiment.vary.items()}
    relative = panel.relative_to
    points = {key: (label,) for key, label in relative.items()} if isinstance(relative, Mapping) else {}
    for key, labels in [*panel.where.items(), *points.items()]:
        if key not in fields:
            raise section.error(f"{nearest('varied field', key, fields)} {at}")
        for label in labels:
            if label not in fields[key]:
                raise section.error(f"{nearest(f'value of {key} {at}', label, fields[key])}")
    variants = [*panel.variants, *([relative] if isinstance(relative, str) else [])]
    for variant in variants:
        if variant not in experiment.variants:
            raise section.error(f"{nearest(f'variant {at}', variant, experiment.variants)}")
    if panel.x is not None and panel.x not in fields and panel.x not in MEASURES:
        raise section.error(f"x: {nearest('varied field', panel.x, [*fields, *MEASURES])}")
    if len(panel.measures) > 1 and panel.x not in MEASURES and panel.plot != "table":
        raise section.error('several measures need x = "bins" or x = "metrics"')
    for key, every in fields.items():
        if key != panel.x and len(panel.where.get(key, every)) > 1:
            raise section.error(f"{key} is varied {at}: make it x, or choose one value of it with where")


def _measure(raw: Any, plot: str, section: Section) -> Measure:
    if not isinstance(raw, dict):
        raise section.error("measure: expected a table, or a list of tables")
    own = Section(raw, f"{section.place}.measure")
    where = dict(own.take("where", dict, {}))
    if tier := own.maybe("tier", str):
        where["tier"] = tier
    measure = Measure(
        label=own.take("label", str, ""),
        metric=own.maybe("metric", str),
        bin=own.maybe("bin", int),
        table=own.maybe("table", str),
        column=own.maybe("column", str),
        statistic=own.maybe("statistic", str),
        where=where,
        unit=own.maybe("unit", str),
        factor=own.take("factor", float, 1.0),
    )
    own.end()
    _check_measure(measure, plot, own)
    return measure


def _check_measure(measure: Measure, plot: str, section: Section) -> None:
    if (measure.metric is None) == (measure.table is None):
        raise section.error("needs a metric, or a table: one of them")
    if measure.metric is not None:
        known = [one.key for one in (ALL_METRICS if measure.bin is None else bin_metrics(measure.bin))]
        if measure.metric not in known:
            raise section.error(f"metric: {nearest('metric', measure.metric, known)}")
        if plot in (*_POOLED, "over-time"):
            raise section.error(f"a {plot} plot needs a table and a column: a metric is one number")
        if measure.column or measure.statistic or measure.where:
            raise section.error("column, statistic and where are for a table")
        return
    known_tables = list(dict.fromkeys([*TABLES, *VIEWS]))
    if measure.table not in known_tables:
        raise section.error(f"table: {nearest('table', measure.table or '', known_tables)}")
    if plot in _POOLED:
        if measure.statistic is not None:
            raise section.error(f"a {plot} plot shows all values: it takes no statistic")
    elif measure.statistic not in STATISTICS:
        raise section.error(f"statistic: {nearest('statistic', measure.statistic or '', STATISTICS)}")
    if measure.column is None and measure.statistic != "count":
        raise section.error("column is missing")
