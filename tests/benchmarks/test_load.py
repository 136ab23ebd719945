"""The load generator on a broker that lies: what is not a delivery is not counted as one."""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from benchmarks.running import Failed, load

Deliver = Callable[[int, bytes], bytes]
PUBLISHED = re.compile(rb"PUB load\.0 (?:_INBOX\.load\.0 )?(\d+)\r\n")
MESSAGES = 20
SIZE = 32


class Broker:
    """Speaks just enough NATS; `deliver` makes a delivery of the number and payload of each."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._subscriber: socket.socket | None = None
        self._count = 0

    def serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                threading.Thread(target=self._talk, args=(peer,), daemon=True).start()

    def _talk(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer, peer.makefile("rb") as lines:
            peer.sendall(b"INFO {}\r\n")
            for line in lines:
                if line == b"PING\r\n":
                    peer.sendall(b"PONG\r\n")
                elif line.startswith(b"SUB "):
                    self._subscriber = peer
                elif found := PUBLISHED.match(line):
                    payload = lines.read(int(found[1]) + 2)
                    assert self._subscriber is not None
                    self._subscriber.sendall(self._deliver(self._count, payload))
                    self._count += 1


@contextlib.contextmanager
def broker(deliver: Deliver) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Broker(deliver)
        threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def honest(_number: int, payload: bytes) -> bytes:
    return b"MSG load.0 10000 %d\r\n%b" % (len(payload) - 2, payload)


def flow(deliver: Deliver) -> int:
    with broker(deliver) as port:
        figures = load("flow", protocol="nats", port=port, size=SIZE, count=MESSAGES, window=5)
    return int(figures["deliveries"])


def told(body: bytes) -> bytes:
    return b"MSG _INBOX.load.0 10000 %d\r\n%b\r\n" % (len(body), body)


def stored(number: int, _payload: bytes) -> bytes:
    return told(b'{"stream":"KEPT", "seq":%d}' % (number + 1))


def acknowledged(deliver: Deliver) -> int:
    with broker(deliver) as port:
        options = {"protocol": "nats", "size": SIZE, "count": MESSAGES, "window": 5}
        figures = load("acknowledged", port=port, **options)
    assert figures["published"] == figures["messages"]
    return int(figures["messages"])


def test_every_delivery_is_counted() -> None:
    assert flow(honest) == MESSAGES


def test_what_comes_between_deliveries_is_not_counted() -> None:
    assert flow(lambda number, payload: b"PING\r\n" + honest(number, payload)) == MESSAGES


def test_a_first_delivery_that_was_not_sent_is_found() -> None:
    with pytest.raises(Failed, match="what was delivered is not what was sent"):
        flow(lambda number, payload: honest(number, payload.upper()))


def test_a_delivery_that_begins_otherwise_is_found() -> None:
    with pytest.raises(Failed, match="the broker refused: -ERR 'Slow'"):
        flow(lambda number, payload: b"-ERR 'Slow'\r\n" if number == 9 else honest(number, payload))


def test_a_delivery_too_many_is_found() -> None:
    with pytest.raises(Failed, match=f"{MESSAGES + 1} were delivered of {MESSAGES}"):
        flow(lambda number, payload: honest(number, payload) * (1 + (number == MESSAGES)))


def test_bytes_that_are_left_over_are_found() -> None:
    def deliver(number: int, payload: bytes) -> bytes:
        return honest(number, payload) + (b"MSG load" if number == MESSAGES else b"")

    with pytest.raises(Failed, match="bytes are no whole delivery"):
        flow(deliver)


def test_every_acknowledgement_is_counted() -> None:
    assert acknowledged(stored) == MESSAGES


def test_what_comes_between_acknowledgements_is_not_counted() -> None:
    assert acknowledged(lambda number, payload: b"PING\r\n" + stored(number, payload)) == MESSAGES


def test_a_message_that_was_not_stored_is_found() -> None:
    refused = told(b'{"error":{"code":503},"stream":"KEPT","seq":0}')
    with pytest.raises(Failed, match=r"something else .* than that a message is kept"):
        acknowledged(lambda number, payload: refused if number == 9 else stored(number, payload))


def test_an_acknowledgement_too_many_is_found() -> None:
    with pytest.raises(Failed, match="more was acknowledged than was sent"):
        acknowledged(lambda number, _: stored(number, b"") * (1 + (number == MESSAGES - 1)))


def test_a_protocol_that_acknowledges_nothing_is_refused() -> None:
    with pytest.raises(Failed, match="mqtt acknowledges nothing"):
        load("acknowledged", protocol="mqtt", port=1)
