"""Request handler for `_WEFT.ask.history`: pages of the journal, read by the history process.

A request waits until all earlier messages are written, so that its page is complete. Then
requesters take turns; requests of disconnected peers are dropped. The process has AT_ONCE requests
at a time, so that a requester with many does not delay others.
"""

import asyncio
import logging
import socket
import sys
from collections import deque
from pathlib import Path
from typing import NamedTuple

import msgspec

from weft.broker.auth.key_connections import holder_of
from weft.broker.auth.key_quota import KeyQuota
from weft.broker.auth.permissions import REPLAY, may_not
from weft.broker.journal.batcher import Journal
from weft.broker.service import Peer
from weft.broker.subscribe import may_subscribe
from weft.errors import BadOption, InternalError, Overloaded, TooMany, WeftError, WrongType
from weft.gateway.journal.fair_queue import FairQueue
from weft.gateway.journal.history_process import Answer, FoundPage, Look
from weft.gateway.requests.deferred import DeferredRequest
from weft.gateway.worker.ipc import IpcChannel
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Field, Message
from weft.wire.subjects import checked_pattern

_log = logging.getLogger(__name__)

PAGE_BYTES = 256 << 10
# Waiting requests per service; each key, or without keys each connection, has a share of them.
WAITING_MAX = 1024
# One in progress, and the next one ready.
AT_ONCE = 2
PATTERNS_MAX = 256
# Least time between two starts of the history process.
RESTART_S = 1.0

_S = 1_000_000_000
_AGO_MAX_S = 1e9
_LOOK_NS = _S


class PendingHistoryRequest(NamedTuple):
    """A request and its requester."""

    asked: DeferredRequest
    look: Look
    holder: str


