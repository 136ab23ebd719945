"""The library as its gateway sees it: what it refuses is told to the reader, and counted."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from crc32c import crc32c

from weft.errors import Overloaded, WeftError
from weft.gateway.journal.lend import FileRequest, Lending
from weft.gateway.journal.reader_queue import WAITING_MAX
from weft.journal.segment.file_names import FOLDER

WAIT_S = 20
# More than a connection takes without being read.
LARGE_BYTES = 8 << 20


def sealed(data: Path) -> str:
    """The path of a sealed segment of a service that has nothing else."""
    body = os.urandom(LARGE_BYTES)
    place = data / FOLDER / "service=default" / "date=2026-01-31" / "node=london"
    place.mkdir(parents=True)
    name = f"{0:020}-{9:020}-{crc32c(body):08x}.parquet"
    (place / name).write_bytes(body)
    return f"/journal/default/sealed/date=2026-01-31/{name}"


@asynccontextmanager
async def lent(data: Path, refused: list[tuple[str, str, str]]) -> AsyncIterator[Lending]:
    lending = Lending(data, "london")

    def note(error: WeftError, peer: str) -> None:
        refused.append((type(error).__name__, str(error), peer))

    lending.on_refused = note
    try:
        yield lending
    finally:
        await lending.close()


async def asks(lending: Lending, target: str, holder: str) -> socket.socket:
    """Someone who asked, as soon as the library takes one more."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        while True:
            try:
                await lending.lend(theirs, FileRequest(target, "", False, holder, "10.0.0.1:5"))
            except Overloaded:
                await asyncio.sleep(0.001)
            else:
                return ours


async def answer(reader: socket.socket) -> bytes:
    """The beginning of what somebody is answered."""
    with reader:
        return await asyncio.get_running_loop().sock_recv(reader, 1 << 16)


@pytest.mark.parametrize("holder", ["key greedy00", ""])
async def test_too_many_readers_are_refused_told_and_counted(tmp_path: Path, holder: str) -> None:
    target = sealed(tmp_path)
    refused: list[tuple[str, str, str]] = []
    idle: list[socket.socket] = []
    async with lent(tmp_path, refused) as lending, asyncio.timeout(2 * WAIT_S):
        while not refused:
            idle.append(await asks(lending, target, holder))
            # Its gateway does other things, too.
            await asyncio.sleep(0)
        name, text, peer = refused[0]
        assert peer == "10.0.0.1:5"
        if holder:
            share = WAITING_MAX // 2
            assert (name, text.partition(",")[0]) == (
                "TooMany",
                f"this key has {share} readers of journals that wait",
            )
        else:
            assert (name, text) == (
                "Overloaded",
                f"{WAITING_MAX} readers of journals wait, which is the limit",
            )
        status = b"429 Too Many" if holder else b"503 Service"
        async with asyncio.TaskGroup() as group:
            heard = [group.create_task(answer(each)) for each in idle]
        assert any(each.result().startswith(b"HTTP/1.1 " + status) for each in heard)
        # Others are answered.
        other = await asks(lending, "/journal/default/position?time_ns=x", "key other000")
        assert (await answer(other)).startswith(b"HTTP/1.1 400")
