"""Bodies and bytes: whatever is sent arrives unread and whole, in whatever pieces it travels."""

import os

import pytest
from tests.journeys.clients import Connect
from tests.journeys.raw import bodies, dialled, errors, greeted, greeting, message, subscribe
from tests.journeys.running import RunningGateway

import weft
from weft.errors import BadField, ProtocolError
from weft.wire.frames import BODY_LIMIT_BYTES, Kind, encode

GARBAGE = [
    b"\xff\xff\xff\x7f",
    b"\x01\x00\x00\x00\xff\xff\xff\xffname",
    b"\x00",
    bytes(range(256)) * 16,
]


@pytest.mark.req("MM-19")
async def test_a_body_that_is_no_message_passes_untouched(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as raw:
        # Without the flag that says so, these claim to be messages.
        sent = [encode(Kind.MESSAGE, subject.encode(), body) for body in GARBAGE]
        heard = await raw.say(subscribe(subject), *sent)
        assert bodies(heard) == GARBAGE
        assert errors(heard) == []


@pytest.mark.req("MM-19")
async def test_whoever_reads_garbage_is_told_and_goes_on(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    async with connect() as client, greeted(gateway.address) as raw:
        hearing = await client.subscribe(subject)
        await raw.say(encode(Kind.MESSAGE, subject.encode(), GARBAGE[0]), message(subject, b"ok"))
        garbage = await hearing.next()
        with pytest.raises(ProtocolError):
            garbage.to_dict()
        assert (await hearing.next()).payload == b"ok"


async def test_the_largest_body_arrives(connect: Connect, subject: str) -> None:
    body = os.urandom(BODY_LIMIT_BYTES)
    async with connect() as london, connect() as paris:
        hearing = await paris.subscribe(subject)
        for _ in range(3):
            await london.publish(subject, body)
        for _ in range(3):
            assert (await hearing.next()).payload == body


async def test_a_body_over_the_limit_never_leaves_the_client(
    connect: Connect, subject: str
) -> None:
    async with connect() as client:
        with pytest.raises(BadField, match=str(BODY_LIMIT_BYTES)):
            await client.publish(subject, bytes(BODY_LIMIT_BYTES + 1))
        await client.acknowledged(subject, "and the connection is still there")


async def test_a_body_over_the_limit_ends_only_its_own_connection(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as huge, greeted(gateway.address) as other:
        await other.say(subscribe(subject))
        await huge.send(message(subject, b"counts") + message(subject, bytes(BODY_LIMIT_BYTES + 1)))
        assert errors(await huge.to_the_end()) == ["FrameTooBig"]
        assert bodies(await other.say(message(subject, b"goes on"))) == [b"counts", b"goes on"]


@pytest.mark.req("MM-15")
@pytest.mark.parametrize("piece", [1, 2, 7, 31, 32, 33, 1000, 65_536])
async def test_any_split_of_the_bytes_says_the_same(
    gateway: RunningGateway, subject: str, piece: int
) -> None:
    sent = [b"%d" % number * (1 + 30 * (number % 3)) for number in range(20)]
    conversation = b"".join(
        [greeting(), subscribe(subject), *(message(subject, body) for body in sent)]
    )
    async with dialled(gateway.address) as raw:
        for start in range(0, len(conversation), piece):
            await raw.send(conversation[start : start + piece])
        heard = await raw.say()
        assert [frame.kind for frame in heard[:2]] == [Kind.WELCOME, Kind.OK]
        assert bodies(heard) == sent


@pytest.mark.req("MM-15")
async def test_what_follows_a_greeting_in_the_same_write_moves_to_the_worker_with_it(
    gateway: RunningGateway, subject: str
) -> None:
    sent = [b"%06d" % number * 50 for number in range(2000)]
    async with greeted(gateway.address) as listener, dialled(gateway.address) as hasty:
        await listener.say(subscribe(subject))
        await hasty.send(greeting() + b"".join(message(subject, body) for body in sent))
        heard = [await listener.next() for _ in sent]
        assert bodies(heard) == sent


@pytest.mark.req("MM-15")
async def test_what_follows_the_first_greeting_of_a_service_waits_for_its_worker(
    gateway: RunningGateway, subject: str, service: str
) -> None:
    sent = [b"%d" % number for number in range(1000)]
    async with dialled(gateway.address) as raw:
        await raw.send(greeting(service) + subscribe(subject))
        heard = await raw.say(*(message(subject, body) for body in sent))
        assert bodies(heard) == sent


async def test_a_large_frame_in_small_pieces_does_not_delay_others(
    gateway: RunningGateway, subject: str
) -> None:
    large = message(f"{subject}.large", os.urandom(BODY_LIMIT_BYTES))
    async with weft.connect(gateway.address) as client, greeted(gateway.address) as slow:
        hearing = client.subscribe(f"{subject}.>")
        await hearing.ready()
        for start in range(0, len(large), 32 << 10):
            await slow.send(large[start : start + (32 << 10)])
            await client.publish(f"{subject}.small", b"x")
            if start + (32 << 10) < len(large):
                assert (await hearing.next(15)).payload == b"x"
        both = {(await hearing.next(15)).subject for _ in range(2)}
        assert both == {f"{subject}.large", f"{subject}.small"}
