"""One link, as this side of it stands."""

from tests.broker.talk import NotedDoor
from tests.mesh.gateways import Gateway, wanted

from weft.mesh.links.link import Link, SnapshotParts, mesh_links
from weft.mesh.protocol import Snapshot, wanted_bytes

NODE = bytes(16)


def link(gateway: Gateway, number: int = 2) -> Link:
    return Link(gateway.service.join(1, NotedDoor()), NODE, number, is_dialled=True)


def test_it_carries_messages_when_both_are_ready_and_it_is_known_where_it_leads() -> None:
    made = link(Gateway(1))
    states = [(made.is_ready, made.is_carrying)]
    for name in ("is_ready_said", "is_ready_heard", "is_named"):
        setattr(made, name, True)
        states.append((made.is_ready, made.is_carrying))
    made.peer.end(None)
    states.append((made.is_ready, made.is_carrying))
    no = (False, False)
    assert states == [no, no, (True, False), (True, True), no]


def test_silence_counts_from_what_was_heard_last_or_from_its_beginning() -> None:
    gateway = Gateway(1)
    made = link(gateway)
    began_ns = gateway.service.now_ns
    assert made.silent_ns(began_ns + 5) == 5
    made.peer.heard_ns = began_ns + 3
    assert made.silent_ns(began_ns + 5) == 2
    made.grace_ns = began_ns + 4
    assert made.silent_ns(began_ns + 5) == 1


def test_registrations_and_those_that_are_over_are_not_part_of_the_mesh() -> None:
    gateway = Gateway(1)
    links = {number: link(gateway, number) for number in (2, 3, 4)}
    links[2].is_registration = True
    links[3].peer.end(None)
    assert mesh_links(links) == [links[4]]


def test_parts_are_taken_in_order_and_counted() -> None:
    first, second = wanted(b"a"), wanted(b"b", b"g")
    begun = Snapshot(NODE, 7, 0, False, (first,))
    parts = SnapshotParts(begun)
    assert parts.take(begun)
    assert not parts.take(begun)
    assert not parts.take(Snapshot(NODE, 7, 2, True, (second,)))
    assert not parts.take(Snapshot(NODE, 8, 1, True, (second,)))
    assert not parts.take(Snapshot(b"x" * 16, 7, 1, True, (second,)))
    assert parts.take(Snapshot(NODE, 7, 1, True, (second,)))
    assert parts.wanted == [first, second]
    assert parts.bytes == wanted_bytes(first) + wanted_bytes(second)
