"""Slow readers: what each policy keeps, and that every loss is announced with its exact count.

A reader that does not read is a raw socket with a small buffer. It falls behind for good once the
kernel's buffers are full; what happens then is asked of the gateway, never waited for by the clock.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from tests.journeys.clients import LIMIT_S, Connect
from tests.journeys.raw import Raw, dialled, fields, subscribe
from tests.journeys.running import RunningGateway, running

import weft
from weft.client.status import Gap, What
from weft.wire.frames import Frame, Kind

# A small bound is reached soon; its age is not, however slow the machine.
SETTINGS = """
name = "narrow"

[limits]
outbox_bytes = 262_144
outbox_age_s = 600.0
"""
# Over half of a piece of the backlog, so that each message is kept or dropped by itself.
BODY_BYTES = 10_000
BATCH = 100


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway that holds little for anyone."""
    with running(tmp_path_factory.mktemp("narrow"), SETTINGS) as gateway:
        yield gateway


class Flood:
    """A publisher that numbers its messages, and knows how its one slow reader fares."""

    def __init__(self, client: weft.AsyncConnection, reader: str, subjects: list[str]) -> None:
        self.sent = 0
        self._client = client
        self._reader = reader
        self._subjects = subjects

    async def send(self, count: int) -> None:
        """Publish to the subjects in turn, until the gateway has dealt with it all."""
        for _ in range(count):
            subject = self._subjects[self.sent % len(self._subjects)]
            await self._client.publish(subject, b"%d " % self.sent + bytes(BODY_BYTES))
            self.sent += 1
        await self._client.flush()

    async def until_dropped(self) -> None:
        """Publish until the reader's backlog is full and stays as it is."""
        owed = -1
        while True:
            await self.send(BATCH)
            reader = await self.look()
            if reader["dropped"] and reader["owed_bytes"] == owed:
                return
            owed = reader["owed_bytes"]

    async def look(self) -> dict[str, int]:
        """The slow reader as the gateway sees it."""
        question = weft.Message(name=self._reader)
        answer = await self._client.send_request("_WEFT.ask.connections", question, LIMIT_S)
        (connection,) = answer.to_dict()["connections"]
        return dict(connection)


@asynccontextmanager
async def slow_reader(
    gateway: RunningGateway, name: str, patterns: dict[str, str]
) -> AsyncIterator[Raw]:
    """A connection that has subscribed, by policy, and does not read from now on."""
    async with dialled(gateway.address, receive_buffer=16_384) as reader:
        await reader.greet(name=name)
        await reader.say(*(subscribe(each, policy=policy) for each, policy in patterns.items()))
        yield reader


class Reading:
    """What a reader finds when it reads on: messages by number, and gaps by reason."""

    def __init__(self, frames: list[Frame]) -> None:
        self.numbers = [
            int(frame.body.split()[0]) for frame in frames if frame.kind == Kind.MESSAGE
        ]
        self.gaps = [fields(frame) for frame in frames if frame.kind == Kind.GAP]
        self.origins = {frame.origin for frame in frames}

    @property
    def announced(self) -> int:
        return sum(gap["count"] for gap in self.gaps)

    @property
    def reasons(self) -> set[str]:
        return {gap["reason"] for gap in self.gaps}


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [("drop_new", {"slow"}), ("drop_old", {"slow"}), ("latest", {"conflated"})],
)
async def test_what_was_sent_is_received_or_announced(
    narrow: RunningGateway, subject: str, policy: str, reasons: set[str]
) -> None:
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {subject: policy}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [subject])
        await flood.until_dropped()
        dropped = (await flood.look())["dropped"]
        found = Reading(await reader.say())
        assert len(found.numbers) + found.announced == flood.sent
        assert found.announced == dropped > 0
        assert found.numbers == sorted(set(found.numbers))
        assert found.reasons == reasons
        # Both say whose messages they are about: one gateway's.
        assert len(found.origins - {0}) == 1


