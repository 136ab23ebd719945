import pytest
from tests.broker.talk import (
    ANSWER,
    NOT_BACK,
    ORIGIN,
    REQUEST,
    House,
    ask,
    bodies,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
    unsubscribe,
)

from weft.broker.limits import Limits
from weft.broker.service import Peer
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.message import Message

ILLEGAL = [b"", b"a..b", b".", b"a.*", b"a.>", b">", b"a/b", b"a\x7f", b"\xff", b"a" * 128]


@pytest.mark.req("HUB-6", "MM-16")
def test_a_message_goes_to_everyone_who_subscribed_and_to_nobody_else() -> None:
    house = House()
    first, second = house.guest(b"", b"a.b"), house.guest(b"", b"a.*")
    other, sender = house.guest(b"", b"b.>"), house.guest()
    assert sender.say(message(b"a.b", b"news")) == []
    assert [bodies(guest.heard()) for guest in (first, second, other)] == [[b"news"], [b"news"], []]


@pytest.mark.req("HUB-6")
def test_a_sender_that_subscribed_hears_itself_unless_it_opts_out() -> None:
    guest = House().guest(b"", b"a")
    assert bodies(guest.say(message(b"a", b"1"))) == [b"1"]
    assert guest.say(message(b"a", b"2", flags=NOT_BACK)) == []
    (ok,) = guest.say(message(b"a", b"3", flags=NOT_BACK | ANSWER))
    assert ok.kind == Kind.OK


def test_opting_out_keeps_a_message_from_nobody_else() -> None:
    house = House()
    sender, other = house.guest(b"", b"a"), house.guest(b"", b"a")
    assert sender.say(message(b"a", b"1", flags=NOT_BACK)) == []
    assert bodies(other.heard()) == [b"1"]


@pytest.mark.req("MM-19")
@pytest.mark.parametrize("body", [b"", b"\xff" * 7, b"\xff\xff\xff\x7f", bytes(60_000)])
def test_a_body_comes_through_untouched_even_if_it_is_no_message(body: bytes) -> None:
    guest = House().guest(b"", b"a")
    (got,) = guest.say(encode(Kind.MESSAGE, b"a", body))
    assert got.body == body


def test_what_is_delivered_is_the_frame_that_came_with_its_identity_filled_in() -> None:
    house = House()
    sender, guest = house.guest(), house.guest(b"", b"a")
    sent = bytearray(message(b"a", b"body", sender.inbox + b"1"))
    sent[8:32] = b"\xee" * 24
    sender.say(bytes(sent))
    (got,) = guest.heard()
    assert got == Frame(
        Kind.MESSAGE,
        Flag.BARE,
        b"a",
        sender.inbox + b"1",
        b"body",
        ORIGIN,
        sender.peer.number,
        1,
        house.service.wall_ns,
    )


def test_sequences_are_dense_whoever_sends_and_whoever_hears() -> None:
    house = House()
    one, other = house.guest(), house.guest()
    for sender in (one, other, one):
        sender.say(message(b"nobody.listens"), message(b"a"), message(b"a"), message(b"b..c"))
    guest = house.guest(b"", b"a")
    one.say(message(b"a"))
    assert [frame.sequence for frame in guest.heard()] == [10]


def test_an_ok_has_the_identity_that_the_message_was_given() -> None:
    house = House()
    sender, guest = house.guest(), house.guest(b"", b"a")
    answers = sender.say(*[message(b"a", b"%d" % n, flags=ANSWER) for n in range(3)])
    assert kinds(answers) == [Kind.OK] * 3
    identities = [frame[-4:] for frame in guest.heard()]
    assert [frame[-4:] for frame in answers] == identities
    assert [frame.sequence for frame in answers] == [1, 2, 3]
    assert {(frame.subject, frame.flags, frame.body) for frame in answers} == {(b"a", ANSWER, b"")}


