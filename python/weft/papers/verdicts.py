"""Verdicts on claims: one fixed reading for all of them, whatever comes out.

- *reproduced*: the direction is established, which is to say that the 95 % interval over seeds excludes "no effect"
  (a single seed has no interval; its value decides, and that is said), and the size is the paper's: it lies in the
  interval, or the mean is within a quarter of it. Where the paper gives no size, the direction is all.
- *same direction, other size*: the direction is established, the size is another.
- *reproduced under another interpretation*: none of the two by default, but reproduced in a scenario that the paper's
  text allows as well, which is named (see `weft.multiverse`).
- *undecided*: the interval includes "no effect" as well as what the paper says: more seeds may tell.
- *not reachable here*: neither, and no scheme could do it: if flows took the time that they take alone, it would not be
  the paper's size (see `weft.papers.ceilings`); nor would it, if another claim of the paper holds, by what a baseline
  took (see `weft.papers.exclusions`).
- *not reproduced*: all else.
- *not testable here*: with the reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from weft.drawing.view import DrawnUnit, unit_scale
from weft.papers.ceilings import falls_short, ideal_effect, without_oracle
from weft.papers.claims import TOLERANCE, Claim, Rule, widened
from weft.papers.effects import Effect, Words, claimed_sign, measure
from weft.papers.exclusions import baseline_bound
from weft.papers.measured import FigureData
from weft.quantity import number, plain
from weft.statistics import Estimate

__all__ = ["Judgement", "Verdict", "in_scenarios", "judge", "not_run", "told", "untestable"]

FLAT = TOLERANCE
"""A slope is flat if the whole interval of its change lies within this share of its mean, unless a rule has a bound."""

ROUNDING = 1e-9
"""Differences below this share are no differences: they come of the arithmetic."""

NO_EFFECT = "the interval includes no effect, and is more than a quarter from what the paper says"
NO_DIRECTION = "the interval includes no effect, so that the direction is not established"
NO_BOUND = "the interval includes the bound, so that it is not established to be kept"
NO_SIGN = "the interval includes zero, so that not even the sign is established"
WIDE = "the interval is too wide to establish that there is no difference"
UNDECIDED = frozenset({NO_DIRECTION, NO_BOUND, NO_SIGN, WIDE})
"""Why a claim is not reproduced although the data do not speak against it: more seeds may tell."""


class Verdict(StrEnum):
    """Verdict on a claim."""

    REPRODUCED = "reproduced"
    OTHER_INTERPRETATION = "reproduced under another interpretation"
    """Said in a scorecard that knows of other scenarios: `judge` sees one."""
    OTHER_SIZE = "same direction, other size"
    UNDECIDED = "undecided"
    NOT_REPRODUCED = "not reproduced"
    UNREACHABLE = "not reachable here"
    UNTESTABLE = "not testable here"
    NOT_RUN = "not run"


def in_scenarios(verdict: Verdict, *, elsewhere: bool) -> Verdict:
    """Say what becomes of the verdict on a claim that is reproduced elsewhere: in another scenario than the default."""
    return Verdict.OTHER_INTERPRETATION if elsewhere and verdict is not Verdict.REPRODUCED else verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim and what came out."""

    claim: Claim
    verdict: Verdict
    measured: Estimate | None
    unit: DrawnUnit
    """Unit of the measured value."""
    points: tuple[str, ...]
    """The comparisons that it rests on, in words."""
    sentence: str
    """Why the verdict is what it is."""

    @property
    def measured_text(self) -> str:
        """Measured value, with its interval and unit: `41 % ± 3`; empty where nothing was measured."""
        return "" if self.measured is None else told(self.measured, self.unit)


def judge(
    claim: Claim, data: FigureData, *, unit: DrawnUnit, words: Words | None = None, beside: Sequence[Claim] = ()
) -> Judgement:
    """Judge a claim by the data of its figure; `unit` is that of the figure's values.

    Those that are `beside` it are claims about the same figure, which may bound it.
    """
    if claim.rule is None:
        return untestable(claim)
    words = words or Words()
    data = without_oracle(data)
    effect = measure(claim, claim.rule, data, words)
    if effect is None:
        reason = f"the data of figure {claim.figure} have no value at its points"
        return untestable(claim, f"{reason} at {data.runs.scale} scale")
    verdict, why = _READINGS[claim.rule.kind](claim.rule, effect.value)
    own = _unit(claim.rule, unit)
    if why in UNDECIDED:
        verdict = Verdict.UNDECIDED
    if verdict is not Verdict.REPRODUCED and (
        bounds := [*_bounds(claim, claim.rule, data, words, effect, own, beside)]
    ):
        verdict = Verdict.UNREACHABLE
        why = "; ".join((why, *bounds))
    sentence = _sentence(claim.rule, effect, own, why)
    return Judgement(claim, verdict, effect.value, own, effect.places, sentence)


