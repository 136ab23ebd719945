"""What a gateway may send that it should not: each is refused and counted, and the mesh goes on."""

import pytest
from tests.mesh.gateways import Gateway, Mesh

from weft.errors import BadFrame, ProtocolError, UnexpectedFrame
from weft.mesh import protocol
from weft.mesh.routing.forward_header import COUNT_AT, GROUP, ONE, PLAIN, WORD, PlannedGateway, make
from weft.wire.frames import Flag, Kind, encode

LINE = [(1, 2), (2, 3)]


def stamped(
    subject: bytes, body: bytes = b"x", origin: int = 1, reply: bytes = b"", flags: int = 0
) -> bytes:
    """A message as another gateway stamps it."""
    frame = bytearray(encode(Kind.MESSAGE, subject, body, reply, flags))
    frame[8:12] = origin.to_bytes(4, "little")
    return bytes(frame)


def envelope(
    path: list[int],
    entries: list[PlannedGateway],
    flags: int = PLAIN,
    group: bytes = b"",
    count: int = 1,
) -> bytearray:
    made = make(flags, group, path, entries)
    made[COUNT_AT : COUNT_AT + 4] = count.to_bytes(4, "little")
    return made


def receive(gateway: Gateway, sender: int, *frames: bytes | bytearray) -> None:
    gateway.read(gateway.links[sender], b"".join(frames))


def prepared() -> tuple[Mesh, "Gateway"]:
    mesh = Mesh(LINE)
    mesh.settle()
    return mesh, mesh[2]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ([3, 1], ""),
        ([1], ""),
        ([9, 1], "UnknownOrigin"),
        ([3], "ForgedPath"),
        ([1, 3], "ForgedPath"),
        ([2, 1], "Loop"),
        ([3, 2, 1], "Loop"),
        ([3, 1, 3, 1], "Loop"),
    ],
)
def test_the_way_must_be_one_that_was_advertised(path: list[int], name: str) -> None:
    mesh, gateway = prepared()
    mesh.known_edges.add((1, 3))
    mesh.plot()
    there = gateway.local(b"a")
    receive(gateway, 1, envelope(path, [PlannedGateway(2, 0, True)]), stamped(b"a", origin=path[0]))
    assert gateway.traffic.counts.refused == ({name: 1} if name else {})
    assert there.messages() == ([] if name else [b"x"])
    assert not gateway.links[1].is_over


def test_an_edge_that_nobody_advertised_is_no_way() -> None:
    _, gateway = prepared()
    receive(gateway, 1, envelope([3, 1], [PlannedGateway(2, 0, True)]), stamped(b"a", origin=3))
    assert gateway.traffic.counts.refused == {"ForgedPath": 1}


def test_the_origin_of_an_envelope_is_where_its_way_begins() -> None:
    _, gateway = prepared()
    forged = envelope([1], [PlannedGateway(2, 0, True)])
    forged[8:12] = (3).to_bytes(4, "little")
    receive(gateway, 1, forged, stamped(b"a", origin=3))
    assert gateway.traffic.counts.refused == {"ForgedOrigin": 1}


def test_messages_of_another_origin_than_their_envelope_are_refused() -> None:
    _, gateway = prepared()
    there = gateway.local(b"a")
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)]), stamped(b"a", origin=3))
    assert gateway.traffic.counts.refused == {"ForgedOrigin": 1}
    assert there.frames() == []


@pytest.mark.parametrize("subject", [b"_WEFT.event.x", b"_LOCAL.a", b"_INBOX.00000002.x"])
def test_names_of_the_system_do_not_come_by_links(subject: bytes) -> None:
    _, gateway = prepared()
    there = gateway.local(b"_LOCAL.a", b"_WEFT.event.>")
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)]), stamped(subject))
    assert gateway.traffic.counts.refused == {"Reserved": 1}
    assert there.frames() == []


def test_subjects_that_are_none_are_refused() -> None:
    _, gateway = prepared()
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)]), stamped(b"a..b"))
    assert gateway.traffic.counts.refused == {"BadSubject": 1}


@pytest.mark.parametrize(
    "frame",
    [
        stamped(b"a"),
        stamped(b"_WEFT.ask.peers", reply=b"_INBOX.00000001.x", flags=2),
        stamped(b"a", reply=b"_INBOX.00000003.x", flags=2),
        stamped(b"a..b", reply=b"_INBOX.00000001.x", flags=2),
    ],
    ids=["no request", "system", "inbox of another", "bad subject"],
)
def test_only_requests_and_replies_are_addressed(frame: bytes) -> None:
    _, gateway = prepared()
    there = gateway.local(b"a")
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], ONE), frame)
    assert gateway.traffic.counts.refused == {"BadRequest": 1}
    assert there.frames() == []


@pytest.mark.parametrize("flags", [Flag.FROM_GATEWAY, Flag.FROM_GATEWAY | Flag.REQUEST, 128])
@pytest.mark.parametrize("subject", [b"a", b"_INBOX.{here}.x"], ids=["request", "reply"])
def test_no_other_gateway_answers_for_this_one(subject: bytes, flags: int) -> None:
    _, gateway = prepared()
    there = gateway.local(b"a")
    subject = subject.replace(b"_INBOX.{here}.", there.peer.inbox)
    frame = stamped(subject, reply=b"_INBOX.00000001.x", flags=flags)
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], ONE), frame)
    assert gateway.traffic.counts.refused == {"ReservedFlags": 1}
    assert there.frames() == []


