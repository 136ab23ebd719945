"""A gateway with its doors for HTTP on the running loop, and those who come to them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple

import weft

WAIT_S = 20


class Answered(NamedTuple):
    """What a request was answered with."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        """The name of the error that it was refused with."""
        return str(json.loads(self.body)["error"]["name"])


class Browser:
    """One connection that speaks HTTP."""

    def __init__(self, address: str) -> None:
        self._connection = HTTPConnection(address, timeout=WAIT_S)

    async def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Answered:
        """Ask, and read the whole answer."""
        return await asyncio.to_thread(self._ask, method, path, body, headers)

    async def listen(self, path: str, **headers: str) -> HTTPResponse:
        """Ask for an answer that lasts; its head was read."""
        return await asyncio.to_thread(self._send, "GET", path, None, headers)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> HTTPResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body, named)
        return self._connection.getresponse()

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answered:
        response = self._send(method, path, body, headers)
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answered(response.status, found, response.read())


class House(NamedTuple):
    """A gateway, a native client of its service `default`, and a browser."""

    address: str
    client: Any
    browser: Browser


@asynccontextmanager
async def open_house(**settings: Any) -> AsyncIterator[House]:
    """A gateway to come to."""
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline", **settings) as gateway,
        weft.connect(str(gateway.address)) as client,
    ):
        browser = Browser(str(gateway.address))
        try:
            yield House(str(gateway.address), client, browser)
        finally:
            browser.close()


async def line(response: HTTPResponse) -> bytes:
    """The next line of an answer that lasts."""
    return await asyncio.wait_for(asyncio.to_thread(response.readline), WAIT_S)


async def event(response: HTTPResponse) -> dict[str, str]:
    """The next server-sent event that says something."""
    found: dict[str, str] = {}
    while True:
        text = (await line(response)).decode()
        assert text, "the stream ended"
        if text == "\n":
            if "data" in found:
                return found
            found = {}
        else:
            name, _, value = text.rstrip("\n").partition(": ")
            found[name] = value
