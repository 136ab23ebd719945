from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.talk import (
    ANSWER,
    NOT_BACK,
    Guest,
    House,
    ask,
    bodies,
    connect,
    errors,
    kinds,
    message,
    request,
    subscribe,
    unsubscribe,
)

from weft.broker.disconnect import leave
from weft.broker.ingest import READ_BYTES, UNFINISHED_BYTES, drop_large, feed, took_large
from weft.broker.limits import Limits
from weft.wire.frames import BODY_LIMIT_BYTES, Frame, Kind, encode

LARGE = encode(Kind.MESSAGE, b"a", bytes(range(256)) * 1000)


def test_a_frame_in_any_two_parts_is_one_frame() -> None:
    guest = House().guest(b"", b"a")
    frame = message(b"a", b"body")
    for cut in range(1, len(frame)):
        assert guest.say(frame[:cut]) == []
        assert bodies(guest.say(frame[cut:])) == [b"body"]
        assert (guest.peer.rest, guest.peer.rest_ns) == (b"", 0)


def test_the_beginning_of_a_frame_stays_with_its_peer() -> None:
    house = House()
    one, other = house.guest(b"", b"a"), house.guest(b"", b"b")
    one.send(message(b"a", b"1")[:10])
    other.send(message(b"b", b"2")[:36])
    one.send(message(b"a", b"1")[10:])
    other.send(message(b"b", b"2")[36:])
    house.flush()
    assert (bodies(one.heard()), bodies(other.heard())) == ([b"1"], [b"2"])


@pytest.mark.parametrize("step", [1000, 4096, READ_BYTES - 1, READ_BYTES])
def test_a_frame_larger_than_a_read_is_collected_in_pieces(step: int) -> None:
    house = House()
    guest = house.guest(b"", b"a", b"b")
    stream = message(b"b", b"before") + LARGE + message(b"b", b"after")
    heard: list[Frame] = []
    for at in range(0, len(stream), step):
        heard += guest.say(stream[at : at + step])
    assert [frame.body[:6] for frame in heard] == [b"before", bytes(range(6)), b"after"]
    assert heard[1].body == bytes(range(256)) * 1000
    assert house.service.unfinished_bytes == 0
    assert (guest.peer.large_size, len(guest.peer.large), guest.peer.rest_ns) == (0, 0, 0)


def test_the_largest_frame_of_all_comes_through() -> None:
    guest = House().guest(b"", b"a")
    body = bytes(BODY_LIMIT_BYTES)
    (got,) = guest.say(encode(Kind.MESSAGE, b"a", body, b"r." + b"r" * 100))
    assert got.body == body


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("sent", [4, 32, 1000, 100_000, 500_000])
def test_memory_for_a_large_frame_is_in_proportion_to_what_came_of_it(sent: int) -> None:
    house = House()
    guest = house.guest()
    frame = encode(Kind.MESSAGE, b"a", bytes(BODY_LIMIT_BYTES))
    for at in range(0, sent, READ_BYTES):
        guest.say(frame[at : min(sent, at + READ_BYTES)])
    assert guest.peer.large_fill == sent
    assert len(guest.peer.large) <= 2 * sent + 4096
    assert house.service.unfinished_bytes == len(guest.peer.large)


def test_what_all_have_sent_of_large_frames_is_bounded() -> None:
    house = House()
    one, other = house.guest(), house.guest()
    one.say(LARGE[:READ_BYTES])
    # As if many others had sent as much as they may.
    others = UNFINISHED_BYTES - house.service.unfinished_bytes - READ_BYTES
    house.service.unfinished_bytes += others
    other.say(LARGE[:1000])
    assert not other.peer.is_over
    assert errors(one.say(LARGE[READ_BYTES:])) == ["Overloaded"]
    assert one.peer.is_over
    assert errors(other.say(LARGE[1000:READ_BYTES])) == []
    assert house.service.unfinished_bytes == others + len(other.peer.large)
    house.service.unfinished_bytes = UNFINISHED_BYTES
    newcomer = house.guest()
    assert errors(newcomer.say(LARGE[:4])) == ["Overloaded"]
    assert (newcomer.peer.large_size, house.service.unfinished_bytes) == (0, UNFINISHED_BYTES)


def test_one_who_announces_much_and_sends_nothing_takes_no_room_from_others() -> None:
    house = House()
    guests = [house.guest() for _ in range(200)]
    for guest in guests:
        guest.say(LARGE[:4])
    assert house.service.unfinished_bytes <= 200 * 4096


@pytest.mark.parametrize("count", [-1, 1 << 20])
def test_no_more_can_have_been_read_than_there_was_room_for(count: int) -> None:
    guest = House().guest()
    guest.send(LARGE[:1000])
    with pytest.raises(ValueError, match="do not fit the buffer of a large frame"):
        took_large(guest.peer, count)


def test_forgetting_a_large_frame_that_is_not_there_does_nothing() -> None:
    house = House()
    drop_large(house.guest().peer)
    assert house.service.unfinished_bytes == 0


@pytest.mark.parametrize(("at", "end"), [(-1, 10), (5, 4), (0, 11), (0, 1 << 40), (11, 11)])
def test_bytes_that_are_not_of_this_turn_are_not_fed(at: int, end: int) -> None:
    house = House()
    guest = house.guest()
    house.arena.put(bytes(10))
    with pytest.raises(ValueError, match="are not among the 10 of this turn"):
        feed(guest.peer, at, end)


