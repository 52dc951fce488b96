"""Faults of a fabric: as the command line writes them, and as people read them.

`leaf0-spine1 down 2ms..4ms` is one fault of a spec: the cable, what happens to it, and when.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import msgspec

from weft.errors import SpecError, retold
from weft.quantity import percent, spaced
from weft.spec import SpecText, parse_document, to_toml_value

__all__ = ["MOST_NAMED", "Fault", "faults_of", "first_of", "parse_fault", "telling_faults", "with_faults"]

MOST_NAMED = 3
"""So many faults are told one by one; of the others, how many they are."""

_FORM = '"leaf0-spine1 down 2ms..4ms" or "25% leaf-spine rate=1Gbps"'
_EFFECTS = ("down", "up", "rate", "delay", "loss", "blackhole")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_PLACE = re.compile(r"fabric\.fault\[(\d+)\]\.?")
_TIME = re.compile(r"\d+(?:\.\d+)?(?:ps|ns|us|µs|ms|s)")


def first_of(told: Sequence[str], rest: str = "{} more faults") -> list[str]:
    """Return what is said of each fault, but of many only the first ones, and at the end how many there are besides."""
    more = len(told) - MOST_NAMED
    return [*told] if more <= 0 else [*told[:MOST_NAMED], rest.format(more)]


class Fault(msgspec.Struct, frozen=True):
    """A `[[fabric.fault]]` table of a resolved spec."""

    link: str | None = None
    share: float | None = None
    tier: str | None = None
    at: str = "0ps"
    until: str | None = None
    rate: str | None = None
    delay: str | None = None
    loss: float | None = None
    down: bool | None = None
    blackhole: float | None = None

    @property
    def where(self) -> str:
        """Which cables it hits: `leaf0-spine1`, `25 % of the leaf-spine cables`."""
        if self.link is not None:
            return self.link
        of = f"the {self.tier} cables" if self.tier is not None else "the cables between switches"
        return f"{percent(self.share or 0.0)} of {of}"

    @property
    def what(self) -> str:
        """Effect of the fault on its links: `down`, `at 1 Gbit/s`."""
        found = [] if self.down is None else ["down" if self.down else "up"]
        if self.rate is not None:
            found.append(f"at {spaced(self.rate)}")
        if self.delay is not None:
            found.append(f"with {spaced(self.delay)} more delay")
        if self.loss is not None:
            found.append(f"losing {percent(self.loss)} of packets")
        if self.blackhole is not None:
            found.append(f"swallowing {percent(self.blackhole)} of flows")
        return " and ".join(found)

    @property
    def when(self) -> str:
        """From when to when: `from 2 ms to 4 ms`; empty for all the time."""
        begins = "" if _is_zero(self.at) else f"from {spaced(self.at)}"
        if self.until is not None:
            return f"{begins} to {spaced(self.until)}" if begins else f"until {spaced(self.until)}"
        return f"{begins} on" if begins else ""

    @property
    def effect(self) -> str:
        """Effect of the fault and its time: `down from 2 ms to 4 ms`."""
        return " ".join(filter(None, (self.what, self.when)))

    @property
    def words(self) -> str:
        """All of it: `leaf0-spine1 down from 2 ms to 4 ms`."""
        return f"{self.where} {self.effect}"


def faults_of(fabric: Mapping[str, Any]) -> Sequence[Fault]:
    """Read the faults of a resolved spec's `[fabric]` table."""
    return msgspec.convert(fabric.get("fault", []), list[Fault])


def _is_zero(time: str) -> bool:
    return not time.strip("0.").lstrip("pnumsµ ")


def parse_fault(text: str) -> dict[str, Any]:
    """Read a fault as the command line writes it; returns its table in a spec.

    The cable comes first, as `link` of a spec names it, or a share of cables (`25%`, and of which tier). Then what
    happens to it: `down`, `up` (despite an earlier fault), `rate=1Gbps`, `delay=50us`, `loss=0.01`, `blackhole=0.1`.
    Then, unless it holds for the whole run, from when to when: `2ms..4ms`, `2ms..`, `..4ms`.
    """
    target, *words = text.split() or [""]
    if not target:
        raise _refused(text, "names no cable")
    found: dict[str, Any] = {}
    if (share := _SHARE.fullmatch(target)) is not None:
        found["share"] = float(share[1]) / 100.0
        if words and "=" not in words[0] and ".." not in words[0] and words[0] not in _EFFECTS:
            found["tier"] = words.pop(0)
    else:
        found["link"] = target
    for word in words:
        more = _when(text, word) if ".." in word else _effect(text, word)
        if any(key in found for key in more):
            raise _refused(text, f"{word!r} says again what was said before")
        found |= more
    if not any(key in found for key in ("down", "rate", "delay", "loss", "blackhole")):
        raise _refused(text, "does not say what happens to the cable")
    return found


def with_faults(spec: SpecText, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the override that adds faults, as the command line writes them, to those of a spec."""
    if not texts:
        return []
    faults = [*_faults_before(spec), *map(parse_fault, texts)]
    for place, text in enumerate(texts, len(faults) - len(texts)):
        if faults[place].get("down") is False and not any(_takes_down(fault) for fault in faults[:place]):
            raise _refused(text, "up is of use only after a fault that takes the cable down")
    return [("fabric.fault", to_toml_value(faults, "--fault"))]


@contextmanager
def telling_faults(spec: SpecText, texts: Sequence[str]) -> Iterator[None]:
    """Tell a mistake in a fault that the command line added as one of `--fault`, in its own words."""
    try:
        yield
    except SpecError as error:
        # The core is given them as it is given the values of --set.
        place = _PLACE.match(error.path or "")
        number = int(place[1]) - len(_faults_before(spec)) if place is not None and error.origin == "--set" else -1
        if place is None or not 0 <= number < len(texts):
            raise
        found = retold(error, origin=f'--fault "{texts[number]}"', short=place[0])
        raise found from None


def _faults_before(spec: SpecText) -> Sequence[Any]:
    fabric = parse_document(spec).get("fabric", {})
    before = fabric.get("fault", []) if isinstance(fabric, dict) else []
    return before if isinstance(before, list) else []


def _takes_down(fault: object) -> bool:
    return isinstance(fault, Mapping) and fault.get("down") is True


def _when(text: str, word: str) -> dict[str, str]:
    begins, _, ends = word.partition("..")
    for time in filter(None, (begins, ends)):
        if _TIME.fullmatch(time) is None:
            raise _refused(text, f"{time!r} is no time with a unit")
    return {key: time for key, time in (("at", begins), ("until", ends)) if time}


def _effect(text: str, word: str) -> dict[str, Any]:
    name, equals, value = word.partition("=")
    if name in ("down", "up") and not equals:
        return {"down": name == "down"}
    if name in ("rate", "delay") and value:
        return {name: value}
    if name in ("loss", "blackhole") and value:
        return {name: _share_of(text, word, value)}
    near = get_close_matches(name, _EFFECTS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near and near[0] != name else ""
    raise _refused(
        text, f"{word!r} is none of down, up, rate=..., delay=..., loss=..., blackhole=... and FROM..UNTIL{hint}"
    )


def _share_of(text: str, word: str, value: str) -> float:
    try:
        return float(value.removesuffix("%")) / (100.0 if value.endswith("%") else 1.0)
    except ValueError:
        raise _refused(text, f"{word!r} has no number from 0 to 1 or percentage") from None


def _refused(text: str, why: str) -> SpecError:
    return SpecError(f"--fault {text!r}: {why}; write it as {_FORM}")
