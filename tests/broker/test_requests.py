import pytest
from tests.broker.locksmith import enter, locked, record
from tests.broker.talk import (
    ANSWER,
    NOT_BACK,
    REQUEST,
    Guest,
    House,
    bodies,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
    unsubscribe,
)

from weft.broker.disconnect import leave
from weft.broker.limits import Limits
from weft.broker.replies import error_frame
from weft.broker.requests import is_own_inbox, pass_refusal, refuse_request
from weft.broker.sweep import sweep
from weft.errors import NotKnown, ResponderGone
from weft.wire.frames import Flag, Kind, encode


def serving(house: House, count: int, group: bytes = b"", pattern: bytes = b"a") -> list[Guest]:
    """Guests that serve a subject."""
    guests = [house.guest() for _ in range(count)]
    for guest in guests:
        guest.say(subscribe(pattern, group))
    return guests


def asked(guests: list[Guest]) -> list[int]:
    """How many requests each got since it was last asked."""
    return [len(bodies(guest.heard())) for guest in guests]


@pytest.mark.req("HUB-18")
def test_a_request_reaches_whoever_serves_it_and_the_answer_comes_back() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    assert asker.say(request(asker, b"a")) == []
    (got,) = server.heard()
    assert (got.subject, got.reply, got.body) == (b"a", asker.inbox + b"1", b"?")
    assert server.say(message(got.reply, b"42")) == []
    (answer,) = asker.heard()
    assert (answer.kind, answer.subject, answer.body) == (Kind.MESSAGE, asker.inbox + b"1", b"42")
    assert answer.publisher == server.peer.number


@pytest.mark.req("HUB-17")
def test_a_request_that_nobody_serves_is_not_known_at_once() -> None:
    asker = House().guest()
    (error,) = asker.say(request(asker, b"a"))
    assert errors([error]) == ["NotKnown"]
    assert (error.subject, error.reply, error.flags) == (b"a", asker.inbox + b"1", REQUEST)
    assert (fields(error)["number"], fields(error)["kind"]) == (4001, Kind.MESSAGE)
    assert asker.peer.asking == {}


def test_a_request_that_wants_an_answer_gets_one_error_or_one_ok() -> None:
    house = House()
    asker = house.guest()
    (error,) = asker.say(request(asker, b"a", flags=ANSWER))
    assert error.flags == ANSWER | REQUEST
    serving(house, 1)
    (ok,) = asker.say(request(asker, b"a", flags=ANSWER))
    assert (ok.kind, ok.reply, ok.sequence) == (Kind.OK, asker.inbox + b"1", 1)


@pytest.mark.parametrize("group", [b"", b"g"])
def test_a_request_goes_to_exactly_one_and_to_the_least_busy(group: bytes) -> None:
    house = House()
    asker, servers = house.guest(), serving(house, 3, group)
    asker.say(*[request(asker, b"a", b"%d" % number) for number in range(7)])
    assert sorted(asked(servers)) == [2, 2, 3]
    busy = [guest.peer.outbox.busy for guest in servers]
    reply = next(iter(servers[busy.index(2)].peer.serving))
    servers[busy.index(2)].say(message(reply))
    asker.say(request(asker, b"a", b"next"))
    assert asked(servers)[busy.index(2)] == 1


def test_among_equals_requests_go_round() -> None:
    house = House()
    asker, servers = house.guest(), serving(house, 3)
    shares = [0, 0, 0]
    for number in range(9):
        asker.say(request(asker, b"a", b"%d" % number))
        for position, guest in enumerate(servers):
            given = guest.heard()
            shares[position] += len(given)
            guest.say(*[message(frame.reply) for frame in given])
    assert shares == [3, 3, 3]
    assert {guest.peer.outbox.busy for guest in servers} == {0}


def test_members_of_groups_come_before_plain_subscribers() -> None:
    house = House()
    asker, plain = house.guest(), serving(house, 2)
    members = serving(house, 1, b"g") + serving(house, 1, b"h", b"*")
    asker.say(*[request(asker, b"a", b"%d" % number) for number in range(6)])
    assert asked(members) == [3, 3]
    assert asked(plain) == [0, 0]


def test_one_that_does_not_read_comes_last() -> None:
    house = House()
    asker, servers = house.guest(), serving(house, 2)
    servers[0].is_reading = False
    asker.say(message(b"a"))
    asker.say(*[request(asker, b"a", b"%d" % number) for number in range(4)])
    assert servers[1].peer.outbox.busy == 4


