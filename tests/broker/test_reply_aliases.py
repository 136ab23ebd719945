"""Masked reply subjects: what responders see, where answers go, and when a stand-in ends."""

import pytest
from tests.broker.locksmith import enter, locked, record
from tests.broker.talk import (
    ANSWER,
    NOT_BACK,
    ORIGIN,
    REQUEST,
    Guest,
    House,
    NotedDoor,
    bodies,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
)

from weft.broker.auth.keys import Keyring
from weft.broker.disconnect import leave
from weft.broker.journal.batcher import Journal, JournalBatch
from weft.broker.limits import Limits
from weft.broker.reply_aliases import begin_mask, end_mask
from weft.broker.service import INBOX_BYTES, NO_MASKS, Service
from weft.broker.sweep import sweep
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.message import Message
from weft.wire.subjects import is_subject

MASKED = Flag.MASKED


def ask_masked(asker: Guest, server: Guest, subject: bytes = b"a", name: bytes = b"1") -> Frame:
    """Make a masked request; what its responder got."""
    assert asker.say(request(asker, subject, name, MASKED)) == []
    (asked,) = server.heard()
    return asked


def mask(sender: Guest, reader: Guest, reply: bytes, flags: int = 0) -> Frame:
    """Publish a masked message to `a`; what one of its readers got."""
    assert sender.say(message(b"a", b"?", reply, flags | MASKED)) == []
    (got,) = reader.heard()
    return got


def make_masks(house: House) -> tuple[Guest, Guest]:
    """One who asks, and one who serves `a`."""
    return house.guest(b"me.1"), house.guest(b"me.2", b"a")


@pytest.mark.req("HUB-7")
def test_a_responder_sees_a_stand_in_and_the_asker_the_reply_that_it_named() -> None:
    house = House()
    asker, server = make_masks(house)
    asked = ask_masked(asker, server)
    assert (asked.subject, asked.body, asked.flags) == (b"a", b"?", REQUEST | Flag.BARE)
    assert asker.inbox not in asked.reply
    assert asked.reply.startswith(b"_INBOX.%08x." % ORIGIN)
    assert (len(asked.reply), is_subject(asked.reply)) == (INBOX_BYTES + 2, True)
    assert server.say(message(asked.reply, b"42")) == []
    (answer,) = asker.heard()
    assert (answer.kind, answer.subject, answer.body) == (Kind.MESSAGE, asker.inbox + b"1", b"42")
    assert (answer.reply, answer.flags) == (b"", Flag.BARE)
    assert answer.publisher == server.peer.number


def test_a_masked_message_does_not_say_who_sent_it() -> None:
    house = House()
    asker, server = make_masks(house)
    assert ask_masked(asker, server).publisher == 0
    assert mask(asker, server, asker.inbox + b"2").publisher == 0
    # What it says without a mask is its own again, even in the same turn.
    asker.say(message(b"a", reply=asker.inbox + b"3", flags=MASKED), message(b"a"))
    assert [frame.publisher for frame in server.heard()] == [0, asker.peer.number]


def test_masked_and_other_messages_share_one_dense_sequence() -> None:
    house = House()
    asker, server = make_masks(house)
    reply = asker.inbox + b"1"
    asker.say(message(b"a"), message(b"a", reply=reply, flags=MASKED), message(b"a"))
    got = server.heard()
    assert [frame.sequence for frame in got] == [1, 2, 3]
    own = server.say(message(got[1].reply), message(b"a"))
    assert [frame.sequence for frame in asker.heard() + own] == [4, 5]


def test_an_ok_names_the_reply_as_its_sender_knows_it_and_the_identity_of_the_message() -> None:
    house = House()
    asker, server = make_masks(house)
    reply = asker.inbox + b"1"
    (ok,) = asker.say(message(b"a", reply=reply, flags=MASKED | ANSWER))
    (got,) = server.heard()
    assert (ok.kind, ok.subject, ok.reply, ok.flags) == (Kind.OK, b"a", reply, ANSWER)
    assert ok[5:] == got[5:] == (ORIGIN, 0, 1, house.service.wall_ns)
    (ok,) = server.say(message(got.reply, flags=ANSWER))
    (answer,) = asker.heard()
    assert (ok.kind, ok.subject, ok[5:]) == (Kind.OK, got.reply, answer[5:])


