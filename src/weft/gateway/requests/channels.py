"""Request handler for `_WEFT.ask.channel.*`: open, join, leave, close, list and show channels."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weft.broker.channel_membership import NAME_MAX_BYTES, may_join, may_open
from weft.broker.service import Peer, is_insider
from weft.broker.system_requests import LIMIT, LIMIT_MAX
from weft.errors import (
    BadOption,
    BadSubject,
    NotAllowed,
    NotAMember,
    NotKnown,
    Refused,
    TooManyTries,
    WeftError,
    WrongPassword,
    shortened,
)
from weft.gateway.mesh.lease_file import PromiseFile
from weft.gateway.requests.channel_quotas import ChannelShares
from weft.gateway.requests.deferred import DeferredRequest, too_long
from weft.gateway.requests.password_throttle import Tries, TryOrigin
from weft.mesh.channels.coordinator import ChannelCoordinator, hexadecimal
from weft.mesh.channels.directory import KnownChannel
from weft.mesh.channels.leases import Promises
from weft.mesh.channels.quorum import Voters
from weft.mesh.channels.report import channel_facts, listed
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Message
from weft.wire.password_proof import (
    CHALLENGE_BYTES,
    KEY_BYTES,
    NOBODY,
    NONCE_MAX_BYTES,
    NONCE_MIN_BYTES,
    ProofInput,
    Verifier,
    is_proven,
    sign,
)
from weft.wire.subjects import checked_subject, is_reserved

if TYPE_CHECKING:
    from weft.mesh.node import MeshNode

_log = logging.getLogger(__name__)

# Lifetime of a challenge, and how many a connection has at a time: the latest ones.
CHALLENGE_NS = 30_000_000_000
CHALLENGES_MAX = 4

Answer = Callable[[DeferredRequest, Message], WeftError | None]


class Challenge(NamedTuple):
    """Channel that a connection has to prove its password for, and the deadline."""

    name: bytes
    ends_ns: int


class ChannelDesk:
    """Channel requests of one service's connections."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._service = turn.service
        # Without a mesh the gateway is alone, so its id does not matter.
        self.channels = ChannelCoordinator(turn.service, Voters(bytes(16)), Promises())
        self._tries = Tries()
        self._shares = ChannelShares(turn.service, self.channels.admissions)
        self._challenges: dict[int, dict[bytes, Challenge]] = {}
        # Connection that opened each channel here, by channel id: it may close the channel.
        self._openers: dict[bytes, int] = {}
        answers: dict[str, Answer] = {
            "open": self._open,
            "join": self._join,
            "prove": self._prove,
            "leave": self._leave,
            "close": self._close,
            "list": self._list,
            "show": self._show,
        }
        for name, answer in answers.items():
            turn.service.desks[f"channel.{name}"] = partial(self._ask, f"channel.{name}", answer)

    def remember(self, data: Path) -> None:
        """Store lease votes below a folder, and restore those of earlier runs."""
        file = PromiseFile(data / f"channels-{self._service.name}.log")
        try:
            notes, voters = file.recall()
        except OSError as error:
            _log.error("lease votes of channels cannot be restored: %s", error)
            return
        self.channels.promises.recall(notes, file.keep, self._service.now_ns)
        self.channels.voters.recall(voters, partial(_note, file), self._service.now_ns)

    def link(self, fabric: "MeshNode", least: int) -> None:
        """Share the channels with other gateways; `least` is the least number of gateways."""
        self.channels.voters.least = least
        fabric.share(self.channels)

    def tick(self) -> None:
        """Expire challenges, throttles and quotas; called about once a second."""
        now_ns = self._service.now_ns
        if self.channels.mesh is None:
            self.channels.tick()
        self._tries.expire(now_ns)
        self._shares.expire()
        for number, challenges in list(self._challenges.items()):
            kept = {key: each for key, each in challenges.items() if each.ends_ns > now_ns}
            if kept and number in self._service.peers:
                self._challenges[number] = kept
            else:
                del self._challenges[number]
        self._openers = {
            channel: number
            for channel, number in self._openers.items()
            if self.channels.table.get(channel) is not None
        }

    def _ask(
        self, name: str, answer: Answer, peer: Peer, reply: bytes, request: Message
    ) -> WeftError | None:
        # Members that left in the same moment must not be found.
        self.channels.holding.end_empty()
        return answer(DeferredRequest(peer, reply, name), request)

    def _open(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        name = _name_in(request)
        if not may_open(asked.peer, name):
            return NotAllowed(f"this connection may not open a channel {shortened(name.decode())}")
        verifier = _verifier_in(request)
        self._shares.begin(asked.peer)

        def opened(result: KnownChannel | WeftError, silent: list[str]) -> None:
            self._shares.end(asked.peer)
            if not isinstance(result, WeftError):
                result = self._admitted(asked.peer, result)
            if isinstance(result, WeftError):
                asked.refuse(self._turn, result)
                return
            self._openers[result.id] = asked.peer.number
            asked.answer(self._turn, Message.from_dict(_facts(result) | {"silent": silent}))

        self.channels.open(asked.peer, name, verifier, opened)
        return None

    def _join(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        peer = asked.peer
        name = self._joinable(peer, request)
        channel = self.channels.find(name)
        if channel is not None and not channel.record.is_protected:
            admitted = self._admitted(peer, channel)
            if isinstance(admitted, WeftError):
                return admitted
            asked.answer(self._turn, Message.from_dict(_facts(channel)))
            return None
        # The same answer whether the channel exists or not.
        challenges = self._challenges.setdefault(peer.number, {})
        if len(challenges) >= CHALLENGES_MAX:
            # A client that asks for a channel without a password that does not exist never answers.
            del challenges[next(iter(challenges))]
        challenge = os.urandom(CHALLENGE_BYTES)
        challenges[challenge] = Challenge(name, self._service.now_ns + CHALLENGE_NS)
        asked.answer(self._turn, Message(challenge=challenge))
        return None

    def _prove(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        peer = asked.peer
        name = self._joinable(peer, request)
        now_ns = self._service.now_ns
        place = _place_of(peer)
        wait_s = self._tries.wait_s(place, name, now_ns)
        if wait_s:
            tenths = ceil(wait_s * 10)
            return TooManyTries(f"too many wrong passwords: try again in {tenths / 10:g} s")
        challenge = request.get_blob("challenge")
        given = self._challenges.get(peer.number, {}).pop(challenge, None)
        if given is None or given.name != name or given.ends_ns <= now_ns:
            return BadOption("the challenge was not given to this connection, or too long ago")
        nonce = request.get_blob("nonce")
        if not NONCE_MIN_BYTES <= len(nonce) <= NONCE_MAX_BYTES:
            return BadOption(
                f"a nonce of {len(nonce)} bytes is not in {NONCE_MIN_BYTES} … {NONCE_MAX_BYTES}"
            )
        claim = ProofInput(self._service.name, name, challenge, nonce)
        channel = self.channels.find(name)
        is_one = channel is not None and channel.record.is_protected
        verifier = channel.record.verifier if channel is not None and is_one else NOBODY
        is_right = is_proven(verifier, claim, request.get_blob("proof"))
        signature = sign(verifier.server, claim)
        if channel is None or not (is_one and is_right):
            self._tries.wrong(place, name, now_ns)
            return WrongPassword("there is no channel of this name with this password")
        self._tries.right(place)
        admitted = self._admitted(peer, channel)
        if isinstance(admitted, WeftError):
            return admitted
        asked.answer(self._turn, Message.from_dict(_facts(channel) | {"signature": signature}))
        return None

    def _leave(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        key = request.get_string("id").encode()
        if key not in asked.peer.channels:
            return _no_member()
        self.channels.admissions.leave(asked.peer, key)
        asked.answer(self._turn, Message())
        return None

    def _close(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        peer = asked.peer
        channel = self._named_or_numbered(peer, request)
        if not (is_insider(peer) or self._openers.get(channel.id) == peer.number):
            return NotAllowed("a channel is closed by its opener, or by a service")
        self.channels.close(channel)
        asked.answer(self._turn, Message())
        return None

    def _list(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        limit = request.get_int64("limit") if "limit" in request else LIMIT
        if not 1 <= limit <= LIMIT_MAX:
            return BadOption(f"limit {limit} is not in 1 … {LIMIT_MAX}")
        found = [each for each in self.channels.table.all() if _may_see(asked.peer, each)]
        return self._tell(asked, listed(found, limit))

    def _show(self, asked: DeferredRequest, request: Message) -> WeftError | None:
        channel = self._named_or_numbered(asked.peer, request)
        return self._tell(asked, channel_facts(self.channels, channel))

    def _tell(self, asked: DeferredRequest, facts: dict[str, object]) -> WeftError | None:
        message = Message.from_dict(facts)
        problem = too_long(message, self._service.run.body_limit)
        if problem is None:
            asked.answer(self._turn, message)
        return problem

    def _admitted(self, peer: Peer, channel: KnownChannel) -> KnownChannel | WeftError:
        """Make a connection a member; return the channel or an error."""
        if peer.is_over:
            return _no_member()
        key = hexadecimal(channel.id)
        problem = self._shares.problem(peer, key)
        if problem is not None:
            return problem
        try:
            self.channels.admit(peer, channel)
        except Refused as error:
            return error
        self._shares.admitted(peer, key)
        return channel

    def _joinable(self, peer: Peer, request: Message) -> bytes:
        name = _name_in(request)
        if not may_join(peer, name):
            raise NotAllowed(f"this connection may not join a channel {shortened(name.decode())}")
        return name

    def _named_or_numbered(self, peer: Peer, request: Message) -> KnownChannel:
        """Return the channel that a request names, if the connection may see it."""
        if "id" in request:
            try:
                channel = self.channels.table.get(bytes.fromhex(request.get_string("id")))
            except ValueError:
                channel = None
        else:
            channel = self.channels.find(_name_in(request))
        if channel is None or not _may_see(peer, channel):
            raise NotKnown("there is no such channel")
        return channel


def _note(file: PromiseFile, node: bytes, is_voter: bool) -> None:
    # The file has logged why it cannot be written; the vote still counts until a restart.
    with suppress(OSError):
        file.note_voter(node, is_voter)


def _may_see(peer: Peer, channel: KnownChannel) -> bool:
    """Return whether a connection may see that a channel exists."""
    if is_insider(peer) or hexadecimal(channel.id) in peer.channels:
        return True
    return not channel.record.is_protected and may_join(peer, channel.record.name)


def _place_of(peer: Peer) -> TryOrigin:
    """Return the origin that wrong passwords of a peer are counted for.

    Without keys all connections come from this machine: a shared address would let one
    connection lock out the others.
    """
    if peer.key is not None:
        return TryOrigin(f"key {peer.key.id}", is_lasting=True)
    return TryOrigin(f"connection {peer.number}", is_lasting=False)


def _facts(channel: KnownChannel) -> dict[str, object]:
    record = channel.record
    return {
        "id": channel.id.hex(),
        "name": record.name.decode(),
        "protected": record.is_protected,
    }


def _name_in(request: Message) -> bytes:
    text = request.get_string("name")
    name = checked_subject(text)
    if is_reserved(name):
        raise BadSubject(f"{shortened(text)} belongs to the system")
    if len(name) > NAME_MAX_BYTES:
        raise BadSubject(f"a channel's name of {len(name)} bytes is over {NAME_MAX_BYTES}")
    return name


def _verifier_in(request: Message) -> Verifier | None:
    if "stored" not in request and "server" not in request:
        return None
    verifier = Verifier(request.get_blob("stored"), request.get_blob("server"))
    for key in verifier:
        if len(key) != KEY_BYTES:
            raise BadOption(f"a key of {len(key)} bytes: stored and server have {KEY_BYTES} each")
    return verifier


def _no_member() -> NotAMember:
    return NotAMember("this connection has not joined such a channel")
