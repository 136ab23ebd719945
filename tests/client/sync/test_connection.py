import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from weft.client.status import Status, What
from weft.client.sync.connection import BlockingReceived, Connection, Subscription
from weft.errors import (
    BadOption,
    ConnectionLost,
    NotKnown,
    NotOpen,
    Overloaded,
    TimedOut,
    Unreachable,
    UsageError,
)
from weft.wire.message.message import Message


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for a state that nothing tells of."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_a_connection_knows_its_name_and_ends_its_threads(gateway: str) -> None:
    before = threads()
    with Connection(gateway, service="weather", name="me.1") as connection:
        assert connection.name == "me.1"
        assert connection.gateway
        assert threads() - before == {"me.1 loop", "me.1 callbacks"}
    assert threads() == before
    connection.close()


def test_a_connection_shows_where_it_is(gateway: str) -> None:
    with Connection(gateway, service="weather", name="me.1") as connection:
        name = connection.gateway
        open_form = f"<Connection me.1 of weather, at {name}, tcp://{gateway}>"
        assert repr(connection) == open_form
    assert repr(connection) == "<Connection me.1 of weather, closed>"


def test_what_cannot_be_is_refused_before_anything_happens() -> None:
    before = threads()
    wrong: dict[str, Any] = {"callbacks": "somewhere"}
    with pytest.raises(BadOption, match="neither 'thread' nor 'pumped'"):
        Connection("127.0.0.1:1", **wrong)
    with pytest.raises(BadOption):
        Connection("127.0.0.1:x")
    with pytest.raises(BadOption):
        Connection("127.0.0.1:1", timeout_s=0)
    assert threads() == before


def test_a_gateway_that_is_not_there_raises_and_leaves_no_thread(running: Any) -> None:
    address = running.address
    running.stop()
    before = threads()
    with pytest.raises(Unreachable):
        Connection(address)
    assert threads() == before


@pytest.mark.req("MM-1")
def test_messages_reach_a_callback(gateway: str) -> None:
    with Connection(gateway) as connection:
        done = threading.Event()
        seen: list[tuple[str, float]] = []

        def handle(message: BlockingReceived) -> None:
            seen.append((message.subject, message["value"]))
            done.set()

        connection.subscribe("sensors.*.temp", handle)
        connection.publish("sensors.london.temp", Message(value=21.5))
        assert done.wait(30)
        assert seen == [("sensors.london.temp", 21.5)]


@pytest.mark.req("MM-3")
def test_a_request_is_answered_or_fails(gateway: str) -> None:
    with Connection(gateway) as connection, Connection(gateway) as server:
        server.subscribe("double", lambda message: message.respond({"n": message["n"] * 2}))
        assert connection.send_request("double", {"n": 21}, timeout=20)["n"] == 42
        with pytest.raises(NotKnown):
            connection.send_request("nobody", b"", timeout=20)
        server.subscribe("silence", lambda _: None)
        with pytest.raises(TimedOut):
            connection.send_request("silence", b"", timeout=0.05)


def test_everybody_who_hears_a_question_can_answer_it(gateway: str) -> None:
    with Connection(gateway) as connection, Connection(gateway) as server:
        server.subscribe("who", lambda message: message.respond({"name": server.name}))
        answers = connection.gather("who", b"", count=1, quiet_s=20, deadline_s=20)
        assert [answer["name"] for answer in answers] == [server.name]


def test_an_acknowledged_message_has_an_identity(gateway: str) -> None:
    with Connection(gateway) as connection:
        subscription = connection.subscribe("a")
        identity = connection.publish("a", b"", acknowledge=True, not_back=False)
        assert subscription.next(30).sequence == identity.sequence
        connection.publish("a", b"", not_back=True)
        connection.flush()
        connection.publish("a", b"back", reply="there")
        assert subscription.next(30).reply == "there"


def test_many_threads_publish_at_once_and_nothing_is_lost_or_out_of_order(gateway: str) -> None:
    publishers, count = 4, 2000
    with (
        Connection(gateway) as listener,
        Connection(gateway, buffer_bytes=100_000) as connection,
    ):
        seen: dict[int, list[int]] = {number: [] for number in range(publishers)}
        done = threading.Event()

        def handle(message: BlockingReceived) -> None:
            seen[message["from"]].append(message["n"])
            if sum(map(len, seen.values())) == publishers * count:
                done.set()

        listener.subscribe("a", handle)

        def publish(number: int) -> None:
            for each in range(count):
                connection.publish("a", {"from": number, "n": each})

        hammers = [threading.Thread(target=publish, args=(number,)) for number in range(publishers)]
        for hammer in hammers:
            hammer.start()
        for hammer in hammers:
            hammer.join(30)
        assert done.wait(30)
        assert seen == {number: list(range(count)) for number in range(publishers)}


