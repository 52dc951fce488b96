"""What no scheme can do: the bounds that an idle fabric and a perfect balancer set to a claim.

A flow takes no less time than it would alone, and delivers no faster: its ideal completion time is a lower bound of its
completion time under every scheme, of the same transport or another (see the page on the model). So a mean, or a
quantile, of completion times is no less than that of the ideal times of the same flows, and a claim that asks for less
cannot come out, whatever the scheme.

The bound is taken where it is one: where the claim wants its contender's times to be small, or its rates to be large,
and compares them with other contenders, or with a number.

The second bound is a run: that of `oracle`, where it is among the contenders (`weft reproduce --oracle`). It is the
best choice of paths for each packet as it comes, and a strong reference for completion times, not a proven bound of
them (its page says why). So it counts only where neither the claim's contender nor one that it is compared with is
better than the oracle itself: taken together, and at each place of the claim. Where it is beaten at one place, nothing
is known of what a scheme could do there. A claim about the worst of its places is then bounded by those that are left;
one about the best of them, or about their mean, is not bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from weft.papers.claims import Claim, Rule, widened
from weft.papers.effects import Effect, Point, Words, claimed_sign, measure, values_of
from weft.papers.measured import FigureData
from weft.statistics import estimate

__all__ = ["ORACLE", "falls_short", "ideal_effect", "oracle_effect", "wants_less", "without_oracle"]

ORACLE = "oracle"
"""The contender that is a perfect balancer."""

_ROUNDING = 1e-9


def ideal_effect(claim: Claim, rule: Rule, data: FigureData, words: Words) -> Effect | None:
    """Measure what a claim is about as if its contenders' flows took their ideal times; None where that is no bound."""
    if data.ideal.is_empty() or rule.against_x is not None or rule.kind not in _BOUNDED or not wants_less(rule, data):
        return None
    mine = pl.col("contender").is_in(rule.of) if rule.of else pl.lit(value=True)
    rows = pl.concat([data.ideal.filter(mine), data.rows.filter(~mine)])
    return measure(claim, rule, replace(data, rows=rows), words)


def without_oracle(data: FigureData) -> FigureData:
    """Return what claims are about."""
    others = pl.col("contender") != ORACLE
    return replace(data, rows=data.rows.filter(others), ideal=data.ideal.filter(others))


def oracle_effect(claim: Claim, rule: Rule, data: FigureData, words: Words, measured: Effect) -> Effect | None:
    """Measure what a claim is about as if its contenders were the oracle; None where that is no bound."""
    if not rule.of or rule.against_x is not None or rule.kind not in _BOUNDED:
        return None
    if ORACLE not in data.rows.get_column("contender") or not wants_less(rule, without_oracle(data)):
        return None
    lost = _places_lost(claim, rule, data)
    if lost and rule.over != "worst":
        return None
    found = measure(claim, rule, _with_stand_ins(rule, data), words)
    if found is None or claimed_sign(rule) * (measured.value.mean - found.value.mean) > 0.0 or _is_beaten(rule, found):
        return None
    return measure(claim, rule, _with_stand_ins(rule, _without_places(data, lost)), words) if lost else found


def _with_stand_ins(rule: Rule, data: FigureData) -> FigureData:
    """Return data in which the oracle takes the place of the contenders of a claim."""
    own = data.rows.filter(pl.col("contender") == ORACLE)
    rest = without_oracle(data)
    stand_ins = [own.with_columns(contender=pl.lit(name)) for name in rule.of]
    return replace(rest, rows=pl.concat([*stand_ins, rest.rows.filter(~pl.col("contender").is_in(rule.of))]))


def _places_lost(claim: Claim, rule: Rule, data: FigureData) -> list[Point]:
    """List the places of a claim at which the oracle was not run, or is beaten by one whom the claim names.

    That it is beaten has to be established, as all else: the 95 % interval of the ratio of both lies on that side.
    """
    more = _times_or_rates(without_oracle(data))[1]
    named = (*rule.of, *rule.against)
    return [
        place
        for place, contenders in values_of(claim, data).items()
        if not contenders.get(ORACLE)
        or any(_beats(contenders.get(name, {}), contenders[ORACLE], more) for name in named)
    ]


def _beats(one: Mapping[int, float], oracle: Mapping[int, float], more: bool) -> bool:
    """Whether values by seed are better than those of the oracle: larger if more is better, otherwise smaller."""
    ratios = [one[seed] / oracle[seed] for seed in sorted(one) if oracle.get(seed)]
    if not ratios:
        return False
    found = estimate(ratios)
    return found.low > 1.0 + _ROUNDING if more else found.high < 1.0 - _ROUNDING


def _without_places(data: FigureData, places: Sequence[Point]) -> FigureData:
    taken = pl.DataFrame(
        [(place.panel, place.x, place.measure) for place in places], schema=["panel", "x", "measure"], orient="row"
    ).cast({name: data.rows.schema[name] for name in ("panel", "x", "measure")})
    return replace(data, rows=data.rows.join(taken, on=["panel", "x", "measure"], how="anti"))


def _is_beaten(rule: Rule, oracle: Effect) -> bool:
    """Whether one that the oracle is compared with is better than it."""
    no_effect = 0.0 if rule.kind in ("reduction", "gain") else 1.0
    return bool(rule.against) and claimed_sign(rule) * (oracle.value.mean - no_effect) < 0.0


def falls_short(rule: Rule, ideal: Effect) -> bool:
    """Whether even that is not what the paper says: on the wrong side of it, by more than a quarter of it."""
    sign, value = claimed_sign(rule), ideal.value
    best = value.high if sign > 0 else value.low
    wanted = _least_wanted(rule, sign)
    return sign * (best - wanted) < -_ROUNDING * max(abs(wanted), 1.0)


def _least_wanted(rule: Rule, sign: int) -> float:
    """Return the least that would be the paper's: its bound, its range with a quarter more, or any effect at all."""
    if rule.bound is not None and rule.kind not in ("reduction", "gain"):
        return rule.bound
    if rule.expected is None:
        return 1.0 if rule.kind == "ratio" else 0.0
    low, high = widened(rule.expected)
    return low if sign > 0 else high


_BOUNDED = ("reduction", "gain", "ratio", "value", "at-most", "at-least")


def wants_less(rule: Rule, data: FigureData) -> bool:
    """Whether the claim wants its contender to come near the ideal, which is less of a time and more of a rate."""
    sign, (times, rates) = claimed_sign(rule), _times_or_rates(data)
    match rule.kind:
        case "reduction":
            return times and sign > 0
        case "gain":
            return rates and sign > 0
    return (times and sign < 0) or (rates and sign > 0)


def _times_or_rates(data: FigureData) -> tuple[bool, bool]:
    """Tell whether values are times, which the ideal bounds from below, or rates, which it bounds from above."""
    ideal = data.ideal.join(
        data.rows, on=["panel", "contender", "x", "seed", "measure"], how="inner", suffix="_measured"
    ).drop_nulls(["value", "value_measured"])
    if ideal.is_empty():
        return False, False
    less = bool((ideal.get_column("value") <= ideal.get_column("value_measured") * (1.0 + _ROUNDING)).all())
    more = bool((ideal.get_column("value") >= ideal.get_column("value_measured") * (1.0 - _ROUNDING)).all())
    return less, more and not less  # where nothing waits, all values are the ideal ones: they are taken for times
