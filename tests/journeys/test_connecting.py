"""Connecting: names, services, what is told and logged, and what a client does at its end."""

import asyncio
import logging
import threading

import pytest
from tests.journeys.clients import LIMIT_S, Connect, in_thread, rest, taken, texts
from tests.journeys.raw import dialled, errors, fields, greeted, greeting
from tests.journeys.running import RunningGateway

import weft
from weft.client.status import What
from weft.errors import BadGreeting, NotOpen, UsageError
from weft.wire.frames import Kind, encode


@pytest.mark.req("HUB-1")
async def test_a_client_announces_its_name_and_address_and_is_found_by_it(
    connect: Connect, subject: str
) -> None:
    name = f"{subject}.me.1"
    async with connect(name=name, reachable_at="tcp://10.0.0.7:9000") as client:
        assert client.name == name
        assert client.gateway == "london"
        async with connect() as other:
            found = await other.request("_WEFT.ask.connections", weft.Message(name=name))
            (me,) = found["connections"]
            assert (me["name"], me["address"]) == (name, "tcp://10.0.0.7:9000")


@pytest.mark.req("HUB-3")
async def test_an_announcement_is_answered_with_a_welcome(
    gateway: RunningGateway, subject: str
) -> None:
    async with dialled(gateway.address) as raw:
        welcome = await raw.greet(name=f"{subject}.me")
        facts = fields(welcome)
        assert (welcome.subject, welcome.reply) == (b"default", f"{subject}.me".encode())
        assert (facts["version"], facts["gateway"]) == (1, "london")
        assert min(welcome.origin, welcome.publisher, facts["body_limit"]) > 0


@pytest.mark.req("HUB-3")
@pytest.mark.parametrize(
    ("said", "error"),
    [
        pytest.param(greeting("_none"), "BadGreeting", id="a service that cannot be"),
        pytest.param(greeting(name="_WEFT.me"), "BadGreeting", id="a reserved name"),
        pytest.param(greeting(name="a..b"), "BadGreeting", id="a name that is no subject"),
        pytest.param(greeting(version=2), "BadGreeting", id="another version"),
        pytest.param(greeting(version="one"), "BadGreeting", id="a version that is no number"),
        pytest.param(encode(Kind.PING), "BadGreeting", id="no greeting"),
        pytest.param(
            encode(Kind.CONNECT, b"default", b"\xff" * 9),
            "BadMessage",
            id="a body that is no message",
        ),
        pytest.param(b"\x03\x00\x00\x00" + bytes(60), "BadFrame", id="a size that cannot be"),
        pytest.param(b"\xff\xff\xff\x7f" + bytes(60), "FrameTooBig", id="a huge size"),
    ],
)
async def test_an_announcement_that_cannot_be_is_answered_with_an_error_and_the_end(
    gateway: RunningGateway, said: bytes, error: str
) -> None:
    async with dialled(gateway.address) as raw:
        await raw.send(said)
        assert errors(await raw.to_the_end()) == [error]


async def test_a_client_without_a_name_is_given_one(connect: Connect) -> None:
    async with connect() as one, connect() as two:
        assert one.name
        assert one.name != two.name


async def test_a_second_greeting_ends_the_connection(gateway: RunningGateway) -> None:
    async with greeted(gateway.address) as raw:
        await raw.send(greeting())
        assert errors(await raw.to_the_end()) == ["BadGreeting"]


async def test_a_client_is_told_why_it_is_not_taken(connect: Connect) -> None:
    with pytest.raises(BadGreeting):
        await connect.open(name="_mine")


async def test_a_flush_returns_when_everything_before_was_dealt_with(
    connect: Connect, subject: str
) -> None:
    async with connect(name=f"{subject}.me") as publisher, connect() as witness:
        for number in range(1000):
            await publisher.publish(subject, str(number))
        await publisher.flush()
        found = await witness.request("_WEFT.ask.flows", weft.Message(subject=subject))
        assert [each["messages"] for each in found["flows"]] == [1000]


async def test_closing_sends_what_is_buffered(connect: Connect, subject: str) -> None:
    async with connect() as listener:
        heard = await listener.subscribe(subject)
        async with connect() as publisher:
            for number in range(500):
                await publisher.publish(subject, str(number))
        assert texts(await taken(heard, 500)) == [str(number) for number in range(500)]


async def test_a_closed_connection_says_so(connect: Connect, subject: str) -> None:
    client = await connect.open()
    await client.close()
    await client.close()
    await client.statuses.until(What.CLOSED)
    with pytest.raises(NotOpen):
        await client.publish(subject, "x")
    with pytest.raises(NotOpen):
        await client.subscribe(subject)
    with pytest.raises(NotOpen):
        await client.request(subject, "x")


