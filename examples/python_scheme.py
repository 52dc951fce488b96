"""A load balancer in a dozen lines: of two random ports and the last one used, take the emptiest (like DRILL)."""

import random
from collections.abc import Sequence

import weft


class TwoChoices(weft.SwitchChooser):
    """Remembers one port for each switch; draws from its own random stream, so a run can be repeated."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        self.last: dict[int, int] = {}

    def choose(self, switch: int, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        """Return the position of the port to use."""
        candidates = {self.random.randrange(len(ports)), self.random.randrange(len(ports))}
        candidates.add(min(self.last.get(switch, 0), len(ports) - 1))
        chosen = min(sorted(candidates), key=lambda port: ports[port].backlog_bytes)
        self.last[switch] = chosen
        return chosen


if __name__ == "__main__":
    comparison = weft.compare(["ecmp", "drill", TwoChoices], set={"traffic.flows": 200})
    print(comparison.table.select("scheme", "mean_fct_us", "p99_fct_us", "out_of_order_share"))
