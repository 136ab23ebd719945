import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.broker.locksmith import key_of, record
from tests.gateway.journal.test_service_journal import Gate

import weft
from weft.broker.auth.keys import KeyRecord
from weft.client.publish.encode import message_frame
from weft.errors import (
    BadOption,
    JournalFailed,
    NotAllowed,
    NotKnown,
    Reserved,
    TooMany,
    WrongType,
)
from weft.gateway.config.settings import JournalSettings, Settings
from weft.gateway.gateway import Gateway
from weft.gateway.journal import staging as module
from weft.gateway.keys.key_file import change_keys
from weft.journal import writer_thread
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment.writer import OpenSegment
from weft.journal.staging import parts
from weft.journal.staging.batches import BatchCommit, PublishedMark, WriterProgress


@asynccontextmanager
async def gateway(
    folder: Path, key: str = "", **journal: Any
) -> AsyncIterator[weft.AsyncConnection]:
    settings = Settings(
        services=("default",),
        listen="127.0.0.1:0",
        name="london",
        data=str(folder),
        journal=JournalSettings(patterns=("a.>",), **journal),
    )
    running = Gateway(settings=settings, workers="inline")
    async with running, weft.connect(str(running.address), key=key) as connection:
        yield connection


def rows(first: int, count: int, subject: str = "a.b") -> bytes:
    return b"".join(message_frame(subject, {"n": first + n}) for n in range(count))


async def stage(
    connection: weft.AsyncConnection, name: str, staged: bytes, **more: Any
) -> weft.Received:
    given = {"writer": "w", "batch": 0, "part": name, "first": 0, "frames": staged, "last": True}
    return await connection.send_request("_WEFT.ask.stage", {**given, **more})


async def release(
    connection: weft.AsyncConnection, parts: dict[str, int], batch: int = 0, writer: str = "w"
) -> dict[str, Any]:
    order = {
        "writer": writer,
        "batch": batch,
        "parts": list(parts),
        "rows": list(parts.values()),
    }
    return (await connection.send_request("_WEFT.ask.release", order)).to_dict()


def kept(folder: Path) -> list[int]:
    found = history(folder / "journal", "default", "london", 0)
    return [
        weft.Message.from_frame(each.frame)["n"]
        for each in found
        if isinstance(each, JournalRecord)
    ]


async def test_rows_are_given_out_when_they_are_released_and_not_before(tmp_path: Path) -> None:
    async with gateway(tmp_path) as connection:
        async with connection.subscribe(">") as subscription:
            assert (await stage(connection, "p1", rows(0, 3), last=False)).to_dict() == {"rows": 3}
            assert (await stage(connection, "p1", rows(3, 2), first=3)).to_dict() == {"rows": 5}
            await stage(connection, "p0", rows(5, 2))
            await connection.publish("a.live", {"n": -1})
            assert (await anext(subscription))["n"] == -1
            answer = await release(connection, {"p1": 5, "p0": 2})
            assert answer == {"batch": 0, "rows": 7, "again": False}
            got = [(await anext(subscription))["n"] for _ in range(7)]
        assert got == [0, 1, 2, 3, 4, 5, 6]
        assert kept(tmp_path) == [-1, 0, 1, 2, 3, 4, 5, 6]
    assert not list(tmp_path.rglob("*.rows"))


async def test_a_batch_is_released_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    async with gateway(tmp_path) as connection:
        await stage(connection, "p", rows(0, 3))
        answers = await asyncio.gather(*(release(connection, {"p": 3}) for _ in range(5)))
        assert all(each["rows"] == 3 for each in answers)
        # A restarted writer stages the same batch anew, under other names.
        await stage(connection, "q", rows(0, 3))
        assert (await release(connection, {"q": 3}))["again"] is True
        await stage(connection, "r", rows(3, 2), batch=1)
        await release(connection, {"r": 2}, batch=1)
    async with gateway(tmp_path) as connection:
        assert (await release(connection, {"r": 2}, batch=1))["again"] is True
        assert kept(tmp_path) == [0, 1, 2, 3, 4]


