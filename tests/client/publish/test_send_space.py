"""Room among what is yet to be sent: who waits for it, and who is told."""

import asyncio

import pytest

from weft.client.publish.send_buffer import SendBuffer
from weft.client.publish.send_space import SendSpace


@pytest.fixture
def outgoing() -> SendBuffer:
    return SendBuffer(1000, "block", lambda: None, lambda: None)


async def waiting(room: SendSpace, count: int) -> list[asyncio.Task[None]]:
    """As many tasks, each of which waits by now."""
    tasks = [asyncio.create_task(room.wait()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_whoever_waits_is_told_once_there_may_be_room(outgoing: SendBuffer) -> None:
    room = SendSpace(outgoing, 100)
    tasks = await waiting(room, 3)
    assert not any(task.done() for task in tasks)
    room.made()
    async with asyncio.timeout(10):
        await asyncio.gather(*tasks)


async def test_what_was_taken_counts_as_held_until_there_is_room(outgoing: SendBuffer) -> None:
    room = SendSpace(outgoing, 100)
    assert outgoing.put(bytes(600))
    outgoing.pass_on(lambda _: None)
    assert not outgoing.has_room(600)
    room.made()
    assert outgoing.has_room(600)


async def test_whoever_gives_up_keeps_nobody_from_being_told(outgoing: SendBuffer) -> None:
    room = SendSpace(outgoing, 100)
    impatient, patient = await waiting(room, 2)
    impatient.cancel()
    await asyncio.wait([impatient])
    room.made()
    async with asyncio.timeout(10):
        await patient
    # Given up in the very turn in which there is room.
    [late] = await waiting(room, 1)
    late.cancel()
    room.made()
    await asyncio.wait([late])
    assert late.cancelled()
