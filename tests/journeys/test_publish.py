"""Publishing: who hears it, what it is told, and what is refused."""

import subprocess
import sys

import pytest
from tests.journeys.clients import Connect, rest, taken, texts
from tests.journeys.raw import bodies, errors, greeted, kinds, message, subscribe
from tests.journeys.running import RunningGateway

import weft
from weft.client.status import What
from weft.errors import BadSubject, Reserved
from weft.wire.frames import Flag, Kind


@pytest.mark.req("MM-1", "MM-16", "HUB-18")
async def test_a_subscriber_hears_what_is_published(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        heard = await paris.subscribe(subject)
        await london.publish(subject, weft.Message(temp=21.5, where="City"))
        message = await heard.next()
        assert message.subject == subject
        assert (message["temp"], message["where"]) == (21.5, "City")
        assert message.origin > 0
        assert message.time > 0


# No other gateway exists, so every peer that this one could have is down: that delivery goes on
# when peers that were there leave can be shown once gateways can be linked.
@pytest.mark.req("MM-11", "MM-24")
async def test_one_gateway_alone_takes_messages_from_process_to_process(
    connect: Connect, subject: str, gateway: RunningGateway
) -> None:
    async with connect() as client:
        heard = await client.subscribe(f"{subject}.>")
        command = [sys.executable, "-m", "weft.cli", "pub", f"{subject}.greeting", "hello"]
        done = subprocess.run(  # noqa: S603  # our own command; nothing else goes on
            [*command, "--gateway", gateway.address], check=False, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        assert texts([await heard.next()]) == ["hello"]


async def test_text_bytes_and_fields_arrive_as_they_were_sent(
    connect: Connect, subject: str
) -> None:
    async with connect() as client:
        heard = await client.subscribe(subject)
        await client.publish(subject, "grüß dich")
        await client.publish(subject, b"\x00\xff")
        await client.publish(subject, weft.Message(weft.Field.uint32("n", 7), inner={"a": [1]}))
        text, blob, fields = await taken(heard, 3)
        assert text.text == "grüß dich"
        assert blob.payload == b"\x00\xff"
        assert fields.get_uint32("n") == 7
        assert fields.get_message("inner").to_dict() == {"a": [1]}


@pytest.mark.req("HUB-6")
async def test_every_subscriber_hears_it_the_sender_too(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris, connect() as tokyo:
        hearings = [await each.subscribe(subject) for each in (london, paris, tokyo)]
        await london.publish(subject, "hello")
        assert texts([await hearing.next() for hearing in hearings]) == ["hello"] * 3


@pytest.mark.req("HUB-6")
async def test_a_sender_can_opt_out_of_its_own_messages(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        own = await london.subscribe(subject)
        others = await paris.subscribe(subject)
        await london.publish(subject, "to the others", not_back=True)
        await london.publish(subject, "to all")
        assert texts(await taken(others, 2)) == ["to the others", "to all"]
        assert texts(await rest(london, own)) == ["to all"]


async def test_an_acknowledgement_is_the_identity_of_the_message(
    connect: Connect, subject: str
) -> None:
    async with connect() as london, connect() as paris:
        heard = await paris.subscribe(subject)
        first = await london.acknowledged(subject, "1")
        second = await london.acknowledged(subject, "2")
        for identity, message in zip((first, second), await taken(heard, 2), strict=True):
            found = (message.origin, message.publisher, message.sequence, message.time)
            assert found == tuple(identity)
        assert first.sequence < second.sequence
        assert (first.origin, first.publisher) == (second.origin, second.publisher)


async def test_a_message_that_nobody_hears_is_acknowledged(connect: Connect, subject: str) -> None:
    async with connect() as client:
        assert (await client.acknowledged(subject, "hello")).sequence > 0


async def test_messages_of_one_publisher_stay_in_order(connect: Connect, subject: str) -> None:
    count = 500
    async with connect() as london, connect() as paris, connect() as listener:
        heard = await listener.subscribe(f"{subject}.*")
        for number in range(count):
            await london.publish(f"{subject}.london", weft.Message(number=number))
            await paris.publish(f"{subject}.paris", weft.Message(number=number))
        messages = await taken(heard, 2 * count)
        for city in ("london", "paris"):
            of_city = [each for each in messages if each.subject == f"{subject}.{city}"]
            assert [each["number"] for each in of_city] == list(range(count))
            assert len({each.publisher for each in of_city}) == 1
        sequences = [each.sequence for each in messages]
        assert sequences == sorted(set(sequences))


async def test_a_local_subject_is_used_like_any_other(connect: Connect, subject: str) -> None:
    async with connect() as london, connect() as paris:
        heard = await paris.subscribe(f"_LOCAL.{subject}.*")
        everything = await paris.subscribe(">")
        await london.publish(f"_LOCAL.{subject}.a", "near")
        assert texts([await heard.next()]) == ["near"]
        among = [each.subject for each in await rest(paris, everything)]
        assert f"_LOCAL.{subject}.a" not in among


@pytest.mark.parametrize("reserved", ["_WEFT.event.connected", "_WEFT.x", "_OTHER.x", "_LOCAL"])
async def test_publishing_to_a_reserved_subject_is_refused_and_told(
    connect: Connect, reserved: str
) -> None:
    async with connect() as client:
        with pytest.raises(Reserved):
            await client.acknowledged(reserved, "x")
        await client.publish(reserved, "unasked")
        told = await client.statuses.until(What.REFUSED)
        assert isinstance(told.error, Reserved)
        await client.flush()
        assert client.is_connected


async def test_an_illegal_subject_never_leaves_the_client(connect: Connect) -> None:
    async with connect() as client:
        for illegal in ("a..b", "a.*", ">", "", "a/b"):
            with pytest.raises(BadSubject):
                await client.publish(illegal, "x")


async def test_the_gateway_refuses_an_illegal_subject_by_itself(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as raw:
        heard = await raw.say(subscribe(f"{subject}.>"), message(f"{subject}.*", b"x", b"", 1))
        assert kinds(heard) == [Kind.OK, Kind.ERROR]
        assert errors(heard) == ["BadSubject"]


@pytest.mark.req("MM-17")
async def test_a_socket_and_frames_are_all_that_a_client_needs(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as london, greeted(gateway.address) as paris:
        assert kinds(await paris.say(subscribe(subject))) == [Kind.OK]
        (acknowledged,) = await london.say(message(subject, b"hi", flags=Flag.ANSWER))
        heard = await paris.next()
        assert (heard.subject, heard.body) == (subject.encode(), b"hi")
        assert heard.sequence == acknowledged.sequence > 0
        assert bodies(await london.say()) == []
