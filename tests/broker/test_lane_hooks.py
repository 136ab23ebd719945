"""What the core does for lanes: asks whoever looks after them, in order, and lets answers wait."""

from typing import Any

import pytest
from tests.broker.locksmith import record
from tests.broker.talk import (
    ANSWER,
    Guest,
    House,
    ask,
    connect,
    errors,
    kinds,
    message,
    subscribe,
    unsubscribe,
)

from weft.broker.auth.keys import Keyring
from weft.broker.delivery.outbox import Outbox
from weft.broker.lane_hooks import Laning
from weft.broker.routing.router import SubscriberKind
from weft.broker.service import Peer
from weft.errors import BadOption, NotAllowed, WeftError
from weft.wire.frames import Kind, encode, parse
from weft.wire.lane_messages import lane_frame, word_in


class Noted(Laning):
    """Remembers what it was told, and refuses what is called bad."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.waiting: set[int] = set()
        self.held: list[tuple[int, bytes]] = []

    def take(self, peer: Peer, subject: bytes, frame: bytes) -> None:
        word, _ = word_in(frame)
        if word == "bad":
            raise BadOption("bad")
        self.told.append(f"{peer.name}: {word} {subject.decode()}")

    def pass_tail(self, peer: Peer, at: int) -> WeftError | None:
        length = peer.service.arena.data[at + 6]
        self.told.append(f"tail of {length}")
        return NotAllowed("no") if length == 3 else None

    def subscribed(self, peer: Peer) -> None:
        self.told.append(f"{peer.name}: subscribed")

    def unsubscribed(self) -> None:
        self.told.append("unsubscribed")

    def holds(self, peer: Peer) -> bool:
        return peer.number in self.waiting

    def hold(self, peer: Peer, frames: bytes) -> None:
        self.held.append((peer.number, frames))

    def look_at_routes(self) -> None:
        self.told.append("routes")

    def look_at_rights(self) -> None:
        self.told.append("rights")

    def part(self, peer: Peer) -> None:
        self.told.append(f"part {peer.name}")


def begun() -> tuple[House, Noted, Guest]:
    """A house with lanes, and somebody who knows them."""
    house = House()
    noted = house.service.laning = Noted()
    guest = house.arrive()
    guest.say(connect(name=b"me", lanes=1))
    return house, noted, guest


@pytest.mark.parametrize(("said", "known"), [({}, 0), ({"lanes": 1}, 1), ({"lanes": 7}, 1)])
def test_a_greeting_says_if_a_client_knows_lanes(said: dict[str, Any], known: int) -> None:
    guest = House().arrive()
    guest.say(connect(**said))
    assert guest.peer.lanes == known


def test_a_greeting_cannot_know_less_than_no_lanes() -> None:
    guest = House().arrive()
    guest.say(connect(lanes=-1))
    assert guest.peer.lanes == 0


def test_a_version_of_lanes_is_a_number() -> None:
    assert errors(House().arrive().say(connect(lanes="yes"))) == ["BadGreeting"]


def test_words_about_lanes_are_passed_on_in_order() -> None:
    _, noted, guest = begun()
    heard = guest.say(
        lane_frame("direct", b"a"),
        encode(Kind.PING),
        lane_frame("withdrawn", b"a"),
        subscribe(b"b"),
    )
    assert noted.told == ["me: direct a", "me: withdrawn a", "me: subscribed", "routes"]
    assert kinds(heard) == [Kind.PONG, Kind.OK]


def test_lanes_are_looked_at_as_soon_as_a_subscription_is_taken_back() -> None:
    _, noted, guest = begun()
    guest.say(subscribe(b"a"), unsubscribe(b"a"), subscribe(b"a"))
    assert noted.told == ["me: subscribed", "unsubscribed", "me: subscribed", "routes"]


def test_a_word_that_is_refused_is_answered_and_the_connection_goes_on() -> None:
    house, _, guest = begun()
    assert errors(guest.say(lane_frame("bad"))) == ["BadOption"]
    assert house.service.refused == {"BadOption": 1}
    assert not guest.peer.is_over


def test_what_is_no_word_ends_the_connection() -> None:
    _, _, guest = begun()
    assert errors(guest.say(encode(Kind.LANE))) == ["BadMessage"]
    assert guest.peer.is_over


@pytest.mark.parametrize("kind", [Kind.LANE, Kind.TAIL])
def test_who_does_not_know_lanes_does_not_speak_of_them(kind: Kind) -> None:
    house = House()
    house.service.laning = Noted()
    assert errors(house.guest().say(encode(kind, b"a"))) == ["UnexpectedFrame"]


@pytest.mark.parametrize("kind", [Kind.LANE, Kind.TAIL])
def test_a_service_without_lanes_does_not_hear_of_them(kind: Kind) -> None:
    guest = House().arrive()
    guest.say(connect(lanes=1))
    assert errors(guest.say(encode(kind, b"a"))) == ["UnexpectedFrame"]


@pytest.mark.parametrize("kind", [Kind.LANE, Kind.TAIL])
def test_nobody_speaks_of_lanes_before_the_greeting(kind: Kind) -> None:
    house = House()
    house.service.laning = Noted()
    assert errors(house.arrive().say(encode(kind, b"a"))) == ["BadGreeting"]


def test_tails_cost_no_credit_and_are_refused_one_by_one() -> None:
    house, noted, guest = begun()
    credit = guest.peer.control_credit
    heard = guest.say(*[encode(Kind.TAIL, name) for name in (b"a", b"a", b"bad", b"bb")])
    assert noted.told == ["tail of 1", "tail of 1", "tail of 3", "tail of 2"]
    assert errors(heard) == ["NotAllowed"]
    assert house.service.refused == {"NotAllowed": 1}
    assert guest.peer.control_credit == credit


def test_answers_wait_while_they_are_held() -> None:
    _, noted, guest = begun()
    noted.waiting.add(guest.peer.number)
    ping = encode(Kind.PING, body=b"x")
    assert guest.say(subscribe(b"a"), ping, subscribe(b"b", flags=0), message(b"a")) != []
    assert [parse(frame).kind for _, frame in noted.held] == [Kind.OK, Kind.PONG]
    noted.waiting.clear()
    assert kinds(guest.say(encode(Kind.PING, flags=ANSWER))) == [Kind.PONG, Kind.OK]


def test_who_looks_after_lanes_learns_that_a_connection_is_over() -> None:
    _, noted, guest = begun()
    guest.say(encode(Kind.GOODBYE))
    assert noted.told == ["part me"]


def test_who_looks_after_lanes_learns_that_rights_have_changed() -> None:
    house, noted, _ = begun()
    house.service.set_keys(Keyring([record("one")]))
    house.flush()
    assert noted.told == ["rights"]


def test_a_tap_hears_a_pattern_and_is_nobodys_subscription() -> None:
    house = House()
    router = house.service.router
    outbox = Outbox(house.arena, house.service.bounds)
    router.changes = {}
    router.tap(outbox, b"a.b")
    guest = house.guest(b"me", b"a.b")
    guest.say(message(b"a.b"))
    assert outbox.draw(1000, house.service.now_ns) != b""
    assert list(router.changes) == [(b"a.b", b"")]
    assert router.wanted_here(b"a.b") is SubscriberKind.TO_ANSWER
    assert len(router) == 1
    answer = ask(guest, "subscribers", subject="a.b")
    assert [each["name"] for each in answer["subscribers"]] == ["me"]


def test_the_router_says_that_subscriptions_have_changed() -> None:
    house = House()
    router = house.service.router
    guest = house.guest()
    assert not router.is_changed
    guest.say(subscribe(b"a"))
    assert router.is_changed


def test_what_looks_after_lanes_has_to_be_made() -> None:
    peer = House().guest().peer
    laning = Laning()
    for act in (
        lambda: laning.take(peer, b"", b""),
        lambda: laning.pass_tail(peer, 0),
        lambda: laning.subscribed(peer),
        laning.unsubscribed,
        lambda: laning.holds(peer),
        lambda: laning.hold(peer, b""),
        laning.look_at_routes,
        laning.look_at_rights,
        lambda: laning.part(peer),
    ):
        with pytest.raises(NotImplementedError):
            act()
