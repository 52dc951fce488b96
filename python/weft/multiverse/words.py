"""Result of a multiverse analysis, in words."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weft.multiverse.result import ClaimScenarios, Decider, Excluded, Multiverse, Share
from weft.quantity import plain

if TYPE_CHECKING:
    from weft.multiverse.exploring import Question

__all__ = ["commands", "decided_by", "decider_words", "exclusion_words", "share_words", "why_excluded"]

_DECIDERS = 4


def share_words(share: Share) -> str:
    """`41 % of 64 scenarios (33 to 52 %); 10 % undecided`."""
    text = f"{_percent(share.share)} % of {share.scenarios:,} scenarios"
    if not share.exact:
        text += f" ({_percent(share.low)} to {_percent(share.high)} %)"
    return text + (f"; {_percent(share.open / share.scenarios)} % undecided" if share.open else "")


def _percent(share: float) -> str:
    return plain(round(100.0 * share, 1))


def decider_words(one: Decider) -> str:
    """`+45 % lbt.long-choice=packet, by itself`."""
    effect = "" if one.effect is None else f"{100.0 * one.effect:+.0f} % "
    return f"{effect}{one.choice}={one.alternative}{', by itself' if one.alone else ''}"


def decided_by(claim: ClaimScenarios, most: int = _DECIDERS) -> list[str]:
    """Say what decides a claim, the strongest first."""
    found = [decider_words(one) for one in claim.deciders[:most]]
    more = len(claim.deciders) - most
    return [*found, f"and {more} more"] if more > 0 else found


def exclusion_words(one: Excluded, scenarios: int, label: Callable[[str], str]) -> str:
    """`a and b in 12 of 64 scenarios: what CONGA takes leaves 22 % at most to the first`."""
    return f"{one.claim} and {one.other} {why_excluded(one, scenarios, label)}"


def why_excluded(one: Excluded, scenarios: int, label: Callable[[str], str]) -> str:
    """`in 12 of 64 scenarios: what CONGA takes leaves 22 % at most to the first`."""
    most = "nothing" if one.most <= 0.0 else f"{_percent(one.most)} % at most"
    return (
        f"in {one.scenarios:,} of {scenarios:,} scenarios: what {label(one.baseline)} takes leaves {most} to the first"
    )


def commands(question: "Question", result: Multiverse) -> Sequence[str]:
    """Return the commands that make figures in the nearest scenarios, for claims that do not hold by default."""
    found: dict[str, list[str]] = {}
    for one in result.claims:
        if one.nearest is not None and one.nearest.changed:
            scale = "" if question.scale == "quick" else f" --scale {question.scale}"
            command = f"weft reproduce {question.paper.name} {one.claim.figure} --scenario {one.nearest}{scale}"
            found.setdefault(command, []).append(one.claim.id)
    return [f"{command}  # {', '.join(claims)}" for command, claims in found.items()]
