import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.broker.locksmith import record

from weft.broker.limits import Limits
from weft.errors import WeftError
from weft.gateway.config.settings import Log
from weft.gateway.worker import supervisor as keeping
from weft.gateway.worker.ipc import KeySet, SettingsChange, Start, WorkerSettings
from weft.gateway.worker.supervisor import WorkerSupervisor
from weft.wire.frames import Decoder, Kind, encode
from weft.wire.message.message import Message

START = Start("weather", "london", WorkerSettings(log=Log(level="error"), drain_s=30.0))
CONNECT = encode(Kind.CONNECT, b"weather", reply=b"me.1")
EVENT = b"_WEFT.event.worker_restarted"


class Place:
    """A keeper, and those it turned away."""

    def __init__(self) -> None:
        self.refused: asyncio.Queue[str] = asyncio.Queue()
        self.keeper = WorkerSupervisor(START, self._refuse)

    def _refuse(self, passed: tuple[int, int], error: WeftError) -> None:
        os.close(passed[0])
        self.refused.put_nowait(type(error).__name__)

    async def pid(self) -> int:
        """Of the worker, once it is up."""
        await self.keeper.up.wait()
        assert self.keeper.pid is not None
        return self.keeper.pid

    def join(self) -> "Peer":
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        ours.send(CONNECT)
        self.keeper.give(theirs.detach())
        return Peer(ours)

    async def kill(self) -> None:
        """End the worker the hard way, and wait until the keeper knows."""
        os.kill(await self.pid(), signal.SIGKILL)
        while self.keeper.up.is_set():
            await asyncio.sleep(0.001)


class Peer:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._decoder = Decoder()

    async def frame(self) -> bytes:
        while (frame := self._decoder.next_frame()) is None:
            data = await asyncio.get_running_loop().sock_recv(self.sock, 4096)
            assert data, "the connection ended"
            self._decoder.feed(data)
        return frame

    async def welcome(self) -> Message:
        frame = await self.frame()
        assert frame[4] == Kind.WELCOME
        return Message.from_frame(frame)


@asynccontextmanager
async def kept() -> AsyncIterator[Place]:
    place = Place()
    try:
        yield place
    finally:
        await place.keeper.close()


async def test_a_worker_is_started_and_serves() -> None:
    async with kept() as place:
        peer = place.join()
        assert (await peer.welcome()).get_string("gateway") == "london"
        report = await place.keeper.report()
        assert (report.state, report.restarts, report.handed_over) == ("up", 0, 1)
        assert report.pid == await place.pid()
        assert report.status is not None
        peer.sock.close()


async def test_connections_are_counted_from_give_to_leave() -> None:
    async with kept() as place:
        peer = place.join()
        assert place.keeper.connections == 1
        await peer.welcome()
        assert place.keeper.connections == 1
        peer.sock.close()
        while place.keeper.connections:
            await asyncio.sleep(0.001)


@pytest.mark.req("MM-14")
async def test_a_killed_worker_is_replaced_and_who_was_on_the_way_is_served() -> None:
    async with kept() as place:
        pid = await place.pid()
        # Stopped, it receives nothing: what is given now is on its way when it dies.
        os.kill(pid, signal.SIGSTOP)
        on_the_way = [place.join() for _ in range(10)]
        await place.kill()
        later = place.join()
        for peer in (*on_the_way, later):
            await peer.welcome()
            peer.sock.close()
        assert place.keeper.restarts == 1
        assert await place.pid() != pid
        assert place.refused.empty()


async def test_a_restart_is_announced_to_who_comes_back() -> None:
    async with kept() as place:
        await place.kill()
        peer = place.join()
        await peer.welcome()
        peer.sock.send(encode(Kind.SUBSCRIBE, EVENT))
        event = Message.from_frame(await peer.frame())
        assert event.to_dict() == {"service": "weather", "exit": -9, "restarts": 1}
        peer.sock.close()


async def test_how_a_worker_ended_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with kept() as place:
        pid = await place.pid()
        await place.kill()
        await place.pid()
        (warning,) = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert warning.getMessage() == f"worker {pid} was ended by signal 9; starting another"
        assert vars(warning)["service"] == "weather"


