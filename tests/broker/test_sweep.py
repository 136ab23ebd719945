import pytest
from tests.broker.talk import (
    Guest,
    House,
    connect,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
)

from weft.broker.disconnect import leave
from weft.broker.limits import Limits
from weft.broker.service import Peer
from weft.broker.sweep import LINGER_NS, sweep
from weft.wire.frames import Kind, encode

LINGER_S = LINGER_NS / 1e9


def swept(house: House) -> list[Peer]:
    """Those whose doors must close, once everyone has heard what the sweep has to say."""
    lost = sweep(house.service)
    house.flush()
    return lost


def test_a_quiet_house_is_left_alone() -> None:
    house = House()
    guest = house.guest()
    house.wait(1)
    assert swept(house) == []
    assert guest.heard() == []


@pytest.mark.parametrize("said", [b"", connect()[:-1], connect()[:3]])
def test_a_greeting_that_is_not_complete_in_time_ends_the_connection(said: bytes) -> None:
    house = House(Limits(greeting_s=5))
    stranger = house.arrive()
    house.wait(4)
    stranger.say(said)
    house.wait(1)
    swept(house)
    assert not stranger.peer.is_over
    house.wait(0.001)
    swept(house)
    assert errors(stranger.heard()) == ["TooSlow"]
    assert stranger.peer.is_over


def test_one_who_was_greeted_in_time_has_nothing_to_fear() -> None:
    house = House(Limits(greeting_s=5))
    guest = house.arrive()
    house.wait(4)
    guest.say(connect())
    house.wait(4)
    swept(house)
    assert not guest.peer.is_over


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_frame_that_is_not_complete_in_time_ends_the_connection(size: int) -> None:
    house = House(Limits(frame_s=10))
    guest = house.guest()
    frame = message(b"a", bytes(size))
    guest.say(frame[:20])
    for at in range(20, 30):
        house.wait(1)
        guest.say(frame[at : at + 1])
        swept(house)
    assert not guest.peer.is_over
    house.wait(0.001)
    swept(house)
    assert errors(guest.heard()) == ["TooSlow"]


def test_frames_that_go_on_arriving_in_parts_are_never_too_slow() -> None:
    house = House(Limits(frame_s=10))
    guest = house.guest()
    frame = message(b"a")
    guest.say(frame[:20])
    for _ in range(10):
        house.wait(9)
        guest.say(frame[20:] + frame[:20])
        swept(house)
    assert not guest.peer.is_over


def test_one_who_is_silent_is_pinged_and_then_cut() -> None:
    house = House(Limits(ping_s=30))
    guest = house.guest()
    house.wait(30)
    swept(house)
    assert guest.heard() == []
    house.wait(1)
    swept(house)
    assert kinds(guest.heard()) == [Kind.PING]
    house.wait(29)
    swept(house)
    assert guest.heard() == []
    house.wait(2)
    swept(house)
    assert errors(guest.heard()) == ["Silent"]
    assert guest.peer.is_over


def test_any_word_is_an_answer_to_a_ping() -> None:
    house = House(Limits(ping_s=30, frame_s=1000))
    guest = house.guest()
    for word in (encode(Kind.PONG), message(b"a"), message(b"a")[:5], message(b"a")[5:]):
        house.wait(31)
        swept(house)
        assert kinds(guest.heard()) == [Kind.PING]
        house.wait(20)
        guest.say(word)
    house.wait(29)
    swept(house)
    assert guest.heard() == []


def test_a_large_frame_on_its_way_is_a_word() -> None:
    house = House(Limits(ping_s=30, frame_s=1000))
    guest = house.guest()
    frame = message(b"a", bytes(100_000))
    for at in range(0, 1000, 100):
        guest.say(frame[at : at + 100])
        house.wait(29)
        swept(house)
    assert guest.heard() == []


def test_one_who_is_not_read_is_pinged_and_is_never_silent() -> None:
    """Its own pings wait to be read: it must learn otherwise that the gateway is there."""
    house = House(Limits(ping_s=10))
    guest = house.guest()
    guest.peer.is_held = True
    for _ in range(40):
        house.wait(1)
        swept(house)
    pings = kinds(guest.heard())
    assert pings == len(pings) * [Kind.PING]
    assert 18 <= len(pings) <= 20


def test_a_gateway_that_stood_still_gives_everyone_time_to_answer() -> None:
    house = House(Limits(ping_s=30))
    guest = house.guest()
    house.wait(3600)
    swept(house)
    house.wait(1)
    swept(house)
    assert kinds(guest.heard()) == [Kind.PING]
    assert not guest.peer.is_over


def behind(house: House, policy: str) -> Guest:
    guest = house.guest(b"slow")
    guest.say(subscribe(b"a", policy=policy))
    guest.is_reading = False
    return guest