async def test_draining_lets_handlers_finish_what_came(connect: Connect, subject: str) -> None:
    sent = [str(number) for number in range(200)]
    answered: list[str] = []

    def reply(message: weft.Received) -> str:
        answered.append(message.text)
        return message.text

    async with connect() as asker:
        server = await connect.open()
        await server.answer(subject, reply)
        answers = await asker.subscribe(f"{subject}.answers")
        for text in sent:
            await asker.publish(subject, text, reply=f"{subject}.answers")
        await asker.flush()
        await server.drain()
        assert answered == sent
        assert texts(await taken(answers, len(sent))) == sent
        with pytest.raises(NotOpen):
            await server.publish(subject, "more")


async def test_draining_waits_for_whoever_takes_messages_by_hand(
    connect: Connect, subject: str
) -> None:
    client = await connect.open()
    hearing = await client.subscribe(subject)
    for number in range(5):
        await client.publish(subject, str(number))
    await client.flush()
    draining = asyncio.create_task(client.drain())
    assert texts(await taken(hearing, 5)) == ["0", "1", "2", "3", "4"]
    await draining
    with pytest.raises(NotOpen):
        await hearing.next()


async def test_a_handler_that_raises_is_reported_and_goes_on(
    connect: Connect, subject: str
) -> None:
    def reply(message: weft.Received) -> str:
        return str(1 / int(message.text))

    async with connect() as client:
        await client.answer(subject, reply)
        answers = await client.subscribe(f"{subject}.answers")
        await client.publish(subject, "0", reply=f"{subject}.answers")
        await client.publish(subject, "1", reply=f"{subject}.answers")
        assert (await answers.next()).text == "1.0"
        told = await client.statuses.until(What.HANDLER)
        assert isinstance(told.error, ZeroDivisionError)
        assert await rest(client, answers) == []


class Notes(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.mark.req("MM-18")
async def test_a_logger_of_ones_own_hears_what_happens(connect: Connect, subject: str) -> None:
    notes = Notes()
    logger = logging.getLogger(f"of.{subject}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(notes)
    async with connect(name=f"{subject}.me", logger=logger) as client:
        await client.publish("_WEFT.x", "refused")
        await client.statuses.until(What.REFUSED)
    assert any("connected to gateway london" in text for text in notes.texts)
    assert any("belongs to the system" in text for text in notes.texts)
    assert all(text.startswith(f"{subject}.me: ") for text in notes.texts)
    assert notes.texts[-1].endswith("closed")


@pytest.mark.req("MM-1")
async def test_a_callback_does_not_keep_its_publisher_waiting(
    gateway: RunningGateway, subject: str
) -> None:
    may_end = threading.Event()
    handled: list[str] = []

    def handler(message: weft.Received) -> None:
        may_end.wait(LIMIT_S)
        handled.append(message.text)

    def journey() -> None:
        with weft.Connection(gateway.address) as connection:
            connection.subscribe(subject, handler)
            for number in range(10):
                connection.publish(subject, str(number))
            connection.flush()
            assert handled == []
            may_end.set()
            connection.drain()

    await in_thread(journey)
    assert handled == [str(number) for number in range(10)]


async def test_pumped_callbacks_run_only_where_they_are_pumped(
    gateway: RunningGateway, subject: str
) -> None:
    threads: list[int] = []

    def journey() -> None:
        with weft.Connection(gateway.address, callbacks="pumped") as connection:
            connection.subscribe(subject, lambda _: threads.append(threading.get_ident()))
            for number in range(10):
                connection.publish(subject, str(number))
            connection.flush()
            assert threads == []
            while len(threads) < 10:
                assert connection.pump(LIMIT_S) > 0
            assert set(threads) == {threading.get_ident()}

    await in_thread(journey)


async def test_only_pumped_callbacks_can_be_pumped(gateway: RunningGateway) -> None:
    def journey() -> None:
        with weft.Connection(gateway.address) as connection, pytest.raises(UsageError):
            connection.pump()

    await in_thread(journey)


async def test_one_blocking_connection_serves_many_threads(
    gateway: RunningGateway, subject: str
) -> None:
    with weft.Connection(gateway.address) as connection:
        connection.subscribe(subject, lambda asked: asked.respond(asked.text))

        def ask(number: int) -> list[str]:
            asked = [f"{number}.{turn}" for turn in range(10)]
            answers = [connection.send_request(subject, each, LIMIT_S) for each in asked]
            assert texts(answers) == asked
            return asked

        answered = await asyncio.gather(*(in_thread(ask, number) for number in range(8)))
        assert len({each for some in answered for each in some}) == 80
