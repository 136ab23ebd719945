import asyncio
import socket
from collections.abc import Iterator

import pytest

from weft.gateway.front.pending_connections import Lobby, Visitor


class Watched:
    """A lobby, and what it said of whom."""

    def __init__(self) -> None:
        self.lobby = Lobby(self._look, self._late)
        self.looked: asyncio.Queue[tuple[Visitor, bool]] = asyncio.Queue()
        self.late: asyncio.Queue[Visitor] = asyncio.Queue()

    def _look(self, visitor: Visitor, is_all: bool) -> None:
        self.looked.put_nowait((visitor, is_all))

    def _late(self, visitor: Visitor) -> None:
        self.lobby.forget(visitor)
        self.late.put_nowait(visitor)

    def close(self) -> None:
        self.lobby.empty()
        self.lobby.close()


class Pair:
    """A connected pair of sockets, one of them a visitor."""

    def __init__(self, peer: socket.socket, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.peer = peer
        self.sock = sock
        self.visitor = Visitor(sock.fileno(), "peer", float("inf"), is_encrypted=False)

    def close(self) -> None:
        self.peer.close()
        self.sock.close()


def tcp_pair() -> Pair:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = socket.create_connection(listening.getsockname())
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Pair(peer, listening.accept()[0])


@pytest.fixture
def one() -> Iterator[Pair]:
    pair = tcp_pair()
    yield pair
    pair.close()


@pytest.fixture
def other() -> Iterator[Pair]:
    pair = tcp_pair()
    yield pair
    pair.close()


async def test_nobody_is_woken_before_enough_bytes_have_come(one: Pair, other: Pair) -> None:
    watched = Watched()
    watched.lobby.keep(one.visitor, 4)
    watched.lobby.keep(other.visitor, 1)
    for byte in b"abc":
        one.peer.sendall(bytes([byte]))
    other.peer.sendall(b"x")
    # What was sent later is seen first, so what was sent earlier woke nobody.
    assert await watched.looked.get() == (other.visitor, False)
    one.peer.sendall(b"d")
    assert await watched.looked.get() == (one.visitor, False)
    assert one.sock.recv(10) == b"abcd"
    watched.close()


async def test_asking_for_more_waits_again(one: Pair) -> None:
    watched = Watched()
    watched.lobby.keep(one.visitor, 4)
    one.peer.sendall(b"abcd")
    await watched.looked.get()
    watched.lobby.keep(one.visitor, 6)
    one.peer.sendall(b"ef")
    assert await watched.looked.get() == (one.visitor, False)
    assert watched.looked.empty()
    watched.close()


async def test_a_visitor_that_hangs_up_is_seen_however_little_it_sent(one: Pair) -> None:
    watched = Watched()
    watched.lobby.keep(one.visitor, 4)
    one.peer.sendall(b"a")
    one.peer.shutdown(socket.SHUT_WR)
    assert await watched.looked.get() == (one.visitor, True)
    watched.close()


async def test_a_unix_socket_that_says_too_little_does_not_wake_us_for_ever(one: Pair) -> None:
    watched = Watched()
    pair = Pair(*socket.socketpair())
    watched.lobby.keep(pair.visitor, 4)
    pair.peer.sendall(b"a")
    assert await watched.looked.get() == (pair.visitor, False)
    watched.lobby.keep(one.visitor, 1)
    one.peer.sendall(b"x")
    assert await watched.looked.get() == (one.visitor, False)
    watched.close()
    pair.close()


async def test_who_is_forgotten_gets_its_socket_back_as_it_came(one: Pair) -> None:
    watched = Watched()
    watched.lobby.keep(one.visitor, 40)
    assert one.visitor in watched.lobby
    watched.lobby.forget(one.visitor)
    assert one.visitor not in watched.lobby
    assert len(watched.lobby) == 0
    assert one.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
    watched.close()


async def test_who_is_forgotten_wakes_nobody(one: Pair, other: Pair) -> None:
    watched = Watched()
    watched.lobby.keep(one.visitor, 1)
    # As after a hand-over, someone else still has the socket when ours is closed.
    with one.sock.dup():
        watched.lobby.forget(one.visitor)
        one.sock.close()
        watched.lobby.keep(other.visitor, 1)
        one.peer.sendall(b"x")
        other.peer.sendall(b"y")
        assert await watched.looked.get() == (other.visitor, False)
    watched.close()


async def test_whoever_takes_too_long_is_named_and_nobody_else(one: Pair, other: Pair) -> None:
    watched = Watched()
    one.visitor.deadline = asyncio.get_running_loop().time()
    watched.lobby.keep(one.visitor, 4)
    watched.lobby.keep(other.visitor, 4)
    assert await watched.late.get() is one.visitor
    assert other.visitor in watched.lobby
    other.visitor.deadline = 0.0
    assert await watched.late.get() is other.visitor
    watched.close()


async def test_the_oldest_is_who_came_first(one: Pair, other: Pair) -> None:
    watched = Watched()
    watched.lobby.keep(one.visitor, 4)
    watched.lobby.keep(other.visitor, 4)
    watched.lobby.keep(one.visitor, 8)
    assert watched.lobby.oldest is one.visitor
    assert watched.lobby.empty() == [one.visitor, other.visitor]
    watched.close()


async def test_one_who_was_pushed_out_in_the_same_turn_is_not_looked_at(
    one: Pair, other: Pair
) -> None:
    seen: list[Visitor] = []
    done = asyncio.Event()

    def look(visitor: Visitor, _is_all: bool) -> None:
        seen.append(visitor)
        lobby.empty()
        done.set()

    lobby = Lobby(look, seen.append)
    lobby.keep(one.visitor, 1)
    lobby.keep(other.visitor, 1)
    one.peer.sendall(b"x")
    other.peer.sendall(b"x")
    await done.wait()
    assert len(seen) == 1
    lobby.close()
