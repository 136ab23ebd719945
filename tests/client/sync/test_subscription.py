import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from weft.client.status import Gap, Status, What
from weft.client.sync.connection import BlockingReceived, Connection
from weft.errors import BadOption, NotOpen, Reserved, TimedOut, UsageError
from weft.wire.frames import Kind

Scripted = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.mark.req("MM-18")
def test_closing_it_ends_the_subscription_and_the_loop_over_it(gateway: str) -> None:
    with Connection(gateway) as connection:
        with connection.subscribe("a.*") as subscription:
            for number in range(3):
                connection.publish(f"a.{number}", {"n": number})
            seen: list[int] = []
            for message in subscription:
                seen.append(message["n"])
                if len(seen) == 3:
                    break
        assert seen == [0, 1, 2]
        assert not subscription.is_open
        assert list(subscription) == []
        with pytest.raises(NotOpen, match=r"the subscription to a\.\* is closed"):
            subscription.next()
        subscription.close()


def test_the_next_message_is_waited_for_only_so_long(gateway: str) -> None:
    with Connection(gateway) as connection:
        subscription = connection.subscribe("a")
        with pytest.raises(TimedOut, match=r"no message to a in 0\.01 s"):
            subscription.next(0.01)
        connection.publish("a", b"x")
        assert subscription.next(10).payload == b"x"


def test_a_refused_subscription_raises_and_leaves_nothing_behind(gateway: str) -> None:
    with Connection(gateway) as connection:
        with pytest.raises(Reserved):
            connection.subscribe("_X.a")
        assert len(connection._engine.subscriptions.interests) == 0
        # The callbacks of the connection have the only one.
        assert len(connection._engine.reading._intakes) == 1


def test_one_that_disagrees_with_another_leaves_nothing_behind(gateway: str) -> None:
    with Connection(gateway) as connection:
        connection.subscribe("a")
        with pytest.raises(BadOption):
            connection.subscribe("a", policy="latest")
        assert len(connection._engine.subscriptions.interests) == 1
        assert len(connection._engine.reading._intakes) == 2


def test_what_was_not_taken_before_the_end_is_thrown_away(gateway: str) -> None:
    with Connection(gateway) as connection:
        subscription = connection.subscribe("a")
        connection.publish("a", b"")
        connection.flush()
        subscription.close()
        assert list(subscription) == []


@pytest.mark.req("MM-1")
def test_a_handler_runs_on_a_thread_of_the_library(gateway: str) -> None:
    with Connection(gateway, name="me.1") as connection:
        names: list[str] = []
        done = threading.Event()

        def handle(_: BlockingReceived) -> None:
            names.append(threading.current_thread().name)
            done.set()

        connection.subscribe("a", handle)
        connection.publish("a", b"")
        assert done.wait(30)
        assert names == ["me.1 callbacks"]


def test_a_handler_may_ask_on_its_own_connection(gateway: str) -> None:
    with Connection(gateway) as connection, Connection(gateway) as server:
        server.subscribe("inner", lambda message: message.respond({"n": message["n"] + 1}))
        connection.subscribe(
            "outer", lambda message: message.respond(connection.send_request("inner", message))
        )
        assert server.send_request("outer", {"n": 1})["n"] == 2


def test_a_handler_that_raises_is_reported_and_gets_the_next(gateway: str) -> None:
    reported = threading.Event()
    statuses: list[Status] = []

    def heard(status: Status) -> None:
        if status.what is What.HANDLER:
            statuses.append(status)
            reported.set()

    with Connection(gateway, on_status=heard) as connection:
        done = threading.Event()

        def handle(message: BlockingReceived) -> None:
            if message.payload == b"bad":
                raise ValueError("cannot")
            done.set()

        connection.subscribe("a", handle)
        connection.publish("a", b"bad")
        connection.publish("a", b"good")
        assert done.wait(30)
        assert reported.wait(30)
        assert str(statuses[0].error) == "cannot"


def test_a_handler_may_close_its_own_subscription(gateway: str) -> None:
    with Connection(gateway) as connection:
        seen: list[bytes] = []
        closed = threading.Event()

        def handle(message: BlockingReceived) -> None:
            seen.append(message.payload)
            subscription.close()
            closed.set()

        subscription = connection.subscribe("a", handle)
        for _ in range(10):
            connection.publish("a", b"once")
        assert closed.wait(30)
        connection.flush()
        assert seen == [b"once"]


