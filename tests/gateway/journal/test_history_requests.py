import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import key_of, record
from tests.broker.talk import Guest, House
from tests.journal.desk import place_in, written

import weft
from weft.broker.auth.keys import KeyRecord
from weft.broker.disconnect import leave
from weft.broker.limits import Limits
from weft.errors import (
    BadOption,
    BadSubject,
    InternalError,
    NoSuchField,
    NotAllowed,
    Overloaded,
    TooMany,
    WrongType,
)
from weft.gateway.config.settings import JournalSettings, Settings
from weft.gateway.gateway import Gateway
from weft.gateway.journal import history_requests as module
from weft.gateway.journal.history_process import Look, Trouble
from weft.gateway.keys.key_file import change_keys
from weft.journal.parquet.seal import seal_all
from weft.journal.segment.file_names import segments_of
from weft.transports.loop.turn import Turn

HISTORY = "_WEFT.ask.history"
ALL = {"patterns": ["a.>"]}
RIGHTS = ["a.>", "-a.secret"]
CLIENT = record("one", "client", service="default", subscribe=RIGHTS, replay=RIGHTS)


@asynccontextmanager
async def keeping(folder: Path, share: float = 0.5) -> AsyncIterator[weft.AsyncConnection]:
    """A connection to a gateway whose journal has ten messages."""
    async with served(folder, share) as gateway, weft.connect(str(gateway.address)) as connection:
        for number in range(10):
            await connection.publish("a.b", {"n": number}, acknowledge=True)
        yield connection


@asynccontextmanager
async def served(folder: Path, share: float = 0.5) -> AsyncIterator[Gateway]:
    """A gateway with a journal."""
    settings = Settings(
        listen="127.0.0.1:0",
        name="london",
        data=str(folder),
        journal=JournalSettings(patterns=("a.>",)),
        limits=Limits(share=share),
    )
    async with Gateway(settings=settings, workers="inline") as gateway:
        yield gateway


async def test_a_page_says_where_to_go_on(tmp_path: Path) -> None:
    async with keeping(tmp_path) as connection:
        page = await connection.send_request(HISTORY, {**ALL, "position": 7})
        assert page.to_dict() | {"frames": b""} == {
            "frames": b"",
            "node": "london",
            "next": 10,
            "head": 10,
            "left": 0,
            "missing": 0,
        }
        (first, *_) = frames_of(page)
        assert first["n"] == 7


def frames_of(page: weft.Received) -> list[weft.Message]:
    data = page.get_blob("frames")
    found = []
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(weft.Message.from_frame(data[:size]))
        data = data[size:]
    return found


async def test_what_was_published_before_a_question_is_in_its_answer(tmp_path: Path) -> None:
    async with keeping(tmp_path) as connection:
        for number in range(10, 60):
            await connection.publish("a.b", {"n": number})
            page = await connection.send_request(HISTORY, {**ALL, "position": number})
            assert [each["n"] for each in frames_of(page)] == [number]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"position": 0}, NoSuchField),
        ({"patterns": [], "position": 0}, BadOption),
        ({"patterns": ["a..b"], "position": 0}, BadSubject),
        ({"patterns": "a.b", "position": 0}, WrongType),
        ({"patterns": [1], "position": 0}, WrongType),
        (ALL, BadOption),
        ({**ALL, "position": -1}, BadOption),
        ({**ALL, "position": 0, "offset": -1}, BadOption),
        ({**ALL, "position": "0"}, WrongType),
        ({**ALL, "ago": "5"}, WrongType),
        ({**ALL, "ago": float("nan")}, BadOption),
        ({**ALL, "ago": float("inf")}, BadOption),
        ({**ALL, "ago": -1e300}, BadOption),
        ({**ALL, "time": "now"}, WrongType),
    ],
)
async def test_a_question_that_cannot_be_answered_is_refused(
    tmp_path: Path, body: dict[str, Any], error: type[Exception]
) -> None:
    async with keeping(tmp_path) as connection:
        with pytest.raises(error):
            await connection.send_request(HISTORY, body)
        page = await connection.send_request(HISTORY, {**ALL, "ago": 100.0})
        assert page["next"] == 10