class Archive:
    """History requests of one service's journal."""

    def __init__(self, turn: Turn, journal: Journal, root: Path) -> None:
        self._turn = turn
        self._service = turn.service
        self._journal = journal
        self._root = root
        self._number = 0
        self._looked_ns = 0
        self._written = journal.position
        # Stages of a request: waiting for earlier messages, waiting for its turn, in progress.
        self._early: deque[PendingHistoryRequest] = deque()
        self._queue: FairQueue[PendingHistoryRequest] = FairQueue()
        self._asked: dict[int, PendingHistoryRequest] = {}
        self._shares = KeyQuota("questions about the journal that wait")
        self._channel: IpcChannel[Look, Answer] | None = None
        self._task: asyncio.Task[None] | None = None
        self._may_start = 0.0
        turn.service.desks["history"] = self.ask

    def ask(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        """Queue a request; return an error, or None."""
        holder = holder_of(peer, peer.number)
        self._make_room(holder)
        if self._waiting >= WAITING_MAX:
            return Overloaded(f"{WAITING_MAX} requests for history wait already")
        self._shares.check(holder, WAITING_MAX, self._service.limits)
        self._number += 1
        look = self._look(request)
        for pattern in look.patterns:
            _check_reader(peer, pattern.encode())
        self._early.append(
            PendingHistoryRequest(DeferredRequest(peer, reply, "history"), look, holder)
        )
        self._shares.add(holder)
        self._forward()
        return None

    @property
    def _waiting(self) -> int:
        return len(self._early) + len(self._queue) + len(self._asked)

    def written_until(self, position: int) -> None:
        """Continue: messages before a position are in a file, or lost."""
        self._written = position
        self._forward()

    async def close(self) -> None:
        """Stop answering."""
        self._service.desks.pop("history", None)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _look(self, request: Message) -> Look:
        patterns = tuple(request.get_list("patterns"))
        if len(patterns) > PATTERNS_MAX:
            raise TooMany(f"{len(patterns)} patterns in one request are over {PATTERNS_MAX}")
        for pattern in patterns:
            if not isinstance(pattern, str):
                raise WrongType(f"patterns are strings, not {type(pattern).__name__}")
            checked_pattern(pattern)
        if not patterns:
            raise BadOption("patterns is empty")
        first = request.get_int64("position") if "position" in request else None
        time_ns = 0
        if "ago" in request:
            ago_s = request.get_double("ago")
            if not 0 <= ago_s <= _AGO_MAX_S:
                raise BadOption(f"ago {ago_s} is not in 0 … {_AGO_MAX_S} seconds")
            time_ns = self._service.wall_ns - int(ago_s * _S)
        elif "time" in request:
            time_ns = request.get_timestamp_ns("time")
        elif first is None:
            raise BadOption("one of position, time and ago is needed")
        offset = request.get_int64("offset") if "offset" in request else 0
        if (first is not None and first < 0) or offset < 0:
            raise BadOption(f"position {first} and offset {offset} cannot be less than 0")
        until = self._journal.position
        return Look(self._number, patterns, first, time_ns, until, PAGE_BYTES, offset)

    def _forward(self) -> None:
        """Queue requests whose earlier messages are written."""
        while self._early and self._early[0].look.until <= self._written:
            waiting = self._early.popleft()
            self._queue.add(waiting.holder, waiting.asked.peer.number, waiting)
        self._ask_next()

    def _ask_next(self) -> None:
        """Send the next requests to the history process, up to AT_ONCE."""
        while len(self._asked) < AT_ONCE and (waiting := self._queue.take()) is not None:
            if not self._is_wanted(waiting):
                continue
            self._asked[waiting.look.number] = waiting
            if self._channel is not None:
                self._channel.send(waiting.look)
            elif self._task is None:
                loop = asyncio.get_running_loop()
                self._task = loop.create_task(self._run())

    def _make_room(self, holder: str) -> None:
        """Drop requests of disconnected peers, if there is no room otherwise."""
        share = self._service.limits.share_of(WAITING_MAX)
        has_room = self._waiting < WAITING_MAX and self._shares.count(holder) < share
        # At most once a second: checking all of them takes a while.
        if has_room or self._service.now_ns - self._looked_ns < _LOOK_NS:
            return
        self._looked_ns = self._service.now_ns
        early, self._early = self._early, deque()
        queue, self._queue = self._queue, FairQueue()
        for waiting in early:
            if self._is_wanted(waiting):
                self._early.append(waiting)
        while (each := queue.take()) is not None:
            if self._is_wanted(each):
                self._queue.add(each.holder, each.asked.peer.number, each)

    def _is_wanted(self, waiting: PendingHistoryRequest) -> bool:
        """Return whether the requester is connected; if not, stop counting its request."""
        if waiting.asked.peer.is_over:
            self._shares.add(waiting.holder, -1)
            return False
        return True

    async def _run(self) -> None:
        """Run a history process and pass on its answers until it ends."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._may_start - loop.time())
        self._may_start = loop.time() + RESTART_S
        ours, theirs = socket.socketpair()
        arguments = (self._root, self._service.name, self._service.gateway)
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-P",
                "-m",
                "weft.gateway.journal.history_process",
                str(theirs.fileno()),
            ),
            *map(str, arguments),
            pass_fds=(theirs.fileno(),),
            stdin=asyncio.subprocess.DEVNULL,
        )
        theirs.close()
        decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
        channel: IpcChannel[Look, Answer] = IpcChannel(
            *await asyncio.open_unix_connection(sock=ours), decoder
        )
        try:
            for waiting in self._asked.values():
                channel.send(waiting.look)
            self._channel = channel
            while (answer := await channel.receive()) is not None:
                self._tell(answer)
        finally:
            self._channel = None
            self._task = None
            await channel.close()
            await process.wait()
            self._give_up()

    def _tell(self, answer: Answer) -> None:
        waiting = self._asked.pop(answer.number)
        self._shares.add(waiting.holder, -1)
        if isinstance(answer, FoundPage):
            waiting.asked.answer(self._turn, self._page(waiting.look, answer))
        else:
            _log.error("journal: read failed: %s", answer.text)
            error = InternalError(f"the journal cannot be read: {answer.text}")
            waiting.asked.refuse(self._turn, error)
        self._ask_next()

    def _page(self, look: Look, found: FoundPage) -> Message:
        return Message(
            Field.blob("frames", found.frames),
            node=self._service.gateway,
            next=found.next,
            head=look.until,
            left=found.left,
            missing=found.missing,
        )

    def _give_up(self) -> None:
        """Fail all requests, after the history process has ended."""
        asked, self._asked = list(self._asked.values()), {}
        while (each := self._queue.take()) is not None:
            asked.append(each)
        error = InternalError("the history process has ended: ask again")
        for waiting in asked:
            self._shares.add(waiting.holder, -1)
            waiting.asked.refuse(self._turn, error)


def _check_reader(peer: Peer, pattern: bytes) -> None:
    """Refuse a pattern that the peer may not subscribe to and replay."""
    may_replay = peer.rights is None or peer.rights.allows(REPLAY, pattern)
    if not (may_replay and may_subscribe(peer, pattern)):
        raise may_not("replay", pattern)
