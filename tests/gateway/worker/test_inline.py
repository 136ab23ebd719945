import asyncio
import os
import socket

import pytest
from tests.broker.locksmith import key_of, record

from weft.broker.limits import Limits
from weft.errors import NoSuchService
from weft.gateway.config.settings import Settings
from weft.gateway.worker.inline import Inline
from weft.wire.frames import Decoder, Kind, encode
from weft.wire.message.message import Message

CONNECT = encode(Kind.CONNECT, b"weather", reply=b"me.1")


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


async def answer(sock: socket.socket) -> Message:
    decoder = Decoder()
    while (frame := decoder.next_frame()) is None:
        data = await asyncio.get_running_loop().sock_recv(sock, 4096)
        assert data
        decoder.feed(data)
    return Message.from_frame(frame)


async def test_a_connection_is_served_on_this_loop() -> None:
    inline = Inline(Settings(name="london"))
    ours, theirs = pair()
    ours.send(CONNECT)
    inline.give("weather", theirs.detach())
    assert (await answer(ours)).get_string("gateway") == "london"
    assert inline.connections == 1
    assert inline.not_up == []
    report = (await inline.report())["weather"]
    assert (report.state, report.pid, report.handed_over) == ("up", os.getpid(), 1)
    assert report.status is not None
    assert report.status.connections == 1
    ours.close()
    await inline.close()


async def test_named_services_are_there_from_the_start() -> None:
    inline = Inline(Settings(services=("a", "b")))
    await inline.start()
    assert set(await inline.report()) == {"a", "b"}
    await inline.close()


async def test_a_service_that_is_not_allowed_is_refused() -> None:
    inline = Inline(Settings(services=("a",)))
    ours, theirs = pair()
    with pytest.raises(NoSuchService):
        inline.give("b", theirs.fileno())
    ours.close()
    theirs.close()
    await inline.close()


async def test_new_settings_hold_for_who_comes_next() -> None:
    inline = Inline(Settings(services=("weather",)))
    await inline.start()
    limits = Limits(ping_s=7.0)
    inline.change(Settings(services=("weather", "orders"), limits=limits))
    assert set(await inline.report()) == {"weather", "orders"}
    ours, theirs = pair()
    ours.send(CONNECT)
    inline.give("weather", theirs.detach())
    assert (await answer(ours))["ping_s"] == 7.0
    ours.close()
    await inline.close()


async def test_draining_says_goodbye_and_waits_for_who_leaves() -> None:
    inline = Inline(Settings())
    ours, theirs = pair()
    ours.send(CONNECT)
    inline.give("weather", theirs.detach())
    await answer(ours)
    draining = asyncio.create_task(inline.drain(60.0))
    assert (await answer(ours)).get_string("reason") == "draining"
    assert (await inline.report())["weather"].state == "draining"
    ours.close()
    await draining
    assert inline.connections == 0
    await inline.close()


async def test_keys_are_asked_for_in_every_service_and_each_has_its_own() -> None:
    inline = Inline(Settings(), (record("one"), record("two", service="orders")))
    answers = []
    for key in (key_of("one"), key_of("two")):
        ours, theirs = pair()
        ours.send(encode(Kind.CONNECT, b"weather", Message(key=key).encode()))
        inline.give("weather", theirs.detach())
        answers.append((await answer(ours)).get("name", "welcome"))
        ours.close()
    assert answers == ["welcome", "BadKey"]
    await inline.close()


async def test_when_keys_come_those_without_one_are_told_and_ended() -> None:
    inline = Inline(Settings())
    ours, theirs = pair()
    ours.send(CONNECT)
    inline.give("weather", theirs.detach())
    await answer(ours)
    inline.set_keys((record("one"),))
    assert (await answer(ours))["name"] == "BadKey"
    ours.close()
    await inline.close()


async def test_a_service_is_not_started_for_a_stranger_who_is_answered_as_if_it_ran() -> None:
    inline = Inline(Settings(), (record("boss", "admin"),))
    ours, theirs = pair()
    ours.send(encode(Kind.CONNECT, b"orders"))
    inline.give("orders", theirs.detach())
    told = await answer(ours)
    assert (told["name"], told["text"]) == ("BadKey", "a key is needed")
    ours.close()
    assert await inline.report() == {}
    assert not inline.has("orders")
    ours, theirs = pair()
    ours.send(encode(Kind.CONNECT, b"orders", Message(key=key_of("boss")).encode()))
    inline.give("orders", theirs.detach())
    assert (await answer(ours)).get_int64("version") == 1
    assert inline.has("orders")
    ours.close()
    await inline.close()


async def test_the_key_of_a_client_starts_no_service() -> None:
    inline = Inline(Settings(), (record("guest", "client", service="*"),))
    ours, theirs = pair()
    ours.send(encode(Kind.CONNECT, b"orders", Message(key=key_of("guest")).encode()))
    with pytest.raises(NoSuchService, match="a client's key does not start it"):
        inline.give("orders", theirs.fileno())
    assert await inline.report() == {}
    ours.close()
    theirs.close()
    await inline.close()
