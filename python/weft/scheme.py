"""Interface of a load balancer in Python: its inputs and its actions.

`weft.Scheme` is the base class of one, in a file of its own or in a program. It is asked once for every packet that has
more than one next hop, so a run takes several times as long as with a scheme of the core. There are two other forms:

- a `SwitchChooser` has the method `choose(switch, packet, ports)`, with the number of the switch. One object serves
  all switches of a run. Enough for a scheme that looks at the packet and the ports;
- a `SwitchFactory` has the method `at(info)`, which makes the `SwitchScheme` of one switch. It sees and does what any
  switch scheme of the core does: the clock, all of its ports, a random stream, timers, packets that arrive, packets of
  its own.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import new_class
from typing import Any, ClassVar, Protocol, Self, TypeAlias, cast, runtime_checkable

from weft import _core

__all__ = [
    "QUANTITIES",
    "AnyScheme",
    "PacketView",
    "PortView",
    "Rate",
    "Scheme",
    "Size",
    "SwitchChooser",
    "SwitchFactory",
    "SwitchInfo",
    "SwitchScheme",
    "SwitchView",
    "Time",
    "mix64",
]


class PacketView(Protocol):
    """The packet in hand. `entropy` and `scheme` may be written: they go back into the packet."""

    entropy: int
    """Hash of the five-tuple, which an ECMP hash mixes in: 32 bits."""

    scheme: int
    """The scheme's own header bits: 32."""

    @property
    def src(self) -> int:
        """Number of the source host."""

    @property
    def dst(self) -> int:
        """Number of the destination host."""

    @property
    def src_rack(self) -> int:
        """Rack of the source host."""

    @property
    def dst_rack(self) -> int:
        """Rack of the destination host."""

    @property
    def flow(self) -> int:
        """Number of the flow."""

    @property
    def size_bytes(self) -> int:
        """Size on the wire, in bytes."""

    @property
    def seq(self) -> int:
        """Number of the segment in its flow, from 0; on an acknowledgement, of the segment that is waited for."""

    @property
    def kind(self) -> str:
        """A name: data, ack, syn, syn-ack, credit, credit-request, credit-stop, control, message, nack, cnp, trimmed.

        Or sender-ack, a sender's acknowledgement without payload.
        """

    @property
    def traffic_class(self) -> str:
        """The class of its flow: "unknown", "short", "long", "best-effort", or "tc4" to "tc7", which say nothing."""

    @property
    def is_ack(self) -> bool:
        """Whether the packet is an acknowledgement without payload."""

    @property
    def is_ecn_capable(self) -> bool:
        """Whether queues may mark it (ECT): its transport understands ECN."""

    @property
    def is_marked(self) -> bool:
        """Whether a queue marked it (CE)."""

    @property
    def is_echo(self) -> bool:
        """Whether it tells its receiver of a mark (ECE), on acknowledgements."""

    @property
    def is_retransmission(self) -> bool:
        """Whether the segment was sent before."""

    @property
    def is_last(self) -> bool:
        """Whether it is the last segment of its flow."""

    @property
    def sent_ps(self) -> int:
        """When its transport sent it, in picoseconds; of an acknowledgement, the packet that caused it."""


class PortView(Protocol):
    """One port that leads to the destination, as its own switch sees it."""

    @property
    def index(self) -> int:
        """Number of the port at its switch."""

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued or in service."""

    @property
    def drain_ps(self) -> int:
        """Time that the port needs to send what is queued, in picoseconds."""

    @property
    def ahead_bytes(self) -> int:
        """Bytes that the port would send before this packet: `backlog_bytes` where there is one queue."""

    @property
    def wait_ps(self) -> int:
        """Time until the port would send this packet, in picoseconds: `drain_ps` where there is one queue."""

    @property
    def rate_bps(self) -> int:
        """Rate of the link now, in bits per second."""

    @property
    def bytes_sent(self) -> int:
        """Bytes that the port was given to send since the run began."""

    @property
    def is_up(self) -> bool:
        """Whether the port's cable works, as the switch sees it by itself."""

    @property
    def weight(self) -> int:
        """Capacity behind the port towards the destination, in Mbit/s."""