def test_an_ok_of_a_message_nobody_hears_has_an_identity_too() -> None:
    house = House()
    gone = house.guest()
    gone.say(encode(Kind.GOODBYE))
    guest = house.guest()
    forged = bytearray(message(gone.inbox + b"1", flags=ANSWER))
    forged[8:32] = b"\xee" * 24
    answers = guest.say(message(b"a", flags=ANSWER), bytes(forged))
    assert [frame.sequence for frame in answers] == [1, 2]
    assert {frame.origin for frame in answers} == {ORIGIN}


def test_answers_come_in_the_order_of_what_was_sent() -> None:
    guest = House().guest()
    answers = guest.say(
        message(b"a", flags=ANSWER),
        message(b"a..b", flags=ANSWER),
        message(b"a", flags=ANSWER),
        message(b"_x", flags=ANSWER),
        message(b"a", flags=ANSWER),
    )
    assert [frame.subject for frame in answers] == [b"a", b"a..b", b"a", b"_x", b"a"]
    assert kinds(answers) == [Kind.OK, Kind.ERROR, Kind.OK, Kind.ERROR, Kind.OK]


@pytest.mark.parametrize("subject", ILLEGAL)
def test_a_subject_that_is_not_legal_is_refused_and_the_connection_goes_on(subject: bytes) -> None:
    guest = House().guest(b"", b">")
    (error, ok) = guest.say(message(subject, flags=ANSWER), subscribe(b"a"))
    assert errors([error]) == ["BadSubject"]
    assert (error.subject, error.flags, fields(error)["kind"]) == (subject, ANSWER, Kind.MESSAGE)
    assert ok.kind == Kind.OK


def test_of_a_refused_run_that_wants_no_answer_one_error_is_news_enough() -> None:
    house = House()
    guest = house.guest()
    assert errors(guest.say(*[message(b"a..b")] * 50)) == ["BadSubject"]
    assert errors(guest.say(*[message(b"_x")] * 50)) == ["Reserved"]
    assert errors(guest.say(*[message(b"a", reply=b"b..c")] * 50)) == ["BadSubject"]
    assert house.service.refused == {"BadSubject": 100, "Reserved": 50}


@pytest.mark.parametrize("flags", [ANSWER, REQUEST, ANSWER | REQUEST])
def test_of_a_refused_run_that_wants_answers_every_frame_gets_one(flags: int) -> None:
    guest = House().guest()
    reply = guest.inbox + b"1"
    heard = guest.say(*[message(b"a..b", reply=reply, flags=flags)] * 20)
    assert errors(heard) == ["BadSubject"] * 20
    assert {frame.flags for frame in heard} == {flags}
    assert errors(guest.say(*[message(b"_x", reply=reply, flags=flags)] * 20)) == ["Reserved"] * 20


@pytest.mark.parametrize("flag", [Flag.FROM_GATEWAY, 128])
@pytest.mark.parametrize("others", [0, ANSWER, REQUEST, Flag.BARE, NOT_BACK | Flag.MASKED])
def test_a_flag_that_only_a_gateway_sets_is_refused_wherever_it_leads(
    flag: int, others: int
) -> None:
    house = House()
    hearing, forger = house.guest(b"", b"a"), house.guest()
    for subject in (b"a", hearing.inbox + b"1", b"_WEFT.ask.status", b"_WEFT.event.gap"):
        frame = message(subject, b"forged", forger.inbox + b"1", flag | others)
        assert errors(forger.say(frame, frame))[0] == "UsageError"
    assert hearing.heard() == []
    assert house.service.refused == {"UsageError": 8}


def test_a_failure_is_an_answer_and_nothing_else() -> None:
    house = House()
    hearing, sender = house.guest(b"", b"a"), house.guest()
    assert errors(sender.say(message(b"a", b"x", flags=Flag.FAILED))) == ["UsageError"]
    assert sender.say(message(hearing.inbox + b"1", b"x", flags=Flag.FAILED)) == []
    assert bodies(hearing.heard()) == [b"x"]


