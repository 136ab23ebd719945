"""Reconnecting: what a client does, tells and keeps when its gateway is gone for a while."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.clients import Client, Connect, Statuses, in_thread, rest, taken, texts
from tests.journeys.running import RunningGateway, kill, running, stopped

import weft
from weft.client.status import Gap, What
from weft.errors import ConnectionLost, NotKnown, TimedOut, Unreachable

SETTINGS = """
name = "fragile"
services_max = 64
"""


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway whose workers these journeys kill; each uses a service of its own."""
    with running(tmp_path_factory.mktemp("fragile"), SETTINGS) as gateway:
        yield gateway


@pytest.fixture
def connect(face: str, fragile: RunningGateway) -> Connect:
    return Connect(face, fragile.address)


@pytest.fixture
def kept_address() -> Iterator[str]:
    """An address that nobody listens on and nobody else is given."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield "{}:{}".format(*keeper.getsockname())


async def came_back(client: Client) -> None:
    await client.statuses.until(What.CONNECTED, 2)


async def test_subscriptions_come_back_with_the_connection(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    async with connect(service=service) as client:
        plain = await client.subscribe(["a.*", "b.>"], policy="drop_old")
        grouped = await client.subscribe("c", group="workers")
        fragile.kill_worker(service)
        await came_back(client)
        for subject in ("a.1", "b.2.3", "c"):
            await client.publish(subject, subject)
        assert texts(await taken(plain, 2)) == ["a.1", "b.2.3"]
        assert texts(await taken(grouped, 1)) == ["c"]
        found = await client.request("_WEFT.ask.subscriptions", weft.Message())
        assert {(each["pattern"], each["policy"]) for each in found["subscriptions"]} == {
            ("a.*", "drop_old"),
            ("b.>", "drop_old"),
            ("c", "cut"),
        }


async def test_every_step_of_a_return_is_told(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    async with connect(service=service) as client:
        fragile.kill_worker(service)
        told = await client.statuses.until(What.GAP)
        assert told.gap == Gap("reconnected")
        order = [status.what for status in client.statuses.all]
        steps = [What.CONNECTED, What.DISCONNECTED, What.RECONNECTING, What.CONNECTED, What.GAP]
        assert [what for what in order if what in steps][:3] == steps[:3]
        assert order[-2:] == steps[-2:]
        assert isinstance(client.statuses.of(What.DISCONNECTED)[0].error, ConnectionLost)
        assert client.is_connected
        assert client.statistics.connects == 2


async def test_each_subscription_is_told_that_it_may_have_missed_something(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    gaps: list[Gap] = []
    async with connect(service=service) as client:
        hearing = await client.subscribe("a", on_gap=gaps.append)
        await client.publish("a", "before")
        assert texts(await taken(hearing, 1)) == ["before"]
        fragile.kill_worker(service)
        await came_back(client)
        await client.publish("a", "after")
        assert texts(await taken(hearing, 1)) == ["after"]
        assert gaps == [Gap("reconnected")]


async def test_a_pending_request_fails_with_the_connection(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    async with connect(service=service) as asker, connect(service=service) as holder:
        requests = await holder.subscribe("a")
        request = asyncio.create_task(asker.request("a", "?", timeout=3600.0))
        await requests.next()
        fragile.kill_worker(service)
        with pytest.raises(ConnectionLost) as lost:
            await request
        assert not isinstance(lost.value, TimedOut)


async def test_a_request_that_may_be_resent_is_answered_after_the_return(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    async with connect(service=service) as client:
        # Its own subscription comes back before the request is sent again.
        requests = await client.subscribe("a")
        request = asyncio.create_task(client.request("a", "?", resend=True))
        first = await requests.next()
        fragile.kill_worker(service)
        second = await requests.next()
        assert (first.text, second.text) == ("?", "?")
        assert first.reply != second.reply
        await client.respond(second, "!")
        assert (await request).text == "!"


async def test_whatever_else_awaits_an_answer_fails_with_the_connection(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    async with connect(service=service) as client:
        calls = (
            lambda: client.acknowledged("a", "x"),
            lambda: client.gather("a", "?", deadline_s=3600.0),
            client.flush,
        )
        waiting: list[asyncio.Task[object]] = []
        worker = fragile.worker(service)
        with stopped(worker):
            for call in calls:
                sent_bytes = client.statistics.sent_bytes
                waiting.append(asyncio.create_task(call()))
                while client.statistics.sent_bytes == sent_bytes:
                    await asyncio.sleep(0)
            kill(worker)
        for task in waiting:
            with pytest.raises(ConnectionLost) as lost:
                await task
            assert not isinstance(lost.value, TimedOut)


async def test_what_is_published_meanwhile_arrives_after_the_return(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    sent = [str(number) for number in range(200)]
    async with connect(service=service) as client:
        heard = await client.subscribe("a")
        worker = fragile.worker(service)
        # A front that stands still lets nobody back in.
        with stopped(fragile.front):
            kill(worker)
            await client.statuses.until(What.DISCONNECTED)
            for text in sent:
                await client.publish("a", text)
            assert not client.is_connected
        assert texts(await taken(heard, len(sent))) == sent
        assert await rest(client, heard) == []


async def test_a_subscription_made_meanwhile_is_asked_for_after_the_return(
    fragile: RunningGateway, service: str
) -> None:
    statuses = Statuses()
    async with weft.connect(fragile.address, service=service, on_status=statuses.note) as client:
        worker = fragile.worker(service)
        with stopped(fragile.front):
            kill(worker)
            await statuses.until(What.DISCONNECTED)
            subscription = client.subscribe("a")
            await client.publish("a", "made meanwhile")
        assert (await subscription.next(15)).text == "made meanwhile"


async def test_a_closed_subscription_does_not_come_back(
    connect: Connect, fragile: RunningGateway, service: str
) -> None:
    async with connect(service=service) as client:
        closed = await client.subscribe("a")
        await closed.close()
        fragile.kill_worker(service)
        await came_back(client)
        with pytest.raises(NotKnown):
            await client.request("a", "anyone?")


async def test_without_a_gateway_a_client_says_so(face: str, kept_address: str) -> None:
    with pytest.raises(Unreachable, match=kept_address):
        await Connect(face, kept_address).open()


async def test_a_client_may_wait_for_its_gateway(
    face: str, kept_address: str, tmp_path: Path
) -> None:
    failures = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    def on_status(status: weft.Status) -> None:
        if status.what is What.FAILED:
            loop.call_soon_threadsafe(failures.release)

    opening = asyncio.create_task(
        Connect(face, kept_address).open(wait=True, on_status=on_status, backoff_cap_s=0.2)
    )
    for _ in range(3):
        await failures.acquire()
    with running(tmp_path, "", kept_address):
        client = await opening
        assert (await client.acknowledged("a", "x")).sequence > 0
        await client.close()


async def test_a_client_never_stops_trying(face: str, kept_address: str, tmp_path: Path) -> None:
    with running(tmp_path / "first", "", kept_address) as gateway:
        client = await Connect(face, kept_address).open(backoff_cap_s=0.2)
        heard = await client.subscribe("a")
        gateway.terminate()
        assert await in_thread(gateway.wait) == 0
    await client.statuses.until(What.FAILED, 4)
    assert not client.is_connected
    await client.publish("a", "kept")
    with running(tmp_path / "second", "", kept_address):
        assert texts(await taken(heard, 1)) == ["kept"]
        await client.close()


async def test_several_addresses_are_tried_in_turn(
    face: str, kept_address: str, fragile: RunningGateway
) -> None:
    connect = Connect(face, "")
    async with connect([kept_address, fragile.address]) as client:
        assert client.gateway == "fragile"
        await client.statuses.until(What.FAILED)
    async with connect(f"{kept_address}, tcp://{fragile.address}") as client:
        assert client.gateway == "fragile"


async def test_a_client_that_is_closed_while_its_gateway_is_gone_ends_at_once(
    face: str, kept_address: str, tmp_path: Path
) -> None:
    with running(tmp_path, "", kept_address) as gateway:
        client = await Connect(face, kept_address).open()
        gateway.terminate()
        assert await in_thread(gateway.wait) == 0
    await client.statuses.until(What.FAILED)
    await client.publish("a", "never sent")
    await client.close()
    closed = await client.statuses.until(What.CLOSED)
    assert "not sent" in closed.detail