def test_more_than_whoever_serves_them_can_be_owed_is_refused_and_cuts_nobody() -> None:
    house = House(Limits(outbox_bytes=65_536))
    asker, (server,) = house.guest(), serving(house, 1)
    server.is_reading = False
    large = bytes(20_000)
    for number in range(5):
        asker.send(message(b"a", large, asker.inbox + b"%d" % number, REQUEST))
    house.flush()
    assert errors(asker.heard()) == ["Overloaded"] * 3
    assert server.peer.outbox.busy == 2
    assert not server.peer.outbox.is_cut
    server.is_reading = True
    server.take_backlog()
    assert bodies(server.heard()) == [large] * 2


def test_small_requests_are_refused_before_they_get_whoever_serves_them_cut() -> None:
    house = House(Limits(outbox_bytes=65_536))
    asker, (server,) = house.guest(), serving(house, 1)
    server.is_reading = False
    refused = 0
    for number in range(1000):
        refused += len(errors(asker.say(request(asker, b"a", b"%d" % number))))
    assert not server.peer.outbox.is_cut
    assert server.peer.outbox.busy == 1000 - refused > 100


def test_a_request_larger_than_the_bound_reaches_one_who_is_owed_nothing() -> None:
    house = House(Limits(outbox_bytes=65_536))
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(message(b"a", bytes(100_000), asker.inbox + b"1", REQUEST))
    assert len(bodies(server.heard())) == 1


def test_what_nobody_asked_for_is_dropped_and_cuts_nobody() -> None:
    house = House(Limits(outbox_bytes=65_536))
    asker, other = house.guest(), house.guest()
    asker.is_reading = False
    other.send(message(asker.inbox + b"1", bytes(20_000)) * 10)
    house.flush()
    assert not asker.peer.outbox.is_cut
    asker.is_reading = True
    asker.take_backlog()
    *messages, gap = asker.heard()
    assert fields(gap) == {"reason": "slow", "count": 10 - len(messages)}
    assert len(bodies(messages)) > 0


def test_the_sender_is_chosen_only_if_nobody_else_is_there() -> None:
    house = House()
    asker = house.guest(b"", b"a")
    assert bodies(asker.say(request(asker, b"a"))) == [b"?"]
    assert errors(asker.say(request(asker, b"a", b"2", NOT_BACK))) == ["NotKnown"]
    (server,) = serving(house, 1)
    asker.say(*[request(asker, b"a", b"x%d" % number) for number in range(5)])
    assert asked([asker, server]) == [0, 5]


def test_one_who_asks_itself_can_answer_and_leave() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    guest.say(request(guest, b"a"), request(guest, b"a", b"2"))
    assert bodies(guest.say(message(guest.inbox + b"1", b"own"))) == [b"own"]
    assert guest.peer.outbox.busy == 1
    leave(guest.peer)
    house.flush()
    assert guest.peer.outbox.busy == 0


@pytest.mark.parametrize("name", [b"", None])
def test_a_request_needs_a_reply_in_the_own_inbox(name: bytes | None) -> None:
    house = House()
    asker = house.guest(b"", b"a")
    for subject in (b"a", b"_WEFT.ask.status", asker.inbox + b"x"):
        reply = b"somewhere.else" if name is None else name
        heard = asker.say(message(subject, reply=reply, flags=REQUEST))
        assert errors(heard) == ["UsageError"]
        assert len(heard) == 1


def test_two_requests_cannot_wait_under_one_reply_subject() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    assert errors(asker.say(request(asker, b"a"), request(asker, b"a"))) == ["UsageError"]
    server.say(message(asker.inbox + b"1"))
    assert errors(asker.say(request(asker, b"a"))) == []
    assert server.peer.outbox.busy == 1


def test_requests_over_the_limit_are_too_many_until_one_is_answered() -> None:
    house = House(Limits(requests=2))
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a", b"1"), request(asker, b"a", b"2"))
    assert errors(asker.say(request(asker, b"a", b"3"))) == ["TooMany"]
    server.say(message(asker.inbox + b"1"))
    assert kinds(asker.say(request(asker, b"a", b"3"))) == [Kind.MESSAGE]


