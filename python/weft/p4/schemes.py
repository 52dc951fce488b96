"""Which schemes have programs, and how a recorded call becomes a packet of a replay."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weft.errors import SpecError
from weft.p4.wire import KINDS, MOST_DRAWS, Event, Replayed
from weft.recording import Call, Choose, OnArrival, OnEnqueued, OnPortChange, Registers, Switch

__all__ = ["SCHEMES", "Program", "Step", "find", "steps"]


@dataclass(frozen=True, slots=True)
class Step:
    """A packet of a replay, and what must come of it."""

    replayed: Replayed
    call: Call
    port: int | None = None
    """The port that Weft chose; none if the call chooses none."""
    word: int | None = None
    """The header bits that Weft wrote; none if it writes none."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a scheme."""

    file: str
    macros: Mapping[str, str] = field(default_factory=dict)
    """By macro, the register that it stands for."""
    wide: frozenset[str] = frozenset()
    """Macros of 64 bits."""
    needs: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By register, the one value that the program has, and what to say of another one."""
    registers: Mapping[str, int] = field(default_factory=dict)
    """Registers that change while the switch works: their numbers."""
    of_ports: Callable[[Switch], Mapping[str, str]] | None = None
    """Macros that follow from the ports of a switch. Raises `SpecError` for ports that the program cannot have."""
    replays_arrivals: bool = False
    replays_queues: bool = False
    """Packets are replayed when they leave a queue, too, and may come back as clones."""

    def check(self, scheme: str, constants: Mapping[str, int]) -> None:
        """Raise `SpecError` that names all parameters which the program does not know."""
        unknown = [why for name, (value, why) in self.needs.items() if constants.get(name, value) != value]
        if unknown:
            raise SpecError(f"{scheme}: {'; '.join(unknown)}")

    def macros_of(self, switch: Switch) -> dict[str, str]:
        """The macros for a switch."""
        constants = switch.constants
        found = {macro: constants[name] for macro, name in self.macros.items() if name in constants}
        written = {macro: f"64w{value}" if macro in self.wide else str(value) for macro, value in found.items()}
        return {**written, **({} if self.of_ports is None else self.of_ports(switch))}


def _tiers(switch: Switch) -> Mapping[str, str]:
    found = {"LEAF_PORTS": str(sum(1 << port for port, tier in enumerate(switch.neighbour_tiers) if tier == 0))}
    if switch.constants.get("entries") == 0:
        # A spine has no flow table, and a program no array without entries.
        found["ENTRIES"] = "1"
    return {**found, "WAYS": str(max(1, sum(name == "way_delay_ps" for name, _, _ in switch.registers)))}


def _full_queue(switch: Switch) -> Mapping[str, str]:
    if any(isinstance(call, OnPortChange) for call in switch.calls):
        raise SpecError(
            "qall: a port changes while packets wait in it, and a replay knows only when they were to leave"
        )
    full = {value for name, _, value in switch.registers if name == "full" and value > 0}
    if len(full) > 1:
        raise SpecError(f"qall: the program has one length of a full queue; here are {len(full)}")
    return {"FULL": str(next(iter(full), 1))}


_FLOWLETS = {"HASH_SEED": "hash_seed", "ENTRIES": "entries", "PAUSE_LIMIT": "pause_limit"}
_SEED = frozenset({"HASH_SEED"})
_BALANCED = {"acknowledges_by_ecmp": (0, 'the program chooses for every packet: acknowledgements = "balanced"')}

SCHEMES: Mapping[str, Program] = {
    "ecmp": Program(
        "ecmp.p4",
        macros={"HASH_SEED": "hash_seed"},
        wide=_SEED,
        needs={"is_symmetric": (0, 'the program has no symmetric hash: hash is "per-switch" or "shared"')},
    ),
    "letflow": Program("letflow.p4", macros=_FLOWLETS, wide=_SEED, needs=_BALANCED),
    "drill": Program(
        "drill.p4",
        macros={"IS_PER_RACK": "is_per_rack"},
        needs={
            "samples": (2, "the program samples two ports: d = 2"),
            "remembered": (1, "the program remembers one port: m = 1"),
            "is_late": (0, "the program sees its queues as they are: age = 0"),
            "is_per_host": (0, 'the program remembers by switch or by rack: memory = "switch" or "rack"'),
            "only_waiting": (0, 'the program counts the packet in service: length = "all"'),
            **_BALANCED,
        },
    ),
    "lbt": Program(
        "lbt.p4",
        macros={"HASH_SEED": "hash_seed", "ENTRIES": "entries", "LONG_AFTER": "long_after", "FORGET": "forget"},
        wide=_SEED,
        needs={
            "is_long_by_packet": (0, 'the program moves long flows at the threshold: long_choice = "at-threshold"'),
            "is_short_by_packet": (0, 'the program keeps short flows on their port: short_choice = "flow"'),
        },
        registers={"period": 1, "threshold": 2},
    ),
    "tr": Program(
        "tr.p4",
        macros={
            "HASH_SEED": "hash_seed",
            "ENTRIES": "entries",
            "IS_LEAF": "is_leaf",
            "RACK": "rack",
            "LONG_AFTER": "long_after",
            "RTT_PS": "rtt_ps",
            "BELIEVE_PS": "believe_ps",
            "SPINE_BUFFER": "spine_buffer",
            "WAY_PORTS": "ports",
        },
        wide=_SEED,
        needs={
            "code_bits": (5, "the program has codes of the TTL's five bits: code_bits = 5"),
            "counts_each_uplink": (0, 'the program counts a flow on its last uplink: counted = "last"'),
            "follows_last": (1, 'the program lets a packet follow its flow\'s last one: last_uplink = "always"'),
            "slack_ps": (0, "the program compares times of arrival as they are: slack = 0s"),
            "margin_ps": (0, "the program compares times of arrival as they are: margin = 0s"),
            "is_by_uplink": (0, 'the program has a spine queue for each rack: spine_queue = "by-rack"'),
        },
        registers={"way_delay_ps": 1, "way_near_per_byte": 2, "way_far_per_byte": 3, "way_step_ps": 4},
        of_ports=_tiers,
        replays_arrivals=True,
    ),
    "qall": Program(
        "qall.p4",
        macros={
            **_FLOWLETS,
            "IS_BY_FLOWLET": "is_by_flowlet",
            "UPDATE_PS": "update_ps",
            "TICK_PS": "tick_ps",
            "TIME_CONSTANT_TICKS": "time_constant_ticks",
            "RISING": "rising",
            "FALLING": "falling",
            "MOST": "max",
            "FLOOR": "floor",
        },
        wide=_SEED,
        of_ports=_full_queue,
        replays_queues=True,
    ),
}


def find(scheme: str) -> Program:
    """The program of a scheme, by the scheme's name. Raises `SpecError` if it has none."""
    program = SCHEMES.get(scheme)
    if program is None:
        raise SpecError(f"{scheme} has no P4 program: {', '.join(SCHEMES)} have one")
    return program


