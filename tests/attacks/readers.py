"""Subscribers in a process of their own, which can be stopped as a debugger or a lid stops it.

What each heard is checked where it was heard: bodies are numbers that only ever grow.
"""

import json
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.attacks.gateway_process import WAIT_S
from tests.attacks.stranger import CONNECT, fields, message

from weft.wire.frames import Decoder, Kind, encode, parse

_ROOT = Path(__file__).parents[2]
_PING = encode(Kind.PING)


def numbered(numbers: range, subjects: int = 50) -> bytes:
    """Messages to `flood.>` for readers: each begins with its number and is 8,000 bytes long."""
    rest = bytes(7990)
    return b"".join(
        message(b"flood.%d" % (number % subjects), b"%010d" % number + rest) for number in numbers
    )


class Readers:
    """So many connections that have said the same, such as what they subscribe to."""

    def __init__(self, port: int, count: int, said: bytes) -> None:
        arguments = (str(port), str(count), said.hex())
        self._process = subprocess.Popen(  # noqa: S603  # our own command
            (sys.executable, "-m", "tests.attacks.readers", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate(timeout=WAIT_S)

    def stop(self) -> None:
        """Let them read nothing until they go on."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def heard(self) -> list[dict[str, Any]]:
        """What each heard up to the message "the end", or to the end of its connection."""
        assert self._process.stdout is not None
        heard: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return heard


class Reader:
    """One of them."""

    def __init__(self, port: int, said: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(CONNECT + said + _PING)
        self._decoder = Decoder()
        self._last = -1
        self.messages = 0
        self.missed = 0
        self.is_in_order = True
        self.is_ready = False
        self.is_cut = False
        self.is_done = False

    def read(self) -> None:
        """Take what came."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            self.is_cut = self.is_done = True
        self._decoder.feed(data)
        while (frame := self._decoder.next_frame()) is not None:
            self._take(frame)

    def facts(self) -> dict[str, Any]:
        names = ("messages", "missed", "is_in_order", "is_cut")
        return {name: getattr(self, name) for name in names}

    def _take(self, frame: bytes) -> None:
        parts = parse(frame)
        if parts.kind == Kind.PONG:
            self.is_ready = True
        elif parts.kind == Kind.GAP:
            self.missed += fields(parts)["count"]
        elif parts.kind == Kind.MESSAGE and parts.body == b"the end":
            self.is_done = True
        elif parts.kind == Kind.MESSAGE:
            number = int(parts.body[:10])
            self.is_in_order = self.is_in_order and number > self._last
            self._last = number
            self.messages += 1


def main(port: int, count: int, said: bytes) -> None:
    """Subscribe, say so, read until everyone has heard the end, and say what each heard."""
    readers = [Reader(port, said) for _ in range(count)]
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while not all(reader.is_ready for reader in readers):
            _read(selector)
        print("ready", flush=True)
        while not all(reader.is_done for reader in readers):
            _read(selector)
    print(json.dumps([reader.facts() for reader in readers]), flush=True)
    sys.stdin.read()


def _read(selector: selectors.BaseSelector) -> None:
    for key, _ in selector.select():
        key.data.read()
        if key.data.is_done:
            selector.unregister(key.fileobj)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3]))
