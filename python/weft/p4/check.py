"""Replays a recorded run of Weft through a program, and compares every decision."""

import heapq
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.errors import OutputError, SpecError
from weft.p4.bmv2 import SoftwareSwitch
from weft.p4.program import SIZES, compile_replay
from weft.p4.routes import routes_of
from weft.p4.schemes import Step, find, steps
from weft.p4.tools import Tools
from weft.p4.wire import Answer, Event, Replayed, decode, encode
from weft.recording import Choose, Recording, Switch

__all__ = ["Checked", "Difference", "Replay", "check"]

_ON_THE_WAY = 32
"""Packets in the switch at once: a queue of its ports holds 64, and drops what does not fit."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first decision of a switch on which the two do not agree."""

    number: int
    """Which decision of the switch, from 1."""
    step: Step
    answer: Answer

    def text(self) -> str:
        """Return the text of the difference: the input of both sides, and the decision of each."""
        replayed, call = self.step.replayed, self.step.call
        packet = replayed.packet
        saw = [f"at {replayed.now_ps} ps"]
        if packet is not None:
            saw.append(f"{packet.kind} of {packet.wire_bytes} B, host {packet.src} to {packet.dst}")
            saw.append(f"entropy {packet.entropy}")
        if isinstance(call, Choose):
            saw.append(f"next hops {', '.join(map(str, call.ports))}")
        if replayed.looks:
            saw.append("queues " + ", ".join(f"{look.port}: {look.bytes} B" for look in replayed.looks))
        if replayed.draws:
            saw.append("draws " + ", ".join(map(str, replayed.draws)))
        if self.step.port is not None:
            verdict = f"Weft chose port {self.step.port}, the program port {self.answer.out}"
        else:
            verdict = f"Weft wrote {self.step.word}, the program {self.answer.word}"
        return f"decision {self.number}: {'; '.join(saw)}: {verdict}"


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of the check at one switch."""

    switch: int
    tier: int
    ports: int
    decisions: int
    """Ports chosen, and header bits written."""
    equal: int
    packets: int
    """All packets of the replay."""
    beyond: int
    """Decisions of the run that were not recorded."""
    first: Difference | None


def check(
    recording: Recording,
    tools: Tools,
    programs: Path,
    *,
    only: int | None = None,
    keep: Path | None = None,
) -> Iterator[Checked]:
    """Replay each switch of a recording that decided something, and yield what came out.

    With `only`, that switch alone. `keep` is a folder for the compiled programs. Raises `SpecError` for a run that the
    program cannot replay, `OutputError` if a tool fails.
    """
    program = find(recording.scheme)
    for switch in recording.switches:
        if only is not None and switch.switch != only:
            continue
        program.check(recording.scheme, switch.constants)
        routes, epochs = routes_of(switch)
        told = steps(program, switch, epochs)
        if all(step.port is None and step.word is None for step in told):
            continue
        size = _size(switch)
        with tempfile.TemporaryDirectory(prefix="weft-p4-") as temporary:
            folder = Path(temporary)
            if keep is not None:
                folder = keep / f"{recording.scheme}-switch{switch.switch}"
                folder.mkdir(parents=True, exist_ok=True)
            macros: dict[str, int | str] = {**program.macros_of(switch), **routes.sizes, "PORTS": size}
            entries = routes.entries(size, recording.rack_of_host)
            compiled = compile_replay(tools.compiler, programs / program.file, folder, macros, entries)
            # Pipes are not kept.
            with (
                tempfile.TemporaryDirectory(prefix="weft-p4-") as pipes,
                SoftwareSwitch(tools.switch, compiled, size + 1, Path(pipes)) as bmv2,
            ):
                answers = Replay(bmv2, switch).run(told)
        yield _compare(switch, told, answers)


def _size(switch: Switch) -> int:
    for size in SIZES:
        if switch.ports <= size:
            return size
    raise SpecError(f"switch {switch.switch} has {switch.ports} ports: the programs have at most {SIZES[-1]}")


class Replay:
    """Packets that go through the switch in the order of time, and their answers."""

    def __init__(self, bmv2: SoftwareSwitch, switch: Switch) -> None:
        self._bmv2 = bmv2
        self._recirculation_ps = switch.constants.get("recirculation_ps", 0)
        self._sent = 0
        self._waiting: dict[int, Step | None] = {}
        """Steps without an answer yet, by number; None for a clone."""
        self._answers: dict[int, Answer] = {}
        self._clones: list[tuple[int, int, Replayed]] = []
        """Clones in recirculation: when they are back, the packet that each is of, and what comes back."""

    def run(self, told: list[Step]) -> list[Answer]:
        """Send these packets, and return the answer to each, in their order."""
        numbers = []
        for step in told:
            self._bring_clones(step.replayed.now_ps)
            numbers.append(self._send(step.replayed, step))
        while self._waiting:
            self._take()
        return [self._answers[number] for number in numbers]

    def _send(self, replayed: Replayed, step: Step | None) -> int:
        while len(self._waiting) >= _ON_THE_WAY:
            self._take()
        number = self._sent
        self._sent += 1
        self._waiting[number] = step
        self._bmv2.send(encode(number, replayed))
        return number

    def _take(self) -> None:
        for port, data in self._bmv2.receive():
            answer = decode(port, data)
            if answer.number not in self._waiting:
                raise OutputError(f"the software switch answered packet {answer.number}, which does not wait")
            step = self._waiting.pop(answer.number)
            self._answers[answer.number] = answer
            if step is not None and answer.event == Event.LEAVING and answer.flag == 1:
                back = step.replayed.now_ps + self._recirculation_ps
                clone = Replayed(Event.CLONE, now_ps=back, port=step.replayed.port, word=answer.word)
                heapq.heappush(self._clones, (back, answer.number, clone))

    def _bring_clones(self, now_ps: int) -> None:
        """Send the clones that are back by now, after every packet of which there may be one was answered."""

        def may_be_back(step: Step | None) -> bool:
            if step is None or step.replayed.event != Event.LEAVING:
                return False
            return step.replayed.now_ps + self._recirculation_ps <= now_ps

        while any(map(may_be_back, self._waiting.values())):
            self._take()
        while self._clones and self._clones[0][0] <= now_ps:
            self._send(heapq.heappop(self._clones)[2], None)


def _compare(switch: Switch, told: list[Step], answers: list[Answer]) -> Checked:
    decisions = equal = 0
    first = None
    for step, answer in zip(told, answers, strict=True):
        if step.port is None and step.word is None:
            continue
        decisions += 1
        if (step.port is None or step.port == answer.out) and (step.word is None or step.word == answer.word):
            equal += 1
        elif first is None:
            first = Difference(decisions, step, answer)
    return Checked(
        switch=switch.switch,
        tier=switch.tier,
        ports=switch.ports,
        decisions=decisions,
        equal=equal,
        packets=len(told),
        beyond=switch.beyond,
        first=first,
    )