def test_many_threads_ask_at_once(gateway: str) -> None:
    with Connection(gateway) as connection, Connection(gateway) as server:
        server.subscribe("double", lambda message: message.respond({"n": message["n"] * 2}))
        answers: dict[int, int] = {}

        def ask(number: int) -> None:
            for each in range(number, number + 50):
                answers[each] = connection.send_request("double", {"n": each})["n"]

        askers = [threading.Thread(target=ask, args=(number * 50,)) for number in range(4)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join(30)
        assert answers == {number: 2 * number for number in range(200)}


def test_what_is_published_before_the_end_arrives(gateway: str) -> None:
    with Connection(gateway) as listener:
        subscription = listener.subscribe("a")
        with Connection(gateway) as connection:
            for number in range(1000):
                connection.publish("a", {"n": number})
        assert [subscription.next(30)["n"] for _ in range(1000)] == list(range(1000))


@pytest.mark.parametrize("when_full", ["raise", "drop", "block"])
def test_a_buffer_that_nobody_empties_is_bounded(running: Any, when_full: Any) -> None:
    statuses: list[Status] = []
    lost, dropping = threading.Event(), threading.Event()

    def heard(status: Status) -> None:
        statuses.append(status)
        if status.what is What.DISCONNECTED:
            lost.set()
        if status.what is What.DROPPED:
            dropping.set()

    with Connection(
        running.address,
        buffer_bytes=100_000,
        when_full=when_full,
        timeout_s=0.05,
        on_status=heard,
    ) as connection:
        running.stop()
        assert lost.wait(30)
        if when_full == "drop":
            for _ in range(1000):
                connection.publish("a", b"x" * 1000)
            assert connection.statistics.dropped > 900
            assert dropping.wait(30)
        else:
            for _ in range(85):
                connection.publish("a", b"x" * 1000)
            with pytest.raises(Overloaded):
                connection.publish("a", b"x" * 20_000)
        assert connection._engine.outgoing.held_bytes <= 100_000


def test_a_gateway_that_comes_back_gets_what_was_buffered(running: Any) -> None:
    lost = threading.Event()

    def heard(status: Status) -> None:
        if status.what is What.DISCONNECTED:
            lost.set()

    with Connection(running.address, on_status=heard, backoff_first_s=0.001) as connection:
        subscription = connection.subscribe("a")
        running.stop()
        assert lost.wait(30)
        for number in range(100):
            connection.publish("a", {"n": number})
        running.start()
        assert [subscription.next(30)["n"] for _ in range(100)] == list(range(100))


def test_the_order_of_messages_is_that_of_the_calls_of_all_threads(running: Any) -> None:
    lost = threading.Event()

    def heard(status: Status) -> None:
        if status.what is What.DISCONNECTED:
            lost.set()

    with Connection(
        running.address, on_status=heard, backoff_first_s=0.001, timeout_s=30
    ) as connection:
        subscription = connection.subscribe(">")
        outgoing = connection._engine.outgoing
        running.stop()
        assert lost.wait(30)
        connection.publish("first", b"")
        held = outgoing.held_bytes
        thread = threading.Thread(
            target=connection.publish, args=("second", b""), kwargs={"acknowledge": True}
        )
        thread.start()
        wait_until(lambda: outgoing.held_bytes > held)
        connection.publish("third", b"")
        running.start()
        assert [subscription.next(30).subject for _ in range(3)] == ["first", "second", "third"]
        thread.join(30)
        assert not thread.is_alive()


def test_pumped_callbacks_run_where_they_are_pumped(gateway: str) -> None:
    statuses: list[str] = []
    with Connection(
        gateway, callbacks="pumped", on_status=lambda status: statuses.append(status.what)
    ) as connection:
        names: list[str] = []
        connection.subscribe("a", lambda _: names.append(threading.current_thread().name))
        connection.publish("a", b"")
        connection.publish("a", b"")
        connection.flush()
        assert names == []
        while len(names) < 2:
            connection.pump(None)
        assert names == [threading.current_thread().name] * 2
        assert statuses == [What.CONNECTED]
        assert connection.pump(0.01) == connection.pump() == 0
    connection.pump()
    assert statuses == [What.CONNECTED, What.CLOSED]


def test_what_has_a_thread_is_not_pumped(gateway: str) -> None:
    with Connection(gateway) as connection, pytest.raises(UsageError, match="pumped"):
        connection.pump()


@pytest.mark.parametrize("callbacks", ["thread", "pumped"])
def test_draining_delivers_what_came_and_sends_what_is_said_of_it(
    gateway: str, callbacks: Any
) -> None:
    with Connection(gateway) as listener:
        echoes = listener.subscribe("echo")
        connection = Connection(gateway, callbacks=callbacks)
        connection.subscribe("a", lambda message: connection.publish("echo", message))
        for number in range(500):
            listener.publish("a", {"n": number})
        listener.flush()
        connection.drain()
        assert not connection.is_connected
        assert [echoes.next(30)["n"] for _ in range(500)] == list(range(500))


def test_draining_ends_even_if_a_loop_does_not(gateway: str) -> None:
    connection = Connection(gateway)
    connection.subscribe("a")
    connection.publish("a", b"which nobody takes")
    with pytest.raises(TimedOut, match="not everything was delivered"):
        connection.drain(0.1)
    with pytest.raises(NotOpen):
        connection.publish("a", b"")


@pytest.mark.parametrize("callbacks", ["thread", "pumped"])
def test_a_callback_does_not_drain_its_own_connection(gateway: str, callbacks: Any) -> None:
    with Connection(gateway, callbacks=callbacks) as connection:
        refused = threading.Event()

        def handle(_: BlockingReceived) -> None:
            try:
                connection.drain()
            except UsageError:
                refused.set()

        connection.subscribe("a", handle)
        connection.publish("a", b"")
        while callbacks == "pumped" and not refused.is_set():
            connection.pump(None)
        assert refused.wait(30)
        assert connection.is_connected


def test_a_callback_may_close_the_connection(gateway: str) -> None:
    connection = Connection(gateway)
    closed = threading.Event()

    def handle(_: BlockingReceived) -> None:
        connection.close()
        closed.set()

    connection.subscribe("a", handle)
    connection.publish("a", b"")
    assert closed.wait(30)
    assert not connection.is_connected


def test_closing_ends_whoever_waits(gateway: str) -> None:
    connection = Connection(gateway)
    connection.subscribe("silence", lambda _: None)
    subscription = connection.subscribe("a")
    errors: list[Exception] = []
    began = threading.Barrier(3)

    def wait_with(call: Any) -> None:
        began.wait(30)
        try:
            call()
        except Exception as error:
            errors.append(error)

    waiting = [
        threading.Thread(target=wait_with, args=(call,))
        for call in (subscription.next, lambda: connection.send_request("silence", b"", 30))
    ]
    for thread in waiting:
        thread.start()
    began.wait(30)
    connection.close()
    for thread in waiting:
        thread.join(30)
    assert len(errors) == 2
    with pytest.raises(NotOpen):
        connection.subscribe("b")


def test_what_was_done_is_counted(gateway: str) -> None:
    with Connection(gateway) as connection:
        connection.publish("a", b"x" * 1000, acknowledge=True)
        assert connection.statistics.sent_bytes > 1000


def test_draining_while_another_thread_pumps_ends(gateway: str) -> None:
    connection = Connection(gateway, callbacks="pumped")
    seen: list[bytes] = []
    connection.subscribe("a", lambda message: seen.append(message.payload))
    connection.publish("a", b"1")

    def pump() -> None:
        while connection.is_connected:
            connection.pump(0.01)

    pumping = threading.Thread(target=pump)
    pumping.start()
    connection.drain(30)
    pumping.join(30)
    assert seen == [b"1"]


def test_draining_while_another_thread_closes_says_so(gateway: str) -> None:
    connection = Connection(gateway)
    subscription = connection.subscribe("a")
    ended = connection.subscribe("b")
    connection.publish("a", b"which nobody takes")
    errors: list[BaseException] = []

    def drain() -> None:
        try:
            connection.drain(30)
        except BaseException as error:
            errors.append(error)

    draining = threading.Thread(target=drain)
    draining.start()
    # Nothing more comes: so the drain waits for the message now.
    assert list(ended) == []
    connection.close()
    draining.join(30)
    assert [type(error) for error in errors] == [NotOpen]
    assert not subscription.is_open


# Later Pythons warn of what this shows.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_is_forked_off_cannot_use_it(gateway: str) -> None:
    with Connection(gateway, callbacks="pumped") as connection:
        subscription = connection.subscribe("a")
        child = os.fork()
        if child == 0:
            in_forked_process(connection, subscription)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        # It goes on where it was opened.
        connection.publish("a", b"here")
        assert subscription.next(30).payload == b"here"


def in_forked_process(connection: Connection, subscription: Subscription) -> None:
    """Try everything; the exit code says how many calls were not refused."""
    answered = 1
    try:
        calls: list[Any] = [
            lambda: connection.publish("a", b""),
            lambda: connection.publish("a", b"", acknowledge=True),
            lambda: connection.send_request("a", b""),
            lambda: connection.subscribe("b"),
            subscription.next,
            lambda: connection.pump(None),
            connection.flush,
            connection.drain,
        ]
        answered = len(calls)
        for call in calls:
            try:
                call()
            except NotOpen as error:
                answered -= "another process" in str(error)
        subscription.close()
        connection.close()
    finally:
        os._exit(answered)


FORGETFUL = """
import sys, threading, weft
def main():
    connection = weft.Connection(sys.argv[1])
    for number in range(1000):
        connection.publish("a", {"n": number})
    return connection
kept = main()
if sys.argv[2] == "dropped":
    del kept
"""


@pytest.mark.parametrize("is_kept", ["kept", "dropped"])
def test_a_program_that_does_not_close_loses_nothing(gateway: str, is_kept: str) -> None:
    with Connection(gateway) as connection, connection.subscribe("a") as heard:
        command = [sys.executable, "-W", "always", "-c", FORGETFUL, gateway, is_kept]
        run = subprocess.run(  # noqa: S603  # our own program and interpreter
            command, capture_output=True, text=True, check=True, timeout=60
        )
        assert "ResourceWarning: unclosed <Connection" in run.stderr
        assert [heard.next(30)["n"] for _ in range(1000)] == list(range(1000))


def test_a_program_ends_although_its_gateway_is_away(running: Any) -> None:
    program = "\n".join(
        [
            "import sys, time, weft",
            "connection = weft.Connection(sys.argv[1])",
            "print('ready', flush=True)",
            "sys.stdin.readline()",
            "while connection.is_connected: time.sleep(0.01)",
            "connection.publish('a', b'x')",
        ]
    )
    command = [sys.executable, "-c", program, running.address]
    with subprocess.Popen(  # noqa: S603  # our own program and interpreter
        command, text=True, stdin=-1, stdout=-1, stderr=-1
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        running.stop()
        _, told = process.communicate("go on\n", timeout=60)
    assert process.returncode == 0
    assert "bytes were not sent" in told


def test_a_connection_that_is_dropped_sends_what_it_has_and_ends(gateway: str) -> None:
    before = threads()
    with Connection(gateway, name="me.1") as connection, connection.subscribe("a") as heard:
        with pytest.warns(ResourceWarning, match="unclosed <Connection"):
            Connection(gateway, name="dropped.1").publish("a", b"x")
        assert heard.next(30).payload == b"x"
        wait_until(lambda: not any("dropped" in name for name in threads()))
    assert threads() == before


def test_an_async_handler_is_refused(gateway: str) -> None:
    async def handle(_: BlockingReceived) -> None:
        """Nobody would await it."""

    class Called:
        async def __call__(self, _: BlockingReceived) -> None:
            """Nor this."""

    with Connection(gateway) as connection:
        for handler in (handle, functools.partial(handle), Called()):
            with pytest.raises(UsageError, match="does not await its handlers"):
                connection.subscribe("a", handler)


def test_what_a_handler_returns_to_be_awaited_is_reported(gateway: str) -> None:
    async def work() -> None:
        """Nobody awaits it."""

    failed: list[BaseException | None] = []

    def heard(status: Status) -> None:
        if status.what is What.HANDLER:
            failed.append(status.error)

    with Connection(gateway, on_status=heard) as connection:
        connection.subscribe("a", lambda _: work())
        connection.publish("a", b"")
        connection.drain()
    assert [type(error) for error in failed] == [UsageError]


def test_draining_needs_no_gateway_if_nothing_is_to_be_sent(running: Any) -> None:
    lost = threading.Event()

    def heard(status: Status) -> None:
        if status.what is What.DISCONNECTED:
            lost.set()

    connection = Connection(running.address, on_status=heard, timeout_s=3600.0)
    connection.subscribe("a", print)
    running.stop()
    assert lost.wait(30)
    connection.drain()
    assert not connection.is_connected


def test_an_answer_that_comes_too_late_for_its_requester_is_refused(running: Any) -> None:
    lost = threading.Event()

    def heard(status: Status) -> None:
        if status.what is What.DISCONNECTED:
            lost.set()

    with (
        Connection(running.address, on_status=heard, backoff_first_s=0.001) as server,
        server.subscribe("q") as asked,
    ):
        asker = Connection(running.address, backoff_first_s=0.001)
        asking = threading.Thread(target=ask_in_vain, args=(asker,))
        asking.start()
        request = asked.next(30)
        running.stop()
        assert lost.wait(30)
        asking.join(30)
        running.start()
        server.flush(30)
        with pytest.raises(ConnectionLost, match="the requester was notified"):
            request.respond("too late")
        asker.close()


def ask_in_vain(asker: Connection) -> None:
    with pytest.raises(ConnectionLost):
        asker.send_request("q", b"")
