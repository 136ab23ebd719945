import asyncio

import pytest

from weft.client.requests.waiters import Several, Single
from weft.errors import ConnectionLost, ControlFlood, NotKnown, Overloaded


async def test_one_answer_is_awaited() -> None:
    waiter = Single()
    waiter.answered(b"first")
    waiter.answered(b"second")
    waiter.failed(NotKnown("too late"))
    assert await waiter.answer == b"first"
    assert not waiter.is_lost


async def test_a_refusal_is_raised() -> None:
    waiter = Single()
    waiter.failed(NotKnown("nobody"))
    with pytest.raises(NotKnown, match="nobody"):
        await waiter.answer
    assert not waiter.is_lost


async def test_a_loss_is_raised_and_known_as_such() -> None:
    waiter = Single()
    waiter.lost(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await waiter.answer
    assert waiter.is_lost


async def test_each_who_is_lost_raises_an_error_of_its_own() -> None:
    error = ConnectionLost("gone")
    for waiter in (Single(), Single()):
        waiter.lost(error)
        with pytest.raises(ConnectionLost, match="gone") as raised:
            await waiter.answer
        assert raised.value is not error


async def test_whatever_ended_the_connection_it_is_lost() -> None:
    error = ControlFlood("too much")
    waiter = Single()
    waiter.lost(error)
    with pytest.raises(ConnectionLost, match="too much") as raised:
        await waiter.answer
    assert raised.value.__cause__ is error


async def test_several_answers_are_kept_in_order() -> None:
    waiter = Several(100)
    waiter.answered(b"1")
    waiter.answered(b"2")
    await waiter.more()
    assert waiter.frames == [b"1", b"2"]


async def test_more_waits_for_more() -> None:
    waiter = Several(100)
    waiter.answered(b"1")
    await waiter.more()
    more = asyncio.create_task(waiter.more())
    asyncio.get_running_loop().call_soon(waiter.answered, b"2")
    await more
    assert waiter.frames == [b"1", b"2"]


async def test_several_answers_have_a_bound_in_bytes() -> None:
    waiter = Several(10)
    waiter.answered(b"x" * 10)
    waiter.answered(b"x")
    waiter.answered(b"")
    with pytest.raises(Overloaded, match="exceed queue_bytes after 1 answers"):
        await waiter.more()
    assert len(waiter.frames) == 1


async def test_a_loss_ends_a_gathering() -> None:
    waiter = Several(10)
    waiter.lost(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await waiter.more()
