"""The first word of a connection: CONNECT in, WELCOME or a refusal out."""

import re

from weft.core.answers import told
from weft.core.events import announce_peer
from weft.core.frames import Frame, Kind
from weft.core.messages import Message
from weft.core.service import INBOX_BYTES, Peer
from weft.core.subjects import is_reserved, is_subject
from weft.errors import BadGreeting, NoSuchService, UsageError

VERSION = 1
SERVICE_NAME = re.compile(rb"[A-Za-z0-9-][A-Za-z0-9_-]{0,62}")
NAME_MAX_BYTES = 127
ABOUT_MAX = 128

_CONNECT = int(Kind.CONNECT)
_WELCOME = int(Kind.WELCOME)


def greet(peer: Peer, frame: Frame) -> None:
    """Take a peer in.

    Raises:
        BadGreeting: the frame is not a proper CONNECT.
        NoSuchService: it names another service than this.
    """
    if frame.kind != _CONNECT or peer.is_greeted:
        raise BadGreeting("the first frame, and no other, must be CONNECT")
    service = peer.service
    if frame.subject != service.name.encode():
        raise NoSuchService(f"this is service {service.name!r}")
    if frame.reply and not is_name(frame.reply):
        raise BadGreeting(f"a name of {len(frame.reply)} bytes is not a subject of at most 127")
    if frame.body:
        peer.address, peer.client = _options(frame.body)
    peer.name = frame.reply.decode() or f"c.{peer.number}"
    peer.is_greeted = True
    peer.owe(_welcome(peer, frame.subject))
    announce_peer(peer, "connected")


def is_name(name: bytes) -> bool:
    """Say if a connection may call itself so."""
    return len(name) <= NAME_MAX_BYTES and is_subject(name) and not is_reserved(name)


def _options(body: bytes) -> tuple[str, str]:
    """What a CONNECT says of the client: its address, and what it is."""
    options = Message.from_body(body)
    try:
        version = options.get_int64("version") if "version" in options else VERSION
        address = options.get_string("address") if "address" in options else ""
        client = options.get_string("client") if "client" in options else ""
    except UsageError as error:
        raise BadGreeting(str(error)) from error
    if version != VERSION:
        raise BadGreeting(f"version {version} of the protocol is not spoken here, {VERSION} is")
    return address[:ABOUT_MAX], client[:ABOUT_MAX]


def _welcome(peer: Peer, subject: bytes) -> bytes:
    service = peer.service
    welcome = Message(
        version=VERSION,
        gateway=service.gateway,
        inbox=peer.inbox[:INBOX_BYTES].decode(),
        body_limit=service.run.body_limit,
        ping_s=service.limits.ping_s,
    )
    return told(peer, _WELCOME, subject, peer.name.encode(), welcome)
