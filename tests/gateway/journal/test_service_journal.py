import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.broker.limits import Limits
from weft.errors import BadOption, JournalFailed
from weft.gateway.config.settings import JournalSettings, Settings
from weft.gateway.gateway import Gateway
from weft.gateway.worker import host as hosting
from weft.gateway.worker.host import ServiceHost
from weft.journal import writer_thread
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.verify import check_segment

BODY = bytes(100_000)


def settings(folder: Path, **journal: Any) -> Settings:
    return Settings(
        listen="127.0.0.1:0",
        name="london",
        data=str(folder),
        journal=JournalSettings(patterns=("a.>",), **journal),
    )


@asynccontextmanager
async def serving(folder: Path, **journal: Any) -> AsyncIterator[str]:
    """The address of a gateway that keeps a journal."""
    async with Gateway(settings=settings(folder, **journal), workers="inline") as gateway:
        yield str(gateway.address)


def kept(folder: Path) -> list[weft.Message]:
    found = list(history(folder / "journal", "default", "london"))
    assert [each.position for each in found if isinstance(each, JournalRecord)] == list(
        range(len(found))
    )
    return [
        weft.Message.from_frame(each.frame) for each in found if isinstance(each, JournalRecord)
    ]


@pytest.mark.parametrize("sync", ["ack", "interval", "none"])
async def test_what_is_acknowledged_is_in_the_journal(tmp_path: Path, sync: str) -> None:
    async with serving(tmp_path, sync=sync) as gateway, weft.connect(gateway) as connection:
        identity = await connection.publish("a.b", {"n": 1}, acknowledge=True)
        await connection.publish("other", {"n": 2}, acknowledge=True)
        (found,) = kept(tmp_path)
        assert (found.sequence, found.time, found["n"]) == (identity.sequence, identity.time, 1)


async def test_what_was_published_is_written_before_the_gateway_ends(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        for number in range(1000):
            await connection.publish("a.b", {"n": number})
        await connection.flush()
    assert [each["n"] for each in kept(tmp_path)] == list(range(1000))
    (segment,) = segments_of(tmp_path / "journal", "default")
    assert segment.state == "full"
    assert check_segment(segment).faults == []


async def test_what_is_full_is_sealed_while_it_goes_on(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, segment_bytes=10_000) as gateway,
        weft.connect(gateway) as connection,
    ):
        for number in range(1000):
            await connection.publish("a.b", {"n": number}, acknowledge=number % 100 == 0)
        while "sealed" not in states(tmp_path):
            await asyncio.sleep(0.01)
        late = connection.subscribe("a.b", since=0)
        assert [(await late.next(20))["n"] for _ in range(1000)] == list(range(1000))
    assert [each["n"] for each in kept(tmp_path)] == list(range(1000))


def states(folder: Path) -> list[str]:
    return [each.state for each in segments_of(folder / "journal", "default")]


async def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    for first in (0, 10):
        async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
            for number in range(10):
                await connection.publish("a.b", {"n": first + number}, acknowledge=True)
    assert [each["n"] for each in kept(tmp_path)] == list(range(20))


class Gate:
    """Keeps the scribe from writing until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_open = threading.Event()
        self._write = os.pwrite
        monkeypatch.setattr(os, "pwrite", self)

    def __call__(self, fd: int, data: memoryview, at: int) -> int:
        if threading.current_thread().name == "weft-journal":
            assert self.is_open.wait(20)
        return self._write(fd, data, at)


async def test_a_publisher_faster_than_the_disk_waits_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        serving(tmp_path, segment_bytes=1 << 30) as gateway,
        weft.connect(gateway) as connection,
        weft.connect(gateway) as other,
    ):
        await connection.publish("a.b", BODY, acknowledge=True)
        gate = Gate(monkeypatch)
        publishing = asyncio.create_task(publish_much(connection))
        while connection.statistics.sent_bytes < 20 * len(BODY):
            # Others are served as ever.
            await other.publish("b", b"", acknowledge=True)
        assert not publishing.done()
        gate.is_open.set()
        await publishing
    assert len(kept(tmp_path)) == 401


async def publish_much(connection: weft.AsyncConnection) -> None:
    for _ in range(400):
        await connection.publish("a.b", BODY)
    await connection.flush()


async def test_a_disk_that_refuses_harms_no_live_traffic_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer_thread, "RETRY_S", 0.01)
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        heard = connection.subscribe("a.>")
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(os, "fdatasync", refuse)
            with pytest.raises(JournalFailed, match="Input/output error"):
                await connection.publish("a.b", {"n": 1}, acknowledge=True)
            with pytest.raises(JournalFailed, match="cannot be written: Input/output error"):
                await connection.publish("a.b", {"n": 2}, acknowledge=True)
            await connection.publish("a.b", {"n": 3})
            await connection.flush()
        while True:
            try:
                await connection.publish("a.b", {"n": 4}, acknowledge=True)
                break
            except JournalFailed:
                continue
        live = [(await anext(heard))["n"] for _ in range(4)]
    # What was refused nobody got; what failed later was delivered, and may be in the journal.
    assert live == [0, 1, 3, 4]
    assert [each["n"] for each in kept(tmp_path)] == [0, 1, 4]
    assert caplog.text.count("journal: write failed: Input/output error") == 1
    assert "journal: writing again; 1 messages were missed" in caplog.text


def refuse(_: int) -> None:
    raise OSError(5, "Input/output error")


async def test_damage_that_is_found_at_the_start_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
    (segment,) = segments_of(tmp_path / "journal", "default")
    torn = segment.path.read_bytes() + b"torn"
    segment.path.unlink()
    (segment.path.parent / f"_open-{0:020}-london.weft").write_bytes(torn)
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await connection.publish("a.b", {"n": 1}, acknowledge=True)
    assert "4 bytes after" in caplog.text
    assert [each["n"] for each in kept(tmp_path)] == [0, 1]


async def test_the_status_tells_how_far_it_is(tmp_path: Path) -> None:
    gateway = Gateway(settings=settings(tmp_path), workers="inline")
    async with gateway, weft.connect(str(gateway.address)) as connection:
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
        told = (await gateway.status())["services"]["default"]["status"]["journal"]
        assert told == {"position": 1, "safe": 1, "missed": 0, "problem": ""}


async def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway):
        host = ServiceHost("default", "london", Limits())
        with pytest.raises(BadOption, match="is being written by another gateway"):
            host.keep(tmp_path, JournalSettings(patterns=(">",)))
        await host.close()


async def test_without_its_packages_there_is_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weft.gateway.journal.service_journal", None)
    host = ServiceHost("default", "london", Limits())
    with pytest.raises(BadOption, match=r"pip install .weft-mesh\[journal\]"):
        host.keep(tmp_path, JournalSettings(patterns=(">",)))
    await host.close()


async def test_a_disk_that_never_answers_does_not_keep_the_gateway_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hosting, "JOURNAL_END_S", 0.05)
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
        gate = Gate(monkeypatch)
        await connection.publish("a.b", {"n": 1})
        await connection.flush()
    assert "messages not written after 0.05 s are lost" in caplog.text
    assert "the disk did not answer for 0.05 s" in caplog.text
    gate.is_open.set()
