"""Brokers that say one thing, and what is understood of it."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from benchmarks.peers.kept.stores import STORES
from benchmarks.running import Failed


@contextlib.contextmanager
def saying(*words: bytes) -> Iterator[int]:
    """A port where everybody is told the same, at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"".join(words))
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass

        thread = threading.Thread(target=talk)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def answer(body: bytes) -> bytes:
    return b"MSG answer 1 %d\r\n%b\r\n" % (len(body), body)


def test_redis_counts_what_is_in_a_stream() -> None:
    with saying(b":12\r\n") as port:
        assert STORES["redis"].kept(port) == 12


def test_redis_that_does_not_count_is_found() -> None:
    with saying(b"-WRONGTYPE\r\n") as port, pytest.raises(Failed, match="WRONGTYPE"):
        STORES["redis"].kept(port)


def test_jetstream_counts_what_is_in_a_stream() -> None:
    body = b'{"type": "info", "state": {"messages": 12}}'
    with saying(b"INFO {}\r\n", b"PING\r\n", answer(body)) as port:
        assert STORES["nats"].kept(port) == 12


def test_a_stream_that_is_not_made_is_found() -> None:
    body = b'{"error": {"code": 500, "description": "no space"}}'
    with (
        saying(b"INFO {}\r\n", answer(body)) as port,
        pytest.raises(Failed, match=r"STREAM.CREATE.KEPT: no space"),
    ):
        STORES["nats"].prepare(port)


def test_a_server_without_streams_is_found() -> None:
    with (
        saying(b"INFO {}\r\n", b"-ERR 'Unknown'\r\n") as port,
        pytest.raises(Failed, match=r"-ERR 'Unknown'"),
    ):
        STORES["nats"].prepare(port)