def _check_kind(call: Choose | OnArrival | OnEnqueued) -> None:
    if call.packet.kind not in KINDS:
        raise SpecError(f"a replay has packets of TCP only: this run has one of kind {call.packet.kind}")


def _choose(call: Choose, epoch: int) -> Step:
    if len(call.draws) > MOST_DRAWS:
        raise SpecError(f"a replay has {MOST_DRAWS} draws a packet: the scheme drew {len(call.draws)}")
    replayed = Replayed(
        Event.CHOOSE, now_ps=call.at_ps, packet=call.packet, looks=call.looks, draws=call.draws, epoch=epoch
    )
    return Step(replayed, call, port=call.port)


def _arriving(call: OnArrival) -> Step:
    replayed = Replayed(
        Event.ARRIVING,
        now_ps=call.at_ps,
        packet=call.packet,
        port=call.port,
        looks=call.looks,
        word=call.packet.scheme,
    )
    return Step(replayed, call, word=call.scheme_after)


def _leaving(call: OnEnqueued) -> Step:
    return Step(
        Replayed(Event.LEAVING, now_ps=call.leaves_ps, packet=call.packet, port=call.port, value=call.found_bytes),
        call,
    )


def _registers(program: Program, call: Registers) -> list[Step]:
    return [
        Step(Replayed(Event.REGISTER, now_ps=call.at_ps, name=program.registers[name], place=place, value=value), call)
        for name, place, value in call.registers
        if name in program.registers
    ]


def steps(program: Program, switch: Switch, epochs: list[int]) -> list[Step]:
    """Return the steps to replay to the program, in the order of time."""
    found: list[Step] = []
    for call, epoch in zip(switch.calls, epochs, strict=True):
        if isinstance(call, Registers):
            found += _registers(program, call)
            continue
        if isinstance(call, Choose | OnArrival | OnEnqueued):
            _check_kind(call)
        if isinstance(call, Choose):
            found.append(_choose(call, epoch))
        elif isinstance(call, OnArrival) and program.replays_arrivals:
            found.append(_arriving(call))
        elif isinstance(call, OnEnqueued) and program.replays_queues:
            found.append(_leaving(call))
    # Packets leave queues later than they came into them.
    return sorted(found, key=lambda step: step.replayed.now_ps) if program.replays_queues else found
