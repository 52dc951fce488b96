"""Why flows are done sooner under one variant than under another: the parts of the mean time that differ.

The parts of a completion time add up to it, so their differences add up to the difference of the means, and the share
of a part is its difference over that of the means. Both means are over the same flows: those that finished under both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, TypeAlias

from weft.flows import counted
from weft.quantity import number, plural, time_us
from weft.ranking import listed
from weft.summary import FCT_PARTS, PART_WORDS, Summary

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PART_WORDS", "FlowsOf", "PartTimes", "Reason", "flow_reason"]

FlowsOf: TypeAlias = "Callable[[Summary], pl.DataFrame]"
"""The table of flows of a run."""
Parts: TypeAlias = Mapping[str, float]
"""Mean parts of a time in microseconds, by key."""

_MOST_OF_IT = 0.5
"""A part with this share of the difference explains it."""
_WORTH_A_WORD = 0.1
"""A part with this share of the difference is named, and so is one that takes as much back."""
_CANCELS = 2.0
"""Beyond this share parts cancel: the difference is then small beside them, and shares of it say little."""
_CLOSES = 0.005
"""Named shares that leave less than this open close."""


@dataclass(frozen=True, slots=True)
class PartTimes:
    """One part of the mean time of both variants."""

    key: str
    words: str
    winner_us: float
    other_us: float
    share: float | None
    """Share of this part in the difference of the means; below zero if the winner lost time by it.

    None without a difference.
    """

    @property
    def against(self) -> str:
        """Both times: `6.60 ms against 412 ms`."""
        return f"{time_us(self.winner_us)} against {time_us(self.other_us)}"


@dataclass(frozen=True, slots=True)
class Reason:
    """The parts of the mean time of two variants, over the same flows."""

    winner: str
    other: str
    parts: tuple[PartTimes, ...]
    left_out: int = 0
    """Flows that are in neither mean, since they did not finish under one of the two; over all seeds."""
    flows: int | None = None
    """Flows that the means are over, over all seeds, if some are left out."""

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        parts: tuple[Parts, Parts],
        words: Mapping[str, str],
        flows: int | None = None,
        left_out: int = 0,
    ) -> "Reason":
        """Compare the parts of the winner with those of the other one, by key, in the order of `words`."""
        mine, yours = parts
        difference = fsum(yours.values()) - fsum(mine.values())

        def times(key: str) -> PartTimes:
            winner_us, other_us = mine.get(key, 0.0), yours.get(key, 0.0)
            share = (other_us - winner_us) / difference if difference else None
            return PartTimes(key, words[key], winner_us, other_us, share)

        return cls(*names, tuple(times(key) for key in words if key in mine or key in yours), left_out, flows)

    @property
    def winner_us(self) -> float:
        """The winner's mean time."""
        return fsum(part.winner_us for part in self.parts)

    @property
    def other_us(self) -> float:
        """The other one's mean time."""
        return fsum(part.other_us for part in self.parts)

    @property
    def main(self) -> PartTimes | None:
        """The part that explains the difference: the one with most of it, if that is half of it or more."""
        first = self._ranked[0] if self._ranked else None
        return first if first is not None and (first.share or 0.0) >= _MOST_OF_IT else None

    @property
    def _ranked(self) -> list[PartTimes]:
        """The parts by which the winner gained, the largest share first; none unless it was sooner at all."""
        if self.other_us <= self.winner_us:
            return []
        return sorted((part for part in self.parts if (part.share or 0.0) > 0.0), key=lambda part: -(part.share or 0.0))

    def sentences(self, *, sure: bool) -> list[str]:
        """Say which parts explain the difference, with their shares. What may be luck is not called a reason."""
        found = []
        if self.left_out:
            found.append(
                f"The parts of the FCT are known for the {plural(self.flows or 0, 'flow')} that finished under both, "
                f"not for {number(self.left_out)} that did not."
            )
        if not self._ranked:
            if self.left_out and self.parts:
                mine, yours = time_us(self.winner_us), time_us(self.other_us)
                found.append(
                    f"These flows do not explain the difference: their mean FCT is {mine} under {self.winner} "
                    f"and {yours} under {self.other}."
                )
            return found
        said = self._in_time() if any(abs(part.share or 0.0) > _CANCELS for part in self.parts) else self._in_shares()
        return [*found, f"{'Why: ' if sure else 'If it is not luck, '}{said}."]

    def _in_shares(self) -> str:
        """Name every part with a large share of the difference, and close with the rest."""
        ranked = self._ranked
        gained = [part for part in ranked if (part.share or 0.0) >= _WORTH_A_WORD] or ranked[:1]
        lost = sorted(self.parts, key=lambda part: part.share or 0.0)
        lost = [part for part in lost if (part.share or 0.0) <= -_WORTH_A_WORD]
        first, *more = map(_named, gained)
        of_it = f" of the difference of {time_us(self.other_us - self.winner_us)} in "
        said = f"{self.winner} gains {listed([first.replace(' in ', of_it, 1), *more])}"
        if lost:
            said += f", and loses {listed(list(map(_named, lost)))}"
        if self.main is None:
            said += "; no part explains half of the difference"
        rest = 1.0 - fsum(part.share or 0.0 for part in (*gained, *lost))
        return f"{said}{self._rest(rest, _percent(rest)) if abs(rest) >= _CLOSES else ''}"

    def _in_time(self) -> str:
        """Name the parts that cancel by what the winner gained or lost in each, and close with the rest."""
        gains = sorted(((part.other_us - part.winner_us, part) for part in self.parts), key=lambda one: -abs(one[0]))
        named = [(gain, part) for gain, part in gains if abs(gain) >= _WORTH_A_WORD * abs(gains[0][0])]
        texts = {
            sign: [
                f"{time_us(abs(gain))} in {part.words} ({part.against})" for gain, part in named if gain * sign > 0.0
            ]
            for sign in (1, -1)
        }
        sides = [f"{verb} {listed(texts[sign])}" for sign, verb in ((1, "gains"), (-1, "loses")) if texts[sign]]
        difference = self.other_us - self.winner_us
        rest = difference - fsum(gain for gain, _ in named)
        more = self._rest(rest, time_us(abs(rest))) if abs(rest) >= _CLOSES * difference else ""
        return f"parts cancel in the difference of {time_us(difference)}: {self.winner} {' and '.join(sides)}{more}"

    @staticmethod
    def _rest(rest: float, text: str) -> str:
        return f"; the other parts {'add' if rest > 0.0 else 'take back'} {text}"

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        main = self.main
        return {
            "part": None if main is None else main.key,
            "winner_us": self.winner_us,
            "against_us": self.other_us,
            "flows_left_out": self.left_out,
            "parts": [
                {"part": part.key, "winner_us": part.winner_us, "against_us": part.other_us, "share": part.share}
                for part in self.parts
            ],
        }


