"""Effects that a rule measures in a figure's data: first within each seed, with equal flows, then over seeds."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import fsum, isnan
from typing import TypeAlias

from weft.papers.claims import Claim, Rule
from weft.papers.measured import FigureData
from weft.statistics import Estimate, estimate

__all__ = ["Effect", "Point", "Values", "Words", "claimed_sign", "measure", "values_of"]


@dataclass(frozen=True, slots=True)
class Words:
    """Names of the parts of a figure, for people."""

    variants: Callable[[str], str] = lambda key: key
    """A variant in words."""
    x_names: Sequence[str] = ()
    """Quantity on the x axis of each panel; x itself where a panel has no name for it."""

    def point(self, point: "Point", who: str) -> str:
        """`panel a, load 0.8: MEET against CONGA`."""
        parts = [f"panel {chr(ord('a') + point.panel)}"]
        if point.x:
            named = self.x_names[point.panel] if point.panel < len(self.x_names) else ""
            parts.append(f"{named or 'x ='} {point.x}")
        if point.measure and point.several:
            parts.append(point.measure)
        return ", ".join(parts) + (f": {who}" if who else "")


@dataclass(frozen=True, slots=True)
class Point:
    """A place of a figure: a panel, a point of its x, one of its measures."""

    panel: int
    x: str
    number: float | None
    measure: str
    several: bool
    """Whether the claim is about several measures of the panel."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One comparison: of one variant at one point, by seed."""

    name: str
    by_seed: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Effect:
    """Measured effect for a claim."""

    value: Estimate
    places: tuple[str, ...]
    """The comparisons that count, in words: those that were chosen where the best or the worst was asked for."""
    candidates: int
    """How many comparisons there were."""


_COLUMNS = ("panel", "variant", "x", "x_number", "seed", "measure", "value")

Values: TypeAlias = Mapping[Point, Mapping[str, Mapping[int, float]]]
"""Values by point, variant and seed; those that are missing are not there."""


def measure(claim: Claim, rule: Rule, data: FigureData, words: Words) -> Effect | None:
    """Measure what a claim is about; None if the data have no value at its points.

    What is measured, for each kind:

    - reduction: 1 - of/against; gain: of/against - 1; ratio: of/against;
    - value: the value itself; at-most, at-least: of/against, or the value itself where there is no opponent;
    - order: the share of neighbours in the list that are in the order claimed;
    - zero: the largest magnitude; slope: the change along x of the straight line of least squares, over the mean;
    - spread: the spread of `of` over that of `against`.
    """
    values = values_of(claim, data)
    if not rule.of:
        rule = replace(rule, of=tuple(data.rows.get_column("variant").unique(maintain_order=True)))
    match rule.kind:
        case "order":
            return _all_points(_orders(rule, values, words), "mean")
        case "zero":
            return _all_points(_singles(rule, values, words, magnitude=True), "largest")
        case "slope":
            return _all_points(_slopes(rule, values, words), "mean")
        case "spread":
            return _chosen(list(_pairs(rule, _spreads(rule, values), words)), rule, sign=-1)
    if rule.against or rule.against_x is not None:
        every = values_of(claim, data, everywhere=True) if rule.against_x is not None else values
        return _chosen(list(_pairs(rule, values, words, every)), rule, sign=claimed_sign(rule))
    return _chosen(list(_singles(rule, values, words)), rule, sign=claimed_sign(rule))


def claimed_sign(rule: Rule) -> int:
    """1 if what is measured should be large for the claim to hold, -1 if it should be small."""
    middle = 0.0 if rule.expected is None else (rule.expected[0] + rule.expected[1]) / 2.0
    match rule.kind:
        case "at-most" | "spread":
            return -1
        case "ratio":
            return -1 if middle < 1.0 else 1
        case "value":
            return 1 if rule.more_is_better else -1
        case "slope":
            return -1 if rule.trend == "falls" else 1
    return -1 if middle < 0.0 else 1


