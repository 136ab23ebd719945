"""Whether a newcomer shows a key, seen in its first bytes before anything is done for it.

They are looked at and not taken: whoever gets the connection reads them all, and judges for itself.
"""

import os
import re
import socket
import time
from collections.abc import Collection

from weft.core.frames import HEADER_BYTES, parse
from weft.core.greeting import no_key, not_accepted
from weft.core.keys import Keyring
from weft.core.messages import Message
from weft.core.words import u32_at
from weft.errors import BadGreeting, WeftError
from weft.gateway.key_file import Records
from weft.gateway.membership import Membership
from weft.gateway.services import is_known
from weft.gateway.settings import Settings

LOOK_BYTES = 32 << 10

_BEARER = re.compile(
    rb"\r\nauthorization:[ \t]*bearer[ \t]+([!-~]{1,255})[ \t]*\r\n", re.IGNORECASE
)


def check_newcomer(
    fd: int, service: str, running: Collection[str], settings: Settings, keys: Records | None
) -> None:
    """See that a connection may be sent to a service, which may have to be started for it.

    Raises:
        BadKey: it shows no key that opens a service which strangers need not know of.
    """
    if keys is not None and not is_known(service, running, settings, keys):
        check_shown(fd, service, keys)


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
        from weft.gateway.admission import refusal  # noqa: PLC0415  # needs an extra

        data = _first_bytes(fd)
        frame = data[: u32_at(data, 0)] if len(data) >= HEADER_BYTES else b""
        raise refusal(membership, service, parse(frame))


def check_shown(fd: int, service: str, keys: Records) -> None:
    """See that a connection shows a key that opens a service.

    Raises:
        BadKey: it shows none, or one that is not accepted.
    """
    text = _shown(_first_bytes(fd))
    if not text:
        raise no_key()
    # Only those that it can be: to go through all of them would cost more than the stranger.
    likely = [each for each in keys if each.id == text[3:11] and each.is_for(service)]
    if Keyring(likely).match(text, time.time_ns()) is None:
        raise not_accepted()


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
