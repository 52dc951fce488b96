"""Ceilings: the bound that an idle fabric sets to a claim, whatever the scheme.

A flow takes no less time than it would alone, and delivers no faster: its ideal completion time is a lower bound of its
completion time under every scheme, of the same transport or another (see the page on the model). So a mean, or a
quantile, of completion times is no less than that of the ideal times of the same flows, and a claim that asks for less
cannot come out, whatever the scheme.

The bound is taken where it is one: where the claim wants its variant's times to be small, or its rates to be large,
and compares them with other variants, or with a number. The perfect per-packet choice of `--oracle`, drawn beside the
variants is a reference and no bound: schemes are ahead of it in some figures, so no verdict depends on it.
"""

from dataclasses import replace

import polars as pl

from weft.papers.claims import Claim, Rule, widened
from weft.papers.effects import Effect, Words, claimed_sign, measure
from weft.papers.measured import FigureData

__all__ = ["ORACLE", "falls_short", "ideal_effect", "wants_less", "without_oracle"]

ORACLE = "oracle"
"""The variant that is a reference: a perfect choice for each packet."""

_ROUNDING = 1e-9


def ideal_effect(claim: Claim, rule: Rule, data: FigureData, words: Words) -> Effect | None:
    """Measure what a claim is about as if its variants' flows took their ideal times; None where that is no bound."""
    if data.ideal.is_empty() or rule.against_x is not None or rule.kind not in _BOUNDED or not wants_less(rule, data):
        return None
    mine = pl.col("variant").is_in(rule.of) if rule.of else pl.lit(value=True)
    rows = pl.concat([data.ideal.filter(mine), data.rows.filter(~mine)])
    return measure(claim, rule, replace(data, rows=rows), words)


def without_oracle(data: FigureData) -> FigureData:
    """Return what claims are about."""
    others = pl.col("variant") != ORACLE
    return replace(data, rows=data.rows.filter(others), ideal=data.ideal.filter(others))


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
    """Whether the claim wants its variant to come near the ideal, which is less of a time and more of a rate."""
    sign, (times, rates) = claimed_sign(rule), _times_or_rates(data)
    match rule.kind:
        case "reduction":
            return times and sign > 0
        case "gain":
            return rates and sign > 0
    return (times and sign < 0) or (rates and sign > 0)


def _times_or_rates(data: FigureData) -> tuple[bool, bool]:
    """Tell whether values are times, which the ideal bounds from below, or rates, which it bounds from above."""
    ideal = (
        data.ideal.join(data.rows, on=["panel", "variant", "x", "seed", "measure"], how="inner", suffix="_measured")
        .fill_nan(None)
        .drop_nulls(["value", "value_measured"])
    )
    if ideal.is_empty():
        return False, False
    less = bool((ideal.get_column("value") <= ideal.get_column("value_measured") * (1.0 + _ROUNDING)).all())
    more = bool((ideal.get_column("value") >= ideal.get_column("value_measured") * (1.0 - _ROUNDING)).all())
    return less, more and not less  # where nothing waits, all values are the ideal ones: they are taken for times