def values_of(claim: Claim, data: FigureData, *, everywhere: bool = False) -> Values:
    """Collect the values at the points of a claim, or, of its panels and measures, at all points.

    Where unfinished flows leave a value open with one seed, a variant has none: the other seeds are no sample.
    """
    found: dict[Point, dict[str, dict[int, float]]] = {}
    measures = _measures(claim, data)
    many = Counter(panel for panel, _ in measures)
    for panel, variant, x, number, seed, label, value in data.rows.select(*_COLUMNS).rows():
        if value is None or (panel, label) not in measures:
            continue
        if everywhere or claim.where.takes(x, number):
            found.setdefault(Point(panel, x, number, label, many[panel] > 1), {}).setdefault(variant, {})[seed] = value
    for variants in found.values():
        for name in [name for name, own in variants.items() if any(map(isnan, own.values()))]:
            del variants[name]
    return found


def _measures(claim: Claim, data: FigureData) -> set[tuple[int, str]]:
    """Panels and measures that a claim is about.

    Of the numbers of a distribution, it is the mean alone where the claim names none; a spread is made of all.
    """
    from weft.papers.measuring import DISTRIBUTION

    every = data.rows.select("panel", "measure").unique().rows()
    if claim.panels:
        every = [(panel, label) for panel, label in every if panel in claim.panels]
    if claim.where.measure:
        return {(panel, label) for panel, label in every if label in claim.where.measure}
    last = {(panel, label): label.rpartition(" ")[2] for panel, label in every}
    distributions = {
        panel for panel, _ in every if {own for (other, _), own in last.items() if other == panel} == set(DISTRIBUTION)
    }
    spread = claim.rule is not None and claim.rule.kind == "spread"
    return {place for place, own in last.items() if spread or place[0] not in distributions or own == "mean"}


def _pairs(rule: Rule, values: Values, words: Words, everywhere: Values | None = None) -> Iterator[_Candidate]:
    """Compare each variant with each opponent at each point, by seed."""
    for point, variants in values.items():
        for of in rule.of:
            for said, other in _opponents(rule, point, of, variants, everywhere or values, words):
                mine = variants.get(of, {})
                by_seed = {
                    seed: _compared(rule, mine[seed] / other[seed])
                    for seed in mine
                    if seed in other and other[seed] != 0.0
                }
                if by_seed:
                    yield _Candidate(words.point(point, f"{words.variants(of)} against {said}"), by_seed)


def _compared(rule: Rule, ratio: float) -> float:
    return {"reduction": 1.0 - ratio, "gain": ratio - 1.0}.get(rule.kind, ratio)


def _opponents(
    rule: Rule,
    point: Point,
    of: str,
    variants: Mapping[str, Mapping[int, float]],
    everywhere: Values,
    words: Words,
) -> Iterator[tuple[str, Mapping[int, float]]]:
    if rule.against_x is None:
        for against in rule.against:
            yield words.variants(against), variants.get(against, {})
        return
    for other, others in everywhere.items():
        if (other.panel, other.measure, other.x) == (point.panel, point.measure, rule.against_x) and other != point:
            yield f"x = {other.x}", others.get(of, {})


def _singles(rule: Rule, values: Values, words: Words, *, magnitude: bool = False) -> Iterator[_Candidate]:
    for point, variants in values.items():
        for of in rule.of:
            if by_seed := variants.get(of):
                own = {seed: abs(value) for seed, value in by_seed.items()} if magnitude else by_seed
                yield _Candidate(words.point(point, words.variants(of)), own)


def _orders(rule: Rule, values: Values, words: Words) -> Iterator[_Candidate]:
    """At each point, the share of neighbours of which the first is strictly the better."""
    for point, variants in values.items():
        own = [variants.get(of, {}) for of in rule.of]
        seeds = [seed for seed in own[0] if all(seed in one for one in own)]
        sign = 1.0 if rule.more_is_better else -1.0
        by_seed = {
            seed: fsum(sign * first[seed] > sign * second[seed] for first, second in pairwise(own)) / (len(own) - 1)
            for seed in seeds
        }
        if by_seed:
            yield _Candidate(words.point(point, ""), by_seed)


