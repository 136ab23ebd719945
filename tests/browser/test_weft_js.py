"""weft.js in a real browser, through networks that let more or less of it pass."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from tests.browser.chromium import browsing, needs_chromium, page_at
from tests.browser.cutting_proxy import (
    BLOCKED,
    NO_STREAM,
    NO_WEBSOCKET,
    CuttingProxy,
    proxy_before,
)

import weft
from weft.gateway.config.settings import Settings
from weft.transports.http.origins import WebSettings

pytestmark = needs_chromium


class Place(NamedTuple):
    """A gateway, a native client of its service `default`, the network before it, and a page."""

    address: str
    client: Any
    proxy: CuttingProxy
    page: Any


@asynccontextmanager
async def place(blocked: tuple[bytes, ...] = ()) -> AsyncIterator[Place]:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        weft.connect(gateway.address) as client,
        proxy_before(gateway.address) as proxy,
        browsing() as context,
    ):
        page = await page_at(context, proxy.address)
        proxy.blocked = blocked
        yield Place(gateway.address, client, proxy, page)
        await page.evaluate("window.weft && weft.close()")


@pytest.mark.req("RLY-1")
@pytest.mark.parametrize("transport", list(BLOCKED))
async def test_a_page_and_a_service_talk(transport: str) -> None:
    async with place(BLOCKED[transport]) as here:
        here.client.subscribe("quotes.get", lambda m: m.respond({"of": m["symbol"]}))
        said = here.client.subscribe("page.said")
        used, answer = await here.page.evaluate(
            """async () => {
                window.weft = await connect(location.origin, { name: "page.1" });
                window.got = [];
                const keep = ({ path, data }) => got.push([path, data]);
                await weft.subscribe("/service", keep, { subpaths: true });
                await weft.subscribe("/page/asked", (m) => m.respond({ twice: 2 * m.data.number }));
                await weft.publish("/page/said", { text: "größe \\u2028 東京" });
                const answer = await weft.request("/quotes/get", { symbol: "VOD" });
                return [weft.status.transport, answer.data];
            }"""
        )
        assert (used, answer) == (transport, {"of": "VOD"})
        assert (await said.next(10))["text"] == "größe \u2028 東京"
        asked = await here.client.send_request("page.asked", {"number": 21}, timeout=10)
        assert asked["twice"] == 42
        await here.client.publish("service.says", {"number": 1})
        await here.page.evaluate("until(() => got.length === 1)")
        assert await here.page.evaluate("got") == [["/service/says", {"number": 1}]]


@pytest.mark.req("MM-13")
@pytest.mark.parametrize("transport", list(BLOCKED))
async def test_one_page_talks_to_two_services(transport: str) -> None:
    async with place(BLOCKED[transport]) as here:
        got = await here.page.evaluate(
            """async () => {
                const services = ["red", "blue"];
                const open = (service) => connect(location.origin, { service });
                const all = await Promise.all(services.map(open));
                const got = { red: [], blue: [] };
                for (const [at, service] of services.entries()) {
                    await all[at].subscribe("/same", ({ data }) => got[service].push(data));
                }
                for (let round = 0; round < 20; round += 1) {
                    const say = (each, at) => each.publish("/same", `${services[at]} ${round}`);
                    await Promise.all(all.map(say));
                    await fetch("/healthz");
                }
                await until(() => got.red.length === 20 && got.blue.length === 20);
                await Promise.all(all.map((each) => each.close()));
                return got;
            }"""
        )
        for service in ("red", "blue"):
            assert got[service] == [f"{service} {number}" for number in range(20)]


async def test_a_stream_that_a_proxy_swallows_is_given_up_for_polls() -> None:
    async with place((NO_WEBSOCKET,)) as here:
        here.proxy.swallowed = (NO_STREAM,)
        connecting = """async () => {
            window.weft = await connect(location.origin, { connectTimeout: 1000 });
            return weft.status.transport;
        }"""
        assert await here.page.evaluate(connecting) == "poll"


async def publish_through_cuts(here: Place, count: int) -> None:
    """Publish numbers, and cut the network now and then."""
    for number in range(count):
        await here.client.publish("numbers", {"number": number}, acknowledge=True)
        if number % 50 == 25:
            await here.page.evaluate("until(() => weft.status.state === 'connected')")
            here.proxy.cut()
        # As fast as things happen on a page, so that a cut comes between them.
        await asyncio.sleep(0.002)
    # A page that was cut off last is told by what comes after it is back.
    await here.page.evaluate("until(() => weft.status.state === 'connected')")


COUNTING = """async () => {
    window.weft = await connect(location.origin, { backoffFirst: 50, backoffCap: 200 });
    window.got = [];
    window.gaps = [];
    window.losses = 0;
    weft.on("gap", (gap) => gaps.push(gap.reason));
    weft.on("status", ({ attempt }) => (losses += attempt === 1));
    await weft.subscribe("/numbers", ({ data }) => got.push(data.number));
    return weft.status.transport;
}"""


@pytest.mark.req("TUN-2", "TUN-14", "TUN-21")
@pytest.mark.parametrize(("transport", "count"), [("websocket", 3000), ("sse", 300), ("poll", 300)])
async def test_nothing_is_lost_and_nothing_repeated_when_it_is_cut(
    transport: str, count: int
) -> None:
    async with place(BLOCKED[transport]) as here:
        assert await here.page.evaluate(COUNTING) == transport
        await publish_through_cuts(here, count)
        assert here.proxy.cuts == count // 50
        await here.page.evaluate("(last) => until(() => got.at(-1) === last)", count - 1)
        assert await here.page.evaluate("got") == list(range(count))
        assert await here.page.evaluate("gaps") == []
        assert await here.page.evaluate("weft.status.transport") == transport
        if transport != "poll":
            # Between two polls there is nothing to cut.
            assert await here.page.evaluate("losses") == here.proxy.cuts


@pytest.mark.req("TUN-21")
@pytest.mark.parametrize("left", ["sse", "poll"])
async def test_what_began_by_websocket_goes_on_by_what_is_left_and_loses_nothing(left: str) -> None:
    async with place() as here:
        assert await here.page.evaluate(COUNTING) == "websocket"
        await here.client.publish("numbers", {"number": 0}, acknowledge=True)
        await here.page.evaluate("until(() => got.length === 1)")
        here.proxy.blocked = BLOCKED[left]
        here.proxy.cut()
        for number in range(1, 100):
            await here.client.publish("numbers", {"number": number}, acknowledge=True)
        await here.page.evaluate("until(() => got.at(-1) === 99)")
        assert await here.page.evaluate("got") == list(range(100))
        status = await here.page.evaluate("weft.status")
        assert (status["transport"], status["isResumed"]) == (left, True)
        assert await here.page.evaluate("gaps") == []


@pytest.mark.parametrize("transport", list(BLOCKED))
async def test_a_page_that_is_left_is_gone_at_once(transport: str) -> None:
    async with place(BLOCKED[transport]) as here:
        gone = here.client.subscribe("_WEFT.event.disconnected")
        await gone.ready()
        assert await here.page.evaluate(COUNTING) == transport
        await here.page.goto("about:blank")
        # A tunnel that waits for somebody to come back would end as Silent, minutes later.
        assert (await gone.next(10))["reason"] == "left"


@pytest.mark.parametrize("transport", list(BLOCKED))
async def test_a_page_publishes_through_cuts_once_each(transport: str) -> None:
    async with place(BLOCKED[transport]) as here:
        assert await here.page.evaluate(COUNTING) == transport
        got: list[int] = []
        is_last = asyncio.Event()

        def hear(message: weft.Message) -> None:
            got.append(message["number"])
            if len(got) % 40 == 20:
                here.proxy.cut()
            if got[-1] == 100:
                is_last.set()

        await here.client.subscribe("from.page", hear).ready()
        taken = await here.page.evaluate(
            """async () => {
                const taken = [];
                for (let number = 0; number < 100; number += 1) {
                    const said = weft.publish("/from/page", { number });
                    await said.then(() => taken.push(number), () => {});
                }
                await weft.publish("/from/page", { number: 100 }, { resend: true });
                return taken;
            }"""
        )
        await is_last.wait()
        assert here.proxy.cuts > 0
        once = [number for number in got if number < 100]
        assert once == sorted(set(once))
        # What the page was told is taken was; what it was not told may have been.
        assert set(taken) <= set(got)
        assert len(taken) >= 100 - here.proxy.cuts


async def test_a_key_is_never_in_a_url() -> None:
    async with place() as here:
        urls: list[str] = []
        here.page.on("request", lambda request: urls.append(request.url))
        here.page.on("websocket", lambda socket: urls.append(socket.url))
        used = await here.page.evaluate(
            """async () => {
                window.weft = await connect(location.origin, { key: "a-secret" });
                await weft.publish("/a");
                return weft.status.transport;
            }"""
        )
        assert used == "websocket"
        assert any("/default/ticket" in url for url in urls)
        assert any("/default/ws?new=1&ticket=" in url for url in urls)
        assert not [url for url in urls if "secret" in url]


CONNECTING_TO = """async (gateway) => {
    const { connect } = await import(`${gateway}/weft.js`);
    try {
        const weft = await connect(gateway, { connectTimeout: 3000 });
        await weft.publish("/a");
        await weft.close();
        return "let in";
    } catch (error) {
        return error.name;
    }
}"""


@pytest.mark.parametrize("blocked", list(BLOCKED.values()), ids=list(BLOCKED))
async def test_a_page_from_elsewhere_is_let_in_if_it_is_trusted(blocked: tuple[bytes, ...]) -> None:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as elsewhere,
        browsing() as context,
    ):
        trusted = Settings(web=WebSettings(origins=(f"http://{elsewhere.address}",)))
        async with (
            weft.Gateway(listen="127.0.0.1:0", settings=trusted, workers="inline") as trusting,
            weft.Gateway(listen="127.0.0.1:0", workers="inline") as wary,
            proxy_before(trusting.address) as proxy,
        ):
            proxy.blocked = blocked
            page = await page_at(context, elsewhere.address)
            assert await page.evaluate(CONNECTING_TO, f"http://{proxy.address}") == "let in"
            assert await page.evaluate(CONNECTING_TO, f"http://{wary.address}") == "Unreachable"