class SwitchInfo(Protocol):
    """Facts about a switch that a scheme knows before the first packet.

    Lists have an entry a port.
    """

    @property
    def switch(self) -> int:
        """The switch's number in the fabric, from 0."""

    @property
    def tier(self) -> int:
        """Hops from the nearest host: an edge switch is of tier 0."""

    @property
    def seed(self) -> int:
        """The seed of the run."""

    @property
    def hash_seed(self) -> int:
        """64 random bits that this switch hashes with, as the schemes of the core do: `mix64(hash_seed ^ entropy)`."""

    @property
    def port_rates_bps(self) -> list[int]:
        """The rates, in bits per second."""

    @property
    def port_delays_ps(self) -> list[int]:
        """The propagation delays, with the processing at the far ends, in picoseconds."""

    @property
    def port_buffers_bytes(self) -> list[int | None]:
        """Capacity of each output queue in bytes, or `None` where there is no limit."""

    @property
    def port_hosts(self) -> list[int | None]:
        """The hosts at the far ends, or `None` where a switch is."""

    @property
    def port_switches(self) -> list[int | None]:
        """The switches at the far ends, or `None` where a host is."""

    @property
    def rack(self) -> int | None:
        """The rack that hangs at this switch, if it is an edge switch."""

    @property
    def racks(self) -> int:
        """How many racks the fabric has."""

    @property
    def base_rtts_ps(self) -> list[int]:
        """By rack, how long a full packet and its acknowledgement take there and back when nothing else moves.

        From a host of the own rack, in picoseconds. Empty at a switch without a rack.
        """


class SwitchView(Protocol):
    """A switch as its scheme sees it, and what the scheme asks of it.

    What it shows is from the moment of the call. What is asked for is done when the call is over; to draw, to send
    or to set a timer after that is an error. Ports are given by number.
    """

    @property
    def number(self) -> int:
        """The switch's number in the fabric, from 0."""

    @property
    def now_ps(self) -> int:
        """The time now, in picoseconds since the run began."""

    @property
    def ports(self) -> int:
        """How many ports the switch has."""

    def backlog_bytes(self, port: int) -> int:
        """Bytes queued on the port or in service."""
        ...

    def drain_ps(self, port: int) -> int:
        """Time that the port needs to send what is queued on it, in picoseconds."""
        ...

    def rate_bps(self, port: int) -> int:
        """The port's rate now, in bits per second."""
        ...

    def bytes_sent(self, port: int) -> int:
        """Bytes that the port was given to send since the run began."""
        ...

    def is_up(self, port: int) -> bool:
        """Whether the port's cable works, as the switch sees it by itself."""
        ...

    def rack_of(self, host: int) -> int:
        """The rack of a host (switches know the addressing plan)."""
        ...

    def random(self) -> float:
        """Draw a number from [0, 1) of the switch's own random stream."""
        ...

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to `bound` - 1 of the switch's own random stream."""
        ...

    def random_bits(self) -> int:
        """Draw 64 bits of the switch's own random stream."""
        ...

    def send(self, port: int, scheme: int = 0, size_bytes: int = 64) -> None:
        """Send a packet of the scheme's own with these header bits: the next switch's `on_arrival` gets it.

        It takes bytes, queues and time like any other.
        """
        ...

    def set_timer(self, delay_ps: int, token: int = 0) -> None:
        """Ask for `on_timer(switch, token)` after so many picoseconds. Timers are not taken back."""
        ...


@runtime_checkable
class SwitchScheme(Protocol):
    """The scheme at one switch: one method, and any of these besides. What has no method costs nothing.

    - `start(switch)`: the run begins; time to set timers;
    - `on_arrival(switch, packet, port)`: a packet came in by this port. Return False if it ends here. A packet that a
      neighbour's scheme sent (`packet.kind == "control"`) ends here in any case;
    - `on_enqueued(switch, packet, port, leaves_ps, found_bytes)`: the port's queue took a packet of a host. It leaves
      for the wire at `leaves_ps`, and found so many bytes queued;
    - `on_timer(switch, token)`: a timer is due;
    - `on_port_change(switch, port)`: a port's cable went down or came back, or has another rate or delay;
    - `state_bytes()`: bytes of state that hardware would keep for it in this switch;
    - `counters()`: its own counters for the results, by name. Those of all switches are added up.
    """

    def choose(self, switch: SwitchView, packet: PacketView, ports: Sequence[PortView]) -> int:
        """Return the position in `ports` of the port that the packet shall leave by."""
        ...


@runtime_checkable
class SwitchFactory(Protocol):
    """Makes the scheme of each switch. Schemes share nothing: what one knows of others, packets brought it."""

    def at(self, info: SwitchInfo) -> SwitchScheme:
        """Return the scheme at this switch; called once a switch, in the order of their numbers."""
        ...


