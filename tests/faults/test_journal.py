"""A worker that is killed, and a disk that is full, while messages are kept."""

import asyncio
import os
import resource
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess, is_running
from tests.attacks.stranger import CONNECT, Stranger

import weft
from weft.errors import ConnectionLost, JournalFailed
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.verify import check_segment
from weft.wire.frames import Kind

Serve = Callable[..., GatewayProcess]
KILLS = 5


def keeping(serve: Serve, folder: Path) -> GatewayProcess:
    return serve({"name": "london", "data": str(folder), "journal.patterns": ["a.>"]})


def kept(folder: Path) -> list[int]:
    """The numbers in the journal, which is whole."""
    root = folder / "journal"
    faults = [check_segment(each).faults for each in segments_of(root, "default")]
    assert faults == [[] for _ in faults]
    found = list(history(root, "default", "london"))
    assert [each.position for each in found if isinstance(each, JournalRecord)] == list(
        range(len(found))
    )
    messages = [
        weft.Message.from_frame(each.frame) for each in found if isinstance(each, JournalRecord)
    ]
    return [message.get_int64("n") for message in messages]


class Publisher:
    """Publishes numbers, many at a time, and remembers which were acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.is_ending = False
        self._next = 0

    async def run(self, connection: weft.AsyncConnection) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(50):
                tasks.create_task(self._publish(connection))

    async def _publish(self, connection: weft.AsyncConnection) -> None:
        while not self.is_ending:
            number = self._next
            self._next += 1
            try:
                await connection.publish("a.b", {"n": number}, acknowledge=True)
            except ConnectionLost:
                continue
            self.acknowledged.add(number)

    async def advance(self, count: int = 200) -> None:
        """Wait until so many more are acknowledged."""
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            await asyncio.sleep(0.001)


async def test_a_killed_worker_loses_nothing_that_was_acknowledged(
    serve: Serve, tmp_path: Path
) -> None:
    gateway = keeping(serve, tmp_path)
    publisher = Publisher()
    async with weft.connect(gateway.address) as connection:
        publishing = asyncio.create_task(publisher.run(connection))
        for _ in range(KILLS):
            await publisher.advance()
            worker = await asyncio.to_thread(gateway.worker, "default")
            os.kill(worker, signal.SIGKILL)
        await publisher.advance()
        publisher.is_ending = True
        await publishing
    await asyncio.to_thread(gateway.end)
    found = kept(tmp_path)
    assert publisher.acknowledged <= set(found)
    assert len(found) == len(set(found))


async def test_a_full_disk_refuses_what_cannot_be_kept_until_there_is_room(
    serve: Serve, tmp_path: Path
) -> None:
    gateway = keeping(serve, tmp_path)
    async with weft.connect(gateway.address) as connection:
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
        worker = await asyncio.to_thread(gateway.worker, "default")
        # To the worker, no file may be larger: as if the disk had no room for more.
        limits = resource.prlimit(worker, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        heard = connection.subscribe("a.>")
        await heard.ready()
        for _ in range(3):
            with pytest.raises(JournalFailed, match="File too large"):
                await connection.publish("a.b", {"n": 1}, acknowledge=True)
        await connection.publish("a.b", {"n": 2})
        while (await anext(heard))["n"] != 2:
            pass
        resource.prlimit(worker, resource.RLIMIT_FSIZE, limits)
        while True:
            try:
                await connection.publish("a.b", {"n": 3}, acknowledge=True)
                break
            except JournalFailed:
                await asyncio.sleep(0.01)
    await asyncio.to_thread(gateway.end)
    found = kept(tmp_path)
    assert (found[0], found[-1]) == (0, 3)
    assert 2 not in found
    assert "journal: writing again" in gateway.log


def test_a_gateway_that_is_killed_and_started_again_at_once_gets_the_journal(
    serve: Serve, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    killed = keeping(serve, folder)
    old = killed.worker()
    with ExitStack() as stack:
        # It takes no notice of the goodbye: the worker of the killed gateway waits for it.
        idler = stack.enter_context(Stranger(killed.port, CONNECT))
        assert idler.hear(Kind.WELCOME)
        with weft.Connection(killed.address) as connection:
            connection.publish("a.b", {"n": 0}, acknowledge=True)
        killed.process.kill()
        killed.process.wait()
        new_folder = tmp_path / "new"
        new_folder.mkdir()
        settings = {"name": "london", "data": str(folder), "journal.patterns": ["a.>"]}
        new = stack.enter_context(GatewayProcess(new_folder, settings))
        with weft.Connection(new.address) as connection:
            connection.publish("a.b", {"n": 1}, acknowledge=True)
        assert new.service()["restarts"] == 0, new.log
        assert not is_running(old)
    assert kept(folder) == [0, 1]


async def test_a_service_starts_with_a_disk_that_refuses_and_keeps_again_when_it_can(
    serve: Serve, tmp_path: Path
) -> None:
    gateway = keeping(serve, tmp_path)
    async with weft.connect(gateway.address) as connection:
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
        worker = await asyncio.to_thread(gateway.worker, "default")
        front = gateway.process.pid
        # A worker that starts from now on can write no file.
        limits = resource.prlimit(front, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        os.kill(worker, signal.SIGKILL)
        heard = connection.subscribe("a.>")
        await heard.ready()
        while True:
            try:
                await connection.publish("a.b", {"n": 1}, acknowledge=True)
            except JournalFailed:
                break
            except ConnectionLost:
                await asyncio.sleep(0.01)
        await connection.publish("a.b", {"n": 2})
        while (await anext(heard))["n"] != 2:
            pass
        with pytest.raises(JournalFailed):
            await connection.send_request("_WEFT.ask.history", {"patterns": ["a.>"], "position": 0})
        resource.prlimit(front, resource.RLIMIT_FSIZE, limits)
        worker = await asyncio.to_thread(gateway.worker, "default")
        resource.prlimit(worker, resource.RLIMIT_FSIZE, limits)
        while True:
            try:
                await connection.publish("a.b", {"n": 3}, acknowledge=True)
                break
            except JournalFailed:
                await asyncio.sleep(0.01)
    await asyncio.to_thread(gateway.end)
    numbers = kept(tmp_path)
    assert (numbers[0], numbers[-1]) == (0, 3)
