"""Claims of a paper: read from `data/<paper>-claims.toml` and checked against its figures.

A claim names the figure that tests it and a rule; `weft.papers.verdicts` judges it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.errors import SpecError
from weft.papers.declared import SCALES, FigureSpec, PanelSpec, Paper
from weft.papers.reading import Section, nearest, read_toml

__all__ = ["KINDS", "MUCH", "TOLERANCE", "Claim", "Rule", "Where", "load_claims", "widened"]

_OVER = ("best", "mean", "worst")
_TRENDS = ("rises", "falls", "flat")
_STATISTICS = ("iqr", "std")

KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "reduction": (("of",), ("against", "against_x", "over", "expected", "bound")),
    "gain": (("of",), ("against", "against_x", "over", "expected", "bound")),
    "ratio": (("of", "expected"), ("against", "against_x", "over")),
    "value": (("of", "expected"), ("over", "more_is_better")),
    "at-most": (("bound",), ("of", "against", "against_x", "over")),
    "at-least": (("bound",), ("of", "against", "against_x", "over")),
    "order": ((), ("of", "variants", "more_is_better")),
    "zero": ((), ("of",)),
    "slope": (("trend",), ("of", "bound")),
    "spread": (("of", "against"), ("statistic", "expected", "over")),
}
"""The kinds of rules: the keys that each needs, and those that it may have."""

TOLERANCE = 0.25
"""How far from what the paper says, relatively, something may be and still be the same size."""
MUCH = 1.0 + TOLERANCE
"""One reading of words for all claims, decided before any was looked at: `much` more is beyond the same size, and
`slightly` more is up to that. Where it says `slightly` better, better has to be established, too: that is a reduction
or a gain with a bound."""

_WORDS: Mapping[str, Mapping[str, float]] = {
    "at-least": {"much": MUCH},
    "at-most": {"much": 1.0 / MUCH, "slightly": MUCH},
    "reduction": {"slightly": 1.0 - 1.0 / MUCH},
    "gain": {"slightly": MUCH - 1.0},
}
"""Bounds in words as numbers, for comparisons with an opponent."""

_RULE_KEYS = tuple(dict.fromkeys(key for needed, allowed in KINDS.values() for key in (*needed, *allowed)))
_COMPARING = ("reduction", "gain", "ratio")
_BOUNDED = ("at-most", "at-least")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a claim is measured."""

    kind: str
    of: tuple[str, ...]
    """Variants that the claim is about; none: all. For `order` (which calls them `variants`, too) best first."""
    against: tuple[str, ...] = ()
    """Variants that they are compared with, at the same point and seed."""
    against_x: str | None = None
    """Or the label of the point of x at which the same variant is compared with itself."""
    over: str = "mean"
    """Which of several points and opponents counts: the best for the claim, the worst, or the mean of all.

    A bound has to be kept everywhere unless it says otherwise: there, the worst counts.
    """
    expected: tuple[float, float] | None = None
    """Value in the paper: a range, of no width where the paper gives one number."""
    bound: float | None = None
    """Limit that the value must not pass; for a reduction or a gain, its largest size."""
    trend: str | None = None
    statistic: str = "iqr"
    """Statistic of `spread`: the interquartile range, or the standard deviation."""
    more_is_better: bool = False

    @property
    def named(self) -> frozenset[str]:
        """The variants that it names."""
        return frozenset((*self.of, *self.against))


