"""Accepting: newcomers, however many and however slow, do not stall those who are there."""

from contextlib import AsyncExitStack

import pytest
from tests.journeys.clients import Connect, in_thread
from tests.journeys.raw import Raw, greeting
from tests.journeys.running import RunningGateway

from weft.wire.frames import Kind

NEWCOMERS = 500
HALF_A_GREETING = greeting()[:20]


async def newcomer(address: str, said: bytes, closing: AsyncExitStack) -> Raw:
    """Someone who has said so much, and is closed in the end."""
    raw = await Raw.dial(address)
    closing.callback(raw.close)
    await raw.send(said)
    return raw


@pytest.mark.req("HUB-19")
@pytest.mark.parametrize("said", [b"", HALF_A_GREETING], ids=["silent", "half a greeting"])
async def test_newcomers_that_do_not_finish_their_greeting_stall_nobody(
    connect: Connect, gateway: RunningGateway, subject: str, said: bytes
) -> None:
    waiting: list[Raw] = []
    async with connect() as client, AsyncExitStack() as closing:
        await client.answer(subject, lambda asked: asked.text)
        for number in range(NEWCOMERS):
            waiting.append(await newcomer(gateway.address, said, closing))
            if number % 10 == 0:
                assert (await client.request(subject, str(number))).text == str(number)
        status = await in_thread(gateway.status)
        assert status["front"]["pending"] >= NEWCOMERS
        # Those who take their time are let in like anyone else.
        for raw in waiting[:5]:
            await raw.send(greeting()[len(said) :])
            await raw.next(Kind.WELCOME)


@pytest.mark.req("HUB-19")
async def test_newcomers_that_come_and_go_stall_nobody(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    async with connect() as client:
        await client.answer(subject, lambda asked: asked.text)
        for number in range(NEWCOMERS):
            raw = await Raw.dial(gateway.address)
            await raw.send(greeting()[: number % len(greeting())])
            raw.close()
            if number % 10 == 0:
                assert (await client.request(subject, str(number))).text == str(number)
        assert client.statistics.connects == 1