async def test_times_before_and_after_all_messages(tmp_path: Path) -> None:
    async with keeping(tmp_path) as connection:
        early = datetime(1971, 1, 1, tzinfo=UTC)
        page = await connection.send_request(HISTORY, {**ALL, "time": early})
        assert len(frames_of(page)) == 10
        late = datetime(2200, 1, 1, tzinfo=UTC)
        page = await connection.send_request(HISTORY, {**ALL, "time": late})
        assert (frames_of(page), page["next"]) == ([], 10)
        page = await connection.send_request(HISTORY, {**ALL, "position": 1 << 40})
        assert (frames_of(page), page["next"]) == ([], 1 << 40)


async def test_too_many_questions_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 3)
    async with keeping(tmp_path, share=1.0) as connection:
        questions = [connection.send_request(HISTORY, {**ALL, "position": 0}) for _ in range(5)]
        answers = await asyncio.gather(*questions, return_exceptions=True)
        assert [type(each) for each in answers].count(Overloaded) == 2


async def test_one_connection_has_its_share_of_questions_and_others_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 8)
    question = {**ALL, "position": 0}
    async with (
        served(tmp_path) as gateway,
        weft.connect(str(gateway.address)) as connection,
        weft.connect(str(gateway.address)) as other,
    ):
        await connection.publish("a.b", {"n": 0}, acknowledge=True)
        questions = [connection.send_request(HISTORY, question) for _ in range(6)]
        asked = asyncio.gather(*questions, return_exceptions=True)
        page = await other.send_request(HISTORY, question)
        assert len(frames_of(page)) == 1
        problems = [each for each in await asked if isinstance(each, Exception)]
        assert [type(each) for each in problems] == [TooMany, TooMany]
        assert "which is its share of 8: see limits.share" in str(problems[0])
        # All were answered: it has its share again.
        again = [connection.send_request(HISTORY, question) for _ in range(4)]
        assert len(await asyncio.gather(*again)) == 4


async def test_a_question_with_too_many_patterns_is_refused(tmp_path: Path) -> None:
    async with keeping(tmp_path) as connection:
        patterns = [f"a.{number}" for number in range(module.PATTERNS_MAX + 1)]
        with pytest.raises(TooMany, match="257 patterns in one request are over 256"):
            await connection.send_request(HISTORY, {"patterns": patterns, "position": 0})
        patterns[-1:] = []
        patterns[-1] = "a.b"
        page = await connection.send_request(HISTORY, {"patterns": patterns, "position": 0})
        assert len(frames_of(page)) == 10


class Written:
    """A journal of which nothing is written before a test says so."""

    position = 10


class Recorder:
    """Notes what an archivist is asked for."""

    def __init__(self) -> None:
        self.sent: list[int | None] = []

    def send(self, look: Look) -> None:
        self.sent.append(look.first)


def asks(archive: module.Archive, guest: Guest, number: int) -> None:
    request = weft.Message.from_dict({**ALL, "position": number})
    assert archive.ask(guest.peer, guest.inbox + b"%d" % number, request) is None


async def test_those_who_ask_take_turns_and_who_has_left_is_not_answered(tmp_path: Path) -> None:
    house = House()
    turn = Turn(house.service, asyncio.get_running_loop())
    archive = module.Archive(turn, Written(), tmp_path)  # type: ignore[arg-type]  # all it asks of it
    greedy, honest, gone = house.guest(), house.guest(), house.guest()
    archive._written = 0
    for number in range(5):
        asks(archive, greedy, number)
    for number in (10, 11):
        asks(archive, honest, number)
        asks(archive, gone, number)
    leave(gone.peer)
    recorder = Recorder()
    archive._channel = recorder  # type: ignore[assignment]  # it is only sent to
    archive.written_until(10)
    while archive._asked:
        archive._tell(Trouble(next(iter(archive._asked)), "no"))
    assert recorder.sent == [0, 10, 1, 11, 2, 3, 4]
    assert archive._waiting == 0
    archive._channel = None
    await archive.close()


