"""What programs can ask of lanes, and what lanes are like: pinned, shared, encrypted, counted."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.journeys.lane_people import (
    DIRECT,
    LIMIT_S,
    SETTINGS,
    Writer,
    eventually,
    reading,
    state_of,
)
from tests.journeys.running import RunningGateway, running

import weft
from weft.errors import NotDirect


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway where routes are soon hot."""
    with running(tmp_path_factory.mktemp("lanes"), SETTINGS) as made:
        yield made


@pytest.mark.req("HUB-13")
async def test_with_never_nothing_goes_direct_for_ever(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject) as reader,
        weft.connect(gateway.address, direct="never") as connection,
    ):
        writer = Writer(connection, subject)
        with pytest.raises(NotDirect, match="never"):
            await connection.direct(subject)
        await writer.go_on(lambda: len(reader.heard) > 800)
        assert reader.by_lane == 0
        assert await state_of(connection, subject) == [
            "relayed: the publisher does not accept lanes"
        ]


async def test_a_receiver_that_never_goes_direct_is_named(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject, name="shy", direct="never"),
        weft.connect(gateway.address) as connection,
    ):
        with pytest.raises(NotDirect, match="receiver shy does not accept lanes"):
            await connection.direct(subject)


async def test_with_require_nothing_goes_through_the_gateway(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, subject) as reader,
        weft.connect(gateway.address, direct="require") as connection,
    ):
        for acknowledge in (False, True):
            with pytest.raises(NotDirect, match="a lane is required"):
                await connection.publish(subject, b"0", acknowledge=acknowledge)
        with pytest.raises(NotDirect, match="a lane is required"):
            await connection.send_request(subject, b"0")
        await connection.direct(subject)
        with pytest.raises(NotDirect, match="the reply subject is not in"):
            await connection.publish(subject, b"0", reply="results")
        writer = Writer(connection, subject)
        await writer.say(100)
        await connection.flush()
        await eventually(lambda: len(reader.heard) == 100)
        assert reader.by_lane == 100


async def test_with_require_nobody_is_asked_who_only_listens(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        weft.connect(gateway.address) as reader,
        weft.connect(gateway.address, direct="require") as connection,
    ):
        await reader.subscribe(subject, listen_only=True).ready()
        await connection.direct(subject)
        with pytest.raises(NotDirect, match="no receiver on it answers"):
            await connection.send_request(subject, b"0")


async def test_two_subjects_at_once_share_the_lane_of_their_receiver(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        reading(gateway, f"{subject}.*") as reader,
        weft.connect(gateway.address) as connection,
    ):
        await asyncio.gather(*[connection.direct(f"{subject}.{number}") for number in range(4)])
        assert len(connection._engine.lanes.table) == 1
        for number in range(400):
            await connection.publish(f"{subject}.{number % 4}", b"%d" % number)
        await connection.flush()
        await eventually(lambda: len(reader.heard) == 400)
        assert reader.heard == [(True, number) for number in range(400)]


@pytest.mark.req("HUB-21")
async def test_a_lane_can_be_encrypted(
    tmp_path_factory: pytest.TempPathFactory, subject: str
) -> None:
    settings = SETTINGS + 'encrypt = "always"\n'
    with running(tmp_path_factory.mktemp("sealed"), settings) as gateway:
        async with reading(gateway, subject) as reader, weft.connect(gateway.address) as connection:
            await connection.direct(subject)
            [lane] = connection._engine.lanes.table
            assert lane.wire._seal is not None
            writer = Writer(connection, subject)
            await writer.say(5000)
            await connection.flush()
            await eventually(lambda: len(reader.heard) == 5000)
            assert reader.heard == [(True, number) for number in range(5000)]


def test_the_blocking_client_goes_direct_as_well(gateway: RunningGateway, subject: str) -> None:
    with weft.Connection(gateway.address) as receiver, weft.Connection(gateway.address) as sender:
        subscription = receiver.subscribe(subject)
        sender.direct(subject)
        for number in range(1000):
            sender.publish(subject, b"%d" % number)
        sender.flush()
        taken = [subscription.next(LIMIT_S) for _ in range(1000)]
        assert [int(each.payload) for each in taken] == list(range(1000))
        assert all(each.sequence >= DIRECT for each in taken)


@pytest.mark.req("HUB-9", "HUB-21")
async def test_what_went_by_lanes_is_counted_by_the_gateway(
    gateway: RunningGateway, subject: str
) -> None:
    async with reading(gateway, subject), weft.connect(gateway.address) as connection:
        await connection.direct(subject)
        await Writer(connection, subject).say(1234)
        await connection.flush()

        async def counted() -> int:
            question = weft.Message(subject=subject)
            answer = await connection.send_request("_WEFT.ask.flows", question)
            return sum(flow["messages"] for flow in answer.get_list("flows"))

        async with asyncio.timeout(LIMIT_S):
            while await counted() < 1234:
                await asyncio.sleep(0.05)
        assert await counted() == 1234
