"""The schemes of switches once more, as plainly as they can be said, from nothing but a recording.

Each is made for a switch, and answers a recorded call with the port or the header bits that the scheme must have given.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from weft.recording import Call, Choose, OnArrival, OnEnqueued, Registers, Switch

MASK = (1 << 64) - 1
Answer = Callable[[Call], int | None]


def mix64(value: int) -> int:
    z = value + 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def below(draw: int, bound: int) -> int:
    return (draw >> 32) * bound >> 32


def in_turn(ports: tuple[int, ...], place: int) -> tuple[int, ...]:
    return ports[place:] + ports[:place]


def ecmp(switch: Switch) -> Answer:
    seed = switch.constants["hash_seed"]

    def answer(call: Call) -> int | None:
        if not isinstance(call, Choose):
            return None
        return call.ports[below(mix64(seed ^ call.packet.entropy), len(call.ports))]

    return answer


class FlowletTable:
    """When and where the last packet of each entry went."""

    def __init__(self, constants: dict[str, int]) -> None:
        self.constants = constants
        self.entries: dict[int, tuple[int, int]] = {}

    def find(self, call: Choose) -> tuple[int, int | None]:
        """The packet's entry, and the port of the flowlet that goes on."""
        entry = mix64(self.constants["hash_seed"] ^ call.packet.entropy) % self.constants["entries"]
        last, port = self.entries.get(entry, (0, -1))
        goes_on = port in call.ports and (call.at_ps >> 10) - last <= self.constants["pause_limit"]
        return entry, port if goes_on else None

    def take(self, entry: int, call: Choose, port: int) -> None:
        self.entries[entry] = (call.at_ps >> 10, port)


def letflow(switch: Switch) -> Answer:
    table = FlowletTable(switch.constants)

    def answer(call: Call) -> int | None:
        if not isinstance(call, Choose):
            return None
        entry, port = table.find(call)
        if port is None:
            port = call.ports[below(call.draws[0], len(call.ports))]
        table.take(entry, call, port)
        return port

    return answer


def drill(switch: Switch) -> Answer:
    memories: dict[int, int] = {}
    per_rack = switch.constants["is_per_rack"]

    def answer(call: Call) -> int | None:
        if not isinstance(call, Choose):
            return None
        first, second = below(call.draws[0], len(call.ports)), below(call.draws[1], len(call.ports) - 1)
        tried = [call.ports[first], call.ports[second + (first <= second)]]
        memory = call.packet.dst_rack if per_rack else 0
        known = memories.get(memory)
        queues = {look.port: look.bytes for look in call.looks}
        if known in queues and known in call.ports:
            tried.insert(0, known)
        memories[memory] = min(tried, key=lambda port: queues[port])
        return memories[memory]

    return answer


def lbt(switch: Switch) -> Answer:
    now = {(name, place): value for name, place, value in switch.registers}
    flows: dict[int, tuple[int, int, int]] = {}

    def answer(call: Call) -> int | None:
        if isinstance(call, Registers):
            now.update({(name, place): value for name, place, value in call.registers})
        if not isinstance(call, Choose):
            return None
        entry = mix64(now["hash_seed", 0] ^ call.packet.entropy) % now["entries", 0]
        last, sent, port = flows.get(entry, (0, 0, -1))
        if now["period", 0] - last > now["forget", 0]:
            sent, port = 0, -1
        threshold = None
        if call.packet.kind == "data":
            sent += call.packet.wire_bytes
            if call.packet.class_ == "best-effort":
                threshold = now["threshold", 1]
            elif sent > now["long_after", 0]:
                threshold = now["threshold", 0]
        queues = {look.port: look.bytes for look in call.looks}
        if port not in call.ports:
            port = -1
        if port < 0 or (threshold is not None and queues[port] >= threshold):
            turn = in_turn(call.ports, below(call.draws[0], len(call.ports)))
            order = turn if port < 0 else (port, *turn)
            if threshold is None:
                port = min(order, key=lambda port: queues[port])
            else:
                allowed = [port for port in order if queues[port] < threshold]
                port = max(allowed or order, key=lambda port: queues[port])
        flows[entry] = (now["period", 0], sent, port)
        return port

    return answer


