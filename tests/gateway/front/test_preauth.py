import os
import socket

import pytest
from tests.broker.locksmith import MADE, key_of, record

from weft.errors import BadGreeting, BadKey, NoSuchService, WeftError
from weft.gateway.config.settings import Settings
from weft.gateway.front.fd_passing import AS_FRAMES, AS_HTTP, AS_LINK
from weft.gateway.front.preauth import UnauthenticatedConnection, check_start
from weft.gateway.keys.key_file import Records
from weft.transports.http.origins import UnknownHost, UntrustedOrigin
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

KEYS = (
    record("one", service="orders"),
    record("boss", "admin"),
    record("gone", revoked=MADE),
    record("guest", "client", service="orders"),
)


def greeting(**shown: object) -> bytes:
    return encode(Kind.CONNECT, b"orders", Message(**shown).encode())


def start(
    first: bytes, way: int = AS_FRAMES, *, service: str = "orders", keys: Records | None = KEYS
) -> bytes:
    """Have a service started for what a connection sent first; what can still be read of it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(first)
        ours.shutdown(socket.SHUT_WR)
        check_start(UnauthenticatedConnection(theirs.fileno(), service, way), Settings(), keys)
        return theirs.recv(65_536)


@pytest.mark.parametrize("name", ["one", "boss"])
def test_a_key_is_seen_and_nothing_is_taken(name: str) -> None:
    request = f"GET /orders/ws HTTP/1.1\r\nauthorization:Bearer {key_of(name)}\r\n\r\n".encode()
    for first in (greeting(key=key_of(name)) + b"more", request):
        assert start(first) == first


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
        start(first)


@pytest.mark.parametrize("key", [key_of("gone"), key_of("other"), "x", key_of("one")[:-1] + "y"])
def test_who_shows_another_is_told_that_it_is_not_accepted(key: str) -> None:
    with pytest.raises(BadKey, match="the key is not accepted"):
        start(greeting(key=key))


def test_a_key_of_another_service_is_not_accepted() -> None:
    with pytest.raises(BadKey, match="the key is not accepted"):
        start(greeting(key=key_of("one")), service="weather")


def test_whoever_is_gone_shows_nothing() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs, pytest.raises(BadKey, match="a key is needed"):
        check_start(
            UnauthenticatedConnection(theirs.fileno(), "orders", AS_FRAMES), Settings(), KEYS
        )
    reading, writing = os.pipe()
    with pytest.raises(BadKey, match="a key is needed"):
        check_start(UnauthenticatedConnection(reading, "orders", AS_FRAMES), Settings(), KEYS)
    os.close(reading)
    os.close(writing)


def test_the_key_of_a_client_starts_no_service() -> None:
    with pytest.raises(NoSuchService, match="'orders' is not running"):
        start(greeting(key=key_of("guest")))


HEAD = b"GET /orders/ws HTTP/1.1\r\nHost: %b\r\n%b\r\n"
STRANGE = {
    "another name": (HEAD % (b"evil.example", b""), UnknownHost),
    "more than a name": (HEAD % (b"[::1]evil", b""), UnknownHost),
    "an untrusted page": (HEAD % (b"localhost", b"Origin: http://evil\r\n"), UntrustedOrigin),
    "another site": (HEAD % (b"localhost", b"Sec-Fetch-Site: cross-site\r\n"), UntrustedOrigin),
    "half a head": (HEAD[:-2] % (b"localhost", b""), BadGreeting),
    "a bare line feed": (HEAD % (b"localhost", b"X: 1\n"), BadGreeting),
    "two hosts": (HEAD % (b"localhost", b"Host: localhost\r\n"), BadGreeting),
    "no header": (HEAD % (b"localhost", b"X\r\n"), BadGreeting),
}


@pytest.mark.parametrize(("first", "refusal"), STRANGE.values(), ids=STRANGE.keys())
def test_a_request_of_a_stranger_starts_nothing_also_without_keys(
    first: bytes, refusal: type[WeftError]
) -> None:
    with pytest.raises(refusal):
        start(first, AS_HTTP, keys=None)


def test_a_page_that_is_trusted_may_have_a_service_started() -> None:
    own = HEAD % (b"localhost", b"Origin: http://localhost\r\n")
    start(own, AS_HTTP, keys=None)
    start(HEAD % (b"localhost", b""), AS_HTTP, keys=None)
    shown = b"Authorization: Bearer %b\r\n" % key_of("one").encode()
    start(HEAD % (b"localhost", shown), AS_HTTP)


def test_a_link_is_judged_elsewhere() -> None:
    start(b"", AS_LINK)