def test_one_with_a_handler_is_not_iterated_over(gateway: str) -> None:
    with Connection(gateway) as connection:
        subscription = connection.subscribe("a", lambda _: None)
        with pytest.raises(UsageError, match="with a handler"):
            iter(subscription)
        with pytest.raises(UsageError, match="with a handler"):
            subscription.next()


def test_a_gap_is_told_in_its_place(running: Any) -> None:
    gaps: list[Gap] = []
    back = threading.Event()

    def heard(status: Status) -> None:
        if status.what is What.GAP:
            back.set()

    with Connection(running.address, on_status=heard, backoff_first_s=0.001) as connection:
        subscription = connection.subscribe("a", on_gap=gaps.append)
        connection.publish("a", b"before")
        assert subscription.next(30).payload == b"before"
        running.stop()
        running.start()
        # What is handed to a connection that is lost, but not yet known to be, is lost with it.
        assert back.wait(30)
        connection.publish("a", b"after")
        assert subscription.next(30).payload == b"after"
        assert gaps == [Gap("reconnected")]


@pytest.mark.parametrize("has_handler", [True, False])
def test_a_gap_callback_that_raises_is_heard_of(running: Any, has_handler: bool) -> None:
    failed = threading.Event()

    def heard(status: Status) -> None:
        if status.what is What.HANDLER:
            failed.set()

    def broken(_: Gap) -> None:
        raise ValueError("cannot")

    with Connection(running.address, on_status=heard, backoff_first_s=0.001) as connection:
        handler = (lambda _: None) if has_handler else None
        subscription = connection.subscribe("a", handler, on_gap=broken)
        running.stop()
        running.start()
        if has_handler:
            assert failed.wait(30)
        else:
            with pytest.raises(ValueError, match="cannot"):
                subscription.next(30)


def test_what_a_slow_callback_cannot_take_stops_the_reading(gateway: str) -> None:
    with (
        Connection(gateway, queue_bytes=50_000) as connection,
        Connection(gateway) as publisher,
    ):
        go, done = threading.Event(), threading.Event()
        count = 2000
        seen: list[int] = []

        def handle(message: BlockingReceived) -> None:
            assert go.wait(30)
            seen.append(message["n"])
            if len(seen) == count:
                done.set()

        connection.subscribe("a", handle)
        for number in range(count):
            publisher.publish("a", {"n": number, "x": b"x" * 1000})
        publisher.flush()
        assert connection._callbacks.intake.held_bytes < 2_000_000
        go.set()
        assert done.wait(30)
        assert seen == list(range(count))


@pytest.mark.parametrize("hears_gaps", [True, False])
def test_what_overflows_is_announced(
    gateway: str, monkeypatch: pytest.MonkeyPatch, hears_gaps: bool
) -> None:
    gaps: list[Gap] = []
    with Connection(gateway, queue_bytes=10_000) as connection:
        monkeypatch.setattr(connection._engine.reading, "overshoot_bytes", lambda: 0)
        subscription = connection.subscribe("a", on_gap=gaps.append if hears_gaps else None)
        for _ in range(100):
            connection.publish("a", b"x" * 1000)
        connection.flush()
        got = 100 - connection.statistics.overflowed
        for _ in range(got):
            subscription.next(30)
        connection.publish("a", b"last")
        assert subscription.next(30).payload == b"last"
        assert 0 < got < 100
        assert gaps == ([Gap("full", 100 - got)] if hears_gaps else [])


async def test_one_that_was_refused_later_leaves_nothing_behind_when_it_is_closed(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        opening = asyncio.create_task(
            asyncio.to_thread(Connection, gateway.address, backoff_first_s=0.001)
        )
        peer = await gateway.peer()
        connection = await opening
        subscribing = asyncio.create_task(asyncio.to_thread(connection.subscribe, "a"))
        await peer.confirm()
        subscription = await subscribing
        peer.close()
        following = await gateway.peer()
        following.refuse((4002, "not yours"), await following.frame(Kind.SUBSCRIBE))
        with pytest.raises(Reserved):
            await asyncio.to_thread(subscription.next, 30)
        await asyncio.to_thread(subscription.close)
        assert len(connection._engine.reading._intakes) == 1
        closing = asyncio.create_task(asyncio.to_thread(connection.close))
        await following.frame(Kind.GOODBYE)
        following.close()
        await closing
