"""What one connection is subscribed to, counted, so that the gateway is asked once and told once.

Two subscriptions may ask for the same pattern in the same group: the gateway hears of the first and
of the last. They must agree on the options, which it keeps once. Two that overlap must be of one
group, or of none: a connection gets a message once, and nothing in it says on whose behalf.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Protocol

from weft.client.connection.session import patterns_body
from weft.client.options import Wish
from weft.client.status import Gap
from weft.errors import BadField, BadOption, WeftError
from weft.wire.subjects import checked_pattern, checked_subject, is_literal, matches, overlaps


class Sink(Protocol):
    """Where a subscription's messages go; called on the loop's thread, and never waits."""

    def put(self, frames: list[bytes]) -> None:
        """Messages came one after the other, each a whole frame; the list may not be changed."""

    def missed(self, gap: Gap) -> None:
        """Messages did not come."""

    def ended(self) -> None:
        """Nothing more comes."""


class Place(Protocol):
    """The channel that a subscription is in; what its patterns begin with may change."""

    prefix: str
    is_joined: bool


class Listening:
    """One subscription as the engine knows it; a waiter for the gateway's confirmation."""

    def __init__(
        self, patterns: Iterable[str], wish: Wish, sink: Sink, place: Place | None = None
    ) -> None:
        """Check the patterns and the group.

        Raises:
            BadSubject: one of them is not legal.
            BadOption: there is no pattern, or more than one frame can name.
        """
        given = [patterns] if isinstance(patterns, str) else list(patterns)
        # In order and without doubles: each counts once.
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
        # The gateway confirmed it over the line that there is. What comes before that may have
        # holes: somebody's hot route may be on its way back to the gateway.
        # Nobody waits for one that ended.
        self.confirmed = asyncio.Event()
        # What it is told as soon as it is confirmed again.
        self._gap: Gap | None = None

    @property
    def is_parked(self) -> bool:
        """Say if a gateway cannot be asked for it: it is in a channel that must be joined first."""
        return self.place is not None and not self.place.is_joined

    def follow(self) -> None:
        """Ask for what the names stand for where the channel is now."""
        prefix = "" if self.place is None else self.place.prefix
        self.patterns = tuple(checked_pattern(prefix + name) for name in self.names)
        self.body = self._body()

    def check(self, limit_bytes: int) -> None:
        """Refuse what the gateway could not be asked for.

        Raises:
            BadOption: the patterns are longer than a body may be.
        """
        if len(self.body) > limit_bytes:
            raise BadOption(
                f"{len(self.patterns)} patterns take {len(self.body)} bytes, over the gateway's"
                f" limit of {limit_bytes}: use several subscriptions"
            )

    def answered(self, frame: bytes) -> None:  # noqa: ARG002  # that it came is what counts
        """The gateway confirmed it: from here on it hears everything."""
        self.confirmed.set()
        self.settled.set()
        gap, self._gap = self._gap, None
        if gap is not None:
            self.sink.missed(gap)

    def failed(self, error: WeftError) -> None:
        """The gateway refused it, for good."""
        self.end(error)

    def lost(self, error: WeftError) -> None:
        """The connection ended first; the next one is asked anew."""

    def asked_again(self, lost: WeftError | None) -> None:
        """Another line must confirm it; it missed what was said since the last was lost."""
        if self.confirmed.is_set():
            self.confirmed.clear()
            self._gap = Gap("reconnected", error=lost)

    def end(self, error: WeftError | None = None) -> None:
        """Hear nothing more."""
        if self.is_open:
            self.is_open = False
            self.error = error
            self.settled.set()
            self.confirmed.set()
            self.sink.ended()

    def _body(self) -> bytes:
        """The options as SUBSCRIBE carries them."""
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


class Interests:
    """The subscriptions of one connection."""

    def __init__(self) -> None:
        # Ordered sets: the first to come is the first to be asked for again.
        self._all: dict[Listening, None] = {}
        self._groups: dict[bytes, dict[bytes, dict[Listening, None]]] = {}
        self._wild: dict[bytes, None] = {}

    def __iter__(self) -> Iterator[Listening]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def add(self, listening: Listening) -> None:
        """Count a subscription in.

        Raises:
            BadOption: it cannot be told apart from, or disagrees with, one that is there.
        """
        self._check_options(listening)
        self._check_overlaps(listening)
        self._all[listening] = None
        patterns = self._groups.setdefault(listening.group, {})
        for pattern in listening.patterns:
            patterns.setdefault(pattern, {})[listening] = None
            if not is_literal(pattern):
                self._wild[pattern] = None

    def remove(self, listening: Listening) -> list[bytes]:
        """Count a subscription out; the patterns that nobody here asks for any more."""
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

    def find(self, subject: bytes) -> list[Listening]:
        """Whoever asks for a subject, each once, in the order they came to it."""
        found: dict[Listening, None] = {}
        names = [subject, *(pattern for pattern in self._wild if matches(pattern, subject))]
        for patterns in self._groups.values():
            for name in names:
                found.update(patterns.get(name, {}))
        return list(found)

    def asking(self, pattern: bytes, group: bytes) -> list[Listening]:
        """Whoever asks for this very pattern in this group."""
        return list(self._groups.get(group, {}).get(pattern, {}))

    def _asks(self, pattern: bytes) -> bool:
        return any(pattern in patterns for patterns in self._groups.values())

    def _check_options(self, listening: Listening) -> None:
        patterns = self._groups.get(listening.group, {})
        wish = listening.wish
        for pattern in listening.patterns:
            for other in patterns.get(pattern, {}):
                if (other.wish.policy, other.wish.listen_only) != (wish.policy, wish.listen_only):
                    raise BadOption(
                        f"{pattern.decode()!r} is subscribed to already, with policy"
                        f" {other.wish.policy!r} and listen_only={other.wish.listen_only};"
                        " both subscriptions must ask for the same"
                    )

    def _check_overlaps(self, listening: Listening) -> None:
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
