"""Schemes written in Python see and do what schemes of the core do."""

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

import weft
from weft.scheme import mix64

pytestmark = pytest.mark.slow

SMALL = {"fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "traffic.flows": 60}
TICK_PS = 1024


class First(weft.SwitchScheme):
    """Always the first port."""

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        return 0


class Everywhere(weft.SwitchFactory):
    """Keeps what it made, to be looked at after the run."""

    def __init__(self, scheme: type[weft.SwitchScheme]) -> None:
        self.scheme = scheme
        self.infos: list[weft.SwitchInfo] = []
        self.made: list[weft.SwitchScheme] = []

    def at(self, info: weft.SwitchInfo) -> weft.SwitchScheme:
        self.infos.append(info)
        self.made.append(self.scheme())
        return self.made[-1]


class LetFlowAtSwitch(weft.SwitchScheme):
    """A table of flowlets by hash: when the last packet passed, and by which port."""

    def __init__(self, info: weft.SwitchInfo, gap_ps: int) -> None:
        self.hash_seed = info.hash_seed
        self.gap_ticks = -(-gap_ps // TICK_PS)
        self.table: dict[int, tuple[int, int]] = {}

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        slot = mix64(self.hash_seed ^ packet.entropy) % 65_536
        now = switch.now_ps // TICK_PS
        last, port = self.table.get(slot, (0, -1))
        numbers = [port.index for port in ports]
        alive = port in numbers and now - last <= self.gap_ticks
        position = numbers.index(port) if alive else switch.below(len(ports))
        self.table[slot] = (now, numbers[position])
        return position


class LetFlow(weft.SwitchFactory):
    """LetFlow with a gap of 20 us."""

    def at(self, info: weft.SwitchInfo) -> LetFlowAtSwitch:
        return LetFlowAtSwitch(info, 20_000_000)


@pytest.mark.parametrize(
    "fabric",
    [
        {"kind": "leaf-spine", "leaves": 3, "spines": 4, "hosts_per_leaf": 4},
        {"kind": "fat-tree", "k": 4},
        {
            "kind": "leaf-spine",
            "leaves": 2,
            "spines": 3,
            "hosts_per_leaf": 4,
            "reroute_after": "1ms",
            "fault": [{"link": "leaf0-spine1", "at": "1ms", "until": "9ms", "down": True}],
        },
    ],
    ids=["leaf-spine", "fat-tree", "fault"],
)
def test_letflow_in_python_is_letflow_of_the_core_decision_by_decision(fabric: dict[str, object]) -> None:
    spec: dict[str, object] = {
        "fabric": fabric,
        "traffic": {"workload": "web-search", "load": 0.5, "flows": 80},
        "scheme": {"name": "letflow", "gap": "20us"},
    }
    core, python = weft.run(spec), weft.run(spec, scheme=LetFlow())
    assert python.flows.equals(core.flows)
    assert python.links.equals(core.links)


def test_the_hash_is_that_of_the_core() -> None:
    # The test vector of SplitMix64: the first outputs of the generator that is seeded with 1234567.
    golden, seed = 0x9E37_79B9_7F4A_7C15, 1_234_567
    first, second = mix64(seed), mix64((seed + golden) % 2**64)
    assert (first, second) == (6_457_827_717_110_365_317, 3_203_168_211_198_807_973)


class Clockwork(First):
    """Sets two timers at the start, and one more from within a timer."""

    def __init__(self) -> None:
        self.rings: list[tuple[int, int]] = []

    def start(self, switch: weft.SwitchView) -> None:
        assert switch.now_ps == 0
        switch.set_timer(5_000_000, 2)
        switch.set_timer(3_000_000, 1)

    def on_timer(self, switch: weft.SwitchView, token: int) -> None:
        self.rings.append((switch.now_ps, token))
        if token == 1:
            switch.set_timer(1_500_000, 7)


def test_timers_ring_at_their_time_with_their_token() -> None:
    clocks = Everywhere(Clockwork)
    weft.run("", set=SMALL, scheme=clocks)
    assert len(clocks.made) == 4
    for clock in clocks.made:
        assert isinstance(clock, Clockwork)
        assert clock.rings == [(3_000_000, 1), (4_500_000, 7), (5_000_000, 2)]


class Ping(First):
    """Leaves send a packet up; spines count what came, send it back with one more; leaves count again."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int]] = []
        self.data = 0

    def start(self, switch: weft.SwitchView) -> None:
        if switch.number < 2:
            switch.send(switch.ports - 1, scheme=40 + switch.number, size_bytes=100)

    def on_arrival(self, switch: weft.SwitchView, packet: weft.PacketView, port: int) -> None:
        if packet.kind != "control":
            self.data += 1
            return
        assert packet.size_bytes == 100
        self.heard.append((packet.scheme, port))
        if switch.number >= 2:
            switch.send(port, scheme=packet.scheme + 100, size_bytes=100)

    def state_bytes(self) -> int:
        return 24

    def counters(self) -> Mapping[str, int]:
        return {"heard": len(self.heard), "data": self.data}


def test_a_scheme_sends_packets_that_the_next_switch_gets_and_counts_what_it_likes() -> None:
    pings = Everywhere(Ping)
    result = weft.run("", set=SMALL, scheme=pings)
    heard = [scheme.heard for scheme in pings.made if isinstance(scheme, Ping)]
    # Both leaves have their hosts at ports 0 to 3 and spines at 4 and 5: what leaves by the last goes to spine 1.
    assert heard == [[(140, 5)], [(141, 5)], [], [(40, 0), (41, 1)]]
    counters = dict(result.scheme.iter_rows())
    assert counters["heard"] == 4 and counters["data"] > 100
    assert counters["state_bytes_per_switch"] == 24
    assert result.summary.overhead_bytes == 4 * 100


class Departures(First):
    """Notes when packets leave by the first port of a leaf, and what they found."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, int, int, int]] = []

    def on_enqueued(
        self, switch: weft.SwitchView, packet: weft.PacketView, port: int, leaves_ps: int, found_bytes: int
    ) -> None:
        if port == 4:
            self.noted.append((switch.now_ps, leaves_ps, found_bytes, packet.size_bytes))


def test_a_scheme_hears_of_what_a_queue_took_and_when_it_leaves() -> None:
    notes = Everywhere(Departures)
    result = weft.run("", set=SMALL, scheme=notes)
    leaf = notes.made[0]
    assert isinstance(leaf, Departures)
    free = 0
    for now, leaves, found, size in leaf.noted:
        # First in first out at 800 ps a byte: a packet leaves when the one before has left, or at once.
        assert leaves == max(now, free)
        assert abs((leaves - now) - 800 * found) < 800
        free = leaves + 800 * size
    link = result.links.filter(pl.col("link") == "leaf0>spine0")
    assert link["bytes"].to_list() == [sum(size for *_, size in leaf.noted)]


class Swallow(First):
    """Ends the first data packet that arrives at each leaf."""

    def __init__(self) -> None:
        self.swallowed = 0

    def on_arrival(self, switch: weft.SwitchView, packet: weft.PacketView, port: int) -> bool:
        if self.swallowed or packet.kind != "data":
            return True
        self.swallowed += 1
        return False


def test_a_packet_that_ends_at_a_switch_is_sent_again() -> None:
    swallows = Everywhere(Swallow)
    result = weft.run("", set=SMALL, scheme=swallows)
    assert sum(getattr(scheme, "swallowed", 0) for scheme in swallows.made) >= 2
    assert result.flows["retransmissions"].sum() >= 2
    assert result.flows["fct_us"].null_count() == 0


class Stamp(First):
    """The first leaf writes a number into the header, which all others read."""

    def __init__(self) -> None:
        self.read: set[int] = set()

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        packet.scheme = 0xBEEF + packet.src_rack
        return 0

    def on_arrival(self, switch: weft.SwitchView, packet: weft.PacketView, port: int) -> None:
        self.read.add(packet.scheme)


def test_header_bits_travel_with_the_packet() -> None:
    stamps = Everywhere(Stamp)
    weft.run("", set=SMALL, scheme=stamps)
    spine = stamps.made[2]
    assert isinstance(spine, Stamp) and spine.read == {0xBEEF, 0xBEF0}


class Watch(First):
    """Notes every change of a port, and that all figures of a port go together."""

    def __init__(self) -> None:
        self.changes: list[tuple[int, int, bool]] = []
        self.looks = 0

    def on_port_change(self, switch: weft.SwitchView, port: int) -> None:
        self.changes.append((switch.now_ps, port, switch.is_up(port)))

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        for port in ports:
            number = port.index
            assert port.rate_bps == switch.rate_bps(number) == 10_000_000_000
            assert port.backlog_bytes == switch.backlog_bytes(number)
            assert port.drain_ps == switch.drain_ps(number)
            # 10 Gbit/s are 800 ps a byte; of the byte in service a part may have left.
            assert abs(port.drain_ps - port.backlog_bytes * 800) < 800
            assert port.bytes_sent == switch.bytes_sent(number)
            assert port.is_up == switch.is_up(number)
        assert switch.rack_of(packet.dst) == packet.dst_rack == packet.dst // 4
        self.looks += 1
        return 0


def test_a_scheme_sees_its_ports_and_hears_when_one_changes() -> None:
    watches = Everywhere(Watch)
    fault = [{"link": "leaf0-spine1", "at": "1ms", "until": "2ms", "down": True}]
    weft.run({"fabric": {"kind": "leaf-spine", "fault": fault}}, set=SMALL, scheme=watches)
    assert watches.infos[0].rack == 0 and watches.infos[2].rack is None
    assert [info.tier for info in watches.infos] == [0, 0, 1, 1]
    leaf = watches.infos[0]
    assert leaf.port_hosts == [0, 1, 2, 3, None, None]
    assert leaf.port_switches == [None, None, None, None, 2, 3]
    assert leaf.port_rates_bps == [10_000_000_000] * 6 and leaf.racks == 2
    assert leaf.port_delays_ps == [1_000_000] * 6 and leaf.port_buffers_bytes == [375_000] * 6
    changes = [scheme.changes for scheme in watches.made if isinstance(scheme, Watch)]
    down, up = 1_000_000_000, 2_000_000_000
    assert changes == [[(down, 5, False), (up, 5, True)], [], [], [(down, 0, False), (up, 0, True)]]
    assert sum(getattr(scheme, "looks", 0) for scheme in watches.made) > 100


class Draws(First):
    """Draws in each of the three ways."""

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        assert 0 <= switch.random() < 1
        assert 0 <= switch.random_bits() < 2**64
        return switch.below(len(ports))


def test_a_run_that_draws_from_the_switches_streams_repeats_and_a_seed_changes_it() -> None:
    first, again, other = (weft.run("", set=SMALL, seed=seed, scheme=Everywhere(Draws)).links for seed in (1, 1, 2))
    assert first.equals(again) and not first.equals(other)
    assert first.filter((pl.col("tier") == "leaf") & (pl.col("packets") == 0)).is_empty()


class Late(First):
    """Keeps its switch, and draws when it is not called."""

    kept: weft.SwitchView | None = None

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        Late.kept = switch
        return 0


def test_a_switch_that_is_kept_answers_and_refuses_to_draw_send_or_set_timers() -> None:
    weft.run("", set=SMALL, scheme=Everywhere(Late))
    assert Late.kept is not None and Late.kept.now_ps > 0
    with pytest.raises(RuntimeError, match="only while it calls its scheme"):
        Late.kept.random()
    with pytest.raises(RuntimeError, match="only while it calls its scheme"):
        Late.kept.set_timer(1)
    with pytest.raises(RuntimeError, match="only while it calls its scheme"):
        Late.kept.send(0)


class Mistakes(First):
    """Makes the mistake that it is told to."""

    doing = ""

    def start(self, switch: weft.SwitchView) -> None:
        match Mistakes.doing:
            case "port":
                switch.backlog_bytes(6)
            case "send":
                switch.send(9)
            case "size":
                switch.send(0, size_bytes=20)
            case "bound":
                switch.below(0)
            case "host":
                switch.rack_of(8)
            case "own":
                raise ZeroDivisionError("my own mistake")

    def on_arrival(self, switch: weft.SwitchView, packet: weft.PacketView, port: int) -> object:
        return "on" if Mistakes.doing == "arrival" else None


@pytest.mark.parametrize(
    ("doing", "message"),
    [
        ("port", "port is 6: allowed is 0 to 5"),
        ("send", "port is 9: allowed is 0 to 5"),
        ("size", "size_bytes is 20: allowed is 64 to 65535"),
        ("bound", "bound is 0"),
        ("host", "host is 8: allowed is 0 to 7"),
        ("own", "my own mistake"),
        ("arrival", "on_arrival.. returned 'on'"),
    ],
)
def test_a_mistake_ends_the_run_with_one_message(doing: str, message: str) -> None:
    Mistakes.doing = doing
    with pytest.raises((IndexError, ValueError, TypeError, ZeroDivisionError), match=message):
        weft.run("", set=SMALL, scheme=Everywhere(Mistakes))


class Nothing:
    """No scheme at all."""


class MakesNothing:
    """A factory of what is no scheme."""

    def at(self, info: weft.SwitchInfo) -> Nothing:
        return Nothing()


@pytest.mark.parametrize(
    ("scheme", "says"), [(Nothing(), "Nothing has none"), (MakesNothing(), "at.info. returned Nothing")]
)
def test_an_object_that_is_no_scheme_is_refused(scheme: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        weft.run("", set=SMALL, scheme=scheme)  # type: ignore[arg-type]


def test_a_factory_can_be_compared() -> None:
    comparison = weft.compare(["ecmp", LetFlow], set=SMALL)
    assert list(comparison.groups) == ["ecmp", "LetFlow"]