def _bounds(
    claim: Claim, rule: Rule, data: FigureData, words: Words, effect: Effect, unit: DrawnUnit, beside: Sequence[Claim]
) -> Iterator[str]:
    """Say what no scheme can do: each bound that is too low for a claim."""
    ideal = ideal_effect(claim, rule, data, words)
    if ideal is not None and falls_short(rule, ideal):
        yield f"if its flows took the time that they take alone, it would be {told(ideal.value, unit)}"
    bound = baseline_bound(claim, beside, data, words, effect)
    if bound is not None and falls_short(rule, bound.effect):
        share = "" if bound.times == 1.0 else f"{plain(bound.times)} times "
        yield (
            f"if it took {share}what {words.variants(bound.baseline)} takes, the least that {bound.other} leaves it, "
            f"it would be {told(bound.effect.value, unit)}"
        )


def untestable(claim: Claim, reason: str | None = None) -> Judgement:
    """Say why a claim is not tested."""
    return Judgement(claim, Verdict.UNTESTABLE, None, "ratio", (), _as_sentence(reason or claim.untestable or ""))


def not_run(claim: Claim) -> Judgement:
    """Say that the figure of a claim was not run."""
    if claim.rule is None:
        return untestable(claim)
    return Judgement(claim, Verdict.NOT_RUN, None, "ratio", (), f"Figure {claim.figure} was not run.")


def told(value: Estimate, unit: DrawnUnit) -> str:
    """An estimate with its unit: `41 % ± 3`, `1.03 ± 0.02`, `621 µs ± 30`."""
    name, divisor = unit_scale(unit, abs(value.mean))
    text = _figure(value.mean / divisor) + (f" {name}" if name else "")
    if value.half_width is None:
        return text
    half = value.half_width if value.half_width > ROUNDING * abs(value.mean) else 0.0
    return f"{text} ± {float(f'{half / divisor:.2g}'):,g}"


def _directed(rule: Rule, value: Estimate, none: float) -> tuple[Verdict, str]:
    """Read an effect that the claim says is on one side of `none`, or, if its range holds `none`, near it."""
    if rule.expected is not None and rule.expected[0] <= none <= rule.expected[1]:
        return _alike(rule.expected, value)
    if not _beyond(value, none, claimed_sign(rule)):
        return Verdict.NOT_REPRODUCED, _not_established(value, none, rule.expected)
    if rule.bound is not None and rule.kind in ("reduction", "gain"):
        if value.low <= rule.bound:
            return Verdict.REPRODUCED, "the direction is the paper's, and the size is within its bound"
        return Verdict.OTHER_SIZE, "the direction is the paper's, but the size is beyond its bound"
    if rule.expected is None:
        return Verdict.REPRODUCED, "the direction is the paper's, which gives no size"
    if _near(rule.expected, value):
        return Verdict.REPRODUCED, "direction and size are the paper's"
    return Verdict.OTHER_SIZE, "the direction is the paper's, the size is not"


def _alike(expected: tuple[float, float], value: Estimate) -> tuple[Verdict, str]:
    """Read an effect that should be none: that it is small has to be established, as a direction has."""
    low, high = widened(expected)
    if low <= value.low and value.high <= high:
        return Verdict.REPRODUCED, "the whole interval is within a quarter of what the paper says"
    if _overlaps(value, (low, high)):
        return Verdict.NOT_REPRODUCED, WIDE
    return Verdict.NOT_REPRODUCED, "it is more than a quarter from what the paper says"


def _bounded(rule: Rule, value: Estimate) -> tuple[Verdict, str]:
    """Read a value, or a ratio, that should be on one side of a bound.

    A bound of a ratio that is on the claimed side of 1 has a direction, too: "more than twice" says "more".
    """
    assert rule.bound is not None
    sign, compared = claimed_sign(rule), bool(rule.against) or rule.against_x is not None
    directed = compared and sign * (rule.bound - 1.0) > 0.0
    if _beyond(value, rule.bound, sign, touching=True):
        return Verdict.REPRODUCED, "it keeps the bound"
    if directed and _beyond(value, 1.0, sign):
        if value.low <= rule.bound <= value.high:
            return Verdict.REPRODUCED, "the direction is the paper's, and its bound lies in the interval"
        return Verdict.OTHER_SIZE, "the direction is the paper's, but it does not keep the bound"
    if value.low <= rule.bound <= value.high:
        return Verdict.NOT_REPRODUCED, NO_BOUND
    return Verdict.NOT_REPRODUCED, "it does not keep the bound"


def _plain_value(rule: Rule, value: Estimate) -> tuple[Verdict, str]:
    """Read a bare value, whose direction is its sign: within a factor of two it counts as the same, of another size.

    An interval that includes zero, where the paper's value is none, would include nearly anything: it says nothing.
    """
    assert rule.expected is not None
    low, high = rule.expected
    if (low > 0.0 or high < 0.0) and value.low <= 0.0 <= value.high and value.half_width:
        return Verdict.NOT_REPRODUCED, NO_SIGN
    if _near(rule.expected, value):
        return Verdict.REPRODUCED, "it is as the paper says"
    if low > 0.0 and low / 2.0 <= value.mean <= 2.0 * high:
        return Verdict.OTHER_SIZE, "it is within a factor of two of what the paper says"
    return Verdict.NOT_REPRODUCED, "it is not within a factor of two of what the paper says"


