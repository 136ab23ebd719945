"""Every refusal of a service by HTTP is JSON with number, name and text, whatever refused it."""

import asyncio
import json

import pytest

import weft

LONG = b"x" * 100_000
GET = b"GET /default/%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
POST = b"POST /default/publish/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
REFUSALS = {
    "a method": (GET % (b"publish/a", b""), 405, "BadOption"),
    "no door": (GET % (b"nothing", b""), 404, "NotKnown"),
    "a door that is off": (GET % (b"_echo", b""), 404, "NotKnown"),
    "a key in the URL": (GET % (b"stream/a?key=wk_1", b""), 400, "BadOption"),
    "two lengths": (GET % (b"stream/a", b"Content-Length: 1\r\nContent-Length: 2\r\n"), 400, ""),
    "a line feed alone": (GET % (b"stream/a", b"A: b\nC: d\r\n"), 400, "BadOption"),
    "a large head": (GET % (b"stream/a", b"A: " + LONG + b"\r\n"), 431, "FrameTooBig"),
    "a long target": (GET % (b"stream/" + LONG[:4000], b""), 414, "FrameTooBig"),
    "a large body": (POST % 99_999_999_999, 413, "FrameTooBig"),
}


@pytest.mark.parametrize(("sent", "status", "name"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_it_is_json(sent: bytes, status: int, name: str) -> None:
    async with asyncio.timeout(30), weft.Gateway("127.0.0.1:0", workers="inline") as gateway:
        reader, writer = await asyncio.open_connection(*gateway.address.split(":"))
        # The first request decides where the connection goes, and is a good one.
        writer.write(POST % 0)
        assert (await _answer(reader))[0] == 200
        writer.write(sent)
        found, kind, body = await _answer(reader)
        writer.close()
    assert (found, kind) == (status, "application/json")
    error = json.loads(body)["error"]
    assert error["number"] > 0
    assert error["text"]
    assert error["name"] == (name or error["name"])


async def _answer(reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(first.split()[1]), headers["content-type"], body
