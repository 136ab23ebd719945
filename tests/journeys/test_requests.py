"""Requests: one of many answers, nobody waits for whom is not there, and the busy get fewer."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.journeys.clients import LIMIT_S, Client, Connect, rest, taken, texts
from tests.journeys.running import RunningGateway

import weft
from weft.errors import NotKnown, ResponderGone, TimedOut

# Takes one request, says so, and never answers it.
HOLDER = """
import sys, weft
with weft.Connection(sys.argv[1]) as connection, connection.subscribe(sys.argv[2]) as requests:
    print("ready", flush=True)
    requests.next()
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.req("MM-3", "HUB-18")
async def test_a_request_is_answered(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as answerer:
        await answerer.answer(subject, lambda asked: weft.Message(twice=2 * asked["number"]))
        answer = await asker.request(subject, weft.Message(number=21))
        assert answer["twice"] == 42


async def test_requests_at_once_get_each_its_own_answer(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as answerer:
        await answerer.answer(subject, lambda asked: asked.text)
        asked = [str(number) for number in range(40)]
        answers = await asyncio.gather(*(asker.request(subject, each) for each in asked))
        assert texts(answers) == asked


async def test_whoever_serves_may_ask_itself(connect: Connect, subject: str) -> None:
    async with connect() as client:
        await client.answer(subject, lambda asked: f"{asked.text} yourself")
        assert (await client.request(subject, "hello")).text == "hello yourself"


@pytest.mark.req("HUB-17")
async def test_a_request_that_nobody_serves_is_not_known_at_once(
    connect: Connect, subject: str
) -> None:
    async with connect() as client:
        # Nobody could wait for so long: the answer comes from the gateway.
        with pytest.raises(NotKnown, match=subject):
            await client.request(subject, "anyone?", timeout=3600.0)


async def test_a_request_to_those_who_only_listen_is_not_known(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as listener:
        heard = await listener.subscribe(subject, listen_only=True)
        with pytest.raises(NotKnown):
            await asker.request(subject, "anyone?")
        await asker.publish(subject, "for all")
        await asker.flush()
        assert texts(await rest(listener, heard)) == ["for all"]


async def test_within_a_client_a_request_goes_to_one_that_does_not_only_listen(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as client:
        listening = await client.subscribe(f"{subject}.*", listen_only=True)
        await client.answer(f"{subject}.a", lambda _: "by name")
        await client.answer(f"{subject}.>", lambda _: "by tail")
        answers = [await asker.request(f"{subject}.a", "?") for _ in range(4)]
        assert sorted(texts(answers)) == ["by name", "by name", "by tail", "by tail"]
        assert await rest(client, listening) == []
        await asker.flush()
        assert asker.statistics.late == 0


@pytest.mark.req("MM-3")
async def test_a_request_that_is_not_answered_times_out(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as silent:
        requests = await silent.subscribe(subject)
        with pytest.raises(TimedOut):
            await asker.request(subject, "hello?", timeout=0.2)
        # What comes too late is counted, and disturbs nobody.
        await silent.respond(await requests.next(), "too late")
        await silent.flush()
        await asker.flush()
        assert asker.statistics.late == 1


@asynccontextmanager
async def holder(address: str, subject: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that serves a subject by holding on to what it is asked."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, address, subject),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        await says(process, b"ready")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def says(process: asyncio.subprocess.Process, word: bytes) -> None:
    assert process.stdout is not None
    assert (await process.stdout.readline()).strip() == word


async def test_a_responder_that_is_killed_fails_its_request_at_once(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    async with connect() as asker, holder(gateway.address, subject) as process:
        request = asyncio.create_task(asker.request(subject, "hold this", timeout=3600.0))
        await says(process, b"held")
        process.kill()
        with pytest.raises(ResponderGone):
            await request


async def test_a_responder_that_leaves_fails_its_request_at_once(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker:
        async with connect(name=f"{subject}.holder") as leaving:
            requests = await leaving.subscribe(subject)
            request = asyncio.create_task(asker.request(subject, "hold this", timeout=3600.0))
            await requests.next()
        with pytest.raises(ResponderGone, match=f"{subject}.holder"):
            await request
        with pytest.raises(NotKnown):
            await asker.request(subject, "and now?")


@pytest.mark.req("MID-9")
@pytest.mark.parametrize("group", ["", "workers"])
async def test_a_request_goes_to_one_even_if_many_subscribed(
    connect: Connect, subject: str, group: str
) -> None:
    async with connect() as asker, connect() as one, connect() as two, connect() as three:
        members = (one, two, three)
        hearings = [await each.subscribe(subject, group=group) for each in members]
        asked = [str(number) for number in range(9)]
        requests = [asyncio.create_task(asker.request(subject, each)) for each in asked]
        got = [await taken(hearing, 3) for hearing in hearings]
        for member, held in zip(members, got, strict=True):
            for message in held:
                await member.respond(message, message.text)
        assert texts(await asyncio.gather(*requests)) == asked
        for member, hearing in zip(members, hearings, strict=True):
            assert await rest(member, hearing) == []


async def test_members_of_a_group_come_before_plain_subscribers(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as member, connect() as plain:
        heard = await plain.subscribe(subject)
        await member.answer(subject, lambda _: "member", group="workers")
        answers = [await asker.request(subject, "who?") for _ in range(6)]
        assert texts(answers) == ["member"] * 6
        assert await rest(plain, heard) == []


@pytest.mark.req("MID-10")
async def test_the_least_busy_member_is_chosen(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as busy, connect() as quick:
        of_busy = await busy.subscribe(subject, group="workers")
        of_quick = await quick.subscribe(subject, group="workers")
        requests = [asyncio.create_task(asker.request(subject, "a")) for _ in range(6)]
        waiting_at_busy = await taken(of_busy, 3)
        await answer_all(quick, await taken(of_quick, 3))
        await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        # Three wait at the one and none at the other, who therefore gets the next three.
        await asker.flush()
        requests += [asyncio.create_task(asker.request(subject, "b")) for _ in range(3)]
        await answer_all(quick, await taken(of_quick, 3))
        await answer_all(busy, waiting_at_busy)
        await asyncio.gather(*requests)
        assert await rest(busy, of_busy) == []
        assert await rest(quick, of_quick) == []


async def answer_all(client: Client, messages: list[weft.Received]) -> None:
    for message in messages:
        await client.respond(message, "done")
    await client.flush()


async def test_a_request_may_be_asked_and_answered_within_a_handler(
    gateway: RunningGateway, subject: str
) -> None:
    with weft.Connection(gateway.address) as blocking:
        blocking.subscribe(f"{subject}.inner", lambda asked: asked.respond("inner"))
        with weft.Connection(gateway.address) as outer:

            def relay(asked: weft.Received) -> None:
                answer = outer.send_request(f"{subject}.inner", asked.message, LIMIT_S)
                asked.respond(f"{answer.text} by way of outer")  # type: ignore[attr-defined]

            outer.subscribe(f"{subject}.outer", relay)
            answer = blocking.send_request(f"{subject}.outer", "x", LIMIT_S)
            assert answer.text == "inner by way of outer"
