"""Routes go direct, and come back: nobody notices but by what the gateway says."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.journeys.lane_people import (
    DIRECT,
    LIMIT_S,
    SETTINGS,
    Reader,
    Writer,
    eventually,
    reading,
    state_of,
)
from tests.journeys.running import RunningGateway, running

import weft
from weft.errors import NotDirect, ResponderGone


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway where routes are soon hot."""
    with running(tmp_path_factory.mktemp("lanes"), SETTINGS) as made:
        yield made


@pytest.mark.req("HUB-10", "HUB-11", "HUB-22")
async def test_a_hot_route_goes_direct_and_nothing_is_lost_doubled_or_out_of_order(
    gateway: RunningGateway, subject: str
) -> None:
    async with reading(gateway, subject, name="reader") as reader:
        async with weft.connect(gateway.address, name="writer") as connection:
            writer = Writer(connection, subject)
            await writer.go_on(lambda: reader.by_lane > 100)
            [told] = await state_of(connection, subject)
            assert told.startswith("direct: ")
            await connection.flush()
        await eventually(lambda: len(reader.heard) == writer.said)
        assert reader.numbers == list(range(writer.said))
        assert reader.gaps == []


@pytest.mark.req("HUB-12")
async def test_another_publisher_on_the_same_subject_stays_relayed(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject) as reader,
        weft.connect(gateway.address) as hot,
        weft.connect(gateway.address) as cold,
    ):
        await hot.direct(subject)
        await cold.publish(subject, b"1")
        await cold.flush()
        await hot.publish(subject, b"2")
        await hot.flush()
        await eventually(lambda: len(reader.heard) == 2)
        assert sorted(reader.heard) == [(False, 1), (True, 2)]


@pytest.mark.req("HUB-16")
async def test_each_of_many_subscribers_gets_it_by_a_lane_of_its_own(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject) as one,
        reading(gateway, subject) as two,
        reading(gateway, subject) as three,
        weft.connect(gateway.address) as connection,
    ):
        await connection.direct(subject)
        writer = Writer(connection, subject)
        await writer.say(1000)
        await connection.flush()
        for reader in (one, two, three):
            await eventually(lambda reader=reader: len(reader.heard) == 1000)  # type: ignore[misc]
            assert reader.heard == [(True, number) for number in range(1000)]


@pytest.mark.req("HUB-22")
async def test_subjects_of_one_publisher_do_not_overtake_each_other(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, f"{subject}.>") as reader,
        weft.connect(gateway.address) as connection,
    ):
        await connection.direct(f"{subject}.hot")
        for number in range(3000):
            name = f"{subject}.cold{number}" if number % 50 == 7 else f"{subject}.hot"
            await connection.publish(name, b"%d" % number)
            if number % 100 == 0:
                # So that it goes by the lane again.
                await asyncio.sleep(0.025)
        await connection.flush()
        await eventually(lambda: len(reader.heard) == 3000)
        assert reader.numbers == list(range(3000))
        assert 100 < reader.by_lane < 3000


@pytest.mark.req("HUB-8")
async def test_an_answer_comes_back_on_the_lane_and_sees_the_reply_as_it_is(
    gateway: RunningGateway, subject: str
) -> None:
    replies: list[tuple[str, bool]] = []

    async def answer(message: weft.AsyncReceived) -> None:
        replies.append((message.reply, message.sequence >= DIRECT))
        await message.respond(b"yes")

    async with (
        weft.connect(gateway.address) as server,
        weft.connect(gateway.address) as client,
    ):
        await server.subscribe(subject, answer).ready()
        hidden = await client.send_request(subject, b"?", masked=True)
        await client.direct(subject)
        first = await client.send_request(subject, b"?")
        second = await client.send_request(subject, b"?")
        assert [message.payload for message in (hidden, first, second)] == [b"yes"] * 3
        assert [message.sequence >= DIRECT for message in (hidden, first, second)] == [
            False,
            True,
            True,
        ]
        assert [is_direct for _, is_direct in replies] == [False, True, True]
        # Through the gateway it was a stand-in; by the lane it is where the answer went.
        assert replies[1][0] == first.subject
        assert replies[0][0] != hidden.subject


@pytest.mark.req("HUB-8")
async def test_what_was_asked_through_the_gateway_is_answered_there(
    gateway: RunningGateway, subject: str
) -> None:
    """Otherwise it would wait for the answer, and refuse others in the end."""
    asked: asyncio.Queue[weft.AsyncReceived] = asyncio.Queue()
    async with weft.connect(gateway.address) as server, weft.connect(gateway.address) as client:
        await server.subscribe(subject, asked.put_nowait).ready()
        request = asyncio.create_task(client.send_request(subject, b"?"))
        question = await asked.get()
        await client.direct(subject)
        await question.respond(b"yes")
        assert (await request).sequence < DIRECT
        facts = await client.send_request("_WEFT.ask.connections", weft.Message(name=server.name))
        [connection] = facts.get_list("connections")
        assert connection["unanswered"] == 0


@pytest.mark.req("HUB-20")
async def test_whoever_is_asked_by_a_lane_and_leaves_is_not_waited_for(
    gateway: RunningGateway, subject: str
) -> None:
    asked = asyncio.Event()
    async with weft.connect(gateway.address) as client:
        server = await weft.connect(gateway.address)
        await server.subscribe(subject, lambda _: asked.set()).ready()
        await client.direct(subject)
        request = asyncio.create_task(client.send_request(subject, b"?"))
        await asked.wait()
        await server.close()
        with pytest.raises(ResponderGone):
            await request


