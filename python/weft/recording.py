"""Recording of schemes at the switches of a run: their calls, inputs, random draws and decisions."""

from collections.abc import Callable

import msgspec

from weft import _core
from weft.simulation import Overrides, override_pairs
from weft.spec import SpecLike, load_spec

__all__ = [
    "Call",
    "Choose",
    "Header",
    "Look",
    "OnArrival",
    "OnEnqueued",
    "OnPortChange",
    "Recording",
    "Registers",
    "Switch",
    "record",
]


class Header(msgspec.Struct, frozen=True):
    """Header fields of a packet that a scheme may read."""

    kind: str
    entropy: int
    src: int
    src_rack: int
    dst: int
    dst_rack: int
    wire_bytes: int
    class_: str = msgspec.field(name="class")
    scheme: int


class Look(msgspec.Struct, frozen=True):
    """The queue of a port, as long as it was for the packet at hand: bytes, and their time in ps."""

    port: int
    bytes: int
    drain_ps: int


class _Call(msgspec.Struct, frozen=True, tag_field="call"):
    at_ps: int
    """The time of the call, in ps."""


class Registers(_Call, frozen=True, tag="registers"):
    """Registers that a controller writes into the switch: name, place, value."""

    registers: list[tuple[str, int, int]]


class Choose(_Call, frozen=True, tag="choose"):
    """A packet had several next hops, and took `port` of `ports`."""

    packet: Header
    ports: tuple[int, ...]
    looks: list[Look]
    draws: list[int]
    port: int


class OnArrival(_Call, frozen=True, tag="on_arrival"):
    """A packet came in by `port`; `scheme_after` are its header bits behind the call."""

    packet: Header
    port: int
    looks: list[Look]
    scheme_after: int


class OnEnqueued(_Call, frozen=True, tag="on_enqueued"):
    """The queue of `port` took a packet, which leaves it at `leaves_ps`."""

    packet: Header
    port: int
    leaves_ps: int
    found_bytes: int


class OnPortChange(_Call, frozen=True, tag="on_port_change"):
    """A port went down, came back, or has another rate or delay."""

    port: int


Call = Registers | Choose | OnArrival | OnEnqueued | OnPortChange


class Switch(msgspec.Struct, frozen=True):
    """The calls of the scheme at one switch, in their order; `beyond` decisions came behind the last of them."""

    switch: int
    tier: int
    ports: int
    neighbour_tiers: list[int | None]
    calls: list[Call]
    beyond: int

    @property
    def decisions(self) -> int:
        """How many of the calls chose a port."""
        return sum(isinstance(call, Choose) for call in self.calls)

    @property
    def registers(self) -> list[tuple[str, int, int]]:
        """All registers at the beginning."""
        first = next((call for call in self.calls if isinstance(call, Registers)), None)
        return [] if first is None else first.registers

    @property
    def constants(self) -> dict[str, int]:
        """Those that there is one of, or the first of each."""
        return {name: value for name, place, value in self.registers if place == 0}


class Recording(msgspec.Struct, frozen=True):
    """A recorded run."""

    scheme: str
    rack_of_host: list[int]
    switches: list[Switch]


def record(
    spec: SpecLike,
    *,
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    scheme: str | None = None,
    most: int = 10_000,
    progress: Callable[[_core.Progress], None] | None = None,
) -> Recording:
    """Run a spec, and return what its load balancer was told, saw, drew and decided at each switch.

    Of each switch, the first `most` decisions are kept, and every call before the last of them. `scheme` is one in
    place of the spec's, such as "letflow:gap=50us". The rest is as for `weft.run`. Raises `SpecError` for a mistake in
    the spec.
    """
    text = load_spec(spec)
    recorded = _core.record(
        text.text,
        overrides=override_pairs(set),
        seed=seed,
        base_dir=text.base_dir,
        origin=text.origin,
        variant=scheme,
        most=most,
        progress=progress,
    )
    return msgspec.json.decode(recorded, type=Recording)
