"""Registry of the subscriptions of one connection, reference-counted per pattern and group.

Several subscriptions may have the same pattern and group: the gateway sees SUBSCRIBE for the first
and UNSUBSCRIBE for the last. They must agree on the options, which the gateway stores once.
Overlapping patterns must have the same group, or none: a connection receives a message once, and
the message does not name the subscription that it is for.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Protocol

from weft.client.connection.session import patterns_body
from weft.client.options import SubscriptionOptions
from weft.client.status import Gap
from weft.errors import BadField, BadOption, WeftError
from weft.wire.subjects import checked_pattern, checked_subject, is_literal, matches, overlaps


class Sink(Protocol):
    """Receiver of a subscription's messages; called on the loop's thread, must not block."""

    def put(self, frames: list[bytes]) -> None:
        """Take consecutive frames, each complete; must not change the list."""

    def missed(self, gap: Gap) -> None:
        """Take a report of lost messages."""

    def ended(self) -> None:
        """Take the end of the stream."""


class SubscriptionChannel(Protocol):
    """The channel of a subscription; its subject prefix may change after a reconnection."""

    prefix: str
    is_joined: bool


class SubscriptionState:
    """State of one subscription in the engine; waits for the gateway's confirmation."""

    def __init__(
        self,
        patterns: Iterable[str],
        wish: SubscriptionOptions,
        sink: Sink,
        place: SubscriptionChannel | None = None,
    ) -> None:
        """Validate the patterns and the group.

        Raises:
            BadSubject: Invalid pattern or group.
            BadOption: No pattern, or more patterns than one frame can carry.
        """
        given = [patterns] if isinstance(patterns, str) else list(patterns)
        # In order and without duplicates: each pattern counts once.
        self.names = [name.decode() for name in dict.fromkeys(map(checked_pattern, given))]
        if not self.names:
            raise BadOption("a subscription needs a pattern")
        self.group = checked_subject(wish.group) if wish.group else b""
        self.wish = wish
        self.place = place
        self.follow()
        self.sink = sink
        self.is_open = True
        self.error: WeftError | None = None
        self.settled = asyncio.Event()
        # Confirmed over the current connection. Messages that arrive before may have gaps: a hot
        # route may still be switching from a lane back to the gateway. Also set when the
        # subscription ends, to release its waiters.
        self.confirmed = asyncio.Event()
        # Gap to report as soon as it is confirmed again.
        self._gap: Gap | None = None

    @property
    def is_parked(self) -> bool:
        """Whether it must wait for its channel to be joined before it is sent to the gateway."""
        return self.place is not None and not self.place.is_joined

    def follow(self) -> None:
        """Update the patterns with the current prefix of the channel."""
        prefix = "" if self.place is None else self.place.prefix
        self.patterns = tuple(checked_pattern(prefix + name) for name in self.names)
        self.body = self._body()

    def check(self, limit_bytes: int) -> None:
        """Check that the gateway can take the subscription.

        Raises:
            BadOption: The patterns exceed the gateway's body limit.
        """
        if len(self.body) > limit_bytes:
            raise BadOption(
                f"{len(self.patterns)} patterns take {len(self.body)} bytes, over the gateway's"
                f" limit of {limit_bytes}: use several subscriptions"
            )

    def answered(self, frame: bytes) -> None:  # noqa: ARG002  # that it came is what counts
        """Mark it as confirmed: from here on it receives every message."""
        self.confirmed.set()
        self.settled.set()
        gap, self._gap = self._gap, None
        if gap is not None:
            self.sink.missed(gap)

    def failed(self, error: WeftError) -> None:
        """End it: the gateway refused it permanently."""
        self.end(error)

    def lost(self, error: WeftError) -> None:
        """Ignore the loss of the connection: the subscription is sent again over the next one."""

    def asked_again(self, lost: WeftError | None) -> None:
        """Await a new confirmation; messages since the last connection was lost are a gap."""
        if self.confirmed.is_set():
            self.confirmed.clear()
            self._gap = Gap("reconnected", error=lost)

    def end(self, error: WeftError | None = None) -> None:
        """End the subscription."""
        if self.is_open:
            self.is_open = False
            self.error = error
            self.settled.set()
            self.confirmed.set()
            self.sink.ended()

    def _body(self) -> bytes:
        """Return the patterns and options as the body of SUBSCRIBE."""
        options: dict[str, object] = {}
        if self.wish.policy != "cut":
            options["policy"] = self.wish.policy
        if self.wish.listen_only:
            options["listen_only"] = True
        try:
            return patterns_body(self.patterns[1:], options)
        except BadField as error:
            raise BadOption(
                f"{len(self.patterns)} patterns are too many for one subscription: {error}"
            ) from error