def test_no_two_stand_ins_are_alike_and_none_is_like_that_of_another_secret() -> None:
    made = set()
    for secret in (b"one", b"two"):
        peer = Service("s", "g", 1, Limits(), secret).join(1, NotedDoor())
        made |= {begin_mask(peer, peer.inbox + b"1") for _ in range(100)}
    assert len(made) == 200
    again = Service("s", "g", 1, Limits(), b"two").join(1, NotedDoor())
    assert begin_mask(again, again.inbox + b"1") in made


def test_a_body_of_any_size_is_kept_whole_both_ways() -> None:
    house = House()
    asker, server = make_masks(house)
    large = bytes(range(256)) * 4000
    for number, body in enumerate((b"", b"x", large)):
        asker.say(message(b"a", body, asker.inbox + b"%d" % number, REQUEST | MASKED))
        (asked,) = server.heard()
        assert asked.body == body
        server.say(message(asked.reply, body))
        assert bodies(asker.heard()) == [body]


def test_a_request_is_answered_once_and_then_its_stand_in_is_over() -> None:
    house = House()
    asker, server = make_masks(house)
    asked = ask_masked(asker, server)
    assert list(house.service.masks) == list(asker.peer.masks) == [asked.reply]
    assert kinds(server.say(message(asked.reply, b"1", flags=ANSWER))) == [Kind.OK]
    assert (house.service.masks, asker.peer.masks, asker.peer.asking) == ({}, {}, {})
    # As with an owner that is gone: whoever asked does not wait any more.
    assert kinds(server.say(message(asked.reply, b"2", flags=ANSWER))) == [Kind.OK]
    reply = server.inbox + b"1"
    assert errors(server.say(message(asked.reply, b"3", reply, REQUEST))) == ["NotKnown"]
    assert bodies(asker.heard()) == [b"1"]
    assert server.peer.outbox.busy == 0


def test_only_whoever_was_given_a_masked_request_can_answer_it() -> None:
    house = House()
    asker, server = make_masks(house)
    thief = house.guest()
    asked = ask_masked(asker, server)
    (error,) = thief.say(message(asked.reply, b"forged"))
    assert errors([error]) == ["NotYours"]
    assert error.subject == asked.reply
    assert errors(thief.say(message(asker.inbox + b"1", b"forged"))) == ["NotYours"]
    assert asker.heard() == []
    server.say(message(asked.reply, b"true"))
    assert bodies(asker.heard()) == [b"true"]


def test_a_stand_in_gives_no_way_around_a_request_that_waits_under_the_same_reply() -> None:
    house = House()
    asker, server = make_masks(house)
    listener = house.guest(b"", b"b")
    reply = asker.inbox + b"1"
    asker.say(message(b"b", reply=reply, flags=MASKED))
    (heard,) = listener.heard()
    ask_masked(asker, server)
    assert errors(listener.say(message(heard.reply, b"forged"))) == ["NotYours"]


def test_any_number_may_answer_a_masked_message_while_it_lives() -> None:
    house = House()
    asker, first = make_masks(house)
    second = house.guest(b"", b"a")
    got = mask(asker, first, asker.inbox + b"1")
    assert second.heard() == [got]
    first.say(message(got.reply, b"1"), message(got.reply, b"2"))
    second.say(message(got.reply, b"3"))
    answers = asker.heard()
    assert bodies(answers) == [b"1", b"2", b"3"]
    assert {answer.subject for answer in answers} == {asker.inbox + b"1"}


def test_answers_to_a_masked_message_are_dropped_and_cut_nobody() -> None:
    house = House(Limits(outbox_bytes=65_536))
    asker, server = make_masks(house)
    got = mask(asker, server, asker.inbox + b"1")
    asker.is_reading = False
    server.send(message(got.reply, bytes(20_000)) * 10)
    house.flush()
    assert not asker.peer.outbox.is_cut


@pytest.mark.req("HUB-7")
def test_an_answer_goes_to_whoever_subscribes_the_masked_reply() -> None:
    house = House()
    asker, server = make_masks(house)
    listener = house.guest(b"", b"answers.*")
    got = mask(asker, server, b"answers.1")
    server.say(message(got.reply, b"42"))
    (answer,) = listener.heard()
    assert (answer.subject, answer.body) == (b"answers.1", b"42")
    assert answer.publisher == server.peer.number
    assert asker.heard() == []