def test_requests_of_all_connections_together_are_bounded() -> None:
    house = House(Limits(requests_total=3))
    (server,) = serving(house, 1)
    askers = [house.guest() for _ in range(3)]
    for asker in askers:
        assert asker.say(request(asker, b"a")) == []
    (error,) = askers[0].say(request(askers[0], b"a", b"2"))
    assert fields(error)["name"] == "Overloaded"
    assert fields(error)["text"] == (
        "3 requests of this service wait for their answers, which is the limit: see"
        " limits.requests_total"
    )
    server.say(message(askers[1].inbox + b"1"))
    assert askers[0].say(request(askers[0], b"a", b"2")) == []
    # Who leaves makes room for others, too.
    leave(askers[0].peer)
    assert house.service.requests == 1
    askers[1].heard()
    assert askers[1].say(request(askers[1], b"a", b"2")) == []


def test_one_key_has_its_share_of_them_however_many_connections_it_has() -> None:
    house = locked(record("greedy"), record("other"))
    house.service.set_limits(Limits(requests_total=8, share=0.5))
    server = enter(house, "other")
    server.say(subscribe(b"a"))
    greedy = [enter(house, "greedy") for _ in range(2)]
    for asker in greedy:
        assert asker.say(request(asker, b"a", b"1"), request(asker, b"a", b"2")) == []
    (error,) = greedy[0].say(request(greedy[0], b"a", b"3"))
    assert fields(error)["name"] == "TooMany"
    assert fields(error)["text"] == (
        "4 requests of all connections with this key wait for their answers, which is its"
        " share: see limits.share"
    )
    other = enter(house, "other")
    assert other.say(request(other, b"a")) == []
    server.say(message(greedy[1].inbox + b"1"))
    assert greedy[0].say(request(greedy[0], b"a", b"3")) == []


def test_only_the_one_it_was_given_to_can_answer_a_request() -> None:
    house = House()
    asker, servers, forger = house.guest(), serving(house, 2), house.guest()
    asker.say(request(asker, b"a"))
    given = next(guest for guest in servers if guest.peer.outbox.busy)
    for guest in (forger, *servers):
        if guest is not given:
            heard = guest.say(message(asker.inbox + b"1", b"forged", flags=ANSWER))
            assert errors(heard) == ["NotYours"]
    assert errors(asker.say(message(asker.inbox + b"1", b"forged"))) == ["NotYours"]
    assert asker.heard() == []
    assert given.peer.outbox.busy == 1
    given.say(message(asker.inbox + b"1", b"true"))
    assert bodies(asker.heard()) == [b"true"]
    assert house.service.refused == {"NotYours": 3}


def test_an_inbox_itself_is_an_address_too() -> None:
    house = House()
    owner, sender = house.guest(b"", b">"), house.guest(b"", b">")
    sender.say(message(owner.inbox[:-1], b"1"))
    assert bodies(owner.heard()) == [b"1"]
    assert sender.heard() == []


def test_what_is_published_to_an_inbox_goes_to_its_owner_alone() -> None:
    house = House()
    owner, sender = house.guest(b"", b">"), house.guest(b"", b">")
    sender.say(message(owner.inbox + b"any.thing", b"1"), message(owner.inbox + b"x", b"2"))
    assert bodies(owner.heard()) == [b"1", b"2"]
    assert sender.heard() == []


def test_many_are_asked_by_a_message_with_a_reply_and_all_may_answer() -> None:
    house = House()
    asker, servers = house.guest(), serving(house, 3)
    asker.say(message(b"a", b"?", asker.inbox + b"all"))
    for guest in servers:
        (got,) = guest.heard()
        guest.say(message(got.reply, b"%d" % guest.peer.number))
    assert sorted(bodies(asker.heard())) == [b"%d" % guest.peer.number for guest in servers]


@pytest.mark.req("HUB-20")
def test_when_the_responder_leaves_the_requester_is_told_at_once() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a", b"1"), request(asker, b"a", b"2"))
    leave(server.peer)
    house.flush()
    gone = asker.heard()
    assert errors(gone) == ["ResponderGone"] * 2
    assert [frame.reply for frame in gone] == [asker.inbox + b"1", asker.inbox + b"2"]
    assert {(frame.subject, frame.flags) for frame in gone} == {(b"a", REQUEST)}
    assert {fields(frame)["kind"] for frame in gone} == {Kind.MESSAGE}
    assert asker.peer.asking == {}