class SubscriptionRegistry:
    """The subscriptions of one connection, by group and pattern."""

    def __init__(self) -> None:
        # Ordered sets: the oldest subscription is sent first after a reconnection.
        self._all: dict[SubscriptionState, None] = {}
        self._groups: dict[bytes, dict[bytes, dict[SubscriptionState, None]]] = {}
        self._wild: dict[bytes, None] = {}

    def __iter__(self) -> Iterator[SubscriptionState]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def add(self, listening: SubscriptionState) -> None:
        """Add a subscription.

        Raises:
            BadOption: It conflicts with a registered one: other options, or an overlap.
        """
        self._check_options(listening)
        self._check_overlaps(listening)
        self._all[listening] = None
        patterns = self._groups.setdefault(listening.group, {})
        for pattern in listening.patterns:
            patterns.setdefault(pattern, {})[listening] = None
            if not is_literal(pattern):
                self._wild[pattern] = None

    def remove(self, listening: SubscriptionState) -> list[bytes]:
        """Remove a subscription; return the patterns that no subscription here has any more."""
        gone: list[bytes] = []
        if listening not in self._all:
            return gone
        del self._all[listening]
        patterns = self._groups[listening.group]
        for pattern in listening.patterns:
            askers = patterns[pattern]
            del askers[listening]
            if not askers:
                del patterns[pattern]
                gone.append(pattern)
        if not patterns:
            del self._groups[listening.group]
        for pattern in gone:
            if pattern in self._wild and not self._asks(pattern):
                del self._wild[pattern]
        return gone

    def find(self, subject: bytes) -> list[SubscriptionState]:
        """Return the subscriptions that match a subject, each once, in order of registration."""
        found: dict[SubscriptionState, None] = {}
        names = [subject, *(pattern for pattern in self._wild if matches(pattern, subject))]
        for patterns in self._groups.values():
            for name in names:
                found.update(patterns.get(name, {}))
        return list(found)

    def asking(self, pattern: bytes, group: bytes) -> list[SubscriptionState]:
        """Return the subscriptions with exactly this pattern and group."""
        return list(self._groups.get(group, {}).get(pattern, {}))

    def _asks(self, pattern: bytes) -> bool:
        return any(pattern in patterns for patterns in self._groups.values())

    def _check_options(self, listening: SubscriptionState) -> None:
        patterns = self._groups.get(listening.group, {})
        wish = listening.wish
        for pattern in listening.patterns:
            for other in patterns.get(pattern, {}):
                if (other.wish.policy, other.wish.listen_only) != (wish.policy, wish.listen_only):
                    raise BadOption(
                        f"{pattern.decode()!r} is subscribed to already, with policy"
                        f" {other.wish.policy!r} and listen_only={other.wish.listen_only};"
                        " both subscriptions must have the same"
                    )

    def _check_overlaps(self, listening: SubscriptionState) -> None:
        for group, patterns in self._groups.items():
            if group == listening.group:
                continue
            for other in patterns:
                for pattern in listening.patterns:
                    if overlaps(pattern, other):
                        raise BadOption(
                            f"{pattern.decode()!r} overlaps {other.decode()!r} of"
                            f" {_named(group)}, and a connection gets a message once:"
                            " use another connection"
                        )


def _named(group: bytes) -> str:
    return f"the group {group.decode()!r}" if group else "no group"
