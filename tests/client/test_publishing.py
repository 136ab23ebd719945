import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from weft.client.aio import connect
from weft.client.publishing import Done
from weft.errors import BadSubject


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