def test_a_request_may_be_refused_and_its_gateway_is_told() -> None:
    mesh, gateway = prepared()
    frame = stamped(b"a", reply=b"_INBOX.00000001.x", flags=2)
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], ONE), frame)
    assert gateway.traffic.counts.unserved == 1
    mesh.carry()
    assert len(mesh.wires[(2, 1)].frames(Kind.ERROR)) == 1


def test_what_comes_for_a_group_that_is_gone_is_counted() -> None:
    _, gateway = prepared()
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], GROUP, b"g"), stamped(b"a"))
    assert gateway.traffic.counts.unserved == 1


def test_an_envelope_for_another_ends_the_link() -> None:
    _, gateway = prepared()
    receive(gateway, 1, envelope([1], [PlannedGateway(3, 0, True)]))
    assert isinstance(gateway.links[1].error, BadFrame)
    assert not gateway.links[3].is_over


@pytest.mark.parametrize(
    ("at", "value"), [(4, 13 << 8 | 12), (12, 0), (16, 0), (16, 9), (18, 0), (18, 33), (18, 2)]
)
def test_an_envelope_that_contradicts_itself_ends_the_link(at: int, value: int) -> None:
    _, gateway = prepared()
    made = envelope([1], [PlannedGateway(2, 0, True)])
    if at == 12:
        made[12:16] = bytes(4)
    elif at == 4:
        made[6] = 1
    else:
        made[at] = value
    receive(gateway, 1, made, stamped(b"a"))
    assert isinstance(gateway.links[1].error, ProtocolError)


def test_a_tree_that_is_larger_than_its_envelope_leads_nowhere() -> None:
    _, gateway = prepared()
    there = gateway.local(b"a")
    receive(
        gateway,
        1,
        envelope([1], [PlannedGateway(2, 1, True), PlannedGateway(3, 7, True)]),
        stamped(b"a"),
    )
    assert gateway.traffic.counts.refused == {"BadTree": 1}
    assert there.frames() == []
    assert not gateway.links[1].is_over


@pytest.mark.parametrize(
    "frames",
    [
        [envelope([1], [PlannedGateway(2, 0, True)]), encode(Kind.SUBSCRIBE, b"a")],
        [envelope([1], [PlannedGateway(2, 0, True)]), stamped(b"a"), stamped(b"a")],
        [envelope([1], [PlannedGateway(2, 0, True)])] * 2,
        [stamped(b"a")],
        [encode(Kind.SUBSCRIBE, b"a")],
        [encode(Kind.CONNECT, b"weather")],
    ],
    ids=["other kind", "more frames", "two envelopes", "no envelope", "subscribe", "connect"],
)
def test_frames_come_as_their_envelope_says_or_the_link_ends(frames: list[bytes]) -> None:
    _, gateway = prepared()
    receive(gateway, 1, *frames)
    assert isinstance(gateway.links[1].error, UnexpectedFrame)


def test_who_only_wants_its_own_passes_nothing_on() -> None:
    mesh = Mesh(LINE, is_relay=False)
    there = mesh[3].local(b"a")
    mesh.settle()
    mesh[1].local().publish(b"a", b"x")
    mesh.carry()
    assert there.messages() == []
    assert mesh[2].traffic.counts.refused == {"NoRelay": 1}


def test_a_word_that_is_none_is_not_held_against_those_that_it_came_by() -> None:
    _, gateway = prepared()
    word = encode(Kind.FABRIC, body=b"\xff")
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], WORD), word)
    assert gateway.traffic.counts.refused == {"BadWord": 1}
    assert not gateway.links[1].is_over


def test_numbers_that_jump_are_asked_for_and_then_given_up() -> None:
    mesh, gateway = prepared()
    there = gateway.local(b"a")
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True, 1 << 40)]), stamped(b"a"))
    assert there.frames() == []
    mesh.wait(4000)
    assert [frame.kind for frame in there.frames()] == [Kind.GAP, Kind.MESSAGE]


def test_what_comes_twice_is_handed_on_once() -> None:
    _, gateway = prepared()
    there = gateway.local(b"a")
    for _ in range(3):
        receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)]), stamped(b"a"))
    assert there.messages() == [b"x"]
    assert gateway.traffic.counts.doubled == 2


def test_of_what_overlaps_only_the_rest_is_handed_on() -> None:
    _, gateway = prepared()
    there = gateway.local(b"a")
    one, two, three = (stamped(b"a", body) for body in (b"1", b"2", b"3"))
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], count=2), one, two)
    receive(gateway, 1, envelope([1], [PlannedGateway(2, 0, True)], count=3), one, two, three)
    assert there.messages() == [b"1", b"2", b"3"]


def test_a_gateway_is_not_sent_the_same_again_and_again() -> None:
    mesh, gateway = prepared()
    mesh[1].local(b"a")
    mesh.settle()
    here = gateway.local()
    here.publish(b"a", b"x")
    mesh.wires[(2, 1)].data.clear()
    for _ in range(5):
        gateway.traffic.hear_far(1, protocol.encode(protocol.Nack(0, 0)))
    assert gateway.traffic.counts.resent == 1
    assert gateway.traffic.counts.refused == {"TooManyNacks": 4}