def test_what_the_gateway_answers_has_a_flag_that_nothing_else_has() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    body = Message().encode()
    question = encode(Kind.MESSAGE, b"_WEFT.ask.status", body, guest.inbox + b"1", REQUEST)
    (answer,) = guest.say(question)
    assert answer.flags == Flag.FROM_GATEWAY
    (heard,) = guest.say(message(b"a"))
    assert not heard.flags & Flag.FROM_GATEWAY


def test_one_message_of_a_run_may_be_refused_and_its_neighbours_go_out() -> None:
    guest = House().guest(b"", b"a")
    heard = guest.say(
        message(b"a", b"1"),
        message(b"a", b"2", b"_WEFT.x"),
        message(b"a", b"3", b"fine"),
        message(b"a", b"4", b"a..b"),
        message(b"a", b"5"),
    )
    assert bodies(heard) == [b"1", b"3", b"5"]
    assert errors(heard) == ["NotYours"]


@pytest.mark.parametrize(
    "subject", [b"_x", b"_x.y", b"_WEFT.event.connected", b"_WEFT.ask.status", b"_WEFT", b"_INBOX"]
)
def test_a_reserved_subject_is_refused_and_the_sender_is_told(subject: bytes) -> None:
    house = House()
    guest = house.guest(b"", b"_WEFT.>")
    heard = guest.say(message(subject, flags=ANSWER))
    assert kinds(heard) == [Kind.ERROR]
    assert errors(heard) == ["Reserved"]
    assert house.service.deliveries == 0


def test_a_reserved_subject_that_is_not_legal_is_a_bad_subject() -> None:
    assert errors(House().guest().say(message(b"_x..y"), message(b"_WEFT.*"))) == ["BadSubject"] * 2


def test_a_local_subject_is_used_like_any_other() -> None:
    guest = House().guest(b"", b"_LOCAL.>")
    assert bodies(guest.say(message(b"_LOCAL.a", b"1"))) == [b"1"]
    assert errors(guest.say(message(b"_LOCAL..a"), message(b"_LOCAL"))) == [
        "BadSubject",
        "Reserved",
    ]
    assert guest.say(message(b"a", reply=b"_LOCAL.b"), request(guest, b"_LOCAL.c"))[0].body == b"?"


@pytest.mark.parametrize("reply", [b"a..b", b"*", b"\xff", b"_INBOX.x.y.z"])
def test_a_reply_that_the_sender_could_not_use_is_refused(reply: bytes) -> None:
    guest = House().guest(b"", b"a")
    heard = guest.say(message(b"a", reply=reply, flags=ANSWER))
    assert kinds(heard) == [Kind.ERROR]
    assert errors(heard) == ["NotYours" if reply.startswith(b"_") else "BadSubject"]


def test_a_reply_into_the_inbox_of_another_is_refused() -> None:
    house = House()
    owner, other = house.guest(), house.guest(b"", b"a")
    for flags in (ANSWER, REQUEST):
        heard = other.say(message(b"a", reply=owner.inbox + b"1", flags=flags))
        assert errors(heard) == ["NotYours"]
        assert len(heard) == 1


def test_a_reply_may_be_any_subject_or_lie_in_the_own_inbox() -> None:
    guest = House().guest(b"", b"a")
    for reply in (b"b.c", guest.inbox + b"1", b"_LOCAL.x"):
        assert [frame.reply for frame in guest.say(message(b"a", reply=reply))] == [reply]


def test_a_route_follows_what_is_subscribed_and_taken_back_in_between() -> None:
    house = House()
    guest = house.guest()
    heard = guest.say(
        message(b"a", b"1"),
        subscribe(b"a", flags=0),
        message(b"a", b"2"),
        message(b"a", b"3"),
        unsubscribe(b"a", flags=0),
        message(b"a", b"4"),
        subscribe(b">", flags=0),
        message(b"a", b"5"),
    )
    assert bodies(heard) == [b"2", b"3", b"5"]


