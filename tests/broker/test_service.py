import pytest
from tests.broker.talk import House, NotedDoor, bodies, message

from weft.broker.delivery.arena import ARENA_BYTES
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Reason
from weft.broker.limits import Limits
from weft.broker.service import INBOX_BYTES, NO_REQUESTS, NOWHERE, Service
from weft.errors import BadFrame, Silent
from weft.wire.frames import Kind, encode


def test_an_inbox_names_the_gateway_the_connection_and_a_secret() -> None:
    service = Service("s", "g", 0xBEEF, Limits())
    service.join(1, NotedDoor())
    peer = service.join(0x0123456789ABCDEF, NotedDoor())
    assert peer.inbox == b"_INBOX.0000beef.000000020123456789abcdef."
    assert len(peer.inbox) == INBOX_BYTES + 1
    assert service.inboxes[peer.inbox] is peer


@pytest.mark.parametrize("token", [-1, 1 << 64, (1 << 200) - 1])
def test_an_inbox_has_its_length_whatever_the_token(token: int) -> None:
    peer = Service("s", "g", 0xFFFFFFFF, Limits()).join(token, NotedDoor())
    assert len(peer.inbox) == INBOX_BYTES + 1


def test_connections_are_numbered_from_one() -> None:
    house = House()
    assert [house.arrive().peer.number for _ in range(3)] == [1, 2, 3]
    assert list(house.service.peers) == [1, 2, 3]


def test_a_new_peer_shares_what_it_does_not_have() -> None:
    peer = House().arrive().peer
    assert (peer.asking, peer.serving) == (NO_REQUESTS, NO_REQUESTS)
    assert peer.route is NOWHERE
    assert peer.route.is_stale
    assert peer.flow.is_folded
    assert peer.meter is None


def test_what_peers_share_is_never_added_to() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    guest.say(message(b"a", reply=guest.inbox + b"1", flags=2))
    assert NO_REQUESTS == {}
    assert NOWHERE.outboxes == []


def test_a_peer_ends_once_and_the_first_reason_counts() -> None:
    house = House()
    peer = house.guest().peer
    house.wait(1)
    peer.end(BadFrame("first"))
    ended_ns = house.service.now_ns
    house.wait(1)
    peer.end(Silent("second"))
    assert (type(peer.error), peer.over_ns) == (BadFrame, ended_ns)
    assert house.service.ending == [peer]


def test_what_is_owed_is_held_if_the_turn_has_no_room() -> None:
    house = House()
    guest = house.guest()
    house.fill_arena(40)
    for body in (b"1", b"2", b"3"):
        guest.peer.owe(encode(Kind.MESSAGE, b"a", body))
    house.flush()
    assert bodies(guest.heard()) == [b"1", b"2", b"3"]


def test_an_arena_takes_four_of_the_largest_frames() -> None:
    assert Service("s", "g", 1, Limits()).arena.size == 4 * ((1 << 20) + 32 + 510)
    assert Service("s", "g", 1, Limits(body_bytes=100)).arena.size == ARENA_BYTES


def test_other_limits_hold_for_what_comes_later_but_for_the_largest_body() -> None:
    house = House(Limits(body_bytes=5000, outbox_bytes=8192))
    before = house.guest().peer.outbox
    house.service.set_limits(Limits(body_bytes=9000, outbox_bytes=16384, outbox_age_s=2.5))
    after = house.guest().peer.outbox
    assert house.service.limits.body_bytes == house.service.run.body_limit == 5000
    assert (before.bounds.limit_bytes, after.bounds.limit_bytes) == (8192, 16384)
    assert after.bounds.limit_age_ns == 2_500_000_000


def test_what_is_dropped_is_counted_for_the_service_under_any_bounds() -> None:
    house = House(Limits(outbox_bytes=8192))
    outboxes: list[Outbox] = []
    for _ in range(2):
        outboxes.append(house.guest().peer.outbox)
        house.service.set_limits(Limits(outbox_bytes=16384))
    for outbox in outboxes:
        outbox.bounds.dropped[Reason.SLOW] += 1
    assert house.service.dropped[Reason.SLOW] == 2


def test_refusals_and_ends_are_counted_by_name() -> None:
    service = House().service
    for name in ("left", "left", "BadFrame"):
        service.count_ended(name)
        service.count_refused(name)
    assert service.ended == service.refused == {"left": 2, "BadFrame": 1}


def test_control_frames_of_a_link_are_owed_before_envelopes_that_wait() -> None:
    service = Service("s", "g", 1, Limits())
    peer = service.join(1, NotedDoor())
    ping, pong, envelope = (encode(kind) for kind in (Kind.PING, Kind.PONG, Kind.FORWARD))
    peer.owe_first(ping)
    assert bytes(service.arena.data[: service.arena.fill]) == ping
    peer.outbox.settle(0)
    peer.owe(envelope)
    peer.outbox.settle(0)
    peer.owe_first(pong)
    assert peer.outbox.draw(1 << 16, 0) == ping + pong + envelope
    peer.end(None)
    peer.owe_first(ping)
    assert not peer.outbox.owed()
