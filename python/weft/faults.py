"""Faults of a fabric: as the command line writes them, and as people read them.

`leaf0-spine1 down 2ms..4ms` is one fault of a spec: the cable, what happens to it, and when.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.quantity import percent, spaced

__all__ = ["Fault", "faults_of"]


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
        """What happens to them: `down`, `at 1 Gbit/s`."""
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
    def words(self) -> str:
        """All of it: `leaf0-spine1 down from 2 ms to 4 ms`."""
        return " ".join(filter(None, (self.where, self.what, self.when)))


def faults_of(fabric: Mapping[str, Any]) -> Sequence[Fault]:
    """Read the faults of a resolved spec's `[fabric]` table."""
    return msgspec.convert(fabric.get("fault", []), list[Fault])


def _is_zero(time: str) -> bool:
    return not time.strip("0.").lstrip("pnumsµ ")
