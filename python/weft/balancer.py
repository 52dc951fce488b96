"""A load balancer written in Python, for trying out an idea before writing it in Rust.

It is asked once for every packet that has more than one next hop, so a run is some hundred times slower than
with a scheme of the core. It sees what any switch scheme sees: its own ports and the packet in hand.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["PacketView", "PortView", "SwitchBalancer"]


class PacketView(Protocol):
    """The packet in hand."""

    @property
    def src(self) -> int:
        """Number of the source host."""

    @property
    def dst(self) -> int:
        """Number of the destination host."""

    @property
    def flow(self) -> int:
        """Number of the flow."""

    @property
    def entropy(self) -> int:
        """Hash of the five-tuple, which an ECMP hash mixes in."""

    @property
    def size_bytes(self) -> int:
        """Size on the wire, in bytes."""

    @property
    def seq(self) -> int:
        """Number of the segment in its flow, from 0; on an acknowledgement, of the segment that is waited for."""

    @property
    def is_ack(self) -> bool:
        """Whether the packet is an acknowledgement without payload."""


class PortView(Protocol):
    """One port that leads to the destination, as its own switch sees it."""

    @property
    def index(self) -> int:
        """Number of the port at its switch."""

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued or in service."""

    @property
    def rate_bps(self) -> int:
        """Rate of the link now, in bits per second."""

    @property
    def weight(self) -> int:
        """Capacity behind the port towards the destination, in Mbit/s."""


@runtime_checkable
class SwitchBalancer(Protocol):
    """What `weft.run(..., balancer=...)` needs: one method. Subclass it or just have the method.

    One object serves all switches of a run; keep state by `switch` and never let one switch read another's.
    """

    def choose(self, switch: int, packet: PacketView, ports: Sequence[PortView]) -> int:
        """Return the position in `ports` of the port that the packet shall leave by."""
        ...
