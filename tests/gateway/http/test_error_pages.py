"""Every refusal by HTTP is JSON with number, name and text: of pages, of journals, of services."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from weft import Gateway
from weft.gateway.config.settings import JournalSettings, Settings
from weft.gateway.keys.manage import make_key, new_record

KEYED = {
    "the status without a key": ("/status", "", 401, "BadKey"),
    "the metrics with a key that is not known": ("/metrics", "wk_none", 401, "BadKey"),
    "the gateways with a client's key": ("/nodes", "client", 403, "NotAllowed"),
    "the closest without a key": ("/closest?service=default", "", 401, "BadKey"),
    "the closest of another service": ("/closest?service=other", "client", 403, "NotAllowed"),
    "a journal without a key": ("/journal/default", "", 401, "BadKey"),
    "a journal with a client's key": ("/journal/default", "client", 403, "NotAllowed"),
    "no page of a journal": ("/journal/default/none", "service", 404, "NotKnown"),
    "no segment": ("/journal/default/blocks/none?first=0", "service", 404, "NotKnown"),
    "no time": ("/journal/default/position?time_ns=x", "service", 400, "BadOption"),
    "no page": ("/none", "", 404, "NotKnown"),
    "a service that does not run": ("/other/stream/a", "", 401, "BadKey"),
    "a service by a client": ("/default/stream/a?since=1", "", 401, "BadKey"),
}
OPEN = {
    "a limit": ("/closest?limit=0", "", 400, "BadOption"),
    "no service": ("/closest?service=none", "", 404, "NoSuchService"),
    "a journal where there is none": ("/journal/default", "", 404, "NotKnown"),
    "no WebSocket": ("/default/ws", "", 426, "BadOption"),
}


@asynccontextmanager
async def keyed(folder: Path) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """A gateway with a journal and keys: its address, and the keys by their roles."""
    roles = {role: make_key(folder, new_record(role, role, "default")) for role in ROLES}
    keys = {role: made.text for role, made in roles.items()}
    journal = JournalSettings(patterns=(">",))
    settings = Settings(listen="127.0.0.1:0", data=str(folder), journal=journal)
    async with Gateway(settings=settings, workers="inline") as gateway:
        yield gateway.address, keys


ROLES = ("client", "service")


async def refusal(address: str, target: str, key: str) -> tuple[int, str, bytes]:
    """The status, the type and the body of an answer."""
    reader, writer = await asyncio.open_connection(*address.split(":"))
    shown = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{shown}\r\n"
    writer.write(head.encode())
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    writer.close()
    return int(first.split()[1]), headers["content-type"], body


def check(found: tuple[int, str, bytes], status: int, name: str) -> None:
    assert found[:2] == (status, "application/json"), found
    error = json.loads(found[2])["error"]
    assert error.keys() == {"number", "name", "text"}
    assert error["name"] == name
    assert error["number"] > 0
    assert error["text"]


@pytest.mark.parametrize(("target", "key", "status", "name"), KEYED.values(), ids=KEYED.keys())
async def test_where_there_are_keys(
    target: str, key: str, status: int, name: str, tmp_path: Path
) -> None:
    async with keyed(tmp_path) as (address, keys):
        check(await refusal(address, target, keys.get(key, key)), status, name)


@pytest.mark.parametrize(("target", "key", "status", "name"), OPEN.values(), ids=OPEN.keys())
async def test_where_there_are_none(target: str, key: str, status: int, name: str) -> None:
    settings = Settings(listen="127.0.0.1:0", services=("default",), services_max=1)
    async with Gateway(settings=settings, workers="inline") as gateway:
        check(await refusal(gateway.address, target, key), status, name)
