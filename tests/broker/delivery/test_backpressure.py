import pytest
from tests.broker.talk import ANSWER, REQUEST, Guest, House, bodies, message, subscribe

from weft.broker.delivery.backpressure import (
    ALLOWANCE_NS,
    RESTORED_IN,
    SLICE_NS,
    STILL_NS,
    Allowance,
    end_holds,
)
from weft.broker.delivery.policy import Bounds
from weft.broker.limits import Limits
from weft.broker.routing.route import GROUP_HIGH_BYTES
from weft.wire.frames import Kind, encode

LIMITS = Limits(outbox_bytes=1 << 20)
HIGH = Bounds(1 << 20).high_bytes
PART = message(b"a", bytes(16_000))


def reader(house: House, policy: str = "cut", group: bytes = b"") -> Guest:
    guest = house.guest(b"reader")
    guest.say(subscribe(b"a", group, policy=policy))
    guest.is_reading = False
    return guest


def publish(guest: Guest, size: int) -> None:
    for _ in range(size // len(PART) + 1):
        guest.say(PART)


def take(guest: Guest, size: int) -> None:
    """Have a guest take so much of what it is owed."""
    outbox = guest.peer.outbox
    now_ns = guest.house.service.now_ns
    while size > 0 and outbox.is_behind():
        size -= len(outbox.draw(1, now_ns))


def crowded() -> tuple[House, Guest, Guest]:
    """A reader over its high-water mark, and one that just published to it."""
    house = House(LIMITS)
    slow, publisher = reader(house), house.guest()
    publish(publisher, HIGH)
    take(slow, 1)
    publish(publisher, len(PART))
    return house, slow, publisher


def test_a_publisher_is_held_when_its_reader_is_over_the_mark_and_not_before() -> None:
    house = House(LIMITS)
    slow, publisher = reader(house), house.guest()
    publish(publisher, HIGH // 2)
    assert not publisher.peer.is_paused
    publish(publisher, HIGH)
    assert slow.peer.outbox.is_crowded
    assert publisher.peer.is_paused


def test_a_publisher_goes_on_when_its_reader_has_caught_up() -> None:
    house, slow, publisher = crowded()
    assert publisher.peer.is_paused
    assert end_holds(house.service) == []
    take(slow, HIGH)
    eased = [house.service.budget.is_eased]
    assert end_holds(house.service) == [publisher.peer]
    eased.append(house.service.budget.is_eased)
    assert (eased, house.service.holds) == ([True, False], [])


def test_a_publisher_goes_on_when_its_slice_is_over() -> None:
    house, _, publisher = crowded()
    house.service.now_ns += SLICE_NS - 1
    assert end_holds(house.service) == []
    house.service.now_ns += 1
    assert end_holds(house.service) == [publisher.peer]


@pytest.mark.parametrize("end", ["leaves", "is cut"])
def test_a_publisher_goes_on_when_its_reader_is_gone(end: str) -> None:
    house, slow, publisher = crowded()
    if end == "leaves":
        slow.peer.outbox.close()
    else:
        slow.peer.outbox.expire(house.service.now_ns + 20 * 10**9)
        assert slow.peer.outbox.is_cut
    assert house.service.budget.crowded == 0
    assert end_holds(house.service) == [publisher.peer]


@pytest.mark.parametrize("policy", ["drop_new", "drop_old", "latest"])
def test_nobody_is_held_for_a_reader_whose_messages_may_be_dropped(policy: str) -> None:
    house = House(LIMITS)
    reader(house, policy)
    publisher = house.guest()
    publish(publisher, 1 << 20)
    assert not publisher.peer.is_paused


def test_a_reader_that_drops_some_messages_holds_nobody_who_publishes_those() -> None:
    house, slow, _ = crowded()
    slow.peer.outbox.owner = slow.peer
    slow.send(subscribe(b"b", policy="drop_old", flags=0))
    other = house.guest()
    other.say(message(b"b"))
    assert not other.peer.is_paused


def test_nobody_is_held_for_a_reader_that_stands_still() -> None:
    house, slow, publisher = crowded()
    house.service.now_ns += STILL_NS + 1
    end_holds(house.service)
    publisher.peer.is_paused = False
    publisher.say(PART)
    assert not publisher.peer.is_paused
    take(slow, 1)
    publisher.say(PART)
    assert publisher.peer.is_paused


def test_nobody_is_held_for_what_it_reads_itself() -> None:
    house = House(LIMITS)
    both = reader(house)
    publish(both, 2 * HIGH)
    assert both.peer.outbox.is_crowded
    assert not both.peer.is_paused


def test_one_that_is_behind_itself_is_not_held() -> None:
    """What it reads may depend on what it writes: two that echo to each other would stand still."""
    house = House(LIMITS)
    slow, publisher = reader(house), house.guest(b"", b"b")
    publisher.is_reading = False
    slow.say(message(b"b"))
    publish(publisher, 2 * HIGH)
    assert slow.peer.outbox.is_crowded
    assert not publisher.peer.is_paused


def test_those_who_publish_to_others_are_not_held() -> None:
    house, _, _ = crowded()
    other, friend = house.guest(), house.guest(b"", b"b")
    other.say(message(b"b"))
    assert not other.peer.is_paused
    assert bodies(friend.heard()) != []


def test_answers_and_questions_hold_nobody() -> None:
    house, slow, _ = crowded()
    asker = house.guest()
    asker.send(encode(Kind.MESSAGE, b"a", b"?", asker.inbox + b"1", REQUEST))
    assert not asker.peer.is_paused
    server = house.guest()
    server.send(message(slow.inbox + b"1"))
    assert not server.peer.is_paused


def test_a_connection_is_held_and_holds_others_for_as_long_as_its_allowance() -> None:
    house, slow, publisher = crowded()
    slices = 0
    while publisher.peer.is_paused:
        house.service.now_ns += SLICE_NS
        assert end_holds(house.service) == [publisher.peer]
        publisher.peer.is_paused = False
        take(slow, 1)
        publisher.say(PART)
        slices += 1
    assert ALLOWANCE_NS <= slices * SLICE_NS < 1.5 * ALLOWANCE_NS
    # Nobody else is held for that reader either, and the publisher for nobody else.
    stranger = house.guest()
    stranger.say(PART)
    assert not stranger.peer.is_paused


def test_time_restores_an_allowance_and_nothing_is_spent_twice() -> None:
    allowance = Allowance()
    assert allowance.left_ns(5) == ALLOWANCE_NS
    allowance.spend(5, 605)
    allowance.spend(305, 605)
    allowance.spend(5, 705)
    assert allowance.left_ns(5) == ALLOWANCE_NS - 700
    assert allowance.left_ns(5 + 600) == ALLOWANCE_NS - 700 + 600 // RESTORED_IN
    assert allowance.left_ns(10 * ALLOWANCE_NS) == ALLOWANCE_NS


def test_a_group_without_room_holds_its_publisher_and_one_with_room_does_not() -> None:
    house = House()
    members = [reader(house, group=b"workers") for _ in range(3)]
    publisher = house.guest()
    members[0].is_reading = True
    publish(publisher, 3 * GROUP_HIGH_BYTES)
    paused = [publisher.peer.is_paused]
    members[0].is_reading = False
    publish(publisher, 4 * GROUP_HIGH_BYTES)
    paused.append(publisher.peer.is_paused)
    assert paused == [False, True]
    for member in members:
        take(member, GROUP_HIGH_BYTES)
    assert end_holds(house.service) == [publisher.peer]


def test_a_group_that_stands_still_holds_nobody() -> None:
    house = House(LIMITS)
    reader(house, group=b"workers")
    publisher = house.guest()
    publisher.say(PART)
    house.service.now_ns += STILL_NS + 1
    publish(publisher, 2 * GROUP_HIGH_BYTES)
    assert not publisher.peer.is_paused


def test_a_full_group_holds_its_publisher_beside_one_with_room() -> None:
    house = House()
    reader(house, group=b"first").is_reading = True
    reader(house, group=b"second")
    publisher = house.guest()
    publish(publisher, 2 * GROUP_HIGH_BYTES)
    assert publisher.peer.is_paused


def test_an_acknowledged_message_holds_its_publisher_too() -> None:
    house, _, _ = crowded()
    other = house.guest()
    other.send(message(b"a", flags=ANSWER))
    assert other.peer.is_paused


def test_those_who_have_left_hold_nobody() -> None:
    house, slow, _ = crowded()
    other = house.guest()
    slow.peer.outbox.owner = None
    other.say(PART)
    assert not other.peer.is_paused


def test_nobody_is_held_while_the_service_drains() -> None:
    house, slow, publisher = crowded()
    assert publisher.peer.is_paused
    house.service.is_draining = True
    assert end_holds(house.service) == [publisher.peer]
    publisher.peer.is_paused = False
    take(slow, 1)
    publish(publisher, len(PART))
    assert not publisher.peer.is_paused
