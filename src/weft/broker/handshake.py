"""The first word of a connection: CONNECT in, WELCOME or a refusal out."""

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


class Introduction(NamedTuple):
    """What a CONNECT says of the client: where and what it is, and what lets it in."""

    version: int = PROTOCOL_VERSION
    lanes: int = 0
    address: str = ""
    client: str = ""
    key: str = ""
    ticket: str = ""
    # The inbox that the client had before.
    was: str = ""


def greet(peer: Peer, frame: Frame) -> None:
    """Take a peer in.

    Raises:
        BadGreeting: the frame is not a proper CONNECT.
        NoSuchService: it names another service than this.
        BadKey: there is no key in it, or one that is not accepted.
    """
    if frame.kind not in _GREETINGS or peer.is_greeted or peer.carrier is not None:
        raise BadGreeting("the first frame, and no other, must be CONNECT")
    service = peer.service
    # A decoy has no name: it answers for every service that does not run, and lets nobody in.
    if service.name and frame.subject != service.name.encode():
        raise NoSuchService(f"this is service {service.name!r}")
    if frame.kind == _LINK:
        if service.on_link is None:
            raise BadGreeting("this gateway is in no mesh")
        service.on_link(peer, frame)
        return
    said = _introduction(frame.body) if frame.body else Introduction()
    # Before all else: a stranger learns nothing, not even what else is wrong.
    key = identify(service, said)
    if said.version != PROTOCOL_VERSION:
        version = said.version
        raise BadGreeting(
            f"version {version} of the protocol is not spoken here, {PROTOCOL_VERSION} is"
        )
    if frame.reply and not is_name(frame.reply):
        raise BadGreeting(f"a name of {len(frame.reply)} bytes is not a subject of at most 127")
    if key is not None:
        admit(peer, key)
        join_holder(peer, key.id)
    if said.address:
        # Where it can be reached, instead of where it comes from.
        peer.address = said.address[:ABOUT_MAX]
    peer.client = said.client[:ABOUT_MAX]
    # A later version of lanes has this one in it.
    peer.lanes = min(max(said.lanes, 0), LANES_VERSION)
    peer.name = frame.reply.decode() or f"c.{peer.number}"
    peer.is_greeted = True
    peer.run = service.run
    peer.owe(_welcome(peer, frame.subject, said.was.encode()))
    announce_peer(peer, "connected")


def is_name(name: bytes) -> bool:
    """Say if a connection may call itself so."""
    return len(name) <= NAME_MAX_BYTES and is_subject(name) and not is_reserved(name)


def admit(peer: Peer, key: Key) -> None:
    """Let a peer do what a key allows, and nothing else."""
    peer.key = key
    peer.rights = Rights(key.rules, peer.service.enabled if key.is_client else None)


def identify(service: Service, said: Introduction) -> Key | None:
    """The key that lets whoever said this in; None if everyone is trusted.

    Raises:
        BadGreeting: a key and a ticket are shown.
        BadKey: none is shown, or one that is not accepted.
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
    """Return what is said of every ticket that does not let in, whatever the reason is."""
    life_s = TICKET_LIFE_NS // 1_000_000_000
    return BadKey(f"the ticket is not accepted: it is good for one connection within {life_s} s")


def not_accepted() -> BadKey:
    """What is said of every key that does not let in: why would help whoever guesses."""
    return BadKey("the key is not accepted")


def no_key() -> BadKey:
    """What is said to whoever shows none."""
    return BadKey("a key is needed")


def _introduction(body: bytes) -> Introduction:
    options = Message.from_body(body)
    try:
        said = Introduction(
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
