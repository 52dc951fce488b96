"""Packets of a replay, as `p4/include/headers.p4` has them: Ethernet, what Weft knew, IPv4 and TCP."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from weft.recording import Header, Look

__all__ = ["KINDS", "MOST_DRAWS", "Answer", "Event", "Replayed", "address", "decode", "encode"]

_ETHERTYPE_IPV4 = 0x0800
_ETHERTYPE_REPLAY = 0x88B5
_PROTOCOL_TCP = 6
_DSCP_BEST_EFFORT = 1
_ETHERNET = struct.Struct("!6s6sH")
_REPLAY = struct.Struct("!BBHIQIHHQQHIQHQH")
_LOOK = struct.Struct("!HQQ")
_IPV4 = struct.Struct("!BBHHHBBHII")
_TCP = struct.Struct("!HHIIBBHHH")
_HEADERS = _IPV4.size + _TCP.size
_LINK_HEADERS = 18
"""Ethernet's header and check sum."""
_TCP_FLAGS = {"data": 0x10, "ack": 0x10, "syn": 0x02, "synack": 0x12}
_HOP_BITS = 3
_HOPS = 7
"""TR leaves the TTL three bits, and takes five for its code."""
KINDS = frozenset(_TCP_FLAGS)
"""Kinds of packets that TCP has headers for."""
MOST_DRAWS = 2


class Event(IntEnum):
    """Kind of a packet of a replay."""

    CHOOSE = 0
    ARRIVING = 1
    LEAVING = 2
    CLONE = 3
    REGISTER = 4


@dataclass(frozen=True, slots=True)
class Replayed:
    """A packet of a replay: what the program is told."""

    event: Event
    now_ps: int = 0
    port: int = 0
    """By which port it came in, or leaves."""
    packet: Header | None = None
    looks: Sequence[Look] = ()
    draws: Sequence[int] = ()
    """At most `MOST_DRAWS`."""
    epoch: int = 0
    """Which routes are in force."""
    name: int = 0
    """Number of the register that the packet sets, with `place` and `value`."""
    place: int = 0
    value: int = 0
    """Also the bytes that a packet found that leaves."""
    word: int = 0
    """Header bits, at most five, or what a clone carries."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A packet that came out of the switch."""

    number: int
    event: Event
    out: int
    """The port that it came out of."""
    flag: int
    """1 if the program wants a clone."""
    word: int


def address(host: int) -> int:
    """The IPv4 address of a host: 10.0.0.0/8 and its number."""
    return 10 << 24 | host


def encode(number: int, replayed: Replayed) -> bytes:
    """The packet's bytes. `number` comes back with the answer."""
    packet = replayed.packet
    first, second = (*replayed.draws, 0, 0)[:2]
    head = _REPLAY.pack(
        replayed.event,
        len(replayed.looks),
        replayed.port,
        number,
        replayed.now_ps,
        0 if packet is None else packet.entropy,
        0 if packet is None else packet.wire_bytes,
        replayed.epoch,
        first,
        second,
        replayed.name,
        replayed.place,
        replayed.value,
        0,
        replayed.word,
        _ETHERTYPE_IPV4,
    )
    looks = b"".join(_LOOK.pack(look.port, look.bytes, look.drain_ps) for look in replayed.looks)
    ethernet = _ETHERNET.pack(bytes(6), bytes(6), _ETHERTYPE_REPLAY)
    code = replayed.word if replayed.event == Event.ARRIVING else 0
    return ethernet + head + looks + _ip(packet, code << _HOP_BITS | _HOPS)


def _ip(packet: Header | None, ttl: int) -> bytes:
    """The headers of IPv4 and TCP. What is behind them is cut off, but counts in the length."""
    kind, src, dst, class_, payload = "ack", 0, 0, "unknown", 0
    if packet is not None:
        kind, src, dst, class_ = packet.kind, packet.src, packet.dst, packet.class_
        payload = max(1, packet.wire_bytes - _LINK_HEADERS - _HEADERS) if kind == "data" else 0
    dscp = _DSCP_BEST_EFFORT if class_ == "best-effort" else 0
    ip = _IPV4.pack(4 << 4 | 5, dscp << 2, _HEADERS + payload, 0, 0, ttl, _PROTOCOL_TCP, 0, address(src), address(dst))
    return ip + _TCP.pack(0, 0, 0, 0, 5 << 4, _TCP_FLAGS[kind], 0, 0, 0)


def decode(out: int, data: bytes) -> Answer:
    """Decode the packet that came out of port `out`.

    Raises `ValueError` for what is no packet of a replay.
    """
    if len(data) < _ETHERNET.size + _REPLAY.size:
        raise ValueError(f"{len(data)} bytes are no packet of a replay")
    *_, ether_type = _ETHERNET.unpack_from(data)
    if ether_type != _ETHERTYPE_REPLAY:
        raise ValueError(f"a packet of type {ether_type:#06x} is none of a replay")
    event, _, _, number, *_, flag, word, _ = _REPLAY.unpack_from(data, _ETHERNET.size)
    return Answer(number=number, event=Event(event), out=out, flag=flag, word=word)