def test_an_answer_to_a_subject_goes_to_one_of_a_group_and_not_back_if_so_asked() -> None:
    house = House()
    asker, server = make_masks(house)
    members = [house.guest(), house.guest()]
    for member in members:
        member.say(subscribe(b"b", b"g"))
    server.say(subscribe(b"b"))
    got = mask(asker, server, b"b")
    deliveries = house.service.deliveries
    heard = server.say(message(got.reply, b"1", flags=NOT_BACK), message(got.reply, b"2"))
    assert bodies(heard) == [b"2"]
    assert [len(bodies(member.heard())) for member in members] == [1, 1]
    assert house.service.deliveries == deliveries + 3


def test_the_answer_of_an_answer_may_be_masked_too() -> None:
    house = House()
    asker, server = make_masks(house)
    asked = ask_masked(asker, server)
    server.say(message(asked.reply, b"and you?", server.inbox + b"1", MASKED))
    (answer,) = asker.heard()
    assert (answer.subject, answer.publisher) == (asker.inbox + b"1", 0)
    assert server.inbox not in answer.reply
    asker.say(message(answer.reply, b"fine", asker.inbox + b"2"))
    (last,) = server.heard()
    assert (last.subject, last.body) == (server.inbox + b"1", b"fine")
    # A reply that is not masked stays as it is.
    assert last.reply == asker.inbox + b"2"


def test_whoever_masked_a_reply_can_be_asked_through_the_stand_in() -> None:
    house = House()
    asker, server = make_masks(house)
    got = mask(asker, server, asker.inbox + b"1")
    assert server.say(message(got.reply, b"?", server.inbox + b"1", REQUEST | MASKED)) == []
    (asked,) = asker.heard()
    assert (asked.subject, asked.flags & REQUEST) == (asker.inbox + b"1", REQUEST)
    asker.say(message(asked.reply, b"!"))
    (answer,) = server.heard()
    assert (answer.subject, answer.body) == (server.inbox + b"1", b"!")


def test_what_stands_in_for_a_subject_takes_no_request() -> None:
    house = House()
    asker, server = make_masks(house)
    listener = house.guest(b"", b"b")
    got = mask(asker, server, b"b")
    heard = server.say(message(got.reply, b"?", server.inbox + b"1", REQUEST))
    assert errors(heard) == ["UsageError"]
    assert listener.heard() == []


def test_nobody_can_subscribe_to_a_stand_in_or_have_answers_sent_to_it() -> None:
    house = House()
    asker, server = make_masks(house)
    got = mask(asker, server, asker.inbox + b"1")
    for who in (asker, server):
        assert errors(who.say(subscribe(got.reply))) == ["NotYours"]
        for flags in (0, MASKED, MASKED | REQUEST):
            assert errors(who.say(message(b"a", reply=got.reply, flags=flags))) == ["NotYours"]
    assert list(house.service.masks) == [got.reply]


def test_what_only_resembles_a_stand_in_leads_nowhere() -> None:
    house = House()
    asker, server = make_masks(house)
    got = mask(asker, server, asker.inbox + b"1")
    for subject in (got.reply[:-1] + b"s", got.reply + b".r", got.reply[:-3] + b"0.r"):
        assert kinds(server.say(message(subject, flags=ANSWER))) == [Kind.OK]
    assert asker.heard() == []


def test_errors_of_a_masked_request_carry_the_reply_as_the_asker_knows_it() -> None:
    house = House(Limits(outbox_bytes=65_536))
    asker, server = make_masks(house)
    reply = asker.inbox + b"1"
    (unknown,) = asker.say(request(asker, b"b", flags=MASKED))
    server.is_reading = False
    big = [message(b"a", bytes(40_000), asker.inbox + b"x%d" % n, REQUEST | MASKED) for n in (1, 2)]
    asker.say(big[0])
    (full,) = asker.say(big[1])
    server.is_reading = True
    server.take_backlog()
    asker.say(request(asker, b"a", flags=MASKED))
    asker.heard()
    leave(server.peer)
    house.flush()
    gone = asker.heard()
    assert errors([unknown, full, *gone]) == [
        "NotKnown",
        "Overloaded",
        "ResponderGone",
        "ResponderGone",
    ]
    assert [each.reply[-2:] for each in (unknown, full)] == [b".1", b"x2"]
    assert {each.reply for each in gone} == {asker.inbox + b"x1", reply}
    assert (house.service.masks, asker.peer.masks) == ({}, {})


