"""Tunnel: a peer that persists while its client's connections come and go.

It consists of an adapter peer, a replay buffer and at most one downlink. It is open once it has
received WELCOME; before that it accepts no datagrams.
"""

import hashlib
import hmac
import json
from typing import Any, Protocol

from weft.broker.auth.keys import Key
from weft.broker.service import INBOX_BYTES, Peer
from weft.errors import ConnectionLost, NotYours, Overloaded, Silent, WeftError
from weft.transports.adapter_peer import AdapterPeer
from weft.transports.http.server import HttpServer
from weft.transports.json.datagrams import (
    Datagram,
    Datagrams,
    datagrams_in,
    error_datagram,
    since_of,
)
from weft.transports.json.paths import path_of
from weft.transports.replay_memory import Account
from weft.transports.tunnel.attachment import Attachment
from weft.transports.tunnel.formats import FormatValues
from weft.transports.tunnel.replay_buffer import Item, ReplayBuffer, is_all_messages
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Kind

_PING = int(Kind.PING)
_MESSAGE = int(Kind.MESSAGE)
_WELCOME = int(Kind.WELCOME)
_GOODBYE = int(Kind.GOODBYE)
_S = 1_000_000_000
# More than a polling client takes to poll again.
_POLL_GAP_NS = 5 * _S
# Sweeps run about once a second: work that is due before the next but one is done now.
_SLACK_NS = _S // 2


class TunnelRegistry(Protocol):
    """The tunnels of a service, by id."""

    def over(self, tunnel: "Tunnel") -> None:
        """Called when a tunnel has ended."""


