"""What a page or a script does: requests over HTTP, and streams that are read as they come."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import weft
from weft.gateway.config.settings import Settings

WAIT_S = 15
SERVICE = "default"


@asynccontextmanager
async def gateway(**settings: Any) -> AsyncIterator["Browser"]:
    """A gateway on this loop, and somebody who talks to it."""
    made = Settings(listen="127.0.0.1:0", drain_s=1.0, **settings)
    async with weft.Gateway(settings=made, workers="inline") as running:
        browser = Browser(running)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Answer:
    """An answer as a whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        name: str = self.json["error"]["name"]
        return name


class Line:
    """One connection, and the answer that is being read from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.head = b""
        self._body = b""
        self._left: int | None = None
        self.is_over = False

    async def ask(
        self, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Self:
        """Send a request, and read the head of its answer."""
        self.send(target, body, headers)
        await self.answered()
        return self

    def send(
        self,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        version: str = "1.1",
    ) -> None:
        """Send a request."""
        method = "GET" if body is None else "POST"
        named = {"Host": "localhost"} | dict(headers or {})
        lines = [f"{method} {target} HTTP/{version}"]
        lines += [f"{name}: {value}" for name, value in named.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))

    async def answered(self) -> None:
        """Read the head of an answer."""
        self.head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), WAIT_S)
        first, *lines = self.head.decode().split("\r\n")[:-2]
        self.status = int(first.split()[1])
        pairs = [line.split(": ", 1) for line in lines]
        self.headers = {name.lower(): value for name, value in pairs}
        self._body = b""
        self.is_over = False
        length = self.headers.get("content-length")
        self._left = None if length is None else int(length)

    async def more(self) -> bytes:
        """The next piece of the body; empty at its end."""
        if self.is_over:
            return b""
        data = await asyncio.wait_for(self._piece(), WAIT_S)
        self.is_over = not data
        return data

    async def until(self, end: bytes) -> bytes:
        """The body up to some bytes, which are left out."""
        while end not in self._body:
            data = await self.more()
            if not data:
                raise EOFError(self._body)
            self._body += data
        found, _, self._body = self._body.partition(end)
        return found

    async def rest(self) -> bytes:
        """Everything to the end of the body."""
        while data := await self.more():
            self._body += data
        found, self._body = self._body, b""
        return found

    async def json(self) -> Any:
        """The next line of NDJSON that is not empty."""
        while not (line := await self.until(b"\n")):
            pass
        return json.loads(line)

    async def event(self) -> dict[str, str]:
        """The next server-sent event that is not a comment."""
        while True:
            lines = (await self.until(b"\n\n")).decode().split("\n")
            fields = [line.partition(":") for line in lines if not line.startswith(":")]
            if fields:
                return {name: value.removeprefix(" ") for name, _, value in fields}

    async def _piece(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]
        if self._left is None:
            return await self.reader.read(1 << 16)
        data = await self.reader.read(min(self._left, 1 << 16))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self.writer.transport.abort()


class Browser:
    """Whoever talks to a gateway over HTTP."""

    def __init__(self, running: weft.Gateway, service: str = SERVICE) -> None:
        self.running = running
        self.service = service
        host, _, port = running.address.rpartition(":")
        self.address = (host, int(port))
        self._lines: list[Line] = []

    async def line(self) -> Line:
        """A connection."""
        line = Line(*await asyncio.open_connection(*self.address))
        self._lines.append(line)
        return line

    async def get(self, target: str, **headers: str) -> Answer:
        """A whole answer to a GET; in names of headers `_` stands for `-`."""
        return await self._whole(target, None, headers)

    async def post(self, target: str, body: bytes, **headers: str) -> Answer:
        """A whole answer to a POST."""
        return await self._whole(target, body, headers)

    async def _whole(self, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line = await (await self.line()).ask(f"/{self.service}/{target}", body, named)
        answer = Answer(line.status, line.headers, await line.rest())
        line.close()
        return answer

    async def tunnel(self, query: str = "new=1&format=ndjson", **headers: str) -> Line:
        """A stream, of which the head is read."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await (await self.line()).ask(f"/{self.service}/tunnel?{query}", None, named)

    async def open(self) -> tuple[str, Line]:
        """A tunnel of NDJSON: its id, and its stream after the header."""
        line = await self.tunnel()
        assert line.status == 200
        return (await line.json())["tunnel"], line

    async def back(self, known_by: str, last: str = "", query: str = "") -> Line:
        """Come back to a tunnel; its stream after the header."""
        line = await self.tunnel(f"tunnel={known_by}&format=ndjson&last={last}{query}")
        assert line.status == 200
        assert "tunnel" in await line.json()
        return line

    async def say(self, known_by: str, *datagrams: Mapping[str, Any]) -> Answer:
        """Say datagrams for a tunnel."""
        return await self.post(f"events?tunnel={known_by}", json.dumps(datagrams).encode())

    async def interest(self, known_by: str, path: str, **more: Any) -> None:
        """Have a tunnel told of what is published to a path."""
        answer = await self.say(known_by, {"interest": path} | more)
        assert (answer.status, answer.json) == (202, {"ok": 1})

    async def publish(self, path: str, *data: Any) -> None:
        """Publish from a tunnel that is there for nothing else."""
        if not hasattr(self, "_publisher"):
            self._publisher, self._publishing = await self.open()
        said = [{"path": path, "data": each, "ack": number} for number, each in enumerate(data)]
        assert (await self.say(self._publisher, *said)).status == 202
        for number in range(len(data)):
            assert (await self._publishing.json())["ok"] == number

    def close(self) -> None:
        for line in self._lines:
            line.close()


def encoded(datagram: object) -> str:
    """A datagram as a parameter."""
    return quote(json.dumps(datagram))


def parts_of(body: bytes, content_type: str) -> list[bytes]:
    """The bodies of a multipart answer, by its boundary at the beginning of lines."""
    found = re.search(r"boundary=(\S+)", content_type)
    assert found
    boundary = re.escape(found[1].encode())
    parts = re.split(rb"(?:\A|\r\n)--" + boundary + rb"(?:--)?(?:\r\n|\Z)", body)
    return [part.partition(b"\r\n\r\n")[2] for part in parts if part]