@dataclass(frozen=True, slots=True)
class Where:
    """The points of a figure that a claim is about; by default all."""

    x: tuple[str, ...] = ()
    x_from: float | None = None
    x_to: float | None = None
    """Both ends belong to the range."""
    measure: tuple[str, ...] = ()
    """Labels of measures; a distribution has `mean`, `std`, `p5`, `p25`, `p50`, `p75`, `p95` and `p99`."""

    def takes(self, x: str, number: float | None) -> bool:
        """Whether a point belongs to it."""
        if self.x and x not in self.x:
            return False
        low = self.x_from is None or (number is not None and number >= self.x_from)
        return low and (self.x_to is None or (number is not None and number <= self.x_to))


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper. `rule` is None where it cannot be tested here, for the reason in `untestable`."""

    id: str
    text: str
    place: str
    figure: str | None = None
    panels: tuple[int, ...] = ()
    """From 0; none: all panels of the figure."""
    rule: Rule | None = None
    where: Where = Where()
    untestable: str | None = None
    note: str = ""


def widened(expected: tuple[float, float]) -> tuple[float, float]:
    """Return a range with what is still the same size on both sides."""
    low, high = expected
    return low - TOLERANCE * abs(low), high + TOLERANCE * abs(high)


def load_claims(paper: Paper) -> tuple[Claim, ...]:
    """Read the claims of a paper; none where it has no file of claims.

    Raises `SpecError` for an unknown key, figure, panel, variant, point or measure, with the nearest right name.
    """
    path = paper.folder / f"{paper.name}-claims.toml"
    if not path.exists():
        return ()
    return _read(path, paper)


def _read(path: Path, paper: Paper) -> tuple[Claim, ...]:
    top = read_toml(path)
    sections = top.listed("claim")
    top.end()
    claims = tuple(_claim(section, paper) for section in sections)
    ids = [claim.id for claim in claims]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise SpecError(f"{path.name}: two claims have the id {twice[0]!r}")
    return claims


def _claim(section: Section, paper: Paper) -> Claim:
    section.place += f" ({section.need('id', str)})"
    has_rule = "rule" in section
    rule = _rule(section.section("rule")) if has_rule else None
    claim = Claim(
        id=section.need("id", str),
        text=section.need("text", str),
        place=section.need("place", str),
        figure=section.maybe("figure", str),
        panels=_panels(section),
        rule=rule,
        where=_where(section.section("where")),
        untestable=section.maybe("untestable", str),
        note=section.take("note", str, ""),
    )
    section.end()
    if (claim.rule is None) == (claim.untestable is None):
        raise section.error("needs a rule, or untestable with the reason: one of them")
    if claim.rule is None:
        return claim
    if claim.figure is None:
        raise section.error("a rule needs the figure whose data it is about")
    if claim.figure not in paper.figures:
        raise section.error(f"{nearest('figure', claim.figure, paper.figures)}")
    _check(claim, claim.rule, paper.figures[claim.figure], paper, section)
    return claim


def _rule(section: Section) -> Rule:
    kind = section.choice("kind", tuple(KINDS), "")
    needed, allowed = KINDS[kind]
    for key in needed:
        if key not in section:
            raise section.error(f"a rule of kind {kind!r} needs {key}")
    for key in _RULE_KEYS:
        if key in section and key not in (*needed, *allowed):
            raise section.error(f"a rule of kind {kind!r} takes no {key} (it takes {', '.join((*needed, *allowed))})")
    rule = Rule(
        kind=kind,
        of=(*_texts(section, "of"), *_texts(section, "variants")),
        against=_texts(section, "against"),
        against_x=_label(section.any("against_x")),
        over=section.choice("over", _OVER, "worst" if kind in _BOUNDED else "mean"),
        expected=_range(section),
        bound=_bound(section, kind),
        trend=section.choice("trend", _TRENDS, _TRENDS[0]) if kind == "slope" else None,
        statistic=section.choice("statistic", _STATISTICS, _STATISTICS[0]),
        more_is_better=section.take("more_is_better", bool, False),
    )
    section.end()
    if rule.expected is not None and rule.bound is not None:
        raise section.error("expected and bound: one of them")
    if rule.against and rule.against_x is not None:
        raise section.error("against and against_x: one of them")
    if kind in _COMPARING and not rule.against and rule.against_x is None:
        raise section.error(f"a rule of kind {kind!r} needs against or against_x")
    if kind == "order" and len(rule.of) < 2:
        raise section.error("of: an order needs two or more variants")
    return rule


def _bound(section: Section, kind: str) -> float | None:
    """Take a bound: a number, or a word that stands for one."""
    value = section.any("bound")
    if not isinstance(value, str):
        return section.maybe("bound", float)
    words = _WORDS.get(kind, {})
    if value not in words:
        raise section.error(
            f"bound = {value!r}: expected a number, or {', '.join(words)}"
            if words
            else f"bound = {value!r}: expected a number"
        )
    if "against" not in section and "against_x" not in section:
        raise section.error(f"bound = {value!r}: words are for comparisons, and need against or against_x")
    return words[value]


def _where(section: Section) -> Where:
    x = section.any("x", [])
    where = Where(
        x=tuple(text for one in (x if isinstance(x, list) else [x]) if (text := _label(one)) is not None),
        x_from=section.maybe("x_from", float),
        x_to=section.maybe("x_to", float),
        measure=_texts(section, "measure"),
    )
    section.end()
    return where


def _texts(section: Section, key: str) -> tuple[str, ...]:
    """Take a text or a list of texts."""
    value = section.any(key, [])
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise section.error(f"{key} = {value!r}: expected a text or a list of texts")
    return tuple(values)


def _label(value: Any) -> str | None:
    from weft.papers.reading_papers import value_label

    return None if value is None else value_label(value)


def _range(section: Section) -> tuple[float, float] | None:
    value = section.any("expected")
    if value is None:
        return None
    ends = value if isinstance(value, list) else [value, value]
    numbers = [float(end) for end in ends if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(ends) != 2 or len(numbers) != 2 or numbers[0] > numbers[1]:
        raise section.error(f"expected = {value!r}: expected a number, or two as [low, high]")
    return numbers[0], numbers[1]


def _panels(section: Section) -> tuple[int, ...]:
    value = section.any("panel", [])
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in values):
        raise section.error(f"panel = {value!r}: expected the number of a panel, from 0, or a list of them")
    return tuple(values)


def _check(claim: Claim, rule: Rule, figure: FigureSpec, paper: Paper, section: Section) -> None:
    """Every name of the claim is one of its figure. What a special figure holds is known only when it is made."""
    if figure.reason is not None:
        raise section.error(f"figure {figure.name} cannot be made: the claim is untestable")
    if figure.special is not None:
        return
    for place in claim.panels:
        if not 0 <= place < len(figure.panels):
            raise section.error(f"panel = {place}: figure {figure.name} has {len(figure.panels)} panels, from 0")
    panels = [figure.panels[place] for place in claim.panels] or list(figure.panels)
    _known(section, "variant", (*rule.of, *rule.against), [name for one in panels for name in _variants(one, paper)])
    points = [point for one in panels for point in _points(one, paper)]
    labels = [label for label, _ in points]
    _known(section, "point of x", (*claim.where.x, *([rule.against_x] if rule.against_x is not None else [])), labels)
    if not any(claim.where.takes(label, number) for label, number in points):
        raise section.error(f"where: takes none of the points of the figure ({', '.join(dict.fromkeys(labels))})")
    _known(section, "measure", claim.where.measure, [name for one in panels for name in _measures(one)])


def _known(section: Section, kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    every = list(dict.fromkeys(known))
    for name in names:
        if name not in every:
            raise section.error(f"{nearest(kind, name, every)}")


def _variants(panel: PanelSpec, paper: Paper) -> Sequence[str]:
    return panel.variants or list(paper.experiments[panel.experiment].at("paper").variants)


def _points(panel: PanelSpec, paper: Paper) -> list[tuple[str, float | None]]:
    """Points of x at either scale; one without a name where nothing is varied."""
    found: dict[str, float | None] = {}
    for scale in SCALES:
        for value in paper.experiments[panel.experiment].at(scale).vary.get(panel.x or "", ()):
            if value.label in panel.where.get(panel.x or "", (value.label,)):
                found.setdefault(value.label, value.number)
    return list(found.items()) or [("", None)]


def _measures(panel: PanelSpec) -> list[str]:
    from weft.papers.measuring import DISTRIBUTION, measure_name

    if panel.plot not in ("cdf", "box"):
        return [measure_name(measure) for measure in panel.measures]
    return [f"{measure.label} {name}".strip() for measure in panel.measures for name in DISTRIBUTION]