async def test_drop_new_keeps_what_came_first(narrow: RunningGateway, subject: str) -> None:
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {subject: "drop_new"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [subject])
        await flood.until_dropped()
        full = flood.sent
        await flood.send(BATCH)
        found = Reading(await reader.say())
        assert found.numbers == list(range(len(found.numbers)))
        assert found.numbers[-1] < full


async def test_drop_old_keeps_what_came_last(narrow: RunningGateway, subject: str) -> None:
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {subject: "drop_old"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [subject])
        await flood.until_dropped()
        await flood.send(BATCH)
        found = Reading(await reader.say())
        kept_last = found.numbers[-10:]
        assert kept_last == list(range(flood.sent - 10, flood.sent))


async def test_latest_keeps_the_newest_of_each_subject(
    narrow: RunningGateway, subject: str
) -> None:
    subjects = [f"{subject}.{letter}" for letter in "abcde"]
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {f"{subject}.*": "latest"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", subjects)
        await flood.until_dropped()
        await flood.send(BATCH)
        found = Reading(await reader.say())
        assert found.numbers[-5:] == list(range(flood.sent - 5, flood.sent))
        assert len(found.numbers) + found.announced == flood.sent
        assert found.reasons == {"conflated"}


async def test_a_gap_comes_before_the_next_message(narrow: RunningGateway, subject: str) -> None:
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {subject: "drop_new"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [subject])
        await flood.until_dropped()
        before = await reader.say()
        await flood.send(1)
        after = await reader.say()
        assert Reading(before).announced > 0
        assert [frame.kind for frame in after] == [Kind.MESSAGE]
        assert Reading(after).numbers == [flood.sent - 1]


async def test_a_reader_that_falls_behind_twice_is_told_twice(
    narrow: RunningGateway, subject: str
) -> None:
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {subject: "drop_old"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [subject])
        frames: list[Frame] = []
        for _ in range(2):
            start = flood.sent
            await flood.until_dropped()
            heard = await reader.say()
            assert Reading(heard).announced > 0
            assert len(Reading(heard).numbers) + Reading(heard).announced == flood.sent - start
            frames += heard
        assert len(Reading(frames).numbers) + Reading(frames).announced == flood.sent


async def departure(events: weft.AsyncSubscription, name: str) -> str:
    """Why a connection of this name left; others may leave meanwhile."""
    while (event := await events.next(LIMIT_S))["name"] != name:
        pass
    return str(event["reason"])


async def test_a_reader_that_cuts_is_disconnected_and_its_neighbours_are_not(
    narrow: RunningGateway, subject: str
) -> None:
    async with (
        weft.connect(narrow.address) as client,
        weft.connect(narrow.address) as neighbour,
        slow_reader(narrow, f"{subject}.slow", {subject: "cut"}) as reader,
    ):
        events = client.subscribe("_WEFT.event.disconnected")
        numbers: list[int] = []
        hearing = neighbour.subscribe(
            subject, lambda message: numbers.append(int(message.payload.split()[0]))
        )
        await asyncio.gather(events.ready(), hearing.ready())
        flood = Flood(client, f"{subject}.slow", [subject])
        cut = asyncio.create_task(departure(events, f"{subject}.slow"))
        while not cut.done():
            # No more than the gateway holds: the neighbour reads in the same loop that publishes.
            await flood.send(BATCH // 5)
            while len(numbers) < flood.sent:
                await asyncio.sleep(0)
        assert cut.result() == "SlowReader"
        found = Reading(await reader.to_the_end())
        # Nothing is dropped on the way to the end, so there is nothing to announce.
        assert found.gaps == []
        assert found.numbers == list(range(len(found.numbers)))
        await neighbour.drain()
        assert numbers == list(range(flood.sent))


async def test_a_reader_that_takes_nothing_for_too_long_is_cut_whatever_its_policy(
    subject: str, tmp_path: Path
) -> None:
    with running(tmp_path, "[limits]\noutbox_bytes = 262_144\noutbox_age_s = 1.0") as impatient:
        async with (
            weft.connect(impatient.address) as client,
            slow_reader(impatient, f"{subject}.slow", {subject: "drop_old"}) as reader,
        ):
            events = client.subscribe("_WEFT.event.disconnected")
            await events.ready()
            flood = Flood(client, f"{subject}.slow", [subject])
            cut = asyncio.create_task(departure(events, f"{subject}.slow"))
            while not cut.done():
                await flood.send(BATCH)
            assert cut.result() == "SlowReader"
            found = Reading(await reader.to_the_end())
            # What it lost since the last gap that it was sent, nobody tells it any more.
            assert len(found.numbers) + found.announced < flood.sent


async def test_each_subscription_has_its_own_policy(narrow: RunningGateway, subject: str) -> None:
    first, last = f"{subject}.first", f"{subject}.last"
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {first: "drop_new", last: "latest"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [first, last])
        await flood.until_dropped()
        found = Reading(await reader.say())
        assert len(found.numbers) + found.announced == flood.sent
        assert found.reasons == {"slow", "conflated"}
        # Even numbers went to the first, odd ones to the last.
        assert max(number for number in found.numbers if number % 2) == flood.sent - 1
        assert max(number for number in found.numbers if not number % 2) < flood.sent - 2


async def test_a_slow_reader_and_its_gaps_are_announced_to_whoever_asks(
    narrow: RunningGateway, subject: str
) -> None:
    name = f"{subject}.slow"
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, name, {subject: "drop_new"}) as reader,
    ):
        slow = client.subscribe("_WEFT.event.slow_reader")
        gaps = client.subscribe("_WEFT.event.gap")
        await asyncio.gather(slow.ready(), gaps.ready())
        flood = Flood(client, name, [subject])
        await flood.until_dropped()
        found = await slow.next(LIMIT_S)
        assert found["name"] == name
        assert found["owed"] > 0
        announced = 0
        dropped = (await flood.look())["dropped"]
        while announced < dropped:
            gap = await gaps.next(LIMIT_S)
            assert gap["name"] == name
            announced += gap["count"]
        assert announced == dropped == Reading(await reader.say()).announced


