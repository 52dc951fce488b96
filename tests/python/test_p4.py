"""P4 programs: what a replay tells them, and that they decide as Weft does, where the P4 tools are."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Test, Weft
from weft.errors import OutputError, SpecError
from weft.p4 import wire
from weft.p4.bmv2 import SoftwareSwitch
from weft.p4.check import Replay, check
from weft.p4.program import compile_with_entries
from weft.p4.routes import routes_of
from weft.p4.samples import sample
from weft.p4.schemes import SCHEMES, Step, find, steps
from weft.p4.stages import count_json
from weft.p4.tools import Tools, find_tools
from weft.p4.wire import Event, Replayed
from weft.recording import Choose, Header, Look, OnEnqueued, Recording, Registers, Switch, record

PROGRAMS = Path(__file__).resolve().parents[2] / "p4"
HAS_TOOLS = all(shutil.which(name) for name in ("p4c-bm2-ss", "simple_switch"))
TOOLS_ARE_MISSING = pytest.mark.skipif(not HAS_TOOLS, reason="p4c-bm2-ss and simple_switch are not on the PATH")
PROGRAMMED = [{"tr": "tr:counted=last:last_uplink=always"}.get(scheme, scheme) for scheme in SCHEMES]
"""Each scheme as its program has it."""
MASK = (1 << 64) - 1
PACKET = Header(
    kind="data",
    entropy=0xDEADBEEF,
    src=3,
    src_rack=0,
    dst=260,
    dst_rack=16,
    wire_bytes=1_500,
    class_="best-effort",
    scheme=5,
)


def needs_tools(test: Test) -> Test:
    """Mark a test of compiled P4 programs: it is a nightly one, and skips without their tools."""
    for mark in (pytest.mark.nightly, TOOLS_ARE_MISSING):
        mark(test)
    return test


def recorded(variant: str, most: int = 2_000, flows: int = 300) -> Recording:
    """The sample run, as a scheme decided in it."""
    text = sample(is_steady=variant.startswith("qall"))
    return record(text, set={"traffic.flows": flows}, seed=1, scheme=variant, most=most)


def choices(switch: Switch) -> list[Choose]:
    return [call for call in switch.calls if isinstance(call, Choose)]


def header_fields(name: str) -> list[tuple[int, str]]:
    """Bits and names of the fields of a header of the programs."""
    text = (PROGRAMS / "include" / "headers.p4").read_text(encoding="utf-8")
    body = re.search(rf"header {name} {{(.*?)}}", text, re.S)
    assert body is not None
    return [(int(bits), field) for bits, field in re.findall(r"bit<(\d+)>\s+(\w+);", body[1])]


@pytest.mark.parametrize(
    ("header", "layout"),
    [("ethernet_t", "_ETHERNET"), ("replay_t", "_REPLAY"), ("look_t", "_LOOK"), ("ipv4_t", "_IPV4"), ("tcp_t", "_TCP")],
)
def test_headers_are_as_long_as_the_programs_have_them(header: str, layout: str) -> None:
    assert getattr(wire, layout).size * 8 == sum(bits for bits, _ in header_fields(header))


def read(data: bytes) -> dict[str, int]:
    """The fields of the replay header, as the programs would read them."""
    number, place, found = int.from_bytes(data[14:], "big"), (len(data) - 14) * 8, {}
    for bits, field in header_fields("replay_t"):
        place -= bits
        found[field] = number >> place & (1 << bits) - 1
    return found


def test_the_programs_read_what_was_written() -> None:
    looks = [Look(port=4, bytes=3_000, drain_ps=2_400_000), Look(port=7, bytes=0, drain_ps=0)]
    told = Replayed(
        Event.CHOOSE, now_ps=1 << 50, port=6, packet=PACKET, looks=looks, draws=[MASK, 7], epoch=2, name=3, place=9,
        value=1 << 40, word=1 << 63,
    )  # fmt: skip
    data = wire.encode(77, told)
    assert read(data) == {
        "event": 0,
        "looks": 2,
        "port": 6,
        "number": 77,
        "now_ps": 1 << 50,
        "entropy": 0xDEADBEEF,
        "wire_bytes": 1_500,
        "epoch": 2,
        "draw0": MASK,
        "draw1": 7,
        "name": 3,
        "place": 9,
        "value": 1 << 40,
        "answer": 0,
        "word": 1 << 63,
        "ether_type": 0x0800,
    }
    answer = wire.decode(5, data)
    assert (answer.number, answer.event, answer.out, answer.flag, answer.word) == (77, Event.CHOOSE, 5, 0, 1 << 63)
    ip = data[-40:]
    assert int.from_bytes(ip[16:20], "big") == wire.address(260) == 0x0A000104
    assert ip[1] >> 2 == 1, "best effort"


@pytest.mark.parametrize(
    ("kind", "flags", "has_payload"),
    [("data", 0x10, True), ("ack", 0x10, False), ("syn", 2, False), ("synack", 0x12, False)],
)
def test_the_kind_of_a_packet_is_in_its_tcp_header_and_length(kind: str, flags: int, has_payload: bool) -> None:
    packet = Header(
        kind=kind, entropy=0, src=0, src_rack=0, dst=1, dst_rack=0, wire_bytes=64, class_="unknown", scheme=0
    )
    ip = wire.encode(0, Replayed(Event.CHOOSE, packet=packet))[-40:]
    assert ip[33] == flags
    assert (int.from_bytes(ip[2:4], "big") > 40) == has_payload


def test_what_is_no_packet_of_a_replay_is_refused() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        wire.decode(0, b"abc")
    with pytest.raises(ValueError, match="0x0000"):
        wire.decode(0, bytes(200))


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_replay_has_every_recorded_decision_and_the_queues_of_all_next_hops_or_none(scheme: str) -> None:
    recording = recorded(scheme)
    decided = 0
    for switch in recording.switches:
        routes, epochs = routes_of(switch)
        told = steps(find(scheme), switch, epochs)
        ports = [step.port for step in told if step.port is not None]
        if scheme != "qall":
            assert ports == [call.port for call in choices(switch)]
        assert Counter(ports) == Counter(call.port for call in choices(switch))
        decided += len(ports)
        for call in choices(switch):
            assert not call.looks or {look.port for look in call.looks} >= set(call.ports)
            assert call.port in call.ports
            assert sum(len(group) for group in routes.groups) == routes.sizes["MEMBERS"]
    assert decided > 3_000


def test_routes_begin_a_new_epoch_where_a_destination_has_other_next_hops() -> None:
    switch = next(switch for switch in recorded("ecmp", 10_000).switches if switch.switch == 1)
    routes, epochs = routes_of(switch)
    assert len(routes.epochs) > 1, "an uplink of leaf 1 fails"
    for call, epoch in zip(switch.calls, epochs, strict=True):
        if isinstance(call, Choose):
            assert routes.epochs[epoch][call.packet.dst] == (call.ports, call.packet.dst_rack)
    assert routes.member_entries().splitlines()[0] == f"(16w1, 16w0) : by({min(routes.groups)[0]});"


class Echo:
    """A switch that sends each packet out of the port that a function names, and asks for a clone of what leaves."""

    def __init__(self, out: Callable[[dict[str, int]], int]) -> None:
        self.out = out
        self.seen: list[dict[str, int]] = []
        self.waiting: list[tuple[int, bytes]] = []

    def send(self, data: bytes) -> None:
        fields = read(data)
        self.seen.append(fields)
        if fields["event"] == Event.LEAVING:
            answer = (
                14
                + sum(bits for bits, name in header_fields("replay_t") if name not in ("answer", "word", "ether_type"))
                // 8
            )
            data = data[:answer] + (1).to_bytes(2, "big") + fields["number"].to_bytes(8, "big") + data[answer + 10 :]
        self.waiting.append((self.out(fields), data))

    def receive(self) -> list[tuple[int, bytes]]:
        found, self.waiting = self.waiting[::-1], []
        return found


def test_answers_are_matched_to_packets_whatever_the_order_in_which_they_come() -> None:
    switch = Switch(switch=0, tier=0, ports=8, neighbour_tiers=[], calls=[], beyond=0)
    call = Choose(at_ps=0, packet=PACKET, ports=(0, 1, 2), looks=[], draws=[], port=0)
    told = [Step(Replayed(Event.CHOOSE, now_ps=at), call, port=at % 3) for at in range(200)]
    bmv2: Any = Echo(lambda fields: fields["now_ps"] % 3)
    answers = Replay(bmv2, switch).run(told)
    assert [answer.out for answer in answers] == [step.port for step in told]


def test_a_clone_is_back_when_recirculation_is_over_and_not_before() -> None:
    registers = Registers(at_ps=0, registers=[("recirculation_ps", 0, 100)])
    switch = Switch(switch=0, tier=0, ports=8, neighbour_tiers=[], calls=[registers], beyond=0)
    call = Choose(at_ps=0, packet=PACKET, ports=(0, 1), looks=[], draws=[], port=0)
    leaves = OnEnqueued(at_ps=0, packet=PACKET, port=1, leaves_ps=50, found_bytes=0)
    told = [Step(Replayed(Event.LEAVING, now_ps=50, port=1), leaves)]
    told += [Step(Replayed(Event.CHOOSE, now_ps=at), call, port=0) for at in (60, 149, 150, 151)]
    bmv2: Any = Echo(lambda _: 0)
    Replay(bmv2, switch).run(told)
    order = [(Event(fields["event"]).name, fields["now_ps"]) for fields in bmv2.seen]
    chosen = [("CHOOSE", at) for at in (60, 149)]
    assert order == [("LEAVING", 50), *chosen, ("CLONE", 150), ("CHOOSE", 150), ("CHOOSE", 151)]


def test_a_scheme_without_a_program_and_a_parameter_that_it_lacks_are_refused() -> None:
    with pytest.raises(SpecError, match="conga has no P4 program: ecmp, letflow"):
        find("conga")
    tools = Tools(compiler="none", switch="none")
    with pytest.raises(SpecError, match="d = 2"):
        list(check(recorded("drill:d=3", 10, flows=10), tools, PROGRAMS))
    for scheme in ("drill", "letflow"):
        with pytest.raises(SpecError, match='acknowledgements = "balanced"'):
            list(check(recorded(f"{scheme}:acknowledgements=ecmp", 10, flows=10), tools, PROGRAMS))
    with pytest.raises(SpecError, match=r'counted = "last".*last_uplink = "always".*slack = 0s'):
        list(check(recorded("tr:slack=step", 10, flows=10), tools, PROGRAMS))
    with pytest.raises(SpecError, match="margin = 0s"):
        list(check(recorded("tr:margin=2us", 10, flows=10), tools, PROGRAMS))


def test_without_the_tools_one_message_says_what_is_missing_and_where_it_is(
    weft_command: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = weft_command("p4", "check", "ecmp", "--programs", PROGRAMS)
    assert (done.code, done.stdout) == (2, "")
    for part in (
        "p4c-bm2-ss (https://github.com/p4lang/p4c)",
        "simple_switch (https://github.com/p4lang/behavioral-model)",
    ):
        assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_without_programs_is_refused(weft_command: Weft, tmp_path: Path) -> None:
    done = weft_command("p4", "check", "ecmp", "--programs", tmp_path)
    assert done.code == 2
    assert "no P4 programs in" in done.stderr


def test_stages_of_a_small_pipeline_are_those_counted_by_hand() -> None:
    def field(name: str) -> dict[str, Any]:
        return {"type": "field", "value": ["scalars", name]}

    def assign(to: str, *of: str) -> dict[str, Any]:
        return {"op": "assign", "parameters": [field(to), *(field(name) for name in of)]}

    read_register = {
        "op": "register_read",
        "parameters": [field("d"), {"type": "register_array", "value": "r"}, field("c")],
    }
    # Stage 1: a. Stage 2: b of a, and the table by a. Stage 3, by the condition on b: c. Stage 4: the register at c.
    program = {
        "actions": [
            {"id": 0, "primitives": [assign("a", "x"), assign("b", "a")]},
            {"id": 1, "primitives": [assign("e", "x")]},
            {"id": 2, "primitives": [assign("c", "x"), read_register]},
        ],
        "pipelines": [
            {
                "name": "ingress",
                "init_table": "first",
                "tables": [
                    {"name": "first", "key": [], "action_ids": [0], "next_tables": {"act": "second"}},
                    {
                        "name": "second",
                        "key": [{"match_type": "exact", "target": ["scalars", "a"]}],
                        "action_ids": [1],
                        "next_tables": {"act": "whether"},
                    },
                    {"name": "third", "key": [], "action_ids": [2], "next_tables": {"act": None}},
                ],
                "conditionals": [
                    {"name": "whether", "expression": field("b"), "true_next": "third", "false_next": None}
                ],
            }
        ],
        "register_arrays": [{"name": "r", "size": 10, "bitwidth": 12}, {"name": "unused", "size": 10, "bitwidth": 8}],
    }
    counted = count_json(program)
    (pipeline,) = counted.pipelines
    assert (pipeline.tables, pipeline.conditions, pipeline.operations, pipeline.stages) == (1, 1, 5, 4)
    assert [(one.name, one.bytes, one.accesses) for one in counted.registers] == [("r", 20, 1)]


@needs_tools
@pytest.mark.parametrize(
    "variant", [*PROGRAMMED, "letflow:gap=20us:entries=64", "drill:memory=rack", "qall:granularity=flowlet:gap=50us"]
)
def test_a_program_decides_as_weft_does(variant: str) -> None:
    for checked in check(recorded(variant, 300), find_tools(), PROGRAMS):
        assert checked.equal == checked.decisions > 0, checked.first and checked.first.text()


@needs_tools
def test_a_program_that_decides_otherwise_is_found_out(tmp_path: Path) -> None:
    wrong = tmp_path / "p4"
    shutil.copytree(PROGRAMS, wrong)
    text = (wrong / "ecmp.p4").read_text(encoding="utf-8")
    (wrong / "ecmp.p4").write_text(text.replace("HASH_SEED ^", "1 + HASH_SEED ^"), encoding="utf-8")
    checked = next(check(recorded("ecmp", 300), find_tools(), wrong))
    assert checked.equal < checked.decisions
    assert checked.first is not None
    assert "Weft chose port" in checked.first.text()


@needs_tools
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_program_forwards_what_a_real_switch_gets(scheme: str, tmp_path: Path) -> None:
    """Without a replay: plain packets, and the switch's own clock, hash, random numbers and queues."""
    entries = {
        # Hosts 2 and 3 are behind ports 1 and 2, host 1 behind port 3.
        "routes": f"(16w0, 32w{wire.address(1)} &&& 32w0xffffffff) : to_port(3);\n"
        f"(16w0, 32w{wire.address(2)} &&& 32w0xfffffffe) : to_group(1, 2, 0b110, 1);\n",
        "members": "(16w1, 16w0) : by(1);\n(16w1, 16w1) : by(2);\n",
        "racks": f"32w{wire.address(0)} &&& 32w0xfffffffe : is_in(0);\n"
        f"32w{wire.address(2)} &&& 32w0xfffffffe : is_in(1);\n",
    }
    tools = find_tools()
    program = compile_with_entries(tools.compiler, PROGRAMS / find(scheme).file, tmp_path, {"PORTS": 8}, entries)
    out: dict[int, set[int]] = {}
    of_flow: dict[tuple[int, int], set[int]] = {}
    with SoftwareSwitch(tools.switch, program, 4, tmp_path) as bmv2:
        for number in range(64):
            flow = number % 16
            # To the hosts behind two ports and to the one behind one; 48 has no route.
            for dst in (2, 1, 3, 48):
                bmv2.send(plain_packet(flow, dst))
            left = 3
            while left > 0:
                for port, data in bmv2.receive():
                    dst, flow = data[33], int.from_bytes(data[34:36], "big")
                    out.setdefault(dst, set()).add(port)
                    of_flow.setdefault((dst, flow), set()).add(port)
                    left -= 1
    assert set(out) == {1, 2, 3}, "a packet without a route is dropped"
    assert out[1] == {3}
    assert out[2] | out[3] <= {1, 2}
    # DRILL stays where it was while no queue is shorter.
    assert out[2] | out[3] == {1, 2} or scheme == "drill"
    if scheme == "ecmp":
        assert all(len(ports) == 1 for ports in of_flow.values()), "a flow keeps its port"


def plain_packet(flow: int, dst: int) -> bytes:
    """A full data packet of host 0, cut off behind its headers."""
    ethernet = bytes(12) + (0x0800).to_bytes(2, "big")
    addresses = wire.address(0).to_bytes(4, "big") + wire.address(dst).to_bytes(4, "big")
    ip = bytes([0x45, 0]) + (1_500).to_bytes(2, "big") + bytes([0, 0, 0, 0, 64, 6, 0, 0]) + addresses
    tcp = (1_000 + flow).to_bytes(2, "big") + (80).to_bytes(2, "big") + bytes(8) + bytes([0x50, 0x10]) + bytes(6)
    return ethernet + ip + tcp


@needs_tools
def test_a_switch_that_ends_is_said_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}", encoding="utf-8")
    with (
        SoftwareSwitch(find_tools().switch, tmp_path / "no.json", 2, tmp_path) as bmv2,
        pytest.raises(OutputError, match="ended with code"),
    ):
        bmv2.receive()
