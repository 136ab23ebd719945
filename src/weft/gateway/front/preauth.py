"""Pre-authentication: the key in the first bytes of a connection, checked before work is done.

The bytes are peeked: the service that gets the connection reads all of them and checks again.
"""

import os
import re
import socket
import time
from collections.abc import Mapping
from typing import NamedTuple

import h11

from weft.broker.auth.keys import Key, Keyring
from weft.broker.handshake import no_key, not_accepted
from weft.errors import BadGreeting, BadKey, NoSuchService, WeftError
from weft.gateway.config.settings import Settings, web_of
from weft.gateway.front.fd_passing import AS_HTTP, AS_LINK
from weft.gateway.keys.key_file import Records
from weft.gateway.mesh.membership import MeshMembership
from weft.transports.http.origins import UnknownHost, UntrustedOrigin, check_page
from weft.transports.http.request_head import BadRequest, check_head, request_of
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, parse
from weft.wire.message.message import Message

LOOK_BYTES = 32 << 10

_HEAD_END = b"\r\n\r\n"

_BEARER = re.compile(
    rb"\r\nauthorization:[ \t]*bearer[ \t]+([!-~]{1,255})[ \t]*\r\n", re.IGNORECASE
)


# Errors of connections that did not authenticate.
STRANGE = (UnknownHost, UntrustedOrigin, BadGreeting, BadKey)


class UnauthenticatedConnection(NamedTuple):
    """An unread connection, and its service and protocol by its first bytes."""

    fd: int
    service: str
    way: int


def check_start(
    newcomer: UnauthenticatedConnection, settings: Settings, keys: Records | None
) -> None:
    """Check that a connection may start the service that it names.

    Raises:
        UnknownHost: HTTP request to a host name that is not this gateway's.
        UntrustedOrigin: HTTP request of a page from an untrusted origin.
        BadGreeting: Invalid HTTP request.
        BadKey: There are keys, and the connection has none that opens the service.
        NoSuchService: Key of a client, which starts no service.
    """
    if newcomer.way == AS_LINK:
        return
    data = _first_bytes(newcomer.fd)
    if newcomer.way == AS_HTTP:
        check_page(_headers_in(data), web_of(settings))
    if keys is not None and check_shown(data, newcomer.service, keys).is_client:
        raise NoSuchService(
            f"service {newcomer.service!r} is not running, and a client's key does not start it"
        )


def check_link(fd: int, service: str, is_there: bool, membership: MeshMembership | None) -> None:
    """Check that a link may be passed to a service if there are keys; it starts no service.

    Raises:
        BadGreeting: This gateway has no secret or roster, so it accepts no links.
        NoSuchService: The service does not run.
        NotAdmitted: The service does not run, and the other gateway may not know that.
    """
    if membership is None or not membership.mesh.is_guarded:
        raise BadGreeting("this gateway is in no mesh")
    if not is_there:
        from weft.gateway.mesh.authentication import refusal  # noqa: PLC0415  # needs an extra

        data = _first_bytes(fd)
        frame = data[: u32_at(data, 0)] if len(data) >= HEADER_BYTES else b""
        raise refusal(membership, service, parse(frame))


def check_shown(data: bytes, service: str, keys: Records) -> Key:
    """Return the key in the first bytes of a connection, which opens a service.

    Raises:
        BadKey: Missing key, or one that is not accepted.
    """
    text = _shown(data)
    if not text:
        raise no_key()
    # Only keys with its id: matching all would cost more than an unauthenticated peer may.
    likely = [each for each in keys if each.id == text[3:11] and each.is_for(service)]
    key = Keyring(likely).match(text, time.time_ns())
    if key is None:
        raise not_accepted()
    return key


def _headers_in(data: bytes) -> Mapping[str, str]:
    """Return the headers of a request, parsed as its service would.

    Raises:
        BadGreeting: Incomplete or invalid head.
    """
    end = data.find(_HEAD_END)
    if end < 0:
        raise BadGreeting(f"the head of a request does not end within {len(data)} bytes")
    head = data[: end + len(_HEAD_END)]
    http = h11.Connection(h11.SERVER, len(head) + 1)
    try:
        check_head(head)
        http.receive_data(head)
        event = http.next_event()
        if isinstance(event, h11.Request):
            return request_of(event).headers
    except (BadRequest, h11.RemoteProtocolError) as error:
        # The text of h11 may repeat the bytes of the peer.
        text = str(error) if isinstance(error, BadRequest) else "invalid HTTP request"
        raise BadGreeting(text) from error
    raise BadGreeting("not an HTTP request")


def _first_bytes(fd: int) -> bytes:
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return sock.recv(LOOK_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        # The peer has closed it, or sent nothing.
        return b""


def _shown(data: bytes) -> str:
    """Return the key in a CONNECT, or in the head of an HTTP request; empty if there is none."""
    found = _BEARER.search(data)
    if found is not None:
        return found[1].decode()
    if len(data) < HEADER_BYTES or not HEADER_BYTES <= u32_at(data, 0) <= len(data):
        return ""
    try:
        key = Message.from_body(parse(data[: u32_at(data, 0)]).body).get("key", "")
    except WeftError:
        return ""
    return key if isinstance(key, str) else ""
