import sys

import pytest
from tests.broker.talk import (
    ANSWER,
    Guest,
    House,
    bodies,
    connect,
    errors,
    kinds,
    message,
    request,
    subscribe,
)

from weft.broker.disconnect import ENDED_MAX, leave, withdraw, withdraw_ended
from weft.errors import BadFrame, SlowReader
from weft.wire.frames import Kind, encode


def assert_nothing_is_left(house: House) -> None:
    service = house.service
    assert (service.peers, service.inboxes, len(service.router)) == ({}, {}, 0)
    assert (service.flow_count, service.unfinished_bytes) == (0, 0)
    house.flush()
    assert (house.arena.in_use, house.arena.fill, service.ending) == (0, 0, [])


def deep_in_talk(house: House) -> tuple[Guest, Guest]:
    """Two guests with everything that a peer can have, in the middle of a turn."""
    one, other = house.guest(b"", b"a", b"b.*"), house.guest(b"", b"a", b"c")
    one.say(subscribe(b"jobs.>", b"g"), message(b"x"), message(b"y"))
    for guest in (one, other):
        guest.send(message(b"a") + message(b"a", flags=ANSWER))
    one.send(request(one, b"c") + encode(Kind.MESSAGE, b"a", bytes(100_000))[:50_000])
    other.send(request(other, b"jobs.x") + message(b"a")[:20])
    return one, other


@pytest.mark.req("HUB-20")
def test_one_who_leaves_is_removed_everywhere() -> None:
    house = House()
    one, other = deep_in_talk(house)
    assert one.peer.large_size > 0
    for guest in (one, other):
        leave(guest.peer)
    assert_nothing_is_left(house)
    assert (one.peer.outbox.busy, other.peer.outbox.busy) == (0, 0)
    assert house.service.ended == {"left": 2}


@pytest.mark.req("HUB-20")
def test_nothing_more_is_sent_to_one_who_left() -> None:
    house = House()
    guest, sender = house.guest(b"", b"a"), house.guest()
    guest.say(subscribe(b"a", b"g"))
    sender.say(message(b"a", b"1"))
    assert bodies(guest.heard()) == [b"1"]
    leave(guest.peer)
    sender.say(message(b"a", b"2"), message(guest.inbox + b"1", b"3"))
    assert guest.heard() == []
    assert guest.peer.outbox.owed() == 0
    assert errors(sender.say(request(sender, b"a"))) == ["NotKnown"]


@pytest.mark.parametrize("how", [leave, withdraw])
def test_leaving_in_the_middle_of_a_turn_harms_nobody(how: object) -> None:
    assert callable(how)
    house = House()
    one, other = deep_in_talk(house)
    how(one.peer)
    house.flush()
    heard = other.heard()
    assert bodies(heard)[:4] == [b"hi"] * 4
    assert errors(heard) == ["ResponderGone"]
    assert bodies(other.say(message(b"a")[20:])) == [b"hi"]


def test_leaving_twice_is_leaving_once() -> None:
    house = House()
    guest = house.guest()
    leave(guest.peer)
    leave(guest.peer)
    assert house.service.ended == {"left": 1}
    assert_nothing_is_left(house)


def test_the_end_is_counted_by_its_reason() -> None:
    house = House()
    for error in (None, BadFrame("x"), SlowReader("y"), None):
        guest = house.guest()
        guest.peer.end(error)
        leave(guest.peer)
    assert house.service.ended == {"left": 2, "BadFrame": 1, "SlowReader": 1}


@pytest.mark.parametrize("last", [encode(Kind.GOODBYE), b"\0\0\0\0"])
def test_one_who_is_over_gets_what_it_is_owed_and_nothing_that_comes_later(last: bytes) -> None:
    house = House()
    guest, sender = house.guest(b"", b"a"), house.guest()
    guest.is_reading = False
    sender.say(message(b"a", b"owed"))
    guest.say(last)
    sender.say(message(b"a", b"later"), message(guest.inbox + b"x", b"later"))
    guest.take_backlog()
    assert bodies(guest.heard()) == [b"owed"]
    assert guest.peer.number in house.service.peers


def test_those_who_are_over_are_told_of_once() -> None:
    house = House()
    one, other = house.guest(), house.guest()
    one.peer.end(None)
    other.peer.end(BadFrame("x"))
    assert withdraw_ended(house.service) == [one.peer, other.peer]
    assert withdraw_ended(house.service) == []
    assert house.service.inboxes == {}


def test_what_is_withdrawn_may_end_others_in_the_same_turn() -> None:
    house = House()
    asker, server = house.guest(), house.guest(b"", b"a")
    asker.send(request(asker, b"a") + encode(Kind.GOODBYE))
    server.send(encode(Kind.GOODBYE))
    house.flush()
    assert kinds(asker.heard()) == []
    assert (asker.door.told, server.door.told) == (["finish"], ["finish"])
    assert server.peer.outbox.busy == 0


def test_a_peer_that_left_is_not_kept_by_those_that_stay() -> None:
    house = House()
    one, other = deep_in_talk(house)
    leave(one.peer)
    house.flush()
    other.say(message(b"a")[20:], message(b"a"))
    peer = one.peer
    house.guests.clear()
    del one
    # This name, and the argument of the call that counts.
    assert sys.getrefcount(peer) == 2


def test_a_slow_reader_that_left_keeps_no_backlog() -> None:
    house = House()
    guest, sender = house.guest(b"", b"a"), house.guest()
    guest.is_reading = False
    sender.say(message(b"a", bytes(1000)))
    sender.send(message(b"a", bytes(1000)))
    assert guest.peer.outbox.owed() > 2000
    leave(guest.peer)
    assert (guest.peer.outbox.owed(), guest.peer.outbox.cost()) == (0, 0)
    house.flush()


def test_a_door_has_no_peer_and_a_peer_no_door_afterwards() -> None:
    house = House()
    guest = house.guest()
    guest.peer.outbox.fd = 77
    leave(guest.peer)
    assert (guest.peer.door, guest.peer.outbox.owner, guest.peer.outbox.fd) == (None, None, -1)
    assert guest.peer.is_over


def test_who_leaves_before_the_greeting_leaves_nothing() -> None:
    house = House()
    stranger = house.arrive()
    stranger.send(connect()[:20])
    leave(stranger.peer)
    assert_nothing_is_left(house)


def test_why_connections_were_ended_is_remembered_of_so_many() -> None:
    house = House()
    for _ in range(ENDED_MAX + 3):
        guest = house.guest()
        guest.peer.end(BadFrame("no frame"))
        house.flush()
        leave(guest.peer)
    assert len(house.service.ended_why) == ENDED_MAX
    # Nothing that an error was raised in is kept with it.
    assert house.service.ended_why[guest.inbox[:-1]] == (BadFrame.number, "no frame")