def test_a_refused_message_leaves_no_stand_in() -> None:
    house = House()
    asker, server = make_masks(house)
    reply = asker.inbox + b"1"
    for subject, flags in ((b"b", REQUEST), (b"_WEFT.event.x", 0), (b"_WEFT.ask.no", REQUEST)):
        (error,) = asker.say(message(subject, b"", reply, flags | MASKED))
        assert (error.kind, error.reply) == (Kind.ERROR, reply)
    twice = request(asker, b"a", flags=MASKED)
    (error,) = asker.say(twice, twice)
    assert errors([error]) == ["UsageError"]
    (asked,) = server.heard()
    assert list(house.service.masks) == [asked.reply]


def test_what_the_gateway_answers_itself_needs_no_stand_in() -> None:
    house = House()
    asker = house.guest()
    body = Message().encode()
    subject, reply = b"_WEFT.ask.status", asker.inbox + b"1"
    (answer,) = asker.say(encode(Kind.MESSAGE, subject, body, reply, REQUEST | MASKED))
    assert (answer.subject, fields(answer)["connections"]) == (reply, 1)
    assert asker.peer.masks is NO_MASKS


def test_without_a_reply_there_is_nothing_to_mask() -> None:
    house = House()
    asker, server = make_masks(house)
    asker.say(message(b"a", flags=MASKED), message(b"a", flags=MASKED | ANSWER))
    assert [(got.reply, got.publisher) for got in server.heard()] == [(b"", 1), (b"", 1)]
    assert asker.peer.masks is NO_MASKS


def test_stand_ins_are_bounded_and_more_are_refused() -> None:
    house = House(Limits(requests=2))
    asker, server = make_masks(house)
    replies = [asker.inbox + b"%d" % number for number in range(3)]
    (error,) = asker.say(*[message(b"a", reply=reply, flags=MASKED) for reply in replies])
    assert (errors([error]), error.reply) == (["TooMany"], replies[2])
    assert len(server.heard()) == 2
    assert house.service.refused == {"TooMany": 1}
    end_mask(asker.peer, next(iter(asker.peer.masks)))
    assert asker.say(message(b"a", reply=replies[2], flags=MASKED)) == []


def test_a_stand_in_expires() -> None:
    house = House(Limits(request_s=10, ping_s=1000))
    asker, server = make_masks(house)
    old = mask(asker, server, asker.inbox + b"1")
    ask_masked(asker, server, name=b"2")
    house.wait(6)
    young = mask(asker, server, asker.inbox + b"3")
    house.wait(5)
    sweep(house.service)
    assert list(house.service.masks) == list(asker.peer.masks) == [young.reply]
    assert asker.peer.asking == {}
    server.say(message(old.reply, b"late"), message(young.reply, b"in time"))
    assert bodies(asker.heard()) == [b"in time"]
    house.wait(6)
    sweep(house.service)
    assert house.service.masks == {}


def test_a_stand_in_ends_with_its_owner() -> None:
    house = House()
    asker, server = make_masks(house)
    listener = house.guest(b"", b"b")
    stand_ins = [mask(asker, server, reply).reply for reply in (asker.inbox + b"1", b"b")]
    ask_masked(asker, server, name=b"2")
    leave(asker.peer)
    house.flush()
    assert (house.service.masks, asker.peer.masks) == ({}, NO_MASKS)
    heard = server.say(*[message(stand_in, flags=ANSWER) for stand_in in stand_ins])
    assert kinds(heard) == [Kind.OK, Kind.OK]
    assert (listener.heard(), NO_MASKS) == ([], {})


def test_without_room_for_a_copy_a_masked_message_is_refused_and_may_be_sent_again() -> None:
    house = House()
    asker, server = make_masks(house)
    frame = request(asker, b"a", flags=MASKED)
    house.fill_arena(len(frame) + 20)
    (error,) = asker.say(frame)
    assert (errors([error]), error.reply) == (["Overloaded"], asker.inbox + b"1")
    assert (house.service.masks, asker.peer.asking) == ({}, {})
    asked = ask_masked(asker, server)
    answer = message(asked.reply, b"42")
    house.fill_arena(len(answer) + 20)
    assert errors(server.say(answer)) == ["Overloaded"]
    server.say(answer)
    assert bodies(asker.heard()) == [b"42"]
    listener = house.guest(b"", b"b")
    answer = message(mask(asker, server, b"b").reply, b"43")
    house.fill_arena(len(answer) + 20)
    assert errors(server.say(answer)) == ["Overloaded"]
    server.say(answer)
    assert bodies(listener.heard()) == [b"43"]