async def test_a_silent_worker_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "ANSWER_S", 0.01)
    async with kept() as place:
        os.kill(await place.pid(), signal.SIGSTOP)
        report = await place.keeper.report()
        assert (report.state, report.status) == ("silent", None)


async def test_what_changed_is_known_to_this_worker_and_the_next() -> None:
    async with kept() as place:
        await place.pid()
        place.keeper.change(
            SettingsChange(WorkerSettings(Limits(ping_s=7.0), Log(level="error"), 5.0))
        )
        await place.keeper.report()
        peers = [place.join()]
        assert (await peers[0].welcome())["ping_s"] == 7.0
        await place.kill()
        peers.append(place.join())
        assert (await peers[1].welcome())["ping_s"] == 7.0
        for peer in peers:
            peer.sock.close()


async def test_what_changes_while_a_worker_starts_is_known_to_it() -> None:
    async with kept() as place:
        ping_s = 10.0
        while not place.keeper.up.is_set():
            ping_s += 1
            place.keeper.change(
                SettingsChange(WorkerSettings(Limits(ping_s=ping_s), Log(level="error"), 5.0))
            )
            await asyncio.sleep(0.001)
        # Its answer comes after it has heard everything that was said before; sockets come apart.
        assert (await place.keeper.report()).status is not None
        peer = place.join()
        assert (await peer.welcome())["ping_s"] == ping_s
        peer.sock.close()


async def test_a_worker_that_cannot_start_turns_away_who_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    async with kept() as place:
        peer = place.join()
        assert await place.refused.get() == "InternalError"
        assert (await place.keeper.report()).state == "starting"
        monkeypatch.undo()
        # It goes on trying, so that whoever mends it need not restart the gateway.
        await place.pid()
        peer.sock.close()


async def test_a_program_that_is_not_there_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    async with kept() as place:
        peer = place.join()
        assert await place.refused.get() == "InternalError"
        assert "failed to run the worker" in caplog.text
        monkeypatch.undo()
        await place.pid()
        peer.sock.close()


async def test_a_worker_that_never_gets_ready_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keeping, "START_S", 0.01)
    idle = tmp_path / "python"
    idle.write_text("#!/bin/sh\nexec sleep 600\n")
    idle.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(idle))
    async with kept() as place:
        place.join().sock.close()
        assert await place.refused.get() == "InternalError"


async def test_draining_ends_the_worker_and_refuses_who_is_on_the_way() -> None:
    async with kept() as place:
        pid = await place.pid()
        peer = place.join()
        await peer.welcome()
        draining = asyncio.create_task(place.keeper.drain(30.0))
        assert (await peer.frame())[4] == Kind.GOODBYE
        late = place.join()
        peer.sock.close()
        await draining
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        await place.keeper.close()
        assert await place.refused.get() == "Draining"
        late.sock.close()


async def test_a_worker_that_does_not_end_in_time_is_killed() -> None:
    async with kept() as place:
        pid = await place.pid()
        os.kill(pid, signal.SIGSTOP)
        await place.keeper.drain(0.01)
        await place.keeper.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_worker_goes_by_the_keys_it_is_told_and_so_does_the_next() -> None:
    async with kept() as place:
        await place.pid()
        keys = (record("one"), record("two", service="orders"))
        place.keeper.set_keys(keys)
        before = place.keeper.restarts
        await place.kill()
        while place.keeper.restarts == before:
            await asyncio.sleep(0.001)
        peer = place.join()
        assert Message.from_frame(await peer.frame())["text"] == "a key is needed"
        peer.sock.close()


async def test_keys_that_a_worker_did_not_hear_of_are_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with kept() as place:
        await place.pid()
        told: list[object] = []

        def not_heard(order: object) -> bool:
            told.append(order)
            return False

        monkeypatch.setattr(place.keeper, "_tell", not_heard)
        keys = (record("one"), record("two", service="orders"))
        place.keeper.set_keys(keys)
        place.keeper.set_keys(keys)
        assert told == [KeySet((record("one"),))] * 2
        monkeypatch.undo()
        place.keeper.set_keys(keys)
        place.keeper.set_keys(keys)
        assert place.keeper._keys is keys