def _order(rule: Rule, value: Estimate) -> tuple[Verdict, str]:
    """Read the share of neighbours in order: a half is what chance gives, 1 is the claim."""
    if not _beyond(value, 0.5, 1):
        return Verdict.NOT_REPRODUCED, _not_established(value, 0.5, (1.0, 1.0))
    if _near((1.0, 1.0), value):
        return Verdict.REPRODUCED, "the order is the paper's, but for a quarter of the neighbours at most"
    return Verdict.OTHER_SIZE, "more neighbours are in order than not, but fewer than three quarters"


def _zero(rule: Rule, value: Estimate) -> tuple[Verdict, str]:
    if value.low == value.high == 0.0:
        return Verdict.REPRODUCED, "it is zero everywhere"
    return Verdict.NOT_REPRODUCED, "it is not zero everywhere"


def _slope(rule: Rule, value: Estimate) -> tuple[Verdict, str]:
    """Read a change along the axis; that it is none has to be established by the whole interval."""
    if rule.trend != "flat":
        return _directed(rule, value, 0.0)
    bound = FLAT if rule.bound is None else rule.bound
    if max(abs(value.low), abs(value.high)) <= bound:
        return Verdict.REPRODUCED, f"it changes by no more than {plain(100.0 * bound)} % along the axis"
    if _overlaps(value, (-bound, bound)):
        return Verdict.NOT_REPRODUCED, WIDE
    return Verdict.NOT_REPRODUCED, f"it changes by more than {plain(100.0 * bound)} % along the axis"


_READINGS: Mapping[str, Callable[[Rule, Estimate], tuple[Verdict, str]]] = {
    "reduction": lambda rule, value: _directed(rule, value, 0.0),
    "gain": lambda rule, value: _directed(rule, value, 0.0),
    "ratio": lambda rule, value: _directed(rule, value, 1.0),
    "spread": lambda rule, value: _directed(rule, value, 1.0),
    "value": _plain_value,
    "at-most": _bounded,
    "at-least": _bounded,
    "order": _order,
    "zero": _zero,
    "slope": _slope,
}


def _beyond(value: Estimate, limit: float, sign: int, *, touching: bool = False) -> bool:
    """Whether the whole interval lies on one side of a limit: above for a sign of 1, below for -1."""
    nearest = value.low if sign > 0 else value.high
    distance = sign * (nearest - limit) / max(abs(limit), 1.0)
    return distance >= -ROUNDING if touching else distance > ROUNDING


def _near(expected: tuple[float, float], value: Estimate) -> bool:
    """Whether the interval holds what is expected, or the mean is within a quarter of it."""
    low, high = expected
    if value.half_width is not None and _overlaps(value, expected):
        return True
    low, high = widened(expected)
    return low <= value.mean <= high


def _overlaps(value: Estimate, span: tuple[float, float]) -> bool:
    return value.low <= span[1] and value.high >= span[0]


def _not_established(value: Estimate, none: float, expected: tuple[float, float] | None) -> str:
    if value.low <= none <= value.high and value.half_width:
        return NO_DIRECTION if expected is None or _overlaps(value, widened(expected)) else NO_EFFECT
    if value.mean == none:
        return "there is no effect"
    return "the direction is the other one"


def _unit(rule: Rule, unit: DrawnUnit) -> DrawnUnit:
    """Unit of what a rule measures in values of a unit."""
    match rule.kind:
        case "reduction" | "gain" | "slope" | "order":
            return "share"
        case "ratio" | "spread":
            return "ratio"
        case "at-most" | "at-least":
            return "ratio" if rule.against or rule.against_x is not None else unit
    return unit


def _sentence(rule: Rule, effect: Effect, unit: DrawnUnit, why: str) -> str:
    what = _WHAT.get(rule.kind, "value")
    if rule.kind in ("at-most", "at-least"):
        what = "ratio" if unit == "ratio" and (rule.against or rule.against_x is not None) else "value"
    seeds = f"{effect.value.runs} seeds" if effect.value.runs > 1 else "one seed, which gives no interval"
    return f"{what[0].upper()}{what[1:]} {_over(rule, effect)}, {seeds}: {why}."


_WHAT: Mapping[str, str] = {
    "reduction": "reduction",
    "gain": "gain",
    "ratio": "ratio",
    "order": "share of neighbours in the claimed order",
    "zero": "largest magnitude",
    "slope": "change along the axis, relative to the mean,",
    "spread": "ratio of the spreads",
}


def _over(rule: Rule, effect: Effect) -> str:
    """Which comparisons were taken."""
    if effect.candidates == 1:
        return f"at {effect.places[0]}"
    if rule.kind in ("order", "zero", "slope") or rule.over == "mean":
        return f"over {effect.candidates} places"
    shown = " and ".join(effect.places[:2]) + (" and others" if len(effect.places) > 2 else "")
    return f"at the {rule.over} of {effect.candidates} places ({shown})"


def _figure(value: float) -> str:
    return number(value) if value == int(value) and abs(value) < 1e6 else plain(value)


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text[:1].upper()}{text[1:]}."