def test_what_is_kept_of_a_masked_message_does_not_say_who_sent_it() -> None:
    house = House()
    batches: list[JournalBatch] = []
    house.service.router.journal = Journal([b">"], 0, house.arena, batches.append)
    asker, server = make_masks(house)
    reply = asker.inbox + b"1"
    assert asker.say(message(b"a", b"?", reply, MASKED | ANSWER)) == []
    (got,) = server.heard()
    kept = bytes(batches[0].data[: batches[0].size])
    assert got.reply in kept
    assert asker.inbox not in kept
    house.service.router.journal.safe_until(1)
    house.flush()
    (ok,) = asker.heard()
    assert (ok.kind, ok.reply, ok.sequence) == (Kind.OK, reply, got.sequence)


def test_an_answer_is_kept_under_the_masked_reply() -> None:
    house = House()
    batches: list[JournalBatch] = []
    house.service.router.journal = Journal([b"answers.>"], 0, house.arena, batches.append)
    asker, server = make_masks(house)
    got = mask(asker, server, b"answers.1")
    server.say(message(got.reply, b"42"))
    kept = bytes(batches[0].data[: batches[0].size])
    assert kept.endswith(b"answers.142")


def test_a_reply_is_masked_only_where_its_sender_could_publish() -> None:
    house = locked(
        record("sender", publish=["a", "b"]),
        record("reader", publish=[], subscribe=["a", "b"]),
    )
    sender, reader = enter(house, "sender"), enter(house, "reader")
    reader.say(subscribe(b"a"), subscribe(b"b"))
    assert errors(sender.say(message(b"a", reply=b"c", flags=MASKED))) == ["NotAllowed"]
    assert reader.heard() == []
    got = mask(sender, reader, b"b")
    # The one who had it masked lends its right to publish there, as long as it has it.
    assert bodies(reader.say(message(got.reply, b"1"))) == [b"1"]
    house.service.set_keys(
        Keyring([record("sender", publish=["a"]), record("reader", subscribe=["a", "b"])])
    )
    house.flush()
    assert kinds(reader.say(message(got.reply, b"2", flags=ANSWER))) == [Kind.OK]


def test_masks_of_all_connections_together_are_bounded() -> None:
    house = House(Limits(requests_total=2))
    first, second = house.guest(), house.guest()
    for guest in (first, second):
        assert guest.say(message(b"a", b"?", guest.inbox + b"1", MASKED)) == []
    (error,) = first.say(message(b"a", b"?", first.inbox + b"2", MASKED))
    assert fields(error)["text"] == (
        "2 reply subjects of this service are masked, which is the limit: see limits.requests_total"
    )
    leave(second.peer)
    assert first.say(message(b"a", b"?", first.inbox + b"2", MASKED)) == []


def test_one_key_has_its_share_of_masks_however_many_connections_it_has() -> None:
    house = locked(record("greedy"), record("other"))
    house.service.set_limits(Limits(requests_total=4, share=0.5, request_s=1.0))
    greedy = [enter(house, "greedy") for _ in range(2)]
    for guest in greedy:
        assert guest.say(message(b"a", b"?", guest.inbox + b"1", MASKED)) == []
    (error,) = greedy[0].say(message(b"a", b"?", greedy[0].inbox + b"2", MASKED))
    assert fields(error)["text"] == (
        "2 reply subjects of all connections with this key are masked, which is its share: see"
        " limits.share"
    )
    other = enter(house, "other")
    assert other.say(message(b"a", b"?", other.inbox + b"1", MASKED)) == []
    leave(greedy[1].peer)
    assert greedy[0].say(message(b"a", b"?", greedy[0].inbox + b"2", MASKED)) == []
    house.wait(1.1)
    sweep(house.service)
    assert [holder.masks for holder in house.service.holders.values()] == [0, 0]
    assert house.service.masks == {}


def test_to_end_a_mask_twice_changes_nothing() -> None:
    house = locked(record("one"))
    guest = enter(house, "one")
    stand_in = begin_mask(guest.peer, b"a")
    for _ in range(2):
        end_mask(guest.peer, stand_in)
        assert (guest.peer.masks, house.service.masks) == ({}, {})
        assert [holder.masks for holder in house.service.holders.values()] == [0]
