"""What a service answers about its journal: questions go to an archivist, answers to who asked.

A question waits until what was published before it is written, so that its answer is whole.
"""

import asyncio
import logging
import socket
import sys
from collections import deque
from pathlib import Path
from typing import NamedTuple

import msgspec

from weft.core.journal import Journal
from weft.core.messages import Field, Message
from weft.core.rights import REPLAY, may_not
from weft.core.service import Peer
from weft.core.subjects import checked_pattern
from weft.core.subscribing import may_subscribe
from weft.doors.turn import Turn
from weft.errors import BadOption, InternalError, Overloaded, WeftError, WrongType
from weft.gateway.archivist import Answer, Found, Look
from weft.gateway.control import Channel
from weft.gateway.later import Asked

_log = logging.getLogger(__name__)

PAGE_BYTES = 256 << 10
WAITING_MAX = 256
# How soon after its start an archivist that ended is started again.
RESTART_S = 1.0

_S = 1_000_000_000
_AGO_MAX_S = 1e9


class Waiting(NamedTuple):
    """Who asked, and what."""

    asked: Asked
    look: Look


class Archive:
    """The questions about one service's journal."""

    def __init__(self, turn: Turn, journal: Journal, root: Path) -> None:
        self._turn = turn
        self._service = turn.service
        self._journal = journal
        self._root = root
        self._number = 0
        self._written = journal.position
        self._early: deque[Waiting] = deque()
        self._asked: dict[int, Waiting] = {}
        self._channel: Channel[Look, Answer] | None = None
        self._task: asyncio.Task[None] | None = None
        self._may_start = 0.0
        turn.service.desks["history"] = self.ask

    def ask(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        """Take a question; what is wrong with it, or None."""
        if len(self._asked) + len(self._early) >= WAITING_MAX:
            return Overloaded(f"{WAITING_MAX} questions about the journal wait already")
        self._number += 1
        look = self._look(request)
        for pattern in look.patterns:
            _check_reader(peer, pattern.encode())
        self._early.append(Waiting(Asked(peer, reply, "history"), look))
        self._forward()
        return None

    def written_until(self, position: int) -> None:
        """Everything before a position is in a file, or never will be."""
        self._written = position
        self._forward()

    async def close(self) -> None:
        """Answer nothing more."""
        self._service.desks.pop("history", None)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _look(self, request: Message) -> Look:
        patterns = tuple(request.get_list("patterns"))
        for pattern in patterns:
            if not isinstance(pattern, str):
                raise WrongType(f"patterns are strings, not {type(pattern).__name__}")
            checked_pattern(pattern)
        if not patterns:
            raise BadOption("patterns must name what is wanted")
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
            raise BadOption("one of position, time and ago must say where to begin")
        offset = request.get_int64("offset") if "offset" in request else 0
        if (first is not None and first < 0) or offset < 0:
            raise BadOption(f"position {first} and offset {offset} cannot be less than 0")
        until = self._journal.position
        return Look(self._number, patterns, first, time_ns, until, PAGE_BYTES, offset)

    def _forward(self) -> None:
        """Pass on what no longer has to wait."""
        while self._early and self._early[0].look.until <= self._written:
            waiting = self._early.popleft()
            self._asked[waiting.look.number] = waiting
            if self._channel is not None:
                self._channel.send(waiting.look)
            elif self._task is None:
                loop = asyncio.get_running_loop()
                self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        """Have an archivist, and hand out what it answers, until it ends."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._may_start - loop.time())
        self._may_start = loop.time() + RESTART_S
        ours, theirs = socket.socketpair()
        arguments = (self._root, self._service.name, self._service.gateway)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "weft.gateway.archivist", str(theirs.fileno())),
            *map(str, arguments),
            pass_fds=(theirs.fileno(),),
            stdin=asyncio.subprocess.DEVNULL,
        )
        theirs.close()
        decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
        channel: Channel[Look, Answer] = Channel(
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
        if isinstance(answer, Found):
            waiting.asked.answer(self._turn, self._page(waiting.look, answer))
        else:
            _log.error("journal: it cannot be read: %s", answer.text)
            error = InternalError(f"the journal cannot be read: {answer.text}")
            waiting.asked.refuse(self._turn, error)

    def _page(self, look: Look, found: Found) -> Message:
        return Message(
            Field.blob("frames", found.frames),
            node=self._service.gateway,
            next=found.next,
            head=look.until,
            left=found.left,
            missing=found.missing,
        )

    def _give_up(self) -> None:
        """The archivist is gone, and with it what it was asked."""
        asked, self._asked = self._asked, {}
        error = InternalError("whoever reads the journal is gone: ask again")
        for waiting in asked.values():
            waiting.asked.refuse(self._turn, error)


def _check_reader(peer: Peer, pattern: bytes) -> None:
    """Let nobody read what was said who could not have heard it."""
    may_replay = peer.rights is None or peer.rights.allows(REPLAY, pattern)
    if not (may_replay and may_subscribe(peer, pattern)):
        raise may_not("replay", pattern)