@dataclass
class TrFlow:
    """An entry of the flow table."""

    tag: int
    tnl: int = 0
    seen: int = 0
    sent: int = 0
    port: int = -1
    counted: bool = False
    taken: dict[int, int] = field(default_factory=dict)
    """When a packet that counts took each port last."""


class Tr:
    """A leaf or a spine."""

    def __init__(self, switch: Switch) -> None:
        self.now = {(name, place): value for name, place, value in switch.registers}
        self.tiers = switch.neighbour_tiers
        self.flows: dict[int, TrFlow] = {}
        self.listed: list[tuple[int, int]] = []
        """Entries of flows that may be active, oldest first, and when."""
        self.queues: dict[int, tuple[int, int]] = {}
        self.turn = 0

    def __call__(self, call: Call) -> int | None:
        if isinstance(call, Registers):
            self.now.update({(name, place): value for name, place, value in call.registers})
        if isinstance(call, OnArrival):
            return self.arriving(call)
        return self.choose(call) if isinstance(call, Choose) else None

    def arriving(self, call: OnArrival) -> int:
        packet = call.packet
        if not self.now["is_leaf", 0]:
            if self.tiers[call.port] != 0:
                return packet.scheme
            return min((call.looks[0].bytes << self.now["code_bits", 0]) // self.now["spine_buffer", 0], 31)
        if packet.dst_rack != self.now["rack", 0]:
            return packet.scheme
        way = packet.src_rack * self.now["ports", 0] + call.port
        self.queues[way] = (self.now["way_step_ps", way] * packet.scheme, call.at_ps + self.now["believe_ps", 0])
        return 0

    def choose(self, call: Choose) -> int:
        packet = call.packet
        hash_ = mix64(self.now["hash_seed", 0] ^ packet.entropy)
        if not self.now["is_leaf", 0] or packet.src_rack != self.now["rack", 0]:
            return call.ports[below(hash_, len(call.ports))]
        rtt = self.now["rtt_ps", 0]
        while self.listed and call.at_ps > self.listed[0][1] + rtt:
            listed, seen = self.listed.pop(0)
            if self.flows[listed].seen == seen:
                self.flows[listed].counted = False
        for one in self.flows.values():
            one.taken = {port: at for port, at in one.taken.items() if call.at_ps <= at + rtt}
        entry, tag = hash_ % self.now["entries", 0], hash_ >> 56
        flow = self.flows.get(entry)
        is_other = flow is not None and flow.tag != tag
        if flow is None or ((is_other or packet.kind == "syn") and not (is_other and call.at_ps - flow.seen <= rtt)):
            flow = self.flows[entry] = TrFlow(tag)
        is_answer = packet.kind in ("ack", "synack")
        is_long = False
        if not is_answer:
            flow.sent += packet.wire_bytes
            is_long = flow.sent > self.now["long_after", 0]
            flow.counted = flow.counted and not is_long
            flow.taken = {} if is_long else flow.taken
        takes, flow.port = self.uplink(call, flow, is_long)
        flow.tnl, flow.seen = call.at_ps + takes, call.at_ps
        if flow.counted or (not is_answer and not is_long):
            flow.counted = True
            self.listed.append((entry, call.at_ps))
        if not is_answer and not is_long:
            flow.taken[flow.port] = call.at_ps
        return flow.port

    def uplink(self, call: Choose, flow: TrFlow, is_long: bool) -> tuple[int, int]:
        order = in_turn(call.ports, self.turn % len(call.ports))
        self.turn += 1
        ways = {port: self.takes(call, port) for port in order}
        allowed = {}
        bar = flow.tnl + (0 if flow.port < 0 else self.now["margin_ps", 0])
        for port, takes in ways.items():
            if call.at_ps + takes + self.now["slack_ps", 0] > bar:
                allowed[port] = takes
            elif port == flow.port and self.now["follows_last", 0]:
                allowed[port] = max(takes, flow.tnl - call.at_ps)
        if not allowed:
            best = max(order, key=lambda port: ways[port])
            return ways[best], best

        def cost(port: int) -> tuple[int, int]:
            return self.shorts(port) if is_long else 0, allowed[port]

        best = min(allowed, key=cost)
        return allowed[best], best

    def shorts(self, port: int) -> int:
        if self.now["counts_each_uplink", 0]:
            return sum(port in one.taken for one in self.flows.values())
        return sum(one.counted and one.port == port for one in self.flows.values())

    def takes(self, call: Choose, port: int) -> int:
        way = call.packet.dst_rack * self.now["ports", 0] + port
        drain = next(look.drain_ps for look in call.looks if look.port == port)
        queue, until = self.queues.get(way, (0, 0))
        per_byte = (self.now["way_near_per_byte", way], self.now["way_far_per_byte", way])
        service = sum(-(-call.packet.wire_bytes * one >> 16) for one in per_byte)
        return drain + self.now["way_delay_ps", way] + service + (queue if until >= call.at_ps else 0)


@dataclass
class QallQueue:
    """Measurements where packets leave a queue."""

    left: int = 0
    cloned: int = 0
    backlog: int = 0
    is_rising: bool = False


class Qall:
    """Calls must come in the order of time: of packets that leave a queue, when they leave it."""

    def __init__(self, switch: Switch) -> None:
        self.of = switch.constants
        self.full = {place: value for name, place, value in switch.registers if name == "full"}
        self.table = FlowletTable(switch.constants)
        self.queues = {port: QallQueue() for port in self.full}
        self.congestion = dict.fromkeys(self.full, 0)
        self.clones: list[tuple[int, int, int]] = []

    def __call__(self, call: Call) -> int | None:
        if isinstance(call, OnEnqueued):
            self.leaves(call)
        return self.choose(call) if isinstance(call, Choose) else None

    def leaves(self, call: OnEnqueued) -> None:
        queue, found = self.queues[call.port], call.found_bytes
        if found != queue.backlog:
            queue.is_rising = found > queue.backlog
        interval, queue.left, queue.backlog = call.leaves_ps - queue.left, call.leaves_ps, found
        if call.leaves_ps - queue.cloned > self.of["update_ps"]:
            queue.cloned = call.leaves_ps
            occupancy = min(found * 1_024 // self.full[call.port], 1_024)
            ticks = min(interval // self.of["tick_ps"], self.of["time_constant_ticks"])
            trend = self.of["rising"] if queue.is_rising else self.of["falling"]
            congestion = occupancy * (self.of["time_constant_ticks"] - ticks) * trend
            heapq.heappush(self.clones, (call.leaves_ps + self.of["recirculation_ps"], call.port, congestion))

    def choose(self, call: Choose) -> int:
        while self.clones and self.clones[0][0] <= call.at_ps:
            _, port, congestion = heapq.heappop(self.clones)
            self.congestion[port] = congestion
        if not self.of["is_by_flowlet"]:
            return self.draw(call)
        entry, goes_on = self.table.find(call)
        port = self.draw(call) if goes_on is None else goes_on
        self.table.take(entry, call, port)
        return port

    def draw(self, call: Choose) -> int:
        weights = [max(self.of["max"] - self.congestion[port], self.of["floor"]) for port in call.ports]
        if sum(weights) == 0:
            return call.ports[below(call.draws[0], len(call.ports))]
        grid = call.draws[0] * sum(weights) >> 64
        for port, weight in zip(call.ports, weights, strict=True):
            if grid < weight:
                return port
            grid -= weight
        raise AssertionError("a draw is below the sum of the weights")


MODELS: dict[str, Callable[[Switch], Answer]] = {
    "ecmp": ecmp,
    "letflow": letflow,
    "drill": drill,
    "lbt": lbt,
    "tr": Tr,
    "qall": Qall,
}
