import os
import socket
from collections.abc import Iterator

import pytest
from tests.transports.loops import tcp_pair

from weft.transports.loop.syscalls import BROKEN, NOT_NOW, accept, peek, receive, send

DATA = bytearray(b"0123456789")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        yield one, other


def test_a_stretch_of_a_buffer_is_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    assert send(one.fileno(), DATA, 2, 5) == 5
    assert other.recv(100) == b"23456"


def test_what_comes_is_read_into_a_stretch(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    other.sendall(b"abcdef")
    data = bytearray(10)
    assert receive(one.fileno(), data, 3, 4) == 4
    assert data == b"\0\0\0abcd\0\0\0"


def test_what_was_looked_at_can_still_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    other.sendall(b"abcdef")
    data = bytearray(6)
    assert peek(one.fileno(), data, 4) == 4
    assert data == b"abcd\0\0"
    assert one.recv(100) == b"abcdef"


def test_a_connection_is_taken_off_a_port_with_the_address_of_its_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            accept(listening.fileno())
        with socket.create_connection(listening.getsockname()) as peer:
            fd, host, port = accept(listening.fileno())
            assert (host, port) == peer.getsockname()
            assert not os.get_blocking(fd)
            assert not os.get_inheritable(fd)
            os.close(fd)


def test_nothing_to_read_is_not_now(pair: tuple[socket.socket, socket.socket]) -> None:
    assert receive(pair[0].fileno(), bytearray(4), 0, 4) == NOT_NOW
    assert peek(pair[0].fileno(), bytearray(4), 4) == NOT_NOW


def test_the_end_is_nothing(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    other.close()
    assert peek(one.fileno(), bytearray(4), 4) == 0
    assert receive(one.fileno(), bytearray(4), 0, 4) == 0


def test_a_full_socket_takes_a_part_and_then_nothing_now(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    one, _ = pair
    large = bytearray(64 << 20)
    assert 0 < send(one.fileno(), large, 0, len(large)) < len(large)
    while (count := send(one.fileno(), large, 0, len(large))) > 0:
        pass
    assert count == NOT_NOW


def test_a_reader_that_is_gone_is_broken(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    other.close()
    assert send(one.fileno(), DATA, 0, 4) == BROKEN


def test_a_connection_that_was_reset_is_broken() -> None:
    client, theirs = tcp_pair()
    with theirs:
        client.reset()
        assert receive(theirs.fileno(), bytearray(4), 0, 4) == BROKEN


def test_a_connection_that_was_reset_is_broken_for_who_only_looks() -> None:
    client, theirs = tcp_pair()
    with theirs:
        client.reset()
        assert peek(theirs.fileno(), bytearray(4), 4) == BROKEN


def test_a_descriptor_that_is_closed_is_broken() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert receive(reading, bytearray(4), 0, 4) == BROKEN
    assert send(writing, DATA, 0, 4) == BROKEN
