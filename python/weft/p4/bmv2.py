"""BMv2's `simple_switch` as a function: packets in by one port, packets out by all, through pipes in pcap form.

The switch reads and writes pcap files (`--use-files`). Here these are named pipes, so that a packet goes in when it is
time for it. All go in by port 0, in their order, whatever port they say that they came by: one thread of the switch
takes them.
"""

import contextlib
import os
import selectors
import socket
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from weft.errors import OutputError

__all__ = ["SoftwareSwitch"]

_PCAP_FILE = struct.Struct("<IHHiIII")
_PCAP_PACKET = struct.Struct("<IIII")
_PCAP_MAGIC = 0xA1B2C3D4
_PCAP_HEAD = _PCAP_FILE.pack(_PCAP_MAGIC, 2, 4, 0, 0, 65_535, 1)
_READ_BYTES = 1 << 16
_PATIENCE_S = 60.0
"""How long the switch may say nothing. On an idle machine it starts within a second and answers within milliseconds."""


def _free_port() -> int:
    """A TCP port that nobody listens at. The switch wants one for its controller, whom nobody plays here."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class SoftwareSwitch:
    """A running switch: a context manager, which ends the process and closes the pipes."""

    def __init__(self, executable: str, program: Path, ports: int, folder: Path) -> None:
        self._folder = folder
        self._said = folder / "switch.log"
        self._command = [executable, "--use-files", "0", "--thrift-port", str(_free_port())]
        self._pipes: dict[int, int] = {}
        self._buffers: dict[int, bytearray] = {}
        self._has_head: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._process: subprocess.Popen[bytes] | None = None
        self._input = -1
        for port in range(ports):
            self._add_port(port)
        self._command.append(str(program))

    def _add_port(self, port: int) -> None:
        name = self._folder / f"port{port}"
        enters, leaves = Path(f"{name}_in.pcap"), Path(f"{name}_out.pcap")
        if port == 0:
            os.mkfifo(enters)
            # For both, so that opening does not wait for the switch.
            self._input = os.open(enters, os.O_RDWR)
        else:
            enters.write_bytes(_PCAP_HEAD)
        os.mkfifo(leaves)
        pipe = os.open(leaves, os.O_RDONLY | os.O_NONBLOCK)
        self._pipes[port], self._buffers[port] = pipe, bytearray()
        self._selector.register(pipe, selectors.EVENT_READ, port)
        self._command += ["-i", f"{port}@{name}"]

    def __enter__(self) -> Self:
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self._folder
            )
        os.write(self._input, _PCAP_HEAD)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._selector.close()
        for pipe in (self._input, *self._pipes.values()):
            with contextlib.suppress(OSError):
                os.close(pipe)

    def send(self, packet: bytes) -> None:
        """Put a packet in. At most so many may be on their way that a pipe holds them: a few dozen."""
        head = _PCAP_PACKET.pack(0, 0, len(packet), len(packet))
        os.write(self._input, head + packet)

    def receive(self) -> list[tuple[int, bytes]]:
        """Wait until something comes out: ports and packets. Raises `OutputError` if the switch ended, or is silent."""
        waited = 0.0
        while waited < _PATIENCE_S:
            ready = self._selector.select(timeout=1.0)
            found = [packet for key, _ in ready for packet in self._read(key.data)]
            if found:
                return found
            waited += 1.0
            if self._process is not None and self._process.poll() is not None:
                code = self._process.returncode
                raise OutputError(f"the software switch ended with code {code}: {self._last_words()}")
        raise OutputError(f"the software switch said nothing for {_PATIENCE_S:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        said = self._said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(said[-3:]) or "no message"

    def _read(self, port: int) -> list[tuple[int, bytes]]:
        buffer = self._buffers[port]
        with contextlib.suppress(BlockingIOError):
            buffer += os.read(self._pipes[port], _READ_BYTES)
        if port not in self._has_head:
            if len(buffer) < _PCAP_FILE.size:
                return []
            del buffer[: _PCAP_FILE.size]
            self._has_head.add(port)
        packets = []
        while len(buffer) >= _PCAP_PACKET.size:
            length = _PCAP_PACKET.unpack_from(buffer)[2]
            end = _PCAP_PACKET.size + length
            if len(buffer) < end:
                break
            packets.append((port, bytes(buffer[_PCAP_PACKET.size : end])))
            del buffer[:end]
        return packets
