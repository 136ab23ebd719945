"""Whether a newcomer shows a key, seen in its first bytes before anything is done for it.

They are looked at and not taken: whoever gets the connection reads them all, and judges for itself.
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
from weft.gateway.mesh.membership import Membership
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


# What is wrong with a connection of which nobody knows whose it is.
STRANGE = (UnknownHost, UntrustedOrigin, BadGreeting, BadKey)


class Newcomer(NamedTuple):
    """A connection of which nothing was read, and what its first bytes say it is for."""

    fd: int
    service: str
    way: int


def check_start(newcomer: Newcomer, settings: Settings, keys: Records | None) -> None:
    """Check that a connection may have the service started that it names.

    Raises:
        UnknownHost: it is a request to a name that this gateway does not go by.
        UntrustedOrigin: it is a request of a page that is not trusted.
        BadGreeting: it is a request that cannot be read.
        BadKey: there are keys, and it shows none that opens the service.
        NoSuchService: its key is one of a client, which starts no service.
    """
    if newcomer.way == AS_LINK:
        return
    data = _first_bytes(newcomer.fd)
    if newcomer.way == AS_HTTP:
        check_page(_headers_in(data), web_of(settings))
    if keys is not None and check_shown(data, newcomer.service, keys).is_client:
        raise NoSuchService(
            f"service {newcomer.service!r} does not run at the moment, and the key of a client"
            " starts none"
        )


def check_link(fd: int, service: str, is_there: bool, membership: Membership | None) -> None:
    """See that another gateway may be sent to a service, where there are keys; it starts none.

    Raises:
        BadGreeting: this gateway is linked with nobody, since nobody could show to belong to it.
        NoSuchService: the service would have to be started.
        NotAdmitted: it would have to be started, and this is no member who may know that.
    """
    if membership is None or not membership.mesh.is_guarded:
        raise BadGreeting("this gateway is in no mesh")
    if not is_there:
        from weft.gateway.mesh.authentication import refusal  # noqa: PLC0415  # needs an extra

        data = _first_bytes(fd)
        frame = data[: u32_at(data, 0)] if len(data) >= HEADER_BYTES else b""
        raise refusal(membership, service, parse(frame))


def check_shown(data: bytes, service: str, keys: Records) -> Key:
    """The key that a connection shows in its first bytes, which opens a service.

    Raises:
        BadKey: it shows none, or one that is not accepted.
    """
    text = _shown(data)
    if not text:
        raise no_key()
    # Only those that it can be: to go through all of them would cost more than the stranger.
    likely = [each for each in keys if each.id == text[3:11] and each.is_for(service)]
    key = Keyring(likely).match(text, time.time_ns())
    if key is None:
        raise not_accepted()
    return key


def _headers_in(data: bytes) -> Mapping[str, str]:
    """The headers of a request, read as its service would read them.

    Raises:
        BadGreeting: it is not a whole head, or none that a service would read.
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
        # What h11 says of it may repeat what was sent.
        text = str(error) if isinstance(error, BadRequest) else "this is not HTTP as it should be"
        raise BadGreeting(text) from error
    raise BadGreeting("this is no request")


def _first_bytes(fd: int) -> bytes:
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return sock.recv(LOOK_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        # It is gone, or has nothing to say.
        return b""


def _shown(data: bytes) -> str:
    """The key in a CONNECT, or in the head of an HTTP request; empty if there is none."""
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
