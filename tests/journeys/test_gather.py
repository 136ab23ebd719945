"""Asking many: the answers until so many, so long a pause, or so long in all."""

import asyncio

from tests.journeys.clients import Client, Connect, rest, texts


async def answer_as(client: Client, subject: str, name: str) -> None:
    await client.answer(subject, lambda _: name)


async def test_a_gathering_ends_at_its_count(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as one, connect() as two, connect() as three:
        for name, client in (("1", one), ("2", two), ("3", three)):
            await answer_as(client, subject, name)
        all_three = await asker.gather(subject, "who?", count=3, deadline_s=3600.0)
        assert sorted(texts(all_three)) == ["1", "2", "3"]
        some = await asker.gather(subject, "who?", count=2, deadline_s=3600.0)
        assert len(some) == 2
        assert set(texts(some)) < {"1", "2", "3"}


async def test_a_gathering_ends_when_it_becomes_quiet(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as one, connect() as two, connect() as silent:
        await answer_as(one, subject, "1")
        await answer_as(two, subject, "2")
        asked = await silent.subscribe(subject)
        answers = await asker.gather(subject, "who?", quiet_s=1.0, deadline_s=3600.0)
        assert sorted(texts(answers)) == ["1", "2"]
        assert len(await rest(silent, asked)) == 1


async def test_a_gathering_ends_at_its_deadline(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as one, connect() as silent:
        await answer_as(one, subject, "1")
        await silent.subscribe(subject)
        answers = await asker.gather(subject, "who?", count=2, deadline_s=1.0)
        assert texts(answers) == ["1"]


async def test_a_gathering_that_nobody_answers_is_empty(connect: Connect, subject: str) -> None:
    async with connect() as asker:
        assert await asker.gather(subject, "who?", deadline_s=0.1) == []


async def test_one_responder_may_give_several_answers(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as answerer:
        heard = await answerer.subscribe(subject)
        gathering = asyncio.create_task(asker.gather(subject, "what?", count=3))
        asked = await heard.next()
        for text in ("1", "2", "3"):
            await answerer.respond(asked, text)
        assert texts(await gathering) == ["1", "2", "3"]


async def test_of_a_queue_group_one_member_answers(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as one, connect() as two:
        for client in (one, two):
            await client.answer(subject, lambda _: "x", group="workers")
        assert texts(await asker.gather(subject, "who?", count=2, deadline_s=1.0)) == ["x"]
