"""Batch of Bayeux messages from one text, answered together once all answers are known."""

import time
from collections.abc import Callable

from weft.transports.bayeux.channels import is_meta
from weft.transports.bayeux.extensions import TIMESYNC, TimeSync, time_sync_of
from weft.transports.bayeux.protocol import Said, text_of


class BatchEntry:
    """One message, and its answer once that is known."""

    __slots__ = ("answer", "batch", "message", "time_sync")

    def __init__(self, message: Said, batch: "BayeuxBatch") -> None:
        self.message = message
        self.batch = batch
        self.answer: Said | None = None
        # Clock values of the client, with the extension `timesync`.
        self.time_sync: TimeSync | None = None
        if "ext" in message and is_meta(message["channel"]):
            self.time_sync = time_sync_of(message, _now_ms())

    def in_words(self, answer: Said) -> bytes:
        """Return its answer as JSON, with the time if the client asked for it."""
        if self.time_sync is not None:
            told = {TIMESYNC: self.time_sync.answer(_now_ms())}
            answer = answer | {"ext": answer.get("ext", {}) | told}
        return text_of(answer)


class BayeuxBatch:
    """Messages of one text; `delivered` are queued messages sent before their answers."""

    __slots__ = ("_send", "asked", "delivered")

    def __init__(self, messages: list[Said], send: Callable[[bytes], None]) -> None:
        self.asked = [BatchEntry(message, self) for message in messages]
        self.delivered: list[bytes] = []
        self._send: Callable[[bytes], None] | None = send

    def settle(self) -> None:
        """Send all answers, once, if every message has one."""
        send = self._send
        answers = [(each, each.answer) for each in self.asked if each.answer is not None]
        if send is not None and len(answers) == len(self.asked):
            self._send = None
            words = [each.in_words(answer) for each, answer in answers]
            send(array_of([*self.delivered, *words]))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def array_of(pieces: list[bytes]) -> bytes:
    """Return encoded messages as a JSON array."""
    return b"[" + b",".join(pieces) + b"]"
