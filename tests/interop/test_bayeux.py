"""CometD and Faye clients as they are published, against a gateway as people run it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.stock import is_installed, stock
from tests.journeys.running import RunningGateway, running

import weft
from weft.gateway.config.settings import Settings
from weft.gateway.keys.manage import make_key, new_record
from weft.transports.http.origins import WebSettings

pytestmark = [
    pytest.mark.req("TUN-24"),
    pytest.mark.skipif(not is_installed(), reason="make interop installs the clients"),
]

WAYS = [
    ("cometd", "long-polling"),
    ("cometd", "websocket"),
    ("cometd", "callback-polling"),
    ("faye", "long-polling"),
    ("faye", "websocket"),
]
FAST = "[web]\njsonp = true\nbayeux_timeout_s = 5.0\n"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with running(tmp_path_factory.mktemp("gateway"), FAST) as made:
        yield made


def url(gateway: RunningGateway) -> str:
    return f"http://{gateway.address}/default/bayeux"


@pytest.mark.parametrize(("library", "transport"), WAYS)
async def test_a_stock_client_publishes_and_subscribes(
    gateway: RunningGateway, library: str, transport: str
) -> None:
    base = f"/{library}/{transport}"
    async with stock(library, transport, url(gateway)) as client:
        answer = await client.done("subscribe", f"{base}/a")
        assert answer["successful"]
        for data in ({"temp": 21.5, "ok": True}, [1, "two", None], "text", 7):
            answer = await client.done("publish", f"{base}/a", data)
            assert answer["successful"]
            assert await client.messages(1) == [(f"{base}/a", data)]


@pytest.mark.parametrize(("library", "transport"), WAYS)
async def test_messages_come_one_after_the_other_and_all_of_them(
    gateway: RunningGateway, library: str, transport: str
) -> None:
    channel = f"/many/{library}/{transport}"
    async with stock(library, transport, url(gateway)) as client:
        await client.done("subscribe", channel)
        client.do("batch", channel, list(range(20)))
        for _ in range(20):
            assert (await client.happened("published"))["successful"]
        assert await client.messages(20) == [(channel, number) for number in range(20)]
        async with weft.connect(gateway.address) as native:
            subject = channel.strip("/").replace("/", ".")
            for number in range(100):
                await native.publish(subject, {"number": number})
            told = await client.messages(100)
        assert [data["number"] for _, data in told] == list(range(100))


@pytest.mark.parametrize(("library", "transport"), WAYS)
async def test_wildcards_unsubscribing_and_disconnecting(
    gateway: RunningGateway, library: str, transport: str
) -> None:
    base = f"/wild/{library}/{transport}"
    async with (
        stock(library, transport, url(gateway)) as client,
        stock("cometd", "websocket", url(gateway)) as sender,
    ):
        await client.done("subscribe", f"{base}/*")
        await client.done("subscribe", f"{base}/deep/**")
        for end in ("a", "deep/b/c", "not/heard", "b"):
            await sender.done("publish", f"{base}/{end}", end)
        heard = await client.messages(3)
        assert sorted(data for _, data in heard) == ["a", "b", "deep/b/c"]
        await client.done("unsubscribe", f"{base}/*")
        # Whatever says that it is done says so before the gateway was told.
        await asyncio.sleep(0.3)
        await sender.done("publish", f"{base}/a", "unheard")
        await sender.done("publish", f"{base}/deep/x", "heard")
        assert await client.messages(1) == [(f"{base}/deep/x", "heard")]
        client.do("disconnect")
        assert (await client.happened("disconnected"))["successful"]


async def test_cometd_faye_and_python_meet_on_the_same_subjects(gateway: RunningGateway) -> None:
    async with (
        stock("cometd", "long-polling", url(gateway)) as polling,
        stock("cometd", "websocket", url(gateway)) as socket,
        stock("faye", "websocket", url(gateway)) as faye,
        weft.connect(gateway.address) as native,
    ):
        subscription = native.subscribe("meet.>")
        await subscription.ready()
        clients = {"polling": polling, "socket": socket, "faye": faye}
        for client in clients.values():
            await client.done("subscribe", "/meet/**")
        for name, client in clients.items():
            await client.done("publish", f"/meet/{name}", {"from": name})
        await native.publish("meet.native", {"from": "native"})
        everyone = [*clients, "native"]
        for client in clients.values():
            told = await client.messages(4)
            assert [data["from"] for _, data in told] == everyone
            assert [channel for channel, _ in told] == [f"/meet/{name}" for name in everyone]
        heard = [(await subscription.next(timeout=10)).get_string("from") for _ in everyone]
        assert heard == everyone


@pytest.mark.parametrize(("library", "transport"), WAYS)
async def test_what_is_refused_is_told_and_the_client_goes_on(
    gateway: RunningGateway, library: str, transport: str
) -> None:
    async with stock(library, transport, url(gateway)) as client:
        answer = await client.done("subscribe", "/_WEFT/**")
        assert not answer["successful"]
        if library == "faye":
            # It takes errors apart, and only those that are as Bayeux has them.
            assert answer["code"] == 403
            assert answer["error"] == "channel /_WEFT/** belongs to the system"
        else:
            assert answer["error"].startswith("403:/_WEFT/**:")
        answer = await client.done("publish", "/_WEFT/x", 1)
        assert not answer["successful"]
        assert (await client.done("publish", "/fine", 1))["successful"]


@pytest.mark.parametrize("transport", ["long-polling", "websocket"])
async def test_a_connect_that_times_out_is_followed_by_another(
    gateway: RunningGateway, transport: str
) -> None:
    async with stock("cometd", transport, url(gateway)) as client:
        # The first is answered at once, the next after its time.
        for _ in range(2):
            assert (await client.happened("connect"))["successful"]
        await client.done("subscribe", f"/late/{transport}")
        await client.done("publish", f"/late/{transport}", 1)
        assert await client.messages(1) == [(f"/late/{transport}", 1)]


@pytest.mark.parametrize("transport", ["long-polling", "websocket"])
async def test_cometd_acknowledges_what_it_gets(gateway: RunningGateway, transport: str) -> None:
    channel = f"/acks/{transport}"
    async with stock("cometd", transport, url(gateway), ack=True) as client:
        await client.done("subscribe", channel)
        for number in range(30):
            client.do("publish", channel, number)
        told = await client.messages(30)
        assert [data for _, data in told] == list(range(30))
        client.do("disconnect")
        await client.happened("disconnected")
        numbers = [each["ack"] for each in client.events if "ack" in each]
        assert numbers == sorted(numbers)
        assert numbers[-1] >= 1


@pytest.mark.parametrize("is_drained", [True, False])
@pytest.mark.parametrize(("library", "transport"), WAYS)
async def test_after_a_restart_a_client_shakes_hands_and_subscribes_anew(
    library: str, transport: str, is_drained: bool
) -> None:
    rules = WebSettings(jsonp=True, bayeux_timeout_s=5.0)
    settings = Settings(web=rules, services=("default",), drain_s=2.0)
    first = weft.Gateway("127.0.0.1:0", settings=settings, workers="inline")
    await first.start()
    address = first.address
    async with stock(library, transport, f"http://{address}/default/bayeux") as client:
        await client.happened("handshake", successful=True)
        await client.done("subscribe", "/a")
        await client.done("publish", "/a", "before")
        assert await client.messages(1) == [("/a", "before")]
        if is_drained:
            await first.drain()
        await first.close()
        second = weft.Gateway(address, settings=settings, workers="inline")
        async with second:
            await client.happened("handshake", successful=True)
            # Until it has subscribed again, nothing is heard.
            async with weft.connect(address) as native:
                hearing = asyncio.ensure_future(client.messages(1))
                while not hearing.done():
                    await native.publish("a", {"x": 1})
                    await asyncio.wait([hearing], timeout=0.2)
            assert hearing.result() == [("/a", {"x": 1})]
            await second.close()


@pytest.mark.parametrize(("library", "transport"), WAYS)
async def test_who_has_no_key_is_refused_and_stays_away(
    tmp_path: Path, library: str, transport: str
) -> None:
    key = make_key(tmp_path, new_record("guest", "service", "default")).text
    settings = Settings(data=str(tmp_path), services=("default",), web=WebSettings(jsonp=True))
    async with weft.Gateway("127.0.0.1:0", settings=settings, workers="inline") as gateway:
        where = f"http://{gateway.address}/default/bayeux"
        async with stock(library, transport, where, is_refused=True) as client:
            answer = await client.happened("handshake")
            assert not answer["successful"]
            assert answer["error"].startswith("403:")
            assert answer["advice"]["reconnect"] == "none"
        if transport != "callback-polling":
            # What is in a URL is kept in logs.
            shown = {"ext": {"authentication": {"key": key}}}
            async with stock(library, transport, where, handshake=shown) as client:
                assert (await client.done("publish", "/a", 1))["successful"]
        await gateway.close()


@pytest.mark.parametrize("transport", ["long-polling", "websocket"])
async def test_bytes_go_by_the_extension_of_cometd_and_come_by_it(
    gateway: RunningGateway, transport: str
) -> None:
    subject = f"bytes.{transport}"
    channel, every = f"/bytes/{transport}", list(range(256))
    asked = {"binary": True, "handshake": {"ext": {"binary": True}}}
    async with (
        stock("cometd", transport, url(gateway), **asked) as client,
        weft.connect(gateway.address) as native,
    ):
        subscription = native.subscribe(subject)
        await subscription.ready()
        await client.done("subscribe", channel)
        for length in (0, 1, 2, 3, 4, 256):
            data = every[:length]
            client.do("publishBinary", channel, {"bytes": data, "last": True})
            assert (await subscription.next(timeout=10)).to_dict() == {"": bytes(data)}
            [(_, told)] = await client.messages(1)
            assert told == {"data": data, "last": True, "meta": {}}
        part = {"bytes": [7], "last": False, "meta": {"name": "a"}}
        client.do("publishBinary", channel, part)
        heard = (await subscription.next(timeout=10)).to_dict()
        assert heard == {"data": b"\7", "last": False, "meta": {"name": "a"}}
        [(_, told)] = await client.messages(1)
        assert told == {"data": [7], "last": False, "meta": {"name": "a"}}
        await native.publish(subject, bytes(every))
        [(_, told)] = await client.messages(1)
        assert told == {"data": every, "last": True, "meta": {}}


async def test_cometd_measures_how_far_its_clock_is_from_the_gateways(
    gateway: RunningGateway,
) -> None:
    async with stock("cometd", "long-polling", url(gateway), times=True) as client:
        await client.done("subscribe", "/times")
        client.do("times")
        measured = await client.happened("times")
        assert abs(measured["offset"]) < 10_000
        assert 0 <= measured["lag"] < 10_000
        told = [each["times"] for each in client.events if each["event"] == "connect"]
        assert told[0].keys() == {"tc", "ts", "p", "a"}
