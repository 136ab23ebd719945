"""Handshake of a connection: CONNECT in, WELCOME or ERROR out."""

import re
from typing import NamedTuple

from weft.broker.auth.key_connections import join_holder
from weft.broker.auth.keys import Key
from weft.broker.auth.permissions import Rights
from weft.broker.auth.tickets import TICKET_LIFE_NS
from weft.broker.replies import told
from weft.broker.service import INBOX_BYTES, Peer, Service
from weft.broker.system_events import announce_peer
from weft.errors import BadGreeting, BadKey, NoSuchService, UsageError
from weft.wire.frames import PROTOCOL_VERSION, Frame, Kind
from weft.wire.lane_messages import VERSION as LANES_VERSION
from weft.wire.message.message import Message
from weft.wire.subjects import is_reserved, is_subject

SERVICE_NAME = re.compile(rb"[A-Za-z0-9-][A-Za-z0-9_-]{0,62}")
NAME_MAX_BYTES = 127
ABOUT_MAX = 128

_TEXTS = ("address", "client", "key", "ticket", "was")
_LINK = int(Kind.LINK)
_GREETINGS = (int(Kind.CONNECT), _LINK)
_WELCOME = int(Kind.WELCOME)


class ConnectRequest(NamedTuple):
    """Contents of a CONNECT: version, description and credentials of the client."""

    version: int = PROTOCOL_VERSION
    lanes: int = 0
    address: str = ""
    client: str = ""
    key: str = ""
    ticket: str = ""
    # Inbox of the client's previous connection.
    was: str = ""


def greet(peer: Peer, frame: Frame) -> None:
    """Handle the first frame of a peer, and admit the peer.

    Raises:
        BadGreeting: not a valid CONNECT.
        NoSuchService: it names another service.
        BadKey: the key is missing or not accepted.
    """
    if frame.kind not in _GREETINGS or peer.is_greeted or peer.carrier is not None:
        raise BadGreeting("the first frame, and no other, must be CONNECT")
    service = peer.service
    # A decoy has no name: it stands for every service that does not run, and admits no client.
    if service.name and frame.subject != service.name.encode():
        raise NoSuchService(f"this is service {service.name!r}")
    if frame.kind == _LINK:
        if service.on_link is None:
            raise BadGreeting("this gateway is in no mesh")
        service.on_link(peer, frame)
        return
    said = _introduction(frame.body) if frame.body else ConnectRequest()
    # First: a client without a valid key learns nothing else, not even other errors.
    key = identify(service, said)
    if said.version != PROTOCOL_VERSION:
        version = said.version
        raise BadGreeting(
            f"version {version} of the protocol is not supported, {PROTOCOL_VERSION} is"
        )
    if frame.reply and not is_name(frame.reply):
        raise BadGreeting(f"a name of {len(frame.reply)} bytes is not a subject of at most 127")
    if key is not None:
        admit(peer, key)
        join_holder(peer, key.id)
    if said.address:
        # The address that its transport reports, instead of the socket's remote address.
        peer.address = said.address[:ABOUT_MAX]
    peer.client = said.client[:ABOUT_MAX]
    # A later version of lanes includes this one.
    peer.lanes = min(max(said.lanes, 0), LANES_VERSION)
    peer.name = frame.reply.decode() or f"c.{peer.number}"
    peer.is_greeted = True
    peer.run = service.run
    peer.owe(_welcome(peer, frame.subject, said.was.encode()))
    announce_peer(peer, "connected")


def is_name(name: bytes) -> bool:
    """Return whether a connection may use this name."""
    return len(name) <= NAME_MAX_BYTES and is_subject(name) and not is_reserved(name)


def admit(peer: Peer, key: Key) -> None:
    """Give a peer the permissions of a key, and no others."""
    peer.key = key
    peer.rights = Rights(key.rules, peer.service.enabled if key.is_client else None)


def identify(service: Service, said: ConnectRequest) -> Key | None:
    """Return the key that admits a client; None if the service has no keys.

    Raises:
        BadGreeting: both a key and a ticket.
        BadKey: neither, or one that is not accepted.
    """
    if said.key and said.ticket:
        raise BadGreeting("a key and a ticket exclude each other")
    keyring = service.keyring
    if keyring is None:
        return None
    if said.ticket:
        key_id = service.tickets.take(said.ticket, service.now_ns)
        key = None if key_id is None else keyring.usable(key_id, service.wall_ns)
    elif said.key:
        key = keyring.match(said.key, service.wall_ns)
    else:
        raise no_key()
    if key is None:
        raise ticket_not_accepted() if said.ticket else not_accepted()
    return key


def ticket_not_accepted() -> BadKey:
    """The error of every rejected ticket, whatever the reason is."""
    life_s = TICKET_LIFE_NS // 1_000_000_000
    return BadKey(f"the ticket is not accepted: it is good for one connection within {life_s} s")


def not_accepted() -> BadKey:
    """The error of every rejected key: the reason would help an attacker."""
    return BadKey("the key is not accepted")


def no_key() -> BadKey:
    """The error of a client without a key."""
    return BadKey("a key is needed")


def _introduction(body: bytes) -> ConnectRequest:
    options = Message.from_body(body)
    try:
        said = ConnectRequest(
            options.get_int64("version") if "version" in options else PROTOCOL_VERSION,
            options.get_int64("lanes") if "lanes" in options else 0,
            *(options.get_string(name) if name in options else "" for name in _TEXTS),
        )
    except UsageError as error:
        raise BadGreeting(str(error)) from error
    return said


def _welcome(peer: Peer, subject: bytes, was: bytes) -> bytes:
    service = peer.service
    ended = service.ended_why.pop(was, None)
    facts: dict[str, object] = {}
    if ended is not None:
        facts = {"ended": ended[0], "ended_text": ended[1]}
    welcome = Message(
        version=PROTOCOL_VERSION,
        gateway=service.gateway,
        inbox=peer.inbox[:INBOX_BYTES].decode(),
        body_limit=service.run.body_limit,
        ping_s=service.limits.ping_s,
        **facts,
    )
    return told(peer, _WELCOME, subject, peer.name.encode(), welcome)