@pytest.mark.req("HUB-22")
async def test_a_new_subscriber_misses_nothing_after_its_word(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject) as old,
        weft.connect(gateway.address) as connection,
        weft.connect(gateway.address) as other,
    ):
        writer = Writer(connection, subject)
        await connection.direct(subject)
        await writer.go_on(lambda: old.by_lane > 50)
        new = Reader(other, subject)
        await new.subscription.ready()
        first = writer.said
        await writer.say(200)
        await connection.flush()
        await eventually(lambda: len(old.heard) == writer.said)
        await eventually(lambda: new.numbers[-1:] == [writer.said - 1])
        assert old.numbers == list(range(writer.said))
        assert new.numbers == list(range(new.numbers[0], writer.said))
        assert new.numbers[0] <= first


@pytest.mark.req("HUB-15", "HUB-22")
async def test_a_receiver_that_does_not_serve_it_any_more_sends_the_route_back(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject) as one,
        reading(gateway, subject) as two,
        weft.connect(gateway.address) as connection,
    ):
        await connection.direct(subject)
        writer = Writer(connection, subject)
        await writer.say(100)
        await one.subscription.close()
        await writer.go_on(lambda: two.heard[-1:] != [] and not two.heard[-1][0])
        await connection.flush()
        await eventually(lambda: len(two.heard) == writer.said)
        assert two.numbers == list(range(writer.said))
        assert one.numbers == list(range(len(one.heard)))


@pytest.mark.req("HUB-22")
async def test_a_new_subscription_receives_nothing_that_a_stalled_lane_still_holds(
    gateway: RunningGateway, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(gateway, subject) as old, weft.connect(gateway.address) as connection:
        # Another subject keeps the lane in use.
        other = Reader(old.connection, f"{subject}.other")
        await other.subscription.ready()
        await connection.direct(subject)
        await connection.direct(f"{subject}.other")
        writer = Writer(connection, subject)
        await writer.go_on(lambda: old.by_lane > 50)
        (lane,) = old.connection._engine.lanes.table
        line = lane.wire.line
        assert line is not None
        line.rest(True)
        rest = line.rest
        monkeypatch.setattr(line, "rest", lambda _: None)
        await writer.say(300)
        await old.subscription.close()
        await writer.go_on(lambda: subject.encode() not in connection._engine.lanes.splitter.routes)
        new = Reader(old.connection, subject)
        await new.subscription.ready()
        first = writer.said
        monkeypatch.setattr(line, "rest", rest)
        line.rest(False)
        await writer.say(200)
        await connection.flush()
        await eventually(lambda: new.numbers[-1:] == [writer.said - 1])
        assert new.numbers == list(range(first, writer.said))
        assert new.gaps == []


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize("end", ["publisher", "receiver"])
async def test_a_lane_that_breaks_loses_nothing(
    gateway: RunningGateway, subject: str, end: str
) -> None:
    async with reading(gateway, subject) as reader, weft.connect(gateway.address) as connection:
        writer = Writer(connection, subject)
        owner = connection if end == "publisher" else reader.connection
        for _ in range(5):
            await _go_direct(connection, subject)
            await writer.say(500)
            for lane in owner._engine.lanes.table:
                lane.wire.close("the test broke it")
            await writer.say(500)
        await connection.flush()
        await eventually(lambda: len(reader.heard) == writer.said)
        assert reader.numbers == list(range(writer.said))
        assert reader.by_lane > 0
        assert reader.gaps == []


async def _go_direct(connection: weft.AsyncConnection, subject: str) -> None:
    """Ask for lanes until they are there; a moment after they broke there are none."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                await connection.direct(subject)
            except NotDirect:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.req("HUB-22")
async def test_a_receiver_that_stops_reading_is_the_gateways_again_and_gets_everything(
    gateway: RunningGateway, subject: str
) -> None:
    async with weft.connect(gateway.address) as slow, weft.connect(gateway.address) as connection:
        subscription = slow.subscribe(subject, queue_bytes=20_000)
        await subscription.ready()
        await connection.direct(subject)
        body = b"x" * 1000
        sending = asyncio.create_task(_send(connection, subject, body, 5000))
        await eventually(lambda: not connection._engine.lanes.splitter.routes)
        taken: list[int] = []
        async for message in subscription:
            taken.append(int(message.payload[:6]))
            if len(taken) == 5000:
                break
        await sending
        assert taken == list(range(5000))


async def _send(connection: weft.AsyncConnection, subject: str, body: bytes, count: int) -> None:
    for number in range(count):
        await connection.publish(subject, b"%06d" % number + body)


@pytest.mark.req("HUB-22")
async def test_a_gateway_that_starts_again_leaves_no_hole_that_nobody_was_told_of(
    tmp_path_factory: pytest.TempPathFactory, subject: str
) -> None:
    with running(tmp_path_factory.mktemp("again"), SETTINGS) as gateway:
        async with reading(gateway, subject) as reader, weft.connect(gateway.address) as connection:
            writer = Writer(connection, subject)
            await connection.direct(subject)
            await writer.go_on(lambda: reader.by_lane > 50)
            gateway.kill_worker("default")
            await writer.go_on(lambda: len(reader.gaps) > 0)
            last = reader.numbers[-1]
            await writer.go_on(lambda: reader.numbers[-1] > last)
            assert reader.numbers == sorted(set(reader.numbers))
            assert {gap.reason for gap in reader.gaps} <= {"reconnected", "lost"}