async def test_writers_do_not_know_of_each_other(tmp_path: Path) -> None:
    async with gateway(tmp_path) as connection:
        for writer in ("one", "two"):
            await stage(connection, "p", rows(0, 2), writer=writer)
        assert (await release(connection, {"p": 2}, writer="one"))["again"] is False
        assert (await release(connection, {"p": 2}, writer="two"))["again"] is False
        assert kept(tmp_path) == [0, 1, 0, 1]


async def test_what_was_staged_survives_a_restart(tmp_path: Path) -> None:
    async with gateway(tmp_path) as connection:
        await stage(connection, "p", rows(0, 3))
    async with gateway(tmp_path) as connection:
        await release(connection, {"p": 3})
        assert kept(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("out", range(6))
async def test_a_batch_that_was_on_its_way_goes_on_where_it_was(tmp_path: Path, out: int) -> None:
    all_rows = rows(0, 2, "a.b") + rows(2, 3, "a.c")
    place = tmp_path / "staged/service=default/node=london/w"
    async with gateway(tmp_path) as connection:
        await stage(connection, "p", all_rows)
        staged = (place / "0-p.rows").read_bytes()
        first = b"".join(frames_of(all_rows)[:out])
        await stage(connection, "q", first)
        await release(connection, {"q": out})
    # What a gateway leaves that is killed when so many rows are in its journal.
    found = list(history(tmp_path / "journal", "default", "london", 0))
    marks = {
        (each.frame[8:12], each.frame[12:16]) for each in found if isinstance(each, JournalRecord)
    }
    order = BatchCommit(
        "w", 0, ("p",), (5,), tuple(PublishedMark(number(a), number(b), 0) for a, b in marks)
    )
    (place / "state.json").write_bytes(msgspec.json.encode(WriterProgress(-1, order)))
    (place / "0-p.rows").write_bytes(staged)
    async with gateway(tmp_path) as connection:
        assert (await release(connection, {"p": 5}))["rows"] == 5
        assert kept(tmp_path) == [0, 1, 2, 3, 4]
        assert (await release(connection, {"p": 5}))["again"] is True


def frames_of(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(data[:size])
        data = data[size:]
    return found


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


async def test_a_batch_whose_rows_are_not_there_is_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path) as connection:
        with pytest.raises(NotKnown, match="part p of batch 0 is not here"):
            await release(connection, {"p": 1})
        await stage(connection, "p", rows(0, 2), last=False)
        with pytest.raises(NotKnown, match="has 2 of 2 rows, and is not complete"):
            await release(connection, {"p": 2})
        await stage(connection, "p", b"", first=2)
        with pytest.raises(NotKnown, match="has 2 of 3 rows"):
            await release(connection, {"p": 3})
        file = next(tmp_path.rglob("*.rows"))
        data = bytearray(file.read_bytes())
        data[50] ^= 1
        file.write_bytes(data)
        with pytest.raises(NotKnown, match="damaged after 0 rows"):
            await release(connection, {"p": 2})
        with pytest.raises(WrongType):
            await release(connection, {"p": "2"})  # type: ignore[dict-item]
        assert kept(tmp_path) == []


async def test_rows_that_are_discarded_are_gone(tmp_path: Path) -> None:
    async with gateway(tmp_path) as connection:
        await stage(connection, "p", rows(0, 2))
        order = {"writer": "w", "batch": 0, "parts": ["p", "never-there"]}
        await connection.send_request("_WEFT.ask.discard", order)
        assert not list(tmp_path.rglob("*.rows"))


async def test_writers_that_end_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "WRITERS_MAX", 3)
    async with gateway(tmp_path) as connection:
        for number in range(10):
            writer = f"once-{number}"
            await stage(connection, "p", rows(number, 1), writer=writer)
            if number % 2:
                await release(connection, {"p": 1}, writer=writer)
            end = {"writer": writer, "batch": 0, "parts": [], "end": True}
            await connection.send_request("_WEFT.ask.discard", end)
        assert kept(tmp_path) == [1, 3, 5, 7, 9]
    assert not list((tmp_path / "staged/service=default/node=london").iterdir())


