"""Subscribing: patterns, several at once, overlapping ones, and the end of them."""

import pytest
from tests.journeys.clients import Client, Connect, Hearing, rest, taken, texts
from tests.journeys.raw import bodies, errors, fields, greeted, kinds, message, subscribe
from tests.journeys.raw import unsubscribe as take_back
from tests.journeys.running import RunningGateway

import weft
from weft.client.status import What
from weft.errors import BadOption, NotOpen, NotYours, Refused, Reserved
from weft.wire.frames import Kind


async def heard_of(
    client: Client, hearing: Hearing, publisher: Client, subjects: list[str]
) -> list[str]:
    """Which of these subjects a subscription hears, when something is published to each."""
    for subject in subjects:
        await publisher.publish(subject, subject)
    await publisher.flush()
    return texts(await rest(client, hearing))


@pytest.mark.req("MM-16")
async def test_a_star_hears_one_element(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        hearing = await paris.subscribe(f"{subject}.*.temp")
        asked = [f"{subject}.{each}" for each in ("a.temp", "b.temp", "temp", "a.b.temp", "a.wind")]
        assert await heard_of(paris, hearing, london, asked) == asked[:2]


@pytest.mark.req("MM-16")
async def test_a_tail_hears_one_element_or_more(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        hearing = await paris.subscribe(f"{subject}.>")
        asked = [f"{subject}.a", f"{subject}.a.b.c", subject, f"{subject}x.a"]
        assert await heard_of(paris, hearing, london, asked) == asked[:2]


@pytest.mark.req("MM-16", "MM-18")
async def test_a_closed_subscription_hears_no_more(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        kept = await paris.subscribe(f"{subject}.a")
        closed = await paris.subscribe(f"{subject}.b")
        await closed.close()
        with pytest.raises(NotOpen):
            await closed.next()
        assert await heard_of(paris, kept, london, [f"{subject}.a", f"{subject}.b"]) == [
            f"{subject}.a"
        ]
        found = await london.request("_WEFT.ask.subscribers", weft.Message(subject=f"{subject}.b"))
        assert found["subscribers"] == []


async def test_closing_one_of_two_that_ask_for_the_same_leaves_the_other(
    connect: Connect, subject: str
) -> None:
    async with connect() as client:
        closed = await client.subscribe(subject)
        kept = await client.subscribe(subject)
        await closed.close()
        assert await heard_of(client, kept, client, [subject]) == [subject]


async def test_every_subscription_that_matches_is_called_once(
    connect: Connect, subject: str
) -> None:
    async with connect() as london, connect() as paris:
        patterns = (f"{subject}.a", f"{subject}.*", f"{subject}.>", f"{subject}.a")
        hearings = [await paris.subscribe(pattern) for pattern in patterns]
        await london.publish(f"{subject}.a", "hello")
        await london.flush()
        assert [texts(await rest(paris, each)) for each in hearings] == [["hello"]] * 4


async def test_a_connection_gets_a_message_once_however_many_patterns_match(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as raw:
        patterns = (f"{subject}.a", f"{subject}.*", f"{subject}.>", "*.a")
        await raw.say(*(subscribe(pattern) for pattern in patterns))
        assert bodies(await raw.say(message(f"{subject}.a", b"hello"))) == [b"hello"]


@pytest.mark.req("HUB-4")
async def test_several_patterns_are_asked_for_in_one_call(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        hearing = await paris.subscribe([f"{subject}.a", f"{subject}.b.>", f"{subject}.*.c"])
        asked = [f"{subject}.{each}" for each in ("a", "b.c", "d.c", "d")]
        assert await heard_of(paris, hearing, london, asked) == asked[:3]


@pytest.mark.req("HUB-3", "HUB-4")
async def test_of_several_patterns_all_are_taken_or_none(connect: Connect, subject: str) -> None:
    async with connect() as client:
        with pytest.raises(Reserved):
            await client.subscribe([f"{subject}.a", "_OTHER.b"])
        found = await client.request("_WEFT.ask.subscribers", weft.Message(subject=f"{subject}.a"))
        assert found["subscribers"] == []
        assert isinstance((await client.statuses.until(What.REFUSED)).error, Reserved)


@pytest.mark.req("HUB-3")
async def test_each_registration_is_answered_with_ok_or_an_error(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as raw:
        heard = await raw.say(
            subscribe(subject),
            subscribe("a..b"),
            subscribe(subject, policy="no_such"),
            subscribe(f"{subject}.more", patterns=[f"{subject}.x", "a.>.b"]),
            take_back(subject),
            take_back(f"{subject}.never.asked.for"),
        )
        ok, error = Kind.OK, Kind.ERROR
        assert kinds(heard) == [ok, error, error, error, ok, ok]
        assert errors(heard) == ["BadSubject", "BadOption", "BadSubject"]
        assert [frame.subject for frame in heard[:2]] == [subject.encode(), b"a..b"]
        assert fields(heard[1])["kind"] == Kind.SUBSCRIBE


@pytest.mark.parametrize("pattern", ["_OTHER.>", "_INBOX.>", "_LOCAL", "_x"])
async def test_a_reserved_pattern_is_refused(connect: Connect, pattern: str) -> None:
    async with connect() as client:
        with pytest.raises(Refused) as refused:
            await client.subscribe(pattern)
        assert type(refused.value) is (NotYours if pattern.startswith("_INBOX") else Reserved)


async def test_a_tail_does_not_hear_what_is_reserved(gateway: RunningGateway, subject: str) -> None:
    async with greeted(gateway.address) as london, greeted(gateway.address) as paris:
        await paris.say(subscribe(">"), subscribe("*.event.>"))
        await london.say(message(f"_LOCAL.event.{subject}", b"near"), message(subject, b"far"))
        heard = [
            frame.body for frame in await paris.say() if frame.subject.endswith(subject.encode())
        ]
        assert heard == [b"far"]


async def test_what_cannot_be_told_apart_is_refused_by_the_client(
    connect: Connect, subject: str
) -> None:
    async with connect() as client:
        await client.subscribe(f"{subject}.a", policy="latest")
        with pytest.raises(BadOption, match="latest"):
            await client.subscribe(f"{subject}.a", policy="cut")
        with pytest.raises(BadOption, match="overlaps"):
            await client.subscribe(f"{subject}.>", group="workers")


@pytest.mark.req("MM-1", "MM-18")
async def test_a_context_ends_its_subscription(gateway: RunningGateway, subject: str) -> None:
    with weft.Connection(gateway.address) as blocking:
        with blocking.subscribe(subject) as subscription:
            blocking.publish(subject, "1")
            assert next(iter(subscription)).text == "1"
        assert not subscription.is_open
        assert list(subscription) == []
    async with weft.connect(gateway.address) as connection:
        async with connection.subscribe(subject) as listening:
            await connection.publish(subject, "2")
            async for received in listening:
                assert received.text == "2"
                break
        assert [received async for received in listening] == []


async def test_asking_again_changes_how_a_subscription_is_served(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address, name=f"{subject}.me") as raw:
        await raw.say(subscribe(subject), subscribe(subject, policy="drop_old"))
        assert bodies(await raw.say(message(subject, b"once"))) == [b"once"]
        async with weft.connect(gateway.address) as client:
            found = await client.send_request(
                "_WEFT.ask.subscriptions", weft.Message(name=f"{subject}.me")
            )
            assert [each["policy"] for each in found["subscriptions"]] == ["drop_old"]


async def test_what_was_taken_from_a_queue_came_in_order(connect: Connect, subject: str) -> None:
    async with connect() as client:
        hearing = await client.subscribe(subject)
        for number in range(100):
            await client.publish(subject, str(number))
        assert texts(await taken(hearing, 100)) == [str(number) for number in range(100)]