def test_deliveries_are_counted_one_by_one() -> None:
    house = House()
    for _ in range(2):
        house.guest(b"", b"a")
    member = house.guest()
    member.say(subscribe(b"a", b"g"))
    sender = house.guest(b"", b"a")
    sender.say(*[message(b"a")] * 10)
    assert house.service.deliveries == 40
    sender.say(*[message(b"a", flags=NOT_BACK)] * 10)
    assert house.service.deliveries == 70
    sender.say(*[message(b"a", flags=ANSWER)] * 10)
    assert house.service.deliveries == 110


@pytest.mark.req("HUB-9")
def test_bytes_messages_and_time_are_kept_per_connection_and_subject() -> None:
    house = House()
    one, other = house.guest(b"one"), house.guest(b"other")
    one.say(*[message(b"a", b"x" * 67)] * 3, message(b"b"))
    other.say(message(b"a"))
    house.wait(1)
    one.say(message(b"a", b"x" * 67))
    flows = ask(one, "flows", subject="a", connection=one.peer.number)["flows"]
    (flow,) = flows
    assert (flow["connection"], flow["name"], flow["subject"]) == (one.peer.number, "one", "a")
    assert (flow["messages"], flow["bytes"]) == (4, 400)
    assert flow["last_ns"] - flow["first_ns"] == 1_000_000_000
    assert flow["byte_rate"] > 0
    assert flow["message_rate"] > 0


def metered(peer: Peer) -> dict[bytes, int]:
    assert peer.meter is not None
    return {subject: flow.messages for subject, flow in peer.meter.flows().items()}


def test_all_replies_are_one_flow_and_so_is_the_system() -> None:
    house = House()
    guest = house.guest()
    guest.say(*[message(guest.inbox + b"%d" % number) for number in range(5)], message(b"_x"))
    assert metered(guest.peer) == {b"_INBOX": 5, b"_WEFT": 1}


def test_a_message_to_a_subject_that_is_not_legal_is_not_metered() -> None:
    house = House()
    guest = house.guest()
    guest.say(message(b"a..b"))
    assert guest.peer.meter is None
    assert (house.service.total.messages, house.service.flow_count) == (0, 0)


def test_flows_are_bounded_per_connection_and_what_is_over_is_counted_together() -> None:
    house = House(Limits(flows_per_connection=4))
    guest = house.guest()
    for number in range(20):
        house.wait(1)
        guest.say(message(b"a.%d" % number))
    assert guest.peer.meter is not None
    assert len(guest.peer.meter) == house.service.flow_count <= 4
    assert guest.peer.meter.total().messages == 20


def test_flows_are_bounded_in_the_whole_service() -> None:
    house = House(Limits(flows=3))
    one, other = house.guest(), house.guest()
    one.say(message(b"a"), message(b"b"))
    other.say(message(b"a"), message(b"b"), message(b"c"), message(b"c"), message(b"a"))
    assert house.service.flow_count == 3
    assert metered(other.peer) == {b"a": 2}
    assert other.peer.meter is not None
    assert other.peer.meter.others.messages == 3
    assert other.peer.meter.total().messages == 5


def test_everything_published_is_counted_for_the_service() -> None:
    house = House()
    frames = [message(b"a", b"%d" % number) for number in range(5)]
    house.guest().say(*frames)
    assert house.service.total.messages == 5
    assert house.service.total.bytes == sum(len(frame) for frame in frames)


def test_publishers_are_told_apart_when_they_take_turns() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    one, other = house.guest(), house.guest()
    for sender in (one, other, one):
        sender.send(message(b"a"))
    house.flush()
    numbers = [one.peer.number, other.peer.number, one.peer.number]
    assert [frame.publisher for frame in guest.heard()] == numbers


def test_an_answer_of_the_gateway_does_not_change_who_publishes() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    question = message(b"_WEFT.ask.status", b"", guest.inbox + b"1", REQUEST | ANSWER)
    heard = guest.say(message(b"a"), question, question, message(b"a"))
    number = guest.peer.number
    assert [frame.publisher for frame in heard] == [number, 0, number, 0, number, number]
    assert [frame.sequence for frame in heard] == [1, 3, 2, 5, 4, 6]
