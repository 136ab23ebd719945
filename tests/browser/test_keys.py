"""Pages that show a key, and pages that have none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import browsing, needs_chromium, page_at
from tests.browser.cutting_proxy import BLOCKED, CuttingProxy, proxy_before

import weft
from weft.gateway.config.settings import Settings
from weft.gateway.keys.manage import make_key, new_record

pytestmark = needs_chromium

CONNECTING = """async ([key, transports]) => {
    try {
        const weft = await connect(location.origin, { key, transports, connectTimeout: 5000 });
        const used = weft.status.transport;
        await weft.publish("/a");
        await weft.close();
        return used;
    } catch (error) {
        return error.name;
    }
}"""


@asynccontextmanager
async def page_with_key(
    folder: Path, blocked: tuple[bytes, ...]
) -> AsyncIterator[tuple[Any, str, CuttingProxy]]:
    """A page of a gateway that asks for keys, a key, and the network before it."""
    key = make_key(folder, new_record("page", "service", "default")).text
    async with (
        weft.Gateway(
            listen="127.0.0.1:0", settings=Settings(data=str(folder)), workers="inline"
        ) as gateway,
        proxy_before(gateway.address) as proxy,
        browsing() as context,
    ):
        page = await page_at(context, proxy.address)
        proxy.blocked = blocked
        yield page, key, proxy


@pytest.mark.parametrize("transport", list(BLOCKED))
async def test_a_key_opens_and_is_never_in_a_url(transport: str, tmp_path: Path) -> None:
    async with page_with_key(tmp_path, BLOCKED[transport]) as (page, key, _):
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        page.on("websocket", lambda socket: urls.append(socket.url))
        transports = ["websocket", "sse", "poll"]
        assert await page.evaluate(CONNECTING, [key, transports]) == transport
        assert urls
        assert not [url for url in urls if key in url]


@pytest.mark.parametrize("transports", [["websocket"], ["sse"], ["poll"]], ids=" ".join)
async def test_a_wrong_key_is_refused_by_name(transports: list[str], tmp_path: Path) -> None:
    async with page_with_key(tmp_path, ()) as (page, key, _):
        assert await page.evaluate(CONNECTING, [f"{key}x", transports]) == "BadKey"


async def test_a_page_without_a_key_is_told_that_it_needs_one(tmp_path: Path) -> None:
    async with page_with_key(tmp_path, ()) as (page, _, _):
        assert await page.evaluate(CONNECTING, ["", ["websocket", "sse", "poll"]]) == "BadKey"


@pytest.mark.parametrize("back_by", list(BLOCKED))
async def test_a_page_with_a_key_comes_back_to_its_conversation(
    back_by: str, tmp_path: Path
) -> None:
    async with page_with_key(tmp_path, ()) as (page, key, proxy):
        connecting = """async (key) => {
            window.weft = await connect(location.origin, { key, backoffFirst: 10, backoffCap: 50 });
            await weft.subscribe("/a", () => {});
            window.back = new Promise((resolve) => weft.on("status", (status) => {
                if (status.state === "connected") resolve(status);
            }));
            return weft.status.transport;
        }"""
        assert await page.evaluate(connecting, key) == "websocket"
        proxy.blocked = BLOCKED[back_by]
        proxy.cut()
        status = await page.evaluate("back")
        assert (status["transport"], status["isResumed"]) == (back_by, True)
        await page.evaluate("weft.close()")
