"""What no scheme can do: the bound that an idle fabric sets to a claim.

A flow takes no less time than it would alone, and delivers no faster: its ideal completion time is a lower bound of its
completion time under every scheme, of the same transport or another (see the page on the model). So a mean, or a
quantile, of completion times is no less than that of the ideal times of the same flows, and a claim that asks for less
cannot come out, whatever the scheme.

The bound is taken where it is one: where the claim wants its contender's times to be small, or its rates to be large,
and compares them with other contenders, or with a number.
"""

from dataclasses import replace

import polars as pl

from weft.papers.claims import Claim, Rule, widened
from weft.papers.effects import Effect, Words, claimed_sign, measure
from weft.papers.measured import FigureData

__all__ = ["falls_short", "ideal_effect"]

_ROUNDING = 1e-9


def ideal_effect(claim: Claim, rule: Rule, data: FigureData, words: Words) -> Effect | None:
    """Measure what a claim is about as if its contenders' flows took their ideal times; None where that is no bound."""
    if data.ideal.is_empty() or rule.against_x is not None or rule.kind not in _BOUNDED or not _wants_less(rule, data):
        return None
    mine = pl.col("contender").is_in(rule.of) if rule.of else pl.lit(value=True)
    rows = pl.concat([data.ideal.filter(mine), data.rows.filter(~mine)])
    return measure(claim, rule, replace(data, rows=rows), words)


def falls_short(rule: Rule, ideal: Effect) -> bool:
    """Whether even that is not what the paper says: on the wrong side of it, by more than a quarter of it."""
    sign, value = claimed_sign(rule), ideal.value
    best = value.high if sign > 0 else value.low
    wanted = _least_wanted(rule, sign)
    return sign * (best - wanted) < -_ROUNDING * max(abs(wanted), 1.0)


def _least_wanted(rule: Rule, sign: int) -> float:
    """Return the least that would be the paper's: its bound, its range with a quarter more, or any effect at all."""
    if rule.bound is not None:
        return rule.bound
    if rule.expected is None:
        return 1.0 if rule.kind == "ratio" else 0.0
    low, high = widened(rule.expected)
    return low if sign > 0 else high


_BOUNDED = ("reduction", "gain", "ratio", "value", "at-most", "at-least")


def _wants_less(rule: Rule, data: FigureData) -> bool:
    """Whether the claim wants its contender to come near the ideal, which is less of a time and more of a rate."""
    sign = claimed_sign(rule)
    ideal = data.ideal.join(
        data.rows, on=["panel", "contender", "x", "seed", "measure"], how="inner", suffix="_measured"
    ).drop_nulls(["value", "value_measured"])
    if ideal.is_empty():
        return False
    less = bool((ideal.get_column("value") <= ideal.get_column("value_measured") * (1.0 + _ROUNDING)).all())
    more = bool((ideal.get_column("value") >= ideal.get_column("value_measured") * (1.0 - _ROUNDING)).all())
    more &= not less  # where nothing waits, all values are the ideal ones: they are taken for times
    match rule.kind:
        case "reduction":
            return less and sign > 0
        case "gain":
            return more and sign > 0
    return (less and sign < 0) or (more and sign > 0)