async def test_questions_of_those_who_left_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 4)
    house = House()
    turn = Turn(house.service, asyncio.get_running_loop())
    archive = module.Archive(turn, Written(), tmp_path)  # type: ignore[arg-type]  # all it asks of it
    archive._written = 0
    for _ in range(4):
        guest = house.guest()
        asks(archive, guest, 0)
        leave(guest.peer)
    asks(archive, house.guest(), 0)
    assert archive._waiting == 1
    await archive.close()


async def test_a_journal_that_cannot_be_read_is_an_error_and_not_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with keeping(tmp_path) as connection:
        (path,) = tmp_path.glob("journal/*/_open-*")
        away = path.with_name("away")
        path.rename(away)
        path.mkdir()
        with pytest.raises(InternalError, match="the journal cannot be read"):
            await connection.send_request(HISTORY, {**ALL, "position": 0})
        path.rmdir()
        away.rename(path)
        page = await connection.send_request(HISTORY, {**ALL, "position": 0})
        assert len(frames_of(page)) == 10
    assert "journal: read failed" in caplog.text


@pytest.mark.parametrize(
    ("key", "patterns", "is_allowed"),
    [
        (record("one", service="default"), ["a.>"], True),
        (record("one", "client", service="default", subscribe=["a.>"]), ["a.b"], False),
        (record("one", "client", service="default", replay=["a.>"]), ["a.b"], False),
        (CLIENT, ["a.b"], True),
        (CLIENT, ["a.b", "c"], False),
        (CLIENT, ["a.*"], False),
        (CLIENT, [">"], False),
    ],
)
async def test_history_is_for_who_may_hear_and_replay_it(
    tmp_path: Path, key: KeyRecord, patterns: list[str], is_allowed: bool
) -> None:
    settings = Settings(
        services=("default",),
        listen="127.0.0.1:0",
        data=str(tmp_path),
        journal=JournalSettings(patterns=("a.>",)),
    )
    change_keys(tmp_path, lambda _: (key,))
    gateway = Gateway(settings=settings, workers="inline")
    async with gateway, weft.connect(gateway.address, key=key_of("one")) as connection:
        asking = connection.send_request(HISTORY, {"patterns": patterns, "position": 0})
        if is_allowed:
            assert (await asking)["next"] == 0
        else:
            with pytest.raises(NotAllowed, match="may not replay"):
                await asking


async def test_a_damaged_sealed_segment_is_a_gap_and_history_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "journal"
    place = place_in(root, "default")
    written(place, 20).finish()
    list(seal_all(root, "default", "london"))
    written(place, 10, first=20).finish()
    path = segments_of(root, "default")[0].path
    path.write_bytes(path.read_bytes()[:-100])
    async with keeping(tmp_path) as connection:
        question = {"patterns": [">"], "position": 0}
        page = await connection.send_request(HISTORY, question)
        assert (page["missing"], page["next"]) == (20, 40)
        assert len(frames_of(page)) == 20
        gaps: list[weft.Gap] = []
        heard = connection.subscribe(">", since="1000d", on_gap=gaps.append)
        for number in range(10):
            assert (await anext(heard)).get_int64("n") == number


async def test_an_archivist_that_ends_is_not_started_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESTART_S", 3600.0)
    starts: list[object] = []
    start = asyncio.create_subprocess_exec

    async def failing(*_command: str, **options: Any) -> asyncio.subprocess.Process:
        starts.append(options)
        return await start("/bin/false", **options)

    async with keeping(tmp_path) as connection:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", failing)
        with pytest.raises(InternalError, match="history process has ended"):
            await connection.send_request(HISTORY, {**ALL, "position": 0})
        with pytest.raises(TimeoutError):
            await connection.send_request(HISTORY, {**ALL, "position": 0}, timeout=0.2)
        assert len(starts) == 1