def flow_reason(
    names: tuple[str, str], mine: Sequence[Summary], yours: Sequence[Summary], flows_of: "FlowsOf | None"
) -> Reason | None:
    """Compare where the time of flows went, as a mean over the seeds that both have.

    Where all flows finished, the summaries say it. Otherwise `flows_of` does, of the flows that finished under both;
    without it nothing is known, and so where none did.
    """
    by_seed = {run.seed: run for run in yours}
    pairs = [(run, by_seed[run.seed]) for run in mine if run.seed in by_seed]
    if not any(run.unfinished for pair in pairs for run in pair):
        parts = _mean([_parts_of(one) for one, _ in pairs]), _mean([_parts_of(other) for _, other in pairs])
        return Reason.of(names, parts, PART_WORDS) if all(parts) else None
    if flows_of is None:
        return None
    both = [_of_both(counted(flows_of(one)), counted(flows_of(other))) for one, other in pairs]
    parts = _mean([one.mine for one in both]), _mean([one.yours for one in both])
    flows, left_out = sum(one.flows for one in both), sum(one.left_out for one in both)
    return Reason.of(names, parts, PART_WORDS, flows, left_out) if all(parts) else None


def _parts_of(run: Summary) -> Parts:
    found = ((key, getattr(run.fct_breakdown_us, key)) for key in FCT_PARTS)
    return {key: value for key, value in found if value is not None}


@dataclass(frozen=True, slots=True)
class _Both:
    """The flows of one seed that finished under both."""

    mine: Parts
    yours: Parts
    flows: int
    left_out: int


def _of_both(mine: "pl.DataFrame", yours: "pl.DataFrame") -> _Both:
    import polars as pl

    done = [frame.filter(pl.col("fct_us").is_not_null()) for frame in (mine, yours)]
    kept = [done[place].join(done[1 - place].select("id"), on="id", how="semi") for place in (0, 1)]
    keys = [key for key in FCT_PARTS if f"fct_{key}_us" in mine.columns and f"fct_{key}_us" in yours.columns]
    parts = [
        frame.select(pl.col(f"fct_{key}_us").mean().alias(key) for key in keys).row(0, named=True) for frame in kept
    ]
    first, second = ({key: float(value) for key, value in one.items() if value is not None} for one in parts)
    return _Both(first, second, kept[0].height, mine.height - kept[0].height)


def _mean(seeds: Sequence[Parts]) -> Parts:
    """Return the mean over the seeds that have any parts."""
    known = [one for one in seeds if one]
    keys = [key for key in FCT_PARTS if any(key in one for one in known)]
    return {key: fsum(one.get(key, 0.0) for one in known) / len(known) for key in keys}


def _named(part: PartTimes) -> str:
    return f"{_percent(part.share)} in {part.words} ({part.against})"


def _percent(share: float | None) -> str:
    """Write a share without its sign; no share that is named rounds to zero."""
    return f"{max(1.0, abs(100.0 * (share or 0.0))):.0f} %"
