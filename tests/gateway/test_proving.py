import os
import socket

import pytest
from tests.core.locksmith import MADE, key_of, record

from weft.core.frames import Kind, encode
from weft.core.messages import Message
from weft.errors import BadKey
from weft.gateway.proving import check_shown

KEYS = (record("one", service="orders"), record("boss", "admin"), record("gone", revoked=MADE))


def greeting(**shown: object) -> bytes:
    return encode(Kind.CONNECT, b"orders", Message(**shown).encode())


def check(first: bytes) -> bytes:
    """Check what a connection sent first; what can still be read of it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(first)
        check_shown(theirs.fileno(), "orders", KEYS)
        return theirs.recv(65_536)


@pytest.mark.parametrize("name", ["one", "boss"])
def test_a_key_is_seen_and_nothing_is_taken(name: str) -> None:
    request = f"GET /orders/ws HTTP/1.1\r\nauthorization:Bearer {key_of(name)}\r\n\r\n".encode()
    for first in (greeting(key=key_of(name)) + b"more", request):
        assert check(first) == first


@pytest.mark.parametrize(
    "first",
    [
        b"\x00",
        b"GET /orders/ws HTTP/1.1\r\nHost: x\r\n\r\n",
        encode(Kind.CONNECT, b"orders"),
        greeting(client="x"),
        greeting(key=7),
        greeting(ticket="x"),
        greeting(key=key_of("one"))[:-1],
        encode(Kind.CONNECT, b"orders", b"nonsense"),
        f"GET /orders/ws?key={key_of('one')} HTTP/1.1\r\n\r\n".encode(),
    ],
)
def test_who_shows_none_is_told_that_one_is_needed(first: bytes) -> None:
    with pytest.raises(BadKey, match="a key is needed"):
        check(first)


@pytest.mark.parametrize("key", [key_of("gone"), key_of("other"), "x", key_of("one")[:-1] + "y"])
def test_who_shows_another_is_told_that_it_is_not_accepted(key: str) -> None:
    with pytest.raises(BadKey, match="the key is not accepted"):
        check(greeting(key=key))


def test_a_key_of_another_service_is_not_accepted() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(greeting(key=key_of("one")))
        with pytest.raises(BadKey, match="the key is not accepted"):
            check_shown(theirs.fileno(), "weather", KEYS)


def test_whoever_is_gone_shows_nothing() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs, pytest.raises(BadKey, match="a key is needed"):
        check_shown(theirs.fileno(), "orders", KEYS)
    reading, writing = os.pipe()
    with pytest.raises(BadKey, match="a key is needed"):
        check_shown(reading, "orders", KEYS)
    os.close(reading)
    os.close(writing)