@pytest.mark.req("MM-10")
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\0\0\0\0", "BadFrame"),
        (b"\3\0\0\0", "BadFrame"),
        (b"\x1f\0\0\0", "BadFrame"),
        (b"\xff\xff\xff\xff", "FrameTooBig"),
        ((BODY_LIMIT_BYTES + 543).to_bytes(4, "little"), "FrameTooBig"),
        (b"\x20\0\0\0\5\0\1\0" + bytes(24), "BadFrame"),
        (b"\x21\0\0\0\5\0\1\1" + bytes(25), "BadFrame"),
        (encode(Kind.MESSAGE, b"a", bytes(1001)), "FrameTooBig"),
    ],
)
def test_a_broken_stream_ends_its_connection_and_no_other(data: bytes, error: str) -> None:
    house = House(Limits(body_bytes=1000) if len(data) > 1000 else None)
    guest, other = house.guest(b"", b"a"), house.guest(b"", b"a")
    heard = guest.say(message(b"a", b"whole"), data, message(b"a", b"never"))
    assert bodies(heard) == [b"whole"]
    assert errors(heard) == [error]
    assert guest.peer.is_over
    assert guest.peer.rest == b""
    assert bodies(other.say(message(b"a", b"goes on"))) == [b"whole", b"goes on"]
    assert house.service.unfinished_bytes == 0


def test_what_comes_after_the_end_is_ignored() -> None:
    house = House()
    guest = house.guest()
    guest.say(b"\0\0\0\0")
    assert guest.say(encode(Kind.PING)) == []
    at = house.arena.put(encode(Kind.PING))
    feed(guest.peer, at, house.arena.fill)
    house.flush()
    assert guest.heard() == []


def test_when_an_unfinished_frame_began_is_remembered() -> None:
    house = House()
    guest = house.guest()
    began = house.service.now_ns
    guest.say(message(b"a")[:5])
    house.wait(3)
    guest.say(message(b"a")[5:7])
    assert guest.peer.rest_ns == began
    house.wait(3)
    guest.say(message(b"a")[7:] + message(b"b")[:2])
    assert guest.peer.rest_ns == house.service.now_ns
    guest.say(message(b"b")[2:])
    assert guest.peer.rest_ns == 0
    assert guest.peer.heard_ns == house.service.now_ns


def talk(guest: Guest) -> list[bytes]:
    """A conversation that leads everywhere, from a first frame on."""
    inbox = guest.inbox
    return [
        connect(name=b"me.1", address="x"),
        subscribe(b"a.*", policy="latest"),
        subscribe(b"a.>", b"g", flags=0, patterns=["b", "c.*"]),
        *[message(b"a.b", b"%d" % number) for number in range(3)],
        message(b"a.b", bytes(5000), flags=NOT_BACK),
        message(b"a.b", bytes(70_000), flags=ANSWER),
        message(b"_x.y", flags=ANSWER),
        message(b"a..b"),
        message(b"a..b"),
        request(guest, b"b", b"1"),
        message(inbox + b"1", b"answer"),
        request(guest, b"nobody", b"2", ANSWER),
        encode(Kind.PING, body=b"echo"),
        message(b"_WEFT.ask.subscriptions", b"", inbox + b"3", 2),
        unsubscribe(b"a.*"),
        subscribe(b"_INBOX.>"),
        message(b"b", reply=b"_INBOX.q"),
        encode(Kind.PONG),
    ]


def outcome(parts: list[bytes]) -> tuple[list[Frame], dict[str, int], int, int]:
    house = House()
    guest = house.arrive()
    heard: list[Frame] = []
    for part in parts:
        heard += guest.say(part)
    service = house.service
    assert ask(house.guest(), "status")["connections"] == 2
    return heard, service.refused, service.total.messages, service.deliveries


ENDS = [b"", message(b"a.b")[:20], encode(Kind.GOODBYE), b"\0\0\0\0", encode(Kind.OK), connect()]


@pytest.mark.req("MM-8")
@given(st.data())
def test_any_split_of_a_conversation_gives_the_same_result(data: st.DataObject) -> None:
    frames = talk(House().arrive())
    order = data.draw(st.lists(st.sampled_from(frames[1:]), max_size=12))
    stream = b"".join([frames[0], *order, data.draw(st.sampled_from(ENDS))])
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    edges = [0, *sorted(cuts), len(stream)]
    parts = [stream[a:b] for a, b in pairwise(edges)]
    whole, split = outcome([stream]), outcome(parts)
    # One error tells of a whole run that did not ask, and where a run ends depends on the reads.
    assert asked_for(split[0]) == asked_for(whole[0])
    assert split[1:] == whole[1:]


def asked_for(frames: list[Frame]) -> list[Frame]:
    """All but the news of frames that did not ask."""
    return [
        frame for frame in frames if frame.kind != Kind.ERROR or frame.flags or not frame.subject
    ]


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_end_a_connection_or_wait_for_more(junk: bytes, step: int) -> None:
    house = House()
    guest, other = house.guest(), house.guest(b"", b"a")
    for at in range(0, len(junk), step):
        guest.say(junk[at : at + step])
    assert guest.peer.is_over or len(guest.peer.rest) + guest.peer.large_fill <= len(junk)
    assert bodies(other.say(message(b"a", b"still here"))) == [b"still here"]
    leave(guest.peer)
    assert house.service.unfinished_bytes == 0


def test_the_whole_conversation_leads_everywhere() -> None:
    guest = House().arrive()
    heard = guest.say(*talk(guest))
    assert set(kinds(heard)) == {Kind.WELCOME, Kind.OK, Kind.MESSAGE, Kind.ERROR, Kind.PONG}
    assert errors(heard) == ["Reserved", "BadSubject", "NotKnown", "NotYours", "NotYours"]