async def test_abandoned_rows_are_removed_while_the_service_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIDY_S", 0.05)
    monkeypatch.setattr(parts, "WRITERS_MAX", 2)
    place = tmp_path / "staged/service=default/node=london"
    async with gateway(tmp_path) as connection:
        await stage(connection, "p", rows(0, 1), writer="gone")
        await stage(connection, "p", rows(0, 1), writer="w")
        with pytest.raises(TooMany, match="2 writers have staged rows"):
            await stage(connection, "p", rows(0, 1), writer="late")
        for path in (place / "gone/0-p.rows", place / "gone"):
            os.utime(path, (1, 1))
        async with asyncio.timeout(20):
            while (place / "gone/0-p.rows").exists():
                await asyncio.sleep(0.01)
            os.utime(place / "gone", (1, 1))
            while (place / "gone").exists():
                await asyncio.sleep(0.01)
        await stage(connection, "p", rows(0, 1), writer="late")
        await release(connection, {"p": 1})
        assert kept(tmp_path) == [0]


async def test_no_more_is_staged_than_there_may_be(tmp_path: Path) -> None:
    async with gateway(tmp_path, staged_bytes=5000) as connection:
        await stage(connection, "p", rows(0, 5))
        with pytest.raises(TooMany, match="staged_bytes"):
            await stage(connection, "q", rows(5, 20))
        await release(connection, {"p": 5})
        await stage(connection, "q", rows(5, 5), batch=1)


@pytest.mark.parametrize("question", ["stage", "release"])
async def test_one_writer_has_its_share_of_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 4)
    async with gateway(tmp_path) as connection:

        async def asks(batch: int) -> object:
            if question == "stage":
                return await stage(connection, "p", rows(0, 1), batch=batch)
            return await release(connection, {}, batch)

        answers = await asyncio.gather(*map(asks, range(6)), return_exceptions=True)
        problems = [each for each in answers if isinstance(each, TooMany)]
        assert problems
        assert len(answers) - len(problems) >= 2
        told = "this connection has 2 errands that wait, which is its share of 4"
        assert all(told in str(each) for each in problems)
        # They were done, so there is room again.
        await stage(connection, "q", rows(0, 1), batch=9)


async def test_a_service_without_a_journal_stages_nothing() -> None:
    running = Gateway(settings=Settings(listen="127.0.0.1:0"), workers="inline")
    async with running, weft.connect(str(running.address)) as connection:
        with pytest.raises(NotKnown, match="keeps no journal"):
            await stage(connection, "p", rows(0, 1))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"writer": "../x"}, BadOption),
        ({"writer": ""}, BadOption),
        ({"part": "a/b"}, BadOption),
        ({"part": "a" * 81}, BadOption),
        ({"batch": -1}, BadOption),
        ({"first": 7}, NotKnown),
        ({"first": -1}, BadOption),
        ({"frames": b"half a frame"}, BadOption),
        ({"frames": rows(0, 2)[:-1]}, BadOption),
        ({"frames": "text"}, WrongType),
        ({"frames": message_frame("_WEFT.event.x", {})}, Reserved),
        ({"frames": message_frame("a", {}, "_INBOX.x")}, Reserved),
        ({"frames": message_frame("a", {}, flags=1)}, BadOption),
    ],
)
async def test_rows_that_cannot_be_are_refused(
    tmp_path: Path, change: dict[str, Any], error: type[Exception]
) -> None:
    async with gateway(tmp_path) as connection:
        with pytest.raises(error):
            await stage(connection, "p", rows(0, 1), **change)
        await stage(connection, "p", rows(0, 1))
        await release(connection, {"p": 1})
        assert kept(tmp_path) == [0]


def refuse(_: object) -> None:
    raise OSError(errno.EIO, "the disk refuses")