async def test_answers_are_not_dropped_however_slow_the_reader(
    narrow: RunningGateway, subject: str
) -> None:
    async with (
        weft.connect(narrow.address) as client,
        slow_reader(narrow, f"{subject}.slow", {subject: "drop_new"}) as reader,
    ):
        flood = Flood(client, f"{subject}.slow", [subject])
        await flood.until_dropped()
        heard = await reader.say(*(subscribe(f"{subject}.{number}") for number in range(50)))
        confirmed = [frame.subject for frame in heard if frame.kind == Kind.OK]
        assert confirmed == [f"{subject}.{number}".encode() for number in range(50)]
        assert len(Reading(heard).numbers) + Reading(heard).announced == flood.sent


@pytest.mark.parametrize("policy", ["drop_old", "latest"])
async def test_a_client_that_takes_nothing_is_told_of_every_loss(
    narrow: RunningGateway, subject: str, face: str, policy: Literal["drop_old", "latest"]
) -> None:
    gaps: list[Gap] = []
    connect = Connect(face, narrow.address)
    async with weft.connect(narrow.address) as publisher, connect(name=f"{subject}.slow") as client:
        hearing = await client.subscribe(
            subject, policy=policy, queue_bytes=65_536, on_gap=gaps.append
        )
        flood = Flood(publisher, f"{subject}.slow", [subject])
        await flood.until_dropped()
        assert gaps == []
        numbers: list[int] = []
        while flood.sent - 1 not in numbers:
            numbers.append(int((await hearing.next()).payload.split()[0]))
        assert len(numbers) + sum(gap.count or 0 for gap in gaps) == flood.sent
        assert {gap.reason for gap in gaps} == {"slow" if policy == "drop_old" else "conflated"}
        await client.statuses.until(What.GAP, len(gaps))
        assert [status.gap for status in client.statuses.of(What.GAP)] == gaps