class Tunnel:
    """One peer that sends datagrams over requests and receives them over its downlink."""

    __slots__ = (
        "_attachment",
        "_datagrams",
        "_house",
        "_is_parting",
        "_is_polled",
        "_is_renewed",
        "_is_resting",
        "_key",
        "_registry",
        "_ring",
        "_since_ns",
        "_welcome",
        "account",
        "known_by",
        "path",
        "seat",
    )

    def __init__(self, house: HttpServer, registry: TunnelRegistry) -> None:
        self._house = house
        self._registry = registry
        self._attachment: Attachment | None = None
        self._datagrams = Datagrams(house.service.run.body_limit)
        self._ring = ReplayBuffer()
        self.account = Account(house.kept, "")
        # Whether the last downlink was a long poll.
        self._is_polled = False
        # The gateway is draining.
        self._is_parting = False
        self._is_renewed = False
        self._is_resting = False
        self._key: bytes | None = b""
        self._welcome = b""
        # Since when there is no downlink.
        self._since_ns = house.now_ns
        self.known_by = ""
        self.path = ""
        self.seat: AdapterPeer = house.seat(self)

    @property
    def peer(self) -> Peer:
        """The tunnel's peer."""
        return self.seat.peer

    @property
    def is_open(self) -> bool:
        """Return whether the tunnel accepts datagrams and reattachment."""
        return self._welcome != b"" and not self._is_parting and not self.peer.is_over

    @property
    def is_attached(self) -> bool:
        """Return whether there is a downlink."""
        return self._attachment is not None

    # Called by endpoints.

    def name(self, known_by: str, key: str | None, holder: str) -> None:
        """Set the id, the holder, and the key used to open it; None if that was a ticket."""
        self.known_by = known_by
        self.account = Account(self._house.kept, holder)
        self._key = None if key is None else _digest(key)
        self.path = path_of(self.peer.inbox[:INBOX_BYTES])

    def open(self, attachment: Attachment, *, is_renewed: bool) -> None:
        """Attach the first downlink; the header follows on WELCOME."""
        self._is_renewed = is_renewed
        self._attach(attachment)

    def attach(self, attachment: Attachment, last: str) -> None:
        """Replace the downlink and resend everything after the last received id."""
        house, ring, before = self._house, self._ring, self._attachment
        was_polled = self._is_polled
        self.lost()
        self._attach(attachment)
        if not attachment.is_held:
            attachment.open(self._facts())
        if last:
            if not ring.confirm(last):
                house.refused("UnknownLast")
                ring.reset(last, house.now_ns)
        elif was_polled and attachment.is_held:
            # A client that polls again has the last response, unless it names another id.
            ring.confirm_sent()
        items = ring.replay(house.now_ns)
        self.account.keep(ring.size)
        # Costs credit in proportion to the replay, like the requests for it would.
        house.pinged(self.peer, 1 + len(items) + ring.size // 256)
        if items:
            self._told(attachment, items)
        if before is not None:
            before.close("replaced", ConnectionLost("replaced by another connection"))
        self.pour()

    def check_key(self, text: str) -> None:
        """Check the key of a request; a request without one is accepted.

        Raises:
            NotYours: the key is not the tunnel's.
        """
        service = self._house.service
        if not text:
            return
        if service.keyring is not None:
            self.check_owner(service.keyring.match(text, service.wall_ns))
        elif self._key is not None and not hmac.compare_digest(_digest(text), self._key):
            # No keys are checked in this service, but a different key still means another client.
            raise _not_yours()

    def check_owner(self, key: Key | None) -> None:
        """Check that a key is the one that the tunnel was opened with, directly or by a ticket.

        Raises:
            NotYours: the key is not the tunnel's.
        """
        own = self.peer.key
        if key is None or own is None or key.id != own.id:
            raise _not_yours()

    def say(self, datagram: Datagram) -> None:
        """Handle a datagram of the client.

        Raises:
            NotYours: the tunnel has ended.
            Overloaded: input is paused.
            WeftError: invalid datagram; also sent down the tunnel if it has an `ack`.
        """
        if not self.is_open:
            self._house.refused("NotYours")
            raise _not_yours()
        if self._is_resting:
            self._house.refused("Overloaded")
            raise Overloaded("the journal must be written first: try again in a moment")
        try:
            self._say(datagram)
        except WeftError as error:
            self._house.charge(self.peer, error)
            told = error_datagram(error, datagram)
            if "ack" in told and self.has_room:
                self._pass_on([self._ring.own(told)])
            raise

    # Periodic work.

    def sweep(self, now_ns: int) -> None:
        """Send a keepalive if due; end the tunnel if its client does not reattach in time."""
        # Keeps the peer alive on behalf of its client, which cannot answer pings.
        self.seat.heard()
        rules = self._house.rules
        if not self._ring.is_empty:
            self._ring.expire(now_ns - int(rules.ring_s * _S))
            self.account.keep(self._ring.size)
        attachment = self._attachment
        if attachment is None:
            self.peer.outbox.is_away |= now_ns - self._since_ns > _POLL_GAP_NS
            if now_ns - self._since_ns > rules.cull_s * _S:
                self.seat.end(Silent(f"no connection was attached for {rules.cull_s:g} s"))
            return
        quiet_ns = now_ns - attachment.told_ns
        is_due = quiet_ns > attachment.keepalive_s * _S - _SLACK_NS
        if is_due and attachment.has_room:
            attachment.told_ns = now_ns
            attachment.keep_alive()
            self._drop_if_over(attachment)
        elif quiet_ns > self._house.limits.outbox_age_s * _S and not attachment.has_room:
            # The client may reattach for the rest; meanwhile this downlink is useless.
            self._house.refused("SlowReader")
            attachment.abort()

    # Interface for the downlink.

    @property
    def place(self) -> FormatValues:
        """The id and path of the tunnel."""
        return FormatValues(self.known_by.encode(), self.path.encode())

    def hear(self, text: bytes) -> None:
        """Handle datagrams; an invalid one is answered with an error, the others still count."""
        try:
            datagrams = datagrams_in(text)
        except WeftError as error:
            self._refuse(error, None)
            return
        for datagram in datagrams:
            if self.peer.is_over:
                return
            try:
                self._say(datagram)
            except WeftError as error:
                self._refuse(error, datagram)

    def lost(self) -> None:
        """Called when the downlink is lost: detach it."""
        if self._attachment is not None:
            self._attachment.let_go()
            self._attachment = None
            self._since_ns = self._house.now_ns
            self.peer.outbox.is_away = not self._is_polled
            if self._is_parting:
                self._house.turn.later(self.seat.end)

    def left(self) -> None:
        """Called when the client will not reattach: end the tunnel."""
        self.seat.end()

    def pour(self) -> None:
        """Called when there is room again: send queued frames."""
        self.seat.pour()

    # Interface of an adapter.

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now; without a downlink, the buffer is the limit."""
        return self._attachment is None or self._attachment.has_room

    def tell(self, frames: bytes) -> None:
        """Send frames, or keep them until a downlink is attached."""
        if is_all_messages(frames):
            self._pass_on([frames])
            return
        items: list[Item] = []
        for frame in each_frame(frames):
            kind = frame[4]
            if kind == _MESSAGE:
                items.append(frame)
            elif kind == _WELCOME:
                self._begin(frame)
            elif kind != _PING:
                items.append(self._ring.own(self._own(frame)))
                if kind == _GOODBYE:
                    self._part()
        if items:
            self._pass_on(items)

    def rest(self) -> None:
        """Pause input, if the journal requires it."""
        # The endpoint refuses events while paused, so slow subscribers do not pause it.
        self._is_resting = self.peer.is_held
        if self._attachment is not None:
            self._attachment.rest()

    def go_on(self) -> None:
        """Resume input."""
        self._is_resting = False
        if self._attachment is not None:
            self._attachment.go_on()

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left: close the downlink and release everything."""
        attachment = self._attachment
        if attachment is not None:
            self.lost()
            attachment.close("left" if error is None else type(error).__name__, error)
        self._ring = ReplayBuffer()
        self.account.keep(0)
        self._registry.over(self)

    # Internal.

    def _say(self, datagram: Datagram) -> None:
        since = since_of(datagram)
        frame = self._datagrams.frame(datagram)
        if since is None:
            self.seat.say(frame)
        else:
            self.seat.recall(frame, since)

    def _refuse(self, error: WeftError, datagram: Datagram | None) -> None:
        self._house.charge(self.peer, error)
        self._pass_on([self._ring.own(error_datagram(error, datagram))])

    def _begin(self, welcome: bytes) -> None:
        """Handle WELCOME: send the header and everything that is waiting."""
        told = self._datagrams.told(welcome)
        self._welcome = _json(told["welcome"])
        attachment = self._attachment
        if attachment is not None:
            attachment.open(self._facts())
            self._is_renewed = False
            attachment.told_ns = self._house.now_ns
            self._drop_if_over(attachment)
        if self._attachment is not None and not self._ring.is_empty:
            self._told(self._attachment, self._ring.replay(self._house.now_ns))

    def _facts(self) -> bytes:
        """Return the description of the tunnel for its header, as JSON."""
        named = _json({"tunnel": self.known_by, "path": self.path})[:-1]
        renewed = b',"renewed":true' if self._is_renewed else b""
        return named + renewed + b',"welcome":' + self._welcome + b"}"

    def _own(self, frame: bytes) -> dict[str, Any]:
        """Return the datagram of a frame other than a message; its id is the tunnel's own."""
        datagram = self._datagrams.told(frame)
        if "id" in datagram:
            datagram["published"] = datagram.pop("id")
        return datagram

    def _pass_on(self, items: list[Item]) -> None:
        rules, now_ns = self._house.rules, self._house.now_ns
        limit_bytes = self.account.room(rules.ring_bytes, rules, self._house.limits)
        # Nothing is sent before the header.
        attachment = self._attachment if self._welcome else None
        keep = self._ring.wait if attachment is None else self._ring.sent
        for item in items:
            keep(item, now_ns, limit_bytes)
        self.account.keep(self._ring.size)
        if attachment is not None:
            self._told(attachment, items)

    def _told(self, attachment: Attachment, items: list[Item]) -> None:
        attachment.told_ns = self._house.now_ns
        attachment.tell(items)
        self._drop_if_over(attachment)

    def _attach(self, attachment: Attachment) -> None:
        attachment.told_ns = self._house.now_ns
        attachment.join(self)
        self._attachment = attachment
        self._is_polled = attachment.is_held
        self.peer.outbox.is_away = False
        if self._is_resting:
            attachment.rest()

    def _part(self) -> None:
        """Handle GOODBYE: end, unless the client still sends over the downlink."""
        self._is_parting = True
        if self._attachment is None or not self._attachment.hears:
            # Not now: queued frames are being sent.
            self._house.turn.later(self.seat.end)

    def _drop_if_over(self, attachment: Attachment) -> None:
        """Detach a long poll, which ends with the first send."""
        if attachment.is_over and self._attachment is attachment:
            self.lost()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest() if key else b""


def _not_yours() -> NotYours:
    """Return the same error for every unusable tunnel, so that ids cannot be probed."""
    return NotYours("this tunnel is not yours, or no longer there")


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