@pytest.mark.parametrize("policy", ["cut", "drop_new"])
def test_one_who_takes_nothing_for_too_long_is_cut(policy: str) -> None:
    house = House(Limits(outbox_age_s=10))
    guest = behind(house, policy)
    house.guest().say(message(b"a"))
    # What is on its way is held to the same bound.
    guest.peer.outbox.take(1000, house.service.now_ns)
    house.wait(10)
    assert swept(house) == []
    assert guest.peer.outbox.dropped() == 0
    house.wait(0.001)
    guest.door.told.clear()
    assert swept(house) == []
    assert guest.peer.outbox.is_cut
    # Its door ends it: that knows whether it can be told.
    assert guest.door.told == ["press", "fall behind"]


def test_one_who_falls_behind_is_called_slow_once_and_again_when_it_recovered() -> None:
    house = House()
    watcher = house.guest(b"", b"_WEFT.event.slow_reader")
    guest, sender = behind(house, "cut"), house.guest()
    for _ in range(2):
        sender.say(message(b"a"))
        swept(house)
        (event,) = watcher.heard()
        assert fields(event) == {
            "connection": guest.peer.number,
            "name": "slow",
            "service": "weather",
            "owed": len(message(b"a")),
        }
        swept(house)
        assert watcher.heard() == []
        guest.take_backlog()
        swept(house)


def test_what_was_dropped_is_told_as_it_grows() -> None:
    house = House(Limits(outbox_bytes=8192))
    watcher = house.guest(b"", b"_WEFT.event.gap")
    guest, sender = behind(house, "drop_new"), house.guest()
    counts = []
    for _ in range(2):
        sender.say(*[message(b"a", bytes(900))] * 20)
        swept(house)
        (event,) = watcher.heard()
        counts.append(fields(event)["count"])
        swept(house)
        assert watcher.heard() == []
    assert sum(counts) == guest.peer.outbox.dropped()
    assert guest.peer.dropped_said == sum(counts)


def test_one_who_is_over_and_reads_has_time_to_take_what_it_is_owed() -> None:
    house = House(Limits(outbox_age_s=10))
    guest = house.guest()
    guest.is_reading = False
    guest.say(b"\0\0\0\0")
    house.wait(10)
    assert swept(house) == []
    house.wait(0.001)
    assert swept(house) == [guest.peer]


def test_doors_of_those_who_are_behind_try_again() -> None:
    house = House()
    guest, sender = behind(house, "drop_new"), house.guest()
    swept(house)
    assert guest.door.told == []
    sender.say(message(b"a"))
    swept(house)
    assert (guest.door.told, sender.door.told) == (["press"], [])


def test_a_sweep_does_not_mind_those_who_leave_in_the_middle_of_it() -> None:
    house = House()
    guest, sender = behind(house, "drop_new"), house.guest()
    sender.say(message(b"a"))

    class Broken:
        """A door that finds its socket broken, and another's."""

        def press(self) -> None:
            leave(guest.peer)
            leave(sender.peer)

        def fall_behind(self) -> None: ...
        def resume(self) -> None: ...
        def finish(self) -> None: ...
        def abort(self) -> None: ...

    guest.peer.door = Broken()
    assert swept(house) == []
    assert house.service.peers == {}


def test_one_who_is_over_has_a_while_to_hang_up() -> None:
    house = House()
    guest = house.guest()
    guest.say(b"\0\0\0\0")
    house.wait(LINGER_S)
    assert swept(house) == []
    house.wait(0.001)
    assert swept(house) == [guest.peer]
    assert swept(house) == [guest.peer]


def test_one_who_is_over_is_neither_pinged_nor_too_slow() -> None:
    house = House(Limits(greeting_s=0.5, ping_s=0.5))
    stranger, guest = house.arrive(), house.guest()
    for one in (stranger, guest):
        one.peer.end(None)
    house.wait(1)
    assert swept(house) == []
    assert stranger.heard() + guest.heard() == []


def test_requests_that_wait_too_long_are_given_up() -> None:
    house = House(Limits(request_s=5))
    asker, server = house.guest(), house.guest(b"", b"a")
    asker.say(request(asker, b"a"))
    house.wait(5)
    swept(house)
    assert server.peer.outbox.busy == 1
    house.wait(0.001)
    swept(house)
    assert (server.peer.outbox.busy, len(asker.peer.asking)) == (0, 0)


def test_many_quiet_peers_are_all_looked_after() -> None:
    house = House(Limits(ping_s=1))
    guests = [house.guest() for _ in range(50)]
    house.wait(2)
    swept(house)
    assert [kinds(guest.heard()) for guest in guests] == [[Kind.PING]] * 50


def test_one_whose_door_is_gone_is_left_alone() -> None:
    house = House(Limits(outbox_age_s=10))
    guest = behind(house, "cut")
    house.guest().say(message(b"a"))
    guest.peer.door = None
    house.wait(11)
    assert swept(house) == []
    assert guest.peer.outbox.is_cut