@pytest.mark.parametrize("last", [encode(Kind.GOODBYE), b"\0\0\0\0"])
def test_a_responder_that_is_over_counts_as_gone_before_its_door_is_closed(last: bytes) -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    server.is_reading = False
    asker.say(request(asker, b"a", b"1"))
    server.say(last)
    assert errors(asker.heard()) == ["ResponderGone"]
    assert errors(asker.say(request(asker, b"a", b"2"))) == ["NotKnown"]


def test_a_request_in_the_turn_that_ends_its_responder_is_not_left_waiting() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    server.send(encode(Kind.GOODBYE))
    assert errors(asker.say(request(asker, b"a"))) == ["ResponderGone"]


@pytest.mark.req("HUB-20")
def test_a_requester_that_leaves_makes_its_responder_less_busy() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(*[request(asker, b"a", b"%d" % number) for number in range(3)])
    assert server.peer.outbox.busy == 3
    leave(asker.peer)
    assert (server.peer.outbox.busy, server.peer.serving) == (0, {})


def test_an_answer_to_one_who_is_gone_is_no_error() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a"))
    leave(asker.peer)
    server.heard()
    assert server.say(message(asker.inbox + b"1")) == []
    (ok,) = server.say(message(asker.inbox + b"1", flags=ANSWER))
    assert ok.kind == Kind.OK
    assert house.service.refused == {}


@pytest.mark.req("HUB-17")
def test_a_request_to_the_inbox_of_one_who_is_gone_is_not_known() -> None:
    house = House()
    owner, asker = house.guest(), house.guest()
    assert asker.say(request(asker, owner.inbox + b"1")) == []
    leave(owner.peer)
    assert errors(asker.say(request(asker, owner.inbox + b"1"))) == ["NotKnown"]


def test_one_who_takes_back_its_subscription_may_still_answer() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a"))
    server.say(unsubscribe(b"a"))
    server.say(message(asker.inbox + b"1", b"late"))
    assert bodies(asker.heard()) == [b"late"]
    assert errors(asker.say(request(asker, b"a", b"2"))) == ["NotKnown"]


def test_a_request_that_waited_too_long_is_forgotten_and_its_responder_free() -> None:
    house = House(Limits(request_s=5, ping_s=1000))
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a", b"old"))
    house.wait(3)
    asker.say(request(asker, b"a", b"young"))
    house.wait(3)
    sweep(house.service)
    assert list(asker.peer.asking) == [asker.inbox + b"young"]
    assert server.peer.outbox.busy == 1
    server.say(message(asker.inbox + b"old", b"at last"))
    assert bodies(asker.heard()) == [b"at last"]


@pytest.mark.parametrize("flags", [Flag.NONE, Flag.MASKED])
def test_who_asked_is_told_once_that_nobody_will_answer(flags: int) -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a", flags=flags))
    (got,) = server.heard()
    for _ in range(2):
        refuse_request(server.peer, got.reply, ResponderGone("lost on the way"))
    house.flush()
    (told,) = asker.heard()
    assert (errors([told]), told.subject, told.reply) == (
        ["ResponderGone"],
        b"a",
        asker.inbox + b"1",
    )
    assert server.peer.serving == {}


def test_who_asked_by_a_stand_in_is_told_of_a_refusal_under_its_own_reply() -> None:
    house = House()
    asker, (server,) = house.guest(), serving(house, 1)
    asker.say(request(asker, b"a", flags=Flag.MASKED))
    (got,) = server.heard()
    assert got.reply != asker.inbox + b"1"
    refusal = error_frame(server.peer, b"a", got.reply, (Kind.MESSAGE, REQUEST), NotKnown("gone"))
    pass_refusal(server.peer, house.arena.put(refusal))
    house.flush()
    (told,) = asker.heard()
    assert (errors([told]), told.subject, told.reply) == (["NotKnown"], b"a", asker.inbox + b"1")


def test_an_inbox_is_told_by_all_of_its_beginning() -> None:
    house = House()
    one, other = house.guest(), house.guest()
    assert is_own_inbox(one.peer, one.inbox + b"x")
    assert not is_own_inbox(one.peer, one.inbox[:-1])
    assert not is_own_inbox(one.peer, other.inbox + b"x")
