"""Subjects that the analytics job `hot_routes` reports as hot across the mesh.

Bounded in number and time: when full, the report that expires first is dropped.
"""

from typing import NamedTuple

from weft.broker.delivery.outbox import Outbox
from weft.broker.service import Service
from weft.errors import BadOption, WeftError
from weft.wire.frames import Decoder, Kind
from weft.wire.message.message import Message
from weft.wire.subjects import HOT_ROUTES, is_subject

FINDINGS_MAX = 4096
TTL_MAX_S = 300.0

_MESSAGE = int(Kind.MESSAGE)
_PIECE_BYTES = 64 << 10
_S = 1_000_000_000


class Finding(NamedTuple):
    """Rate of a subject, and when the report expires."""

    messages_s: float
    ends_ns: int


class Findings:
    """Reported subjects of one service; begin() subscribes to the reports."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # Without a peer: reports are queued here until tick() reads them.
        self._outbox = Outbox(service.arena, service.bounds)
        self._found: dict[bytes, Finding] = {}
        self.is_begun = False

    def __len__(self) -> int:
        return len(self._found)

    def begin(self) -> None:
        """Subscribe to the reports, also to those of remote gateways."""
        self.is_begun = True
        self._service.router.tap(self._outbox, HOT_ROUTES)

    def get(self, subject: bytes) -> Finding | None:
        """The report about a subject, unless it expired."""
        found = self._found.get(subject)
        return found if found is not None and found.ends_ns > self._service.now_ns else None

    def tick(self) -> None:
        """Read queued reports, and drop expired ones."""
        now_ns = self._service.now_ns
        while self._outbox.is_behind():
            decoder = Decoder(self._service.link_run.body_limit)
            decoder.feed(self._outbox.draw(_PIECE_BYTES, now_ns))
            for frame in iter(decoder.next_frame, None):
                # If reports were dropped, there are GAP frames as well.
                if frame[4] == _MESSAGE:
                    self._read(frame)
        self._found = {
            subject: found for subject, found in self._found.items() if found.ends_ns > now_ns
        }

    def _read(self, frame: bytes) -> None:
        try:
            self.hear(Message.from_frame(frame))
        except WeftError as error:
            self._service.count_refused(type(error).__name__)

    def hear(self, facts: Message) -> None:
        """Store one report.

        Raises:
            WeftError: invalid report.
        """
        service = self._service
        if facts.get_string("service") != service.name:
            return
        subject = facts.get_string("subject").encode()
        rate, ttl_s = _number(facts, "messages_s"), _number(facts, "ttl_s")
        if not is_subject(subject) or not (rate >= 0 and ttl_s > 0):
            raise BadOption(f"{rate} messages/s for {ttl_s} s: invalid report of hot_routes")
        if len(self._found) >= FINDINGS_MAX and subject not in self._found:
            del self._found[min(self._found, key=self._ends_ns)]
        ends_ns = service.now_ns + int(min(ttl_s, TTL_MAX_S) * _S)
        self._found[subject] = Finding(rate, ends_ns)

    def _ends_ns(self, subject: bytes) -> int:
        return self._found[subject].ends_ns


def _number(facts: Message, name: str) -> float:
    value = facts[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadOption(f"{name} is not a number")
    return float(value)
