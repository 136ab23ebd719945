import pytest
from tests.broker.talk import ANSWER, House, errors, fields, kinds, message, subscribe

from weft.broker.limits import Limits
from weft.broker.replies import acknowledge, end_slow_reader, end_with, error_frame, refuse, told
from weft.errors import BadFrame, NotKnown, SlowReader, TooMany
from weft.wire.frames import Kind, encode, parse
from weft.wire.message.message import Message


def test_an_error_says_number_name_text_and_kind() -> None:
    peer = House().arrive().peer
    frame = parse(error_frame(peer, b"a", b"b", (Kind.SUBSCRIBE, 3), TooMany("7 are too many")))
    assert (frame.kind, frame.flags, frame.subject, frame.reply) == (Kind.ERROR, 3, b"a", b"b")
    body = Message.from_body(frame.body)
    assert (body.get_int64("number"), body.get_string("name")) == (4005, "TooMany")
    assert (body.get_string("text"), body.get_int64("kind")) == ("7 are too many", Kind.SUBSCRIBE)


def test_a_long_text_is_cut() -> None:
    peer = House().arrive().peer
    frame = parse(error_frame(peer, b"", b"", (0, 0), NotKnown("é" * 1000)))
    assert fields(frame)["text"] == "é" * 256


def test_only_the_flags_answer_and_request_come_back_with_an_error() -> None:
    house = House()
    guest = house.guest()
    at = house.arena.put(encode(Kind.MESSAGE, b"a", b"body", b"b", 0xFF))
    refuse(guest.peer, at, NotKnown("x"))
    house.flush()
    (error,) = guest.heard()
    assert (error.flags, error.subject, error.reply) == (3, b"a", b"b")


def test_every_refusal_is_counted_by_the_name_of_its_error() -> None:
    house = House()
    guest = house.guest()
    guest.say(subscribe(b"_x"), subscribe(b"a..b"), message(b"a..b"))
    assert house.service.refused == {"Reserved": 1, "BadSubject": 2}


def test_an_ok_of_anything_but_a_message_has_no_identity() -> None:
    frame = bytearray(subscribe(b"a", b"g"))
    frame[8:32] = b"\xee" * 24
    (ok,) = House().guest().say(bytes(frame))
    assert ok[-4:] == (0, 0, 0, 0)


@pytest.mark.parametrize("room", [0, 33, 100])
def test_an_answer_that_the_turn_has_no_room_for_is_held_and_comes_in_order(room: int) -> None:
    house = House()
    guest = house.guest(b"", b"a")
    frames = [
        subscribe(b"b", b"group"),
        message(b"a", b"1", flags=ANSWER),
        message(b"a..b", flags=ANSWER),
        message(b"a", b"2", flags=ANSWER),
        encode(Kind.PING),
    ]
    expected = guest.say(*frames)
    house.fill_arena(sum(len(frame) for frame in frames) + room)
    heard = guest.say(*frames)
    assert kinds(heard) == kinds(expected)
    assert [frame[:5] for frame in heard] == [frame[:5] for frame in expected]
    assert [frame.sequence for frame in heard if frame.kind == Kind.OK] == [0, 3, 4]


def test_who_is_over_is_told_the_last_once() -> None:
    house = House()
    guest = house.guest()
    end_with(guest.peer, BadFrame("first"))
    end_with(guest.peer, SlowReader("second"))
    guest.peer.owe(encode(Kind.PING))
    house.flush()
    assert errors(guest.heard()) == ["BadFrame"]
    assert isinstance(guest.peer.error, BadFrame)
    assert house.service.refused == {"BadFrame": 1}


def test_an_end_says_that_no_frame_was_refused() -> None:
    house = House()
    guest = house.guest()
    end_with(guest.peer, BadFrame("size"))
    house.flush()
    (error,) = guest.heard()
    assert (error.flags, error.subject, error.reply, fields(error)["kind"]) == (0, b"", b"", 0)


def test_what_the_gateway_tells_one_peer_has_its_number_and_the_connections() -> None:
    house = House()
    house.guest()
    guest = house.guest()
    frame = parse(told(guest.peer, Kind.GOODBYE, b"s", b"r", Message(reason="why")))
    assert (frame.kind, frame.subject, frame.reply) == (Kind.GOODBYE, b"s", b"r")
    assert (frame.origin, frame.publisher) == (house.service.stamp.origin, 2)
    assert fields(frame) == {"reason": "why"}


def test_names_of_full_length_come_back_whole() -> None:
    house = House()
    guest = house.guest()
    frame = encode(Kind.UNSUBSCRIBE, b"a" * 255, b"", b"b" * 255, ANSWER)
    (error,) = guest.say(frame)
    assert (error.subject, error.reply) == (b"a" * 255, b"b" * 255)
    at = house.arena.put(frame)
    acknowledge(guest.peer, at)
    house.flush()
    (ok,) = guest.heard()
    assert (ok.kind, ok.subject, ok.reply) == (Kind.OK, b"a" * 255, b"b" * 255)


def test_a_reader_that_was_cut_is_told_why_and_counted() -> None:
    house = House(Limits(outbox_bytes=8192))
    slow, sender = house.guest(b"slow", b"a"), house.guest()
    slow.is_reading = False
    sender.say(message(b"a", bytes(9000)))
    assert end_slow_reader(slow.peer)
    slow.take_backlog()
    (error,) = slow.heard()
    assert (error.kind, fields(error)["name"]) == (Kind.ERROR, "SlowReader")
    assert "over the limit of 8192 (outbox_bytes)" in str(fields(error)["text"])
    assert isinstance(slow.peer.error, SlowReader)
    assert (house.service.slow_count, house.service.slow_example) == (1, str(slow.peer.error))
