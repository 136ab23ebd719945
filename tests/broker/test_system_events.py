from tests.broker.talk import ORIGIN, Guest, House, connect, fields, message, subscribe

from weft.broker.disconnect import leave
from weft.broker.system_events import announce, announce_peer, is_heard
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message


def events(guest: Guest) -> list[tuple[bytes, dict[str, object]]]:
    """What a guest heard of the gateway."""
    return [(frame.subject, fields(frame)) for frame in guest.heard()]


def test_who_listens_hears_of_connections_that_come_and_go() -> None:
    house = House()
    watcher = house.guest(b"", b"_WEFT.event.>")
    guest = house.guest(b"me.1")
    about = {"connection": guest.peer.number, "name": "me.1", "service": "weather"}
    assert events(watcher) == [(b"_WEFT.event.connected", about)]
    leave(guest.peer)
    house.flush()
    assert events(watcher) == [(b"_WEFT.event.disconnected", about | {"reason": "left"})]


def test_an_end_by_an_error_is_told_by_its_name() -> None:
    house = House()
    watcher = house.guest(b"", b"_WEFT.event.disconnected")
    guest = house.guest()
    guest.say(b"\0\0\0\0")
    leave(guest.peer)
    house.flush()
    ((_, facts),) = events(watcher)
    assert facts["reason"] == "BadFrame"


def test_who_was_never_greeted_comes_and_goes_in_silence() -> None:
    house = House()
    watcher = house.guest(b"", b"_WEFT.event.>")
    stranger = house.arrive()
    stranger.say(connect(b"other"))
    leave(stranger.peer)
    house.flush()
    assert events(watcher) == []


def test_an_event_is_a_message_of_the_gateway_itself() -> None:
    house = House()
    watcher = house.guest(b"", b"_WEFT.event.*")
    announce(house.service, "worker_restarted", Message(restarts=1))
    house.flush()
    (event,) = watcher.heard()
    assert (event.kind, event.origin, event.publisher) == (Kind.MESSAGE, ORIGIN, 0)
    assert (event.sequence, event.time_ns) == (1, house.service.wall_ns)
    assert fields(event) == {"restarts": 1}
    assert house.service.deliveries == 1


def test_an_event_that_nobody_listens_to_costs_no_number() -> None:
    house = House()
    announce(house.service, "gap", Message())
    announce_peer(house.guest().peer, "gap", count=1)
    assert not is_heard(house.service, "gap")
    assert house.service.stamp.sequence == 1
    assert house.arena.fill == 0


def test_an_event_whose_name_is_not_legal_is_heard_by_nobody() -> None:
    house = House()
    house.guest(b"", b"_WEFT.>")
    announce(house.service, "", Message())
    assert not is_heard(house.service, "")
    assert house.arena.fill == 0


def test_an_event_comes_even_if_the_turn_has_no_room_for_it() -> None:
    house = House()
    plain, both = house.guest(b"", b"_WEFT.event.gap"), house.guest(b"", b"_WEFT.event.gap")
    both.say(subscribe(b"_WEFT.event.gap", b"g"))
    member = house.guest()
    member.say(subscribe(b"_WEFT.event.gap", b"h"))
    house.fill_arena()
    announce(house.service, "gap", Message(count=3))
    house.flush()
    for guest in (plain, both, member):
        assert events(guest) == [(b"_WEFT.event.gap", {"count": 3})]
    assert house.service.deliveries == 3


def test_the_next_message_has_its_own_publisher_again() -> None:
    house = House()
    watcher = house.guest(b"", b"_WEFT.event.connected", b"a")
    sender = house.guest()
    watcher.heard()
    sender.send(message(b"a"))
    house.arrive().send(connect())
    sender.send(message(b"a"))
    house.flush()
    number = sender.peer.number
    assert [frame.publisher for frame in watcher.heard()] == [number, 0, number]


def test_a_frame_for_one_peer_is_not_spoilt_by_an_event_in_between() -> None:
    house = House()
    house.guest(b"", b"_WEFT.event.>")
    newcomer = house.arrive()
    heard = newcomer.say(connect(name=b"n"), encode(Kind.PING))
    assert [frame.kind for frame in heard] == [Kind.WELCOME, Kind.PONG]
