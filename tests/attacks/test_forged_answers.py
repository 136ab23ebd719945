"""Answers and pages of history that were never asked of whoever sends them.

Every forger was asked once, so that it knows the inbox; it floods what a counter would name next,
before the request that it would answer.
"""

import asyncio
import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.attacks.forger import (
    FORGED,
    Forger,
    forged_goodbye,
    forged_message,
    forged_page,
    forgeries,
)
from tests.attacks.gateway_process import WAIT_S, GatewayProcess
from tests.attacks.siege import Siege
from tests.attacks.web_stranger import WebStranger
from tests.transports.middleman.raw_peer import let_in

import weft
from weft.wire.frames import Flag
from weft.wire.message.message import Message

GENUINE = b"genuine"
REQUESTS = 30
KEPT = [b"1", b"2", b"3"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that keeps what is published to `kept.>`."""
    folder = tmp_path_factory.mktemp("gateway")
    settings = {"data": str(folder / "data"), "journal.patterns": ["kept.>"]}
    with GatewayProcess(folder, settings) as running:
        yield running


@contextmanager
def serving(siege: Siege) -> Iterator[weft.Connection]:
    """A client that answers `good.ask` as it should."""
    with weft.Connection(siege.gateway.address, name="good") as good:
        good.subscribe("good.ask", lambda asked: asked.respond(GENUINE))
        yield good


@contextmanager
def asked_over_http(siege: Siege) -> Iterator[http.client.HTTPConnection]:
    """A connection that answers are asked for by."""
    connection = http.client.HTTPConnection("127.0.0.1", siege.port, timeout=WAIT_S)
    try:
        yield connection
    finally:
        connection.close()


def ask_over_http(connection: http.client.HTTPConnection, path: str) -> bytes:
    """The body of the answer to a request."""
    connection.request("GET", f"/default/request/{path}?timeout=20")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return body


def test_a_plain_http_caller_gets_no_answer_that_was_sent_before_its_request(siege: Siege) -> None:
    forger = Forger(siege)
    with serving(siege), asked_over_http(siege) as connection:
        connection.request("GET", "/default/request/evil/ask?timeout=20")
        inbox = forger.learn_inbox()
        assert connection.getresponse().read() == b"evil's own"
        with forger.flooding(forgeries(inbox, FORGED)):
            answers = {ask_over_http(connection, "good/ask") for _ in range(REQUESTS)}
            assert answers == {GENUINE}
            assert b"connections" in ask_over_http(connection, "_WEFT/ask/status")


async def test_a_middleman_peer_gets_no_answer_that_was_sent_before_its_request(
    siege: Siege,
) -> None:
    forger = Forger(siege)
    with serving(siege):
        async with let_in(f"127.0.0.1:{siege.port}") as victim:
            await victim.say("REQ", "evil.ask", ReqID="0")
            inbox = await asyncio.to_thread(forger.learn_inbox)
            assert (await victim.told()).body == "evil's own"
            with forger.flooding(forgeries(inbox, FORGED)):
                for number in range(1, REQUESTS):
                    await victim.say("REQ", "good.ask", ReqID=str(number))
                    assert (await victim.told()).body == GENUINE.decode()


async def asked_once(victim: weft.AsyncConnection, forger: Forger) -> bytes:
    """The inbox of a client that asks the forger, and gets its answer."""
    async with asyncio.TaskGroup() as both:
        asking = both.create_task(victim.send_request("evil.ask", b"?"))
        learning = both.create_task(asyncio.to_thread(forger.learn_inbox))
    assert asking.result().payload == b"evil's own"
    return learning.result()


async def test_a_python_client_gets_no_answer_that_was_sent_before_its_request(
    siege: Siege,
) -> None:
    forger = Forger(siege)
    with serving(siege):
        async with weft.connect(siege.gateway.address) as victim:
            inbox = await asked_once(victim, forger)
            for _ in range(REQUESTS):
                # Its loop stands still meanwhile: what is forged is read after it has asked.
                forger.flood(forgeries(inbox, FORGED))
                assert (await victim.send_request("good.ask", b"?")).payload == GENUINE


def test_a_blocking_client_gets_no_answer_that_was_sent_before_its_request(siege: Siege) -> None:
    forger = Forger(siege)
    with (
        serving(siege),
        weft.Connection(siege.gateway.address) as victim,
        ThreadPoolExecutor(1) as pool,
    ):
        asking = pool.submit(victim.send_request, "evil.ask", b"?")
        inbox = forger.learn_inbox()
        assert asking.result(WAIT_S).payload == b"evil's own"
        with forger.flooding(forgeries(inbox, FORGED)):
            for _ in range(REQUESTS):
                assert victim.send_request("good.ask", b"?", timeout=WAIT_S).payload == GENUINE


async def test_what_the_gateway_is_asked_nobody_else_answers(siege: Siege) -> None:
    forger = Forger(siege)
    async with weft.connect(siege.gateway.address) as victim:
        inbox = await asked_once(victim, forger)
        for _ in range(REQUESTS):
            forger.flood(forgeries(inbox, Message(service="forged").encode(), Flag.NONE))
            status = await victim.send_request("_WEFT.ask.status", {})
            assert status["service"] == "default"


async def test_a_python_client_gets_no_page_of_history_that_another_made_up(siege: Siege) -> None:
    forger = Forger(siege)
    async with weft.connect(siege.gateway.address) as victim:
        for body in KEPT:
            await victim.publish("kept.a", body, acknowledge=True)
        inbox = await asked_once(victim, forger)
        page = forged_page(forged_message(b"kept.a"), forged_goodbye())
        for _ in range(5):
            history = victim.subscribe("kept.>", since=0)
            forger.flood(forgeries(inbox, page, Flag.NONE))
            assert [(await history.next(WAIT_S)).payload for _ in KEPT] == KEPT
            await history.close()
        assert victim.statistics.connects == 1


def test_a_page_gets_no_history_and_no_goodbye_that_another_made_up(siege: Siege) -> None:
    forger = Forger(siege)
    victim = WebStranger(siege.port)
    reply = victim.welcome["inbox"] + "/first"
    victim.tell({"path": "/evil/ask", "request": True, "reply": reply, "data": {}})
    inbox = forger.learn_inbox()
    heard = victim.told_until_pong()
    page = forged_page(forged_message(b"x.y"), forged_goodbye())
    for number in range(REQUESTS):
        # Before and after the question; all of it is read before the next one.
        forger.flood(forgeries(inbox, page, Flag.NONE))
        wish = {"interest": f"/x/{number}", "subpaths": True, "since": "1h", "ack": number}
        victim.tell(wish)
        forger.flood(forgeries(inbox, page, Flag.NONE))
        while (told := victim.told()) != {"ok": number}:
            heard.append(told)
    heard += victim.told_until_pong()
    assert [told for told in heard if "goodbye" in told or "error" in told] == []
    # The flood itself comes, to the inbox that it was sent to.
    paths = {told["path"] for told in heard if "path" in told}
    assert {path for path in paths if not path.startswith(victim.welcome["inbox"])} == set()
    victim.socket.close()


@pytest.mark.parametrize("flags", [Flag.FROM_GATEWAY, 128], ids=["own", "unused"])
def test_flags_of_a_gateway_are_refused_of_anybody_else(siege: Siege, flags: int) -> None:
    forger = siege.stranger()
    victim = siege.stranger()
    inbox = victim.inbox() + b"."
    forger.send(forgeries(inbox, FORGED, flags))
    assert set(forger.hear_errors()) == {"UsageError"}
    assert victim.hear_until_pong() == []