async def test_rows_that_the_disk_refuses_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path) as connection:
        with monkeypatch.context() as broken:
            broken.setattr(os, "fdatasync", refuse)
            with pytest.raises(JournalFailed, match="the disk refuses"):
                await stage(connection, "p", rows(0, 3))
        assert not list(tmp_path.rglob("*.rows"))
        await stage(connection, "p", rows(0, 3))
        await release(connection, {"p": 3})
        assert kept(tmp_path) == [0, 1, 2]


async def is_kept(connection: weft.AsyncConnection) -> bool:
    try:
        await connection.publish("a.x", {"n": -1}, acknowledge=True)
    except JournalFailed:
        return False
    return True


async def test_a_batch_waits_for_a_journal_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_thread, "RETRY_S", 0.01)
    async with gateway(tmp_path) as connection:
        for batch in range(2):
            await stage(connection, "p", rows(3 * batch, 3), batch=batch)
        with monkeypatch.context() as broken:
            broken.setattr(OpenSegment, "sync", refuse)
            first = asyncio.create_task(release(connection, {"p": 3}))
            while await is_kept(connection):
                pass
            second = asyncio.create_task(release(connection, {"p": 3}, batch=1))
        assert (await first)["again"] is False
        assert (await second)["again"] is False
        assert [number for number in kept(tmp_path) if number >= 0] == [0, 1, 2, 3, 4, 5]


async def test_a_batch_faster_than_the_disk_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = bytes(100_000)
    frames = [message_frame("a.b", body) for _ in range(150)]
    async with gateway(tmp_path, segment_bytes=1 << 30) as connection:
        await connection.publish("a.b", body, acknowledge=True)
        for number in range(0, 150, 2):
            piece = b"".join(frames[number : number + 2])
            await stage(connection, "p", piece, first=number, last=number == 148)
        gate = Gate(monkeypatch)
        releasing = asyncio.create_task(release(connection, {"p": 150}))
        # More than is taken at once: the rest waits, and others are served as ever.
        status = connection.send_request
        while (await status("_WEFT.ask.status", {}))["messages_in"] < 80:
            await connection.publish("b", b"")
        await connection.publish("b", b"", acknowledge=True)
        assert not releasing.done()
        gate.is_open.set()
        await releasing
    found = list(history(tmp_path / "journal", "default", "london", 0))
    assert len([each for each in found if isinstance(each, JournalRecord)]) == 151


async def test_rows_that_their_writer_may_not_publish_are_not_staged(tmp_path: Path) -> None:
    limited = record("one", service="default", publish=["a.>", "-a.secret"])
    change_keys(tmp_path, lambda _: (limited,))
    async with gateway(tmp_path, key_of("one")) as connection:
        for subject in ("b", "a.secret", "_WEFT.PIPELINE.x"):
            with pytest.raises(NotAllowed, match="may not publish to"):
                await stage(connection, "p", rows(0, 1) + rows(1, 1, subject))
        await stage(connection, "p", rows(0, 2))
        await release(connection, {"p": 2})
    assert kept(tmp_path) == [0, 1]


@pytest.mark.parametrize(
    "key",
    [
        record("one", "client", service="default", publish=[">"], request=[">"]),
        record("one", service="default", subscribe=[">"]),
    ],
    ids=["client", "service that does not publish"],
)
async def test_who_may_not_write_may_neither_stage_nor_release_nor_discard(
    tmp_path: Path, key: KeyRecord
) -> None:
    change_keys(tmp_path, lambda _: (key,))
    async with gateway(tmp_path, key_of("one")) as connection:
        batch = {"writer": "w", "batch": 0, "parts": ["p"], "rows": [1]}
        with pytest.raises(NotAllowed, match="may not write in two steps"):
            await stage(connection, "p", rows(0, 1))
        for question in ("release", "discard"):
            with pytest.raises(NotAllowed, match="may not write in two steps"):
                await connection.send_request(f"_WEFT.ask.{question}", batch)
