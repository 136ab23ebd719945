"""Tabs of a browser on real sockets: WebSockets that belong to tunnels."""

import itertools
from typing import Any

from tests.transports.houses import HOST, UPGRADE, Page, get
from tests.transports.loops import until

from weft.transports.http.server import HttpServer

S = 1_000_000_000

_numbers = itertools.count()

INTEREST = {"interest": "/a", "ack": "interest"}


class Tab(Page):
    """A WebSocket that a tunnel is told by."""

    async def enter(self, query: str = "new=1", *headers: bytes) -> dict[str, Any]:
        """Shake hands; the first datagram."""
        await self.open(*headers, target=f"/weather/ws?{query}".encode())
        return await self.told()

    async def come_back(self, known_by: str, last: str = "", *headers: bytes) -> None:
        """Come back to a tunnel that is still there."""
        header = await self.enter(f"tunnel={known_by}&last={last}", *headers)
        assert header["tunnel"] == known_by
        assert "renewed" not in header

    async def settle(self) -> list[dict[str, Any]]:
        """Everything that is told before the answer to a ping."""
        # What an earlier ping was answered may be told again.
        mark = f"settled {next(_numbers)}"
        await self.tell({"ping": mark})
        told = []
        while (each := await self.told()).get("pong") != mark:
            told.append(each)
        return told

    async def refusal(self, query: str, *headers: bytes) -> tuple[int, bytes]:
        """The status and the body of a handshake that is refused."""
        await self.say(get(f"/weather/ws?{query}".encode(), HOST, *UPGRADE, *headers))
        status, _, body = await self.answer()
        return status, body


def bearer(key: str) -> bytes:
    """The header that shows a key."""
    return f"Authorization: Bearer {key}".encode()


def closing(code: int) -> bytes:
    """The payload of a close."""
    return code.to_bytes(2, "big")


async def listening(house: HttpServer) -> tuple[Tab, str]:
    """A tab that hears what is published to /a, and the id of its tunnel."""
    tab = Tab(house)
    header = await tab.enter()
    await tab.tell(INTEREST)
    assert (await tab.told())["ok"] == "interest"
    return tab, header["tunnel"]


async def publishing(house: HttpServer) -> Page:
    """Someone without a tunnel."""
    page = Page(house)
    await page.greet()
    return page


async def publish(page: Page, *data: Any) -> None:
    """Publish, and wait until all of it was taken."""
    for number, each in enumerate(data):
        await page.tell({"path": "/a", "data": each, "ack": number})
    for number in range(len(data)):
        assert (await page.told())["ok"] == number


async def lost(house: HttpServer, tab: Tab) -> None:
    """Cut a tab off, and wait until the gateway knows."""
    streams = len(house._streams)
    tab.reset()
    await until(lambda: len(house._streams) < streams)


def sweep_after(house: HttpServer, seconds: float) -> None:
    """Do what is due so long after now."""
    for sweeper in house.sweepers:
        sweeper(house.service.now_ns + int(seconds * S))
