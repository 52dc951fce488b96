"""LetFlow in Python: the scheme of the core decision by decision, with its clock, hash and random stream.

weft compare --schemes letflow:gap=50us,letflow.py:LetFlow:gap=50us
"""

from collections.abc import Mapping, Sequence

import weft
from weft.scheme import mix64

TICK_PS = 1024


class LetFlow(weft.Scheme):
    """A table of flowlets by hash: when the last packet passed, and by which port."""

    def __init__(self, info: weft.SwitchInfo, *, gap: weft.Time = weft.Time("500us"), entries: int = 65_536) -> None:
        super().__init__(info)
        self.gap_ticks = -(-gap // TICK_PS)
        self.entries = entries
        self.table: dict[int, tuple[int, int]] = {}
        self.flowlets = 0

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        """Stay with the port of a flowlet that goes on; begin another at random."""
        slot = mix64(self.info.hash_seed ^ packet.entropy) % self.entries
        now = switch.now_ps // TICK_PS
        last, port = self.table.get(slot, (0, -1))
        numbers = [port.index for port in ports]
        if port in numbers and now - last <= self.gap_ticks:
            position = numbers.index(port)
        else:
            self.flowlets += 1
            position = switch.below(len(ports))
        self.table[slot] = (now, numbers[position])
        return position

    def state_bytes(self) -> int:
        """Eight bytes an entry."""
        return 8 * self.entries

    def counters(self) -> Mapping[str, int]:
        """Flowlets that began."""
        return {"flowlets": self.flowlets}


if __name__ == "__main__":
    few = {"traffic.flows": 100}
    core = weft.run("", scheme="letflow:gap=50us", set=few)
    python = weft.run("", scheme=f"{__file__}:LetFlow:gap=50us", set=few)
    assert python.flows.equals(core.flows), "another decision"
    print(f"{len(core.flows)} flows, the same to the bit; mean FCT {core.summary.fct_us.mean:.1f} us")
