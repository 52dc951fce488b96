"""Statistics over several seeds: means, confidence intervals and paired differences.

The statistics of one run come from the core (`summary.json`); this module only combines runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

__all__ = ["Estimate", "Sign", "estimate", "interval_mean", "paired_difference", "student_t_cdf", "student_t_quantile"]

CONFIDENCE = 0.95

Sign: TypeAlias = Literal["", ">", "≥", "≤"]
"""Sign before a bound: a value lies above or below it.

A value has none.
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs and the half-width of its confidence interval.

    `half_width` is None when there are fewer than two runs: one run says nothing about its own spread. Where flows did
    not finish, the mean may be a bound: then the interval reaches to infinity on the side of its sign.
    """

    mean: float
    half_width: float | None
    runs: int
    sign: Sign = ""

    @property
    def value(self) -> float | None:
        """The mean; None if it is a bound."""
        return None if self.sign else self.mean

    @property
    def spread(self) -> float | None:
        """The half-width around a value; None around a bound."""
        return None if self.sign else self.half_width

    @property
    def low(self) -> float:
        """Lower end of the interval (the mean itself when there is no interval)."""
        return -math.inf if self.sign == "≤" else self.mean - (self.half_width or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval (the mean itself when there is no interval)."""
        return math.inf if self.sign in (">", "≥") else self.mean + (self.half_width or 0.0)

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and zero lies outside it."""
        return self.half_width is not None and (self.low > 0.0 or self.high < 0.0)


def student_t_cdf(t: float, degrees: int) -> float:
    """Probability that Student's t with `degrees` (>= 1) degrees of freedom is at most `t`.

    Exact for whole degrees: Abramowitz and Stegun, equations 26.7.3 and 26.7.4.
    """
    if degrees < 1:
        raise ValueError(f"degrees of freedom must be at least 1, not {degrees}")
    theta = math.atan(t / math.sqrt(degrees))
    cos_squared = math.cos(theta) ** 2
    odd = degrees % 2 == 1
    # The sum 1 + (2/3) cos^2 + (2*4)/(3*5) cos^4 + ... (odd), 1 + (1/2) cos^2 + ... (even).
    term, total = 1.0, 0.0
    for step in range((degrees - 1) // 2 if odd else degrees // 2):
        total += term
        index = 2 * step + (2 if odd else 1)
        term *= cos_squared * index / (index + 1)
    if odd:
        within = (theta + math.sin(theta) * math.cos(theta) * total) * 2.0 / math.pi
    else:
        within = math.sin(theta) * total
    return 0.5 * (1.0 + within)


@cache
def student_t_quantile(probability: float, degrees: int) -> float:
    """Value below which Student's t falls with the given probability, which lies in (0, 1)."""
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability between 0 and 1 is needed, not {probability}")
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, degrees)
    low, high = 0.0, 1.0
    while student_t_cdf(high, degrees) < probability:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if student_t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean of `values` with the 95 % confidence half-width of Student's t, `s t / sqrt(n)`."""
    count = len(values)
    if count == 0:
        raise ValueError("no values")
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, 1)
    if min(values) == max(values):
        return Estimate(values[0], 0.0, count)  # without the rounding of the sums below
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = student_t_quantile(0.5 + CONFIDENCE / 2.0, count - 1)
    return Estimate(mean, quantile * math.sqrt(variance / count), count)


def paired_difference(values: Sequence[float], reference: Sequence[float]) -> Estimate:
    """Mean of `values - reference`, pair by pair (one pair per seed), with its interval."""
    return estimate([value - other for value, other in zip(values, reference, strict=True)])


def interval_mean(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """Mean of values that lie between two bounds each, which may be infinite; None if nothing is known of it.

    The upper bounds have a mean that is at least that of the values, so that an interval of their mean that lies below
    zero says that the values' mean does; likewise for the lower ones.
    """
    lows, highs = [low for low, _ in pairs], [high for _, high in pairs]
    if lows == highs:
        return estimate(lows)
    for bounds, sign in ((highs, "≤"), (lows, "≥")):
        if all(map(math.isfinite, bounds)):
            found = estimate(bounds)
            return Estimate(found.mean, found.half_width, found.runs, "≤" if sign == "≤" else "≥")
    return None