@runtime_checkable
class SwitchChooser(Protocol):
    """One method. Subclass it or just have the method.

    One object serves all switches of a run; keep state by `switch` and never let one switch read another's.
    """

    def choose(self, switch: int, packet: PacketView, ports: Sequence[PortView]) -> int:
        """Return the position in `ports` of the port that the packet shall leave by."""
        ...


AnyScheme: TypeAlias = SwitchChooser | SwitchFactory
"""Scheme that `weft.run(..., scheme=...)` takes, beside the name of one."""


def mix64(value: int) -> int:
    """Scramble 64 bits (the finaliser of SplitMix64), as the core does to hash."""
    mask = (1 << 64) - 1
    value = (value + 0x9E37_79B9_7F4A_7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58_476D_1CE4_E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D0_49BB_1331_11EB) & mask
    return value ^ (value >> 31)


class Scheme(SwitchScheme):
    """A load balancer, as it runs at one switch: subclass it and write `choose`.

    Weft makes an object of the class for each switch of a run. What one knows of others, packets brought it. Its
    parameters are keyword arguments of `__init__`; those of the types `weft.Time`, `weft.Size` and `weft.Rate` are
    written with their units, as in `my.py:Least:gap=3us`.

    Besides `choose` it may have any of the methods that `weft.SwitchScheme` lists. What has no method costs nothing.
    """

    _parameters: ClassVar[Mapping[str, Any]] = {}
    """Parameters from `having`: keyword arguments of `__init__`."""

    def __init__(self, info: SwitchInfo) -> None:
        self.info = info
        """Facts about the switch that are known before the first packet."""

    @abstractmethod
    def choose(self, switch: SwitchView, packet: PacketView, ports: Sequence[PortView]) -> int:
        """Return the position in `ports` of the port that the packet shall leave by."""

    @classmethod
    def at(cls, info: SwitchInfo) -> Self:
        """Return the scheme at one switch, with the parameters that `having` gave, or their defaults."""
        return cls(info, **cls._parameters)

    @classmethod
    def having(cls, **parameters: Any) -> type[Self]:
        """Return the same scheme with these parameters, for `weft.run(scheme=...)` and `weft.compare`.

        It is called as on the command line, `LetFlow:gap=50us`. Raises `SpecError` for a parameter that it does not
        have, or a value of another type.
        """
        from weft.scheme_file import checked_parameters  # which knows of schemes

        given = checked_parameters(cls, {**cls._parameters, **parameters})
        name = ":".join([cls.__name__.partition(":")[0], *(f"{key}={_shown(value)}" for key, value in given.items())])
        own = {"_parameters": given, "__module__": cls.__module__, "__doc__": cls.__doc__}
        return cast("type[Self]", new_class(name, (cls,), exec_body=lambda body: body.update(own)))


class _Quantity(int):
    """A whole number of base units, that may be written with a unit."""

    _kind = ""
    _units: ClassVar[Mapping[str, int]] = {}

    def __new__(cls, value: str | int) -> Self:
        """Take a text such as "50us", or a number of base units."""
        return super().__new__(cls, _core.quantity(value, cls._kind) if isinstance(value, str) else value)

    @property
    def text(self) -> str:
        """As in a spec, in the largest unit of which it is a whole number: "50us"."""
        unit, size = next((unit, size) for unit, size in self._units.items() if self % size == 0)
        return f"{self // size}{unit}"


class Time(_Quantity):
    """A time in picoseconds: `weft.Time("50us") == 50_000_000`."""

    _kind = "time"
    _units: ClassVar[Mapping[str, int]] = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}


class Size(_Quantity):
    """A size in bytes: `weft.Size("100KB") == 100_000`."""

    _kind = "size"
    _units: ClassVar[Mapping[str, int]] = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}


class Rate(_Quantity):
    """A rate in bits per second: `weft.Rate("10Gbps") == 10_000_000_000`."""

    _kind = "rate"
    _units: ClassVar[Mapping[str, int]] = {"Tbps": 10**12, "Gbps": 10**9, "Mbps": 10**6, "Kbps": 10**3, "bps": 1}


QUANTITIES = (Time, Size, Rate)
"""The types of parameters that are written with a unit."""


def _shown(value: object) -> str:
    """Return the value of a parameter as it is written behind a name."""
    if isinstance(value, QUANTITIES):
        return value.text
    return str(value).lower() if isinstance(value, bool) else str(value)
