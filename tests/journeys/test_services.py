"""Services: namespaces that never mix, in workers that stall and fail apart."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.journeys.clients import Client, Connect, rest, taken, texts
from tests.journeys.raw import greeted, message, subscribe
from tests.journeys.running import RunningGateway, running

import weft
from weft.client.status import What
from weft.errors import NoSuchService, NotKnown

SETTINGS = """
name = "shared"
services = ["weather", "orders"]
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway of two services, whose workers these journeys stop and kill."""
    with running(tmp_path_factory.mktemp("shared"), SETTINGS) as gateway:
        yield gateway


@pytest.fixture
def connect(face: str, shared: RunningGateway) -> Connect:
    return Connect(face, shared.address)


@pytest.mark.req("MM-13")
async def test_the_same_subject_in_two_services_never_mixes(connect: Connect, subject: str) -> None:
    async with connect(service="weather") as weather, connect(service="orders") as orders:
        heard = {
            client: [await client.subscribe(pattern) for pattern in (subject, ">")]
            for client in (weather, orders)
        }
        for number in range(20):
            await weather.publish(subject, f"weather {number}")
            await orders.publish(subject, f"order {number}")
        await weather.flush()
        await orders.flush()
        for client, word in ((weather, "weather"), (orders, "order")):
            for hearing in heard[client]:
                expected = [f"{word} {number}" for number in range(20)]
                assert texts(await rest(client, hearing)) == expected


@pytest.mark.req("MM-13")
async def test_requests_groups_and_registry_stay_within_their_service(
    connect: Connect, subject: str
) -> None:
    async with connect(service="weather") as weather, connect(service="orders") as orders:
        await orders.answer(subject, lambda _: "order", group="workers")
        with pytest.raises(NotKnown):
            await weather.request(subject, "?")
        await weather.answer(subject, lambda _: "weather", group="workers")
        answers = [await weather.request(subject, "?") for _ in range(4)]
        assert texts(answers) == ["weather"] * 4
        found = await weather.request("_WEFT.ask.subscribers", weft.Message(subject=subject))
        assert len(found["subscribers"]) == 1


@pytest.mark.req("MM-13")
async def test_an_inbox_of_one_service_is_not_reached_from_another(
    shared: RunningGateway, subject: str
) -> None:
    async with (
        greeted(shared.address, "weather") as owner,
        greeted(shared.address, "orders") as stranger,
    ):
        await stranger.say(message(f"{owner.inbox.decode()}.1", b"hello"))
        await owner.say(subscribe(subject))
        assert await owner.say() == []


async def test_a_service_that_the_gateway_does_not_run_is_refused(connect: Connect) -> None:
    with pytest.raises(NoSuchService):
        await connect.open(service="payments")


async def converse(client: Client, subject: str, count: int) -> None:
    """Ask and answer so often; the client does both."""
    await client.answer(subject, lambda asked: asked.text)
    for number in range(count):
        assert (await client.request(subject, str(number))).text == str(number)


@pytest.mark.req("MM-14")
async def test_a_stalled_service_does_not_delay_another(
    connect: Connect, shared: RunningGateway, subject: str
) -> None:
    async with connect(service="orders") as stalled, connect(service="weather") as weather:
        hearing = await stalled.subscribe(subject)
        with shared.stopped_worker("orders"):
            await stalled.publish(subject, "before it stood still")
            late = asyncio.create_task(connect.open(service="orders", connect_timeout_s=15.0))
            await converse(weather, subject, 100)
            async with connect(service="weather") as newcomer:
                await converse(newcomer, f"{subject}.more", 10)
            assert not late.done()
        # What came meanwhile was only waiting.
        assert (await hearing.next()).text == "before it stood still"
        await (await late).close()


@pytest.mark.req("MM-14")
async def test_a_crashed_service_costs_another_nothing(
    connect: Connect, shared: RunningGateway, subject: str
) -> None:
    count = 300
    async with (
        connect(service="orders") as crashes,
        connect(service="weather") as publisher,
        connect(service="weather") as listener,
    ):
        heard = await listener.subscribe(subject)
        for number in range(count):
            if number == count // 3:
                shared.kill_worker("orders")
            await publisher.publish(subject, str(number))
        assert texts(await taken(heard, count)) == [str(number) for number in range(count)]
        assert publisher.statuses.of(What.DISCONNECTED) == []
        assert listener.statuses.of(What.DISCONNECTED) == []
        # The crashed one is started again, and its clients come back.
        await crashes.statuses.until(What.CONNECTED, 2)
        await converse(crashes, subject, 3)


async def test_each_service_has_a_worker_of_its_own(
    connect: Connect, shared: RunningGateway, subject: str
) -> None:
    async with connect(service="weather") as weather, connect(service="orders") as orders:
        await weather.acknowledged(subject, "x")
        await orders.acknowledged(subject, "x")
        pids = {shared.front, shared.worker("weather"), shared.worker("orders")}
        assert len(pids) == 3


async def test_a_restarted_worker_is_announced_in_its_service(
    connect: Connect, shared: RunningGateway
) -> None:
    async with connect(service="weather") as client:
        events = await client.subscribe("_WEFT.event.worker_restarted")
        before = shared.status()["services"]["weather"]["restarts"]
        shared.kill_worker("weather")
        event = await events.next()
        assert (event["service"], event["exit"], event["restarts"]) == ("weather", -9, before + 1)
