import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from weft.client.asyncio.connection import connect
from weft.client.publish.publisher import Done
from weft.client.sync.connection import Connection
from weft.errors import BadOption, BadSubject


async def test_what_is_done_can_be_awaited_or_made_a_task() -> None:
    done: Any = Done()
    assert await done is None
    assert await asyncio.create_task(done) is None
    assert list(await asyncio.gather(done, done)) == [None, None]
    assert isinstance(done, Coroutine)


def test_what_is_done_ends_like_a_coroutine() -> None:
    done = Done()
    done.close()
    with pytest.raises(StopIteration):
        done.send(None)
    with pytest.raises(ValueError, match="thrown"):
        done.throw(ValueError("thrown"))
    with pytest.raises(GeneratorExit):
        done.throw(GeneratorExit)


async def test_it_is_published_when_it_is_called(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a.*")
        await subscription.ready()
        left: Any = connection.publish("a.b", b"not awaited")
        await connection.publish("a.b", {"n": 1})
        assert left is not None
        assert (await subscription.next(30)).payload == b"not awaited"
        assert (await subscription.next(30))["n"] == 1


async def test_what_cannot_be_published_is_refused_when_it_is_called(gateway: str) -> None:
    async with connect(gateway) as connection:
        with pytest.raises(BadSubject):
            connection.publish("a..b", b"")  # type: ignore[unused-coroutine]  # it is not reached


@pytest.mark.req("HUB-7")
async def test_a_masked_reply_is_not_seen_and_answers_reach_it(gateway: str) -> None:
    async with connect(gateway) as connection:
        asked, answers = connection.subscribe("a"), connection.subscribe("b")
        await answers.ready()
        await connection.publish("a", b"1", reply="b", masked=True)
        await connection.publish("a", b"2", reply="b", masked=True, acknowledge=True)
        for number in (b"1", b"2"):
            question = await asked.next(30)
            assert (question.reply == "b", question.publisher) == (False, 0)
            await question.respond(question.payload)
            assert (await answers.next(30)).payload == number


def test_the_blocking_face_masks_a_reply_too(gateway: str) -> None:
    with Connection(gateway) as connection:
        asked, answers = connection.subscribe("a"), connection.subscribe("b")
        connection.publish("a", b"1", reply="b", masked=True, not_back=False)
        question = asked.next(30)
        assert (question.reply == "b", question.publisher) == (False, 0)
        question.respond(b"2")
        assert answers.next(30).payload == b"2"


async def test_without_a_reply_there_is_nothing_to_mask(gateway: str) -> None:
    async with connect(gateway) as connection:
        for acknowledge in (False, True):
            with pytest.raises(BadOption, match="reply"):
                await connection.publish("a", b"", masked=True, acknowledge=acknowledge)
