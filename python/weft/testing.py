"""A world in which nothing moves by itself, to test a load balancer in Python without a simulation.

A test says what the scheme shall see, calls the scheme, and looks at what it chose, sent and asked for. As it is for
schemes in Rust (`weft_balance::testing`), so it is here: a switch whose clock, queues and ports do what the test says.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.scheme import mix64

__all__ = ["FakePacket", "FakePort", "FakeSwitch", "FakeSwitchInfo", "Sent"]

HOSTS_PER_RACK = 16
RACKS = 8
FULL_SIZE_BYTES = 1500
_PS_PER_S = 10**12


@dataclass
class FakePacket:
    """A full-size data packet from host 0 to host 16, unless a test says otherwise."""

    entropy: int = 1
    scheme: int = 0
    src: int = 0
    dst: int = HOSTS_PER_RACK
    flow: int = 0
    size_bytes: int = FULL_SIZE_BYTES
    seq: int = 0
    kind: str = "data"
    traffic_class: str = "unknown"
    is_ecn_capable: bool = True
    is_marked: bool = False
    is_echo: bool = False
    is_retransmission: bool = False
    is_last: bool = False
    sent_ps: int = 0

    @property
    def is_ack(self) -> bool:
        """Whether it is an acknowledgement."""
        return self.kind == "ack"

    @property
    def src_rack(self) -> int:
        """Rack of the source host."""
        return self.src // HOSTS_PER_RACK

    @property
    def dst_rack(self) -> int:
        """Rack of the destination host."""
        return self.dst // HOSTS_PER_RACK


@dataclass(frozen=True)
class FakePort:
    """A port as a packet's next hop."""

    index: int
    backlog_bytes: int
    drain_ps: int
    ahead_bytes: int
    wait_ps: int
    rate_bps: int
    bytes_sent: int
    is_up: bool
    weight: int


@dataclass(frozen=True)
class FakeSwitchInfo:
    """Facts about a switch that a test passes to a scheme before the first packet."""

    switch: int
    tier: int
    seed: int
    hash_seed: int
    port_rates_bps: list[int]
    port_delays_ps: list[int]
    port_buffers_bytes: list[int | None]
    port_hosts: list[int | None]
    port_switches: list[int | None]
    rack: int | None
    racks: int
    base_rtts_ps: list[int]


@dataclass(frozen=True)
class Sent:
    """A packet that the scheme sent."""

    port: int
    scheme: int
    size_bytes: int


@dataclass
class FakeSwitch:
    """The edge switch of rack 0, with so many idle ports of 10 Gbit/s to as many spines.

    A test sets `now_ps`, `backlogs` (bytes), `rates_bps`, `up` and `sent_bytes`, a number a port; `sent` and `timers`
    are what the scheme sent and asked for.
    """

    ports: int = 2
    seed: int = 1
    number: int = 0
    now_ps: int = 0
    backlogs: list[int] = field(default_factory=list)
    rates_bps: list[int] = field(default_factory=list)
    up: list[bool] = field(default_factory=list)
    sent_bytes: list[int] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    timers: list[tuple[int, int]] = field(default_factory=list)
    """When each is due, and its token."""

    def __post_init__(self) -> None:
        self.backlogs = self.backlogs or [0] * self.ports
        self.rates_bps = self.rates_bps or [10**10] * self.ports
        self.up = self.up or [True] * self.ports
        self.sent_bytes = self.sent_bytes or [0] * self.ports
        self._stream = random.Random(self.seed)

    def info(self, *, tier: int = 0) -> FakeSwitchInfo:
        """Return what a scheme is told of this switch at the start."""
        return FakeSwitchInfo(
            switch=self.number,
            tier=tier,
            seed=self.seed,
            hash_seed=mix64(self.seed),
            port_rates_bps=list(self.rates_bps),
            port_delays_ps=[1_000_000] * self.ports,
            port_buffers_bytes=[375_000] * self.ports,
            port_hosts=[None] * self.ports,
            port_switches=list(range(100, 100 + self.ports)),
            rack=None if tier else 0,
            racks=RACKS,
            base_rtts_ps=[] if tier else [20_000_000 if rack == 0 else 40_000_000 for rack in range(RACKS)],
        )

    def hops(self, ports: Sequence[int] | None = None) -> list[FakePort]:
        """Return these ports as next hops of a packet; all that are up unless told."""
        chosen = [port for port in range(self.ports) if self.up[port]] if ports is None else ports
        return [self._port(port) for port in chosen]

    def next_timer(self) -> int:
        """Move the clock to the timer that is due first, take it, and return its token."""
        due = min(self.timers)
        self.timers.remove(due)
        self.now_ps = due[0]
        return due[1]

    def backlog_bytes(self, port: int) -> int:
        """Bytes queued on the port."""
        return self.backlogs[port]

    def drain_ps(self, port: int) -> int:
        """Time that the port needs to send what is queued on it."""
        return -(-self.backlogs[port] * 8 * _PS_PER_S // self.rates_bps[port])

    def rate_bps(self, port: int) -> int:
        """The port's rate."""
        return self.rates_bps[port]

    def bytes_sent(self, port: int) -> int:
        """Bytes that the port was given to send."""
        return self.sent_bytes[port]

    def is_up(self, port: int) -> bool:
        """Whether the port's cable works."""
        return self.up[port]

    def rack_of(self, host: int) -> int:
        """Hosts 0 to 15 are rack 0, 16 to 31 rack 1, and so on."""
        return host // HOSTS_PER_RACK

    def random(self) -> float:
        """Draw a number from [0, 1)."""
        return self._stream.random()

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to `bound` - 1."""
        return self._stream.randrange(bound)

    def random_bits(self) -> int:
        """Draw 64 bits."""
        return self._stream.getrandbits(64)

    def send(self, port: int, scheme: int = 0, size_bytes: int = 64) -> None:
        """Keep what the scheme sends."""
        self.sent.append(Sent(port, scheme, size_bytes))

    def set_timer(self, delay_ps: int, token: int = 0) -> None:
        """Keep what the scheme asks for."""
        self.timers.append((self.now_ps + delay_ps, token))

    def _port(self, port: int) -> FakePort:
        backlog, drain = self.backlogs[port], self.drain_ps(port)
        return FakePort(
            index=port,
            backlog_bytes=backlog,
            drain_ps=drain,
            ahead_bytes=backlog,
            wait_ps=drain,
            rate_bps=self.rates_bps[port],
            bytes_sent=self.sent_bytes[port],
            is_up=self.up[port],
            weight=self.rates_bps[port] // 10**6,
        )