def _slopes(rule: Rule, values: Values, words: Words) -> Iterator[_Candidate]:
    """For each variant, panel and measure: what a straight line gains from the first x to the last, over the mean."""
    lines: dict[tuple[Point, str], dict[int, list[tuple[float, float]]]] = {}
    for point, variants in values.items():
        for of in rule.of:
            for seed, value in variants.get(of, {}).items():
                if point.number is not None:
                    own = lines.setdefault((replace(point, x="", number=None), of), {})
                    own.setdefault(seed, []).append((point.number, value))
    for (whole, of), seeds in lines.items():
        by_seed = {seed: change for seed, line in seeds.items() if (change := _relative_change(line)) is not None}
        if by_seed:
            yield _Candidate(words.point(whole, words.variants(of)), by_seed)


def _relative_change(line: Sequence[tuple[float, float]]) -> float | None:
    xs, ys = [x for x, _ in line], [y for _, y in line]
    mean_x, mean_y = fsum(xs) / len(line), fsum(ys) / len(line)
    square = fsum((x - mean_x) ** 2 for x in xs)
    if square == 0.0 or mean_y == 0.0:
        return None
    slope = fsum((x - mean_x) * (y - mean_y) for x, y in line) / square
    return slope * (max(xs) - min(xs)) / abs(mean_y)


def _spreads(rule: Rule, values: Values) -> Values:
    """Spread of each distribution; of curves over x, which are no distributions, there is none."""
    parts: dict[Point, dict[str, Mapping[str, Mapping[int, float]]]] = {}
    for point, variants in values.items():
        prefix, _, last = point.measure.rpartition(" ")
        parts.setdefault(replace(point, measure=prefix), {})[last] = variants
    found: dict[Point, dict[str, dict[int, float]]] = {}
    for point, own in parts.items():
        if rule.statistic == "std":
            found[point] = {variant: dict(by_seed) for variant, by_seed in own.get("std", {}).items()}
            continue
        low, high = own.get("p25", {}), own.get("p75", {})
        found[point] = {
            variant: {seed: high[variant][seed] - low[variant][seed] for seed in low[variant]}
            for variant in low
            if low[variant].keys() == high.get(variant, {}).keys()
        }
    return found


def _all_points(candidates: Iterator[_Candidate], how: str) -> Effect | None:
    """Put all comparisons together: their mean in each seed, or their largest."""
    every = list(candidates)
    if not every:
        return None
    seeds = sorted({seed for one in every for seed in one.by_seed})
    own = [[one.by_seed[seed] for one in every if seed in one.by_seed] for seed in seeds]
    combined = [max(values) if how == "largest" else fsum(values) / len(values) for values in own]
    return Effect(estimate(combined), tuple(one.name for one in every), len(every))


def _chosen(candidates: Sequence[_Candidate], rule: Rule, *, sign: int) -> Effect | None:
    """Take the mean of all comparisons, or the best or the worst of them for the claim.

    Which is best is chosen for each seed by the other seeds, so that it is not chosen for its luck: if all
    comparisons are alike, the best of many is then no better than any. A single seed has to choose for itself.
    """
    if rule.over == "mean" or not candidates:
        return _all_points(iter(candidates), "mean")
    wanted = float(sign if rule.over == "best" else -sign)
    seeds = sorted({seed for one in candidates for seed in one.by_seed})
    values: list[float] = []
    places: list[str] = []
    for seed in seeds:
        rated = [
            (wanted * fsum(others) / len(others), one)
            for one in candidates
            if seed in one.by_seed
            and (others := [value for other, value in one.by_seed.items() if other != seed or len(seeds) == 1])
        ]
        if rated:
            chosen = max(rated, key=lambda pair: pair[0])[1]
            values.append(chosen.by_seed[seed])
            places.append(chosen.name)
    return Effect(estimate(values), tuple(dict.fromkeys(places)), len(candidates)) if values else None
