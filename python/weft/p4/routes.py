"""Routes of a switch, as entries of the programs' tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.p4.wire import address
from weft.recording import Choose, Switch

__all__ = ["Routes", "routes_of"]


@dataclass(slots=True)
class Routes:
    """The routes of a switch over time: an epoch ends where a destination is found to have other next hops."""

    groups: dict[tuple[int, ...], int] = field(default_factory=dict)
    """The number of each group of next hops, from 1."""
    epochs: list[dict[int, tuple[tuple[int, ...], int]]] = field(default_factory=lambda: [{}])
    """By epoch and destination: its next hops and its rack."""

    def take(self, call: Choose) -> int:
        """Learn the next hops of a decision; return its epoch."""
        self.groups.setdefault(call.ports, len(self.groups) + 1)
        found = (call.ports, call.packet.dst_rack)
        if self.epochs[-1].setdefault(call.packet.dst, found) != found:
            self.epochs.append({call.packet.dst: found})
        return len(self.epochs) - 1

    def route_entries(self, ports: int) -> str:
        """Entries of the table of routes, for a program of so many ports."""
        return "".join(
            f"(16w{epoch}, 32w{address(host)} &&& 32w0xffffffff) : "
            f"to_group({self.groups[hops]}, {len(hops)}, {ports}w{sum(1 << port for port in hops)}, {rack});\n"
            for epoch, routes in enumerate(self.epochs)
            for host, (hops, rack) in sorted(routes.items())
        )

    def member_entries(self) -> str:
        """Entries of the table of members."""
        return "".join(
            f"(16w{group}, 16w{place}) : by({port});\n"
            for hops, group in self.groups.items()
            for place, port in enumerate(hops)
        )

    def entries(self, ports: int, rack_of_host: Sequence[int]) -> dict[str, str]:
        """Entries of all tables, by table. A table that the program does not have is no harm."""
        racks = enumerate(rack_of_host)
        return {
            "routes": self.route_entries(ports),
            "members": self.member_entries(),
            "racks": "".join(f"32w{address(host)} &&& 32w0xffffffff : is_in({rack});\n" for host, rack in racks),
        }

    @property
    def sizes(self) -> dict[str, int]:
        """How many entries each table needs."""
        return {
            "ROUTES": max(1, sum(len(routes) for routes in self.epochs)),
            "MEMBERS": max(1, sum(len(hops) for hops in self.groups)),
        }


def routes_of(switch: Switch) -> tuple[Routes, list[int]]:
    """The routes of a switch, and the epoch of each of its calls."""
    routes = Routes()
    epochs = []
    for call in switch.calls:
        epochs.append(routes.take(call) if isinstance(call, Choose) else len(routes.epochs) - 1)
    return routes, epochs
