"""Messages between gateways: who gets them, how often, and what is told of those that are lost."""

import pytest
from tests.mesh.gateways import Local, Mesh

from weft.broker.limits import Limits
from weft.mesh.protocol import InterestEntry, Pong, Probe, Word, decode, frame_of
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.message import Message

TWO = [(1, 2)]
LINE = [(1, 2), (2, 3)]
SQUARE = [(1, 2), (2, 3), (3, 4), (1, 4)]


def test_a_message_reaches_a_subscriber_of_another_gateway() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"sensors.>")
    mesh.settle()
    mesh[1].local().publish(b"sensors.london", b"a", b"b")
    mesh.carry()
    frames = there.frames()
    assert [frame.body for frame in frames] == [b"a", b"b"]
    assert {frame.origin for frame in frames} == {1}


@pytest.mark.req("MM-23")
def test_a_message_crosses_a_link_once_however_many_want_it() -> None:
    mesh = Mesh([(1, 2), (2, 3), (2, 4), (4, 5)])
    there = [
        mesh[number].local(*patterns)
        for number in (2, 3, 4, 5)
        for patterns in ((b"a.>", b"a.b", b"*.b"), (b"a.*",), (b"a.b",))
    ]
    mesh.settle()
    mesh[1].local().publish(b"a.b", b"x", b"y")
    mesh.carry()
    assert [local.messages() for local in there] == [[b"x", b"y"]] * 12
    for pair in ((1, 2), (2, 3), (2, 4), (4, 5)):
        assert len(mesh.wires[pair].frames(Kind.MESSAGE)) == 2, pair
        assert len(mesh.wires[pair].frames(Kind.FORWARD)) == 1, pair
    for pair in ((2, 1), (3, 2), (4, 2), (5, 4)):
        assert mesh.wires[pair].frames(Kind.MESSAGE) == [], pair


@pytest.mark.req("RLY-18")
def test_traffic_whose_subscribers_are_all_local_stays_local() -> None:
    mesh = Mesh(TWO)
    here = mesh[1].local(b"a")
    mesh[2].local(b"b")
    mesh.settle()
    mesh[1].local().publish(b"a", b"x")
    mesh.carry()
    assert here.messages() == [b"x"]
    assert mesh.wires[(1, 2)].frames(Kind.MESSAGE) == []


@pytest.mark.parametrize("piece", [1, 7, 33, 100, 1000])
def test_messages_survive_any_split_on_their_way(piece: int) -> None:
    mesh = Mesh(LINE)
    there = mesh[3].local(b"a")
    between = mesh[2].local(b"a")
    mesh.settle()
    bodies = [b"%d" % number for number in range(20)]
    mesh[1].local().publish(b"a", *bodies)
    mesh.carry(piece)
    assert there.messages() == between.messages() == bodies


def test_reserved_names_are_not_wanted_elsewhere() -> None:
    mesh = Mesh(TWO)
    local = mesh[2].local(b"_LOCAL.a", b"_WEFT.event.>", b"a")
    assert [wanted.pattern for wanted, _ in mesh[2].traffic.local_changes()] == [b"a"]
    assert local.frames() == []


@pytest.mark.req("MM-22")
def test_what_the_last_one_gives_up_is_withdrawn() -> None:
    mesh = Mesh(TWO)
    one, other = mesh[2].local(b"a"), mesh[2].local(b"a")
    mesh.settle()
    one.say(encode(Kind.UNSUBSCRIBE, b"a"))
    assert mesh[2].traffic.local_changes() == []
    other.say(encode(Kind.UNSUBSCRIBE, b"a"))
    mesh.settle()
    mesh[1].local().publish(b"a", b"x")
    assert mesh.wires[(1, 2)].frames(Kind.MESSAGE) == []
    assert mesh[1].traffic.counts.sent == 0


# Groups and requests.


def test_a_group_prefers_its_members_here() -> None:
    mesh = Mesh(TWO)
    here, there = mesh[1].local(b"a", group=b"g"), mesh[2].local(b"a", group=b"g")
    mesh.settle()
    mesh[1].local().publish(b"a", *[b"x"] * 6)
    mesh.carry()
    assert here.messages() == [b"x"] * 6
    assert there.messages() == []


def test_a_group_elsewhere_gets_each_message_once() -> None:
    mesh = Mesh([(1, 2), (1, 3)])
    members = [mesh[number].local(b"a", group=b"g") for number in (2, 2, 3)]
    plain = mesh[3].local(b"a")
    mesh.settle()
    bodies = [b"%d" % number for number in range(12)]
    mesh[1].local().publish(b"a", *bodies)
    mesh.carry()
    got = [member.messages() for member in members]
    assert sorted(body for each in got for body in each) == sorted(bodies)
    assert all(got)
    assert plain.messages() == bodies


def test_a_request_is_answered_by_another_gateway() -> None:
    mesh = Mesh(LINE)
    responder = mesh[3].local(b"quotes")
    mesh.settle()
    asking = mesh[1].local()
    reply = asking.peer.inbox + b"r1"
    asking.publish(b"quotes", b"?", reply=reply, flags=Flag.REQUEST)
    mesh.carry()
    (request,) = responder.frames()
    assert (request.body, request.reply, request.origin) == (b"?", reply, 1)
    responder.publish(request.reply, b"!")
    mesh.carry()
    (answer,) = asking.frames()
    assert (answer.body, answer.subject, answer.origin) == (b"!", reply, 3)
    assert not asking.peer.asking


def test_a_request_prefers_those_who_serve_here() -> None:
    mesh = Mesh(TWO)
    here, there = mesh[1].local(b"q"), mesh[2].local(b"q", group=b"g")
    mesh.settle()
    asking = mesh[1].local()
    for number in range(4):
        asking.publish(b"q", b"?", reply=asking.peer.inbox + b"%d" % number, flags=Flag.REQUEST)
    mesh.carry()
    assert (len(here.messages()), len(there.messages())) == (4, 0)


def test_requests_go_to_the_least_busy_gateway() -> None:
    mesh = Mesh([(1, 2), (1, 3)])
    servers = [mesh[2].local(b"q"), mesh[3].local(b"q")]
    mesh.settle()
    asking = mesh[1].local()
    for number in range(6):
        asking.publish(b"q", b"?", reply=asking.peer.inbox + b"%d" % number, flags=Flag.REQUEST)
        mesh.carry()
    assert [len(server.messages()) for server in servers] == [3, 3]


def test_whoever_asks_is_told_that_the_responder_elsewhere_is_gone() -> None:
    mesh = Mesh(LINE)
    responder = mesh[3].local(b"q")
    mesh.settle()
    asking = mesh[1].local()
    reply = asking.peer.inbox + b"r"
    asking.publish(b"q", b"?", reply=reply, flags=Flag.REQUEST)
    mesh.carry()
    responder.peer.end(None)
    mesh[3].flush()
    mesh.carry()
    (refusal,) = asking.frames()
    assert (refusal.kind, refusal.reply) == (Kind.ERROR, reply)
    assert Message.from_body(refusal.body).get_string("name") == "ResponderGone"


def test_whoever_asks_is_told_that_the_gateway_of_the_responder_is_lost() -> None:
    mesh = Mesh(LINE)
    mesh[3].local(b"q")
    mesh.settle()
    asking = mesh[1].local()
    asking.publish(b"q", b"?", reply=asking.peer.inbox + b"r", flags=Flag.REQUEST)
    mesh.carry()
    mesh.cut(2, 3)
    mesh[1].flush()
    assert [frame.kind for frame in asking.frames()] == [Kind.ERROR]
    asking.publish(b"q", b"?", reply=asking.peer.inbox + b"s", flags=Flag.REQUEST)
    (refusal,) = asking.frames()
    assert Message.from_body(refusal.body).get_string("name") == "NotKnown"


def test_a_request_that_nobody_serves_any_more_is_refused() -> None:
    mesh = Mesh(TWO)
    responder = mesh[2].local(b"q")
    mesh.settle()
    responder.say(encode(Kind.UNSUBSCRIBE, b"q"))
    asking = mesh[1].local()
    asking.publish(b"q", b"?", reply=asking.peer.inbox + b"r", flags=Flag.REQUEST)
    mesh.carry()
    (refusal,) = asking.frames()
    assert Message.from_body(refusal.body).get_string("name") == "NotKnown"


def test_a_masked_request_is_answered_across_gateways() -> None:
    mesh = Mesh(TWO)
    responder = mesh[2].local(b"q")
    mesh.settle()
    asking = mesh[1].local()
    reply = asking.peer.inbox + b"r"
    asking.publish(b"q", b"?", reply=reply, flags=Flag.REQUEST | Flag.MASKED)
    mesh.carry()
    (request,) = responder.frames()
    assert request.reply != reply
    responder.publish(request.reply, b"!")
    mesh.carry()
    (answer,) = asking.frames()
    assert (answer.body, answer.subject, answer.origin) == (b"!", reply, 2)


# Losses.


def gaps(frames: list[Frame]) -> list[tuple[int, int]]:
    """Origins and counts of what was announced as lost."""
    return [
        (frame.origin, Message.from_body(frame.body).get_uint64("count"))
        for frame in frames
        if frame.kind == Kind.GAP
    ]


def test_what_a_lost_link_swallowed_is_sent_again_by_another_way() -> None:
    mesh = Mesh(SQUARE)
    there = mesh[3].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    here.publish(b"a", b"1")
    mesh.carry()
    here.publish(b"a", b"2", b"3")
    mesh.cut(1, 2)
    here.publish(b"a", b"4")
    mesh.carry()
    assert there.messages() == [b"1"]
    mesh.wait(300)
    assert there.messages() == [b"2", b"3", b"4"]
    assert mesh[1].traffic.counts.resent == 2


def test_a_lost_tail_is_noticed_without_another_message() -> None:
    mesh = Mesh(SQUARE)
    there = mesh[3].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    here.publish(b"a", b"1", b"2")
    mesh.cut(1, 2)
    mesh.wait(1000)
    assert there.messages() == [b"1", b"2"]
    assert mesh[1].traffic.is_quiet


def test_a_transit_gateway_finds_another_way_when_its_link_is_lost() -> None:
    mesh = Mesh([(1, 2), (2, 3), (2, 4), (3, 4)])
    there = mesh[3].local(b"a")
    mesh.settle()
    mesh.cut(2, 3, is_known=False)
    mesh.plot(2)
    mesh[1].local().publish(b"a", b"x")
    mesh.carry()
    assert there.messages() == [b"x"]
    assert len(mesh.wires[(4, 3)].frames(Kind.MESSAGE)) == 1


def test_what_was_missed_while_away_is_sent_when_back() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    mesh.cut(1, 2)
    here.publish(b"a", b"1", b"2")
    mesh.wait(5000)
    assert there.frames() == []
    mesh.mend(1, 2)
    mesh.wait(1000)
    assert there.messages() == [b"1", b"2"]


def test_what_is_gone_from_the_ring_is_announced() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    mesh.cut(1, 2)
    for number in range(3):
        here.publish(b"a", b"%d" % number)
    # It keeps them for half a minute.
    mesh.wait(40_000)
    mesh.mend(1, 2)
    here.publish(b"a", b"new")
    mesh.wait(1000)
    frames = there.frames()
    assert gaps(frames) == [(1, 3)]
    assert [frame.kind for frame in frames] == [Kind.GAP, Kind.MESSAGE]


def test_a_gateway_that_answers_nothing_is_not_waited_for() -> None:
    mesh, there = hole()
    for _ in range(80):
        mesh[2].wait(50)
        mesh.wires[(2, 1)].data.clear()
        mesh.carry()
    frames = there.frames()
    assert gaps(frames) == [(1, 1)]
    assert frames[-1].body == b"2"


def test_what_is_missing_is_asked_for_again_when_nobody_answers() -> None:
    mesh, there = hole()
    mesh[2].wait(100)
    mesh.wires[(2, 1)].data.clear()
    mesh.wait(1500)
    assert there.messages() == [b"1", b"2"]
    assert mesh[2].traffic.counts.gaps == 0


def test_what_is_missing_is_asked_for_at_once_when_the_ways_are_others() -> None:
    mesh, there = hole()
    mesh[2].wait(100)
    mesh.wires[(2, 1)].data.clear()
    mesh.plot(2)
    mesh[2].wait(50)
    mesh.carry()
    assert there.messages() == [b"1", b"2"]


def test_what_is_missing_is_not_given_up_while_nobody_can_be_asked_for_it() -> None:
    mesh, there = hole()
    mesh.cut(1, 2)
    mesh.wait(10_000)
    assert there.frames() == []
    mesh.mend(1, 2)
    mesh.wait(1000)
    assert there.messages() == [b"1", b"2"]
    assert mesh[2].traffic.counts.gaps == 0


def hole() -> tuple[Mesh, Local]:
    """Two gateways, and somebody at the second who has yet to get the first of two messages."""
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    here.publish(b"a", b"1")
    mesh.wires[(1, 2)].data.clear()
    here.publish(b"a", b"2")
    mesh.carry()
    return mesh, there


def test_a_gateway_that_is_forgotten_is_announced_as_a_loss_of_unknown_size() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    mesh[1].local().publish(b"a", b"1")
    mesh.carry()
    there.frames()
    mesh[2].traffic.part(1)
    mesh[2].flush()
    assert gaps(there.frames()) == [(1, 0)]


def test_a_gateway_that_is_forgotten_before_it_was_heard_of_is_announced_too() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    mesh[1].local().publish(b"a", b"1")
    mesh.wires[(1, 2)].data.clear()
    mesh[2].traffic.part(1)
    mesh[2].flush()
    assert gaps(there.frames()) == [(1, 0)]


def test_a_gateway_that_left_properly_is_no_loss() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    mesh[1].local().publish(b"a", b"1")
    mesh[1].traffic.leave()
    mesh[1].flush()
    mesh.carry()
    mesh[2].traffic.part(1)
    mesh[2].flush()
    assert [frame.kind for frame in there.frames()] == [Kind.MESSAGE]


def test_whoever_was_forgotten_and_is_back_begins_another_epoch() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    here.publish(b"a", b"1")
    mesh.carry()
    mesh[1].traffic.part(2)
    mesh[1].traffic.meet(2, "gateway-2")
    mesh.plot()
    mesh[1].traffic.want(2, [InterestEntry(b"a")], [])
    here.publish(b"a", b"2")
    mesh.carry()
    frames = there.frames()
    assert [frame.kind for frame in frames] == [Kind.MESSAGE, Kind.GAP, Kind.MESSAGE]
    assert gaps(frames) == [(1, 0)]


def test_a_link_that_is_full_sheds_messages_and_they_are_announced_or_sent_again() -> None:
    mesh = Mesh(TWO, limits=Limits(outbox_bytes=8 << 20))
    there = mesh[2].local(b"a")
    mesh.settle()
    here = mesh[1].local()
    mesh.wires[(1, 2)].is_stalled = True
    for _ in range(24):
        here.publish(b"a", b"x" * 500_000)
    shed = mesh[1].traffic.counts.shed
    assert 0 < shed < 24
    assert not mesh[1].links[2].outbox.is_cut
    mesh.wires[(1, 2)].is_stalled = False
    mesh[1].go_on()
    mesh.carry()
    assert len(there.messages()) == 24 - shed
    mesh.wait(3000)
    frames = there.frames()
    lost = sum(count for _, count in gaps(frames))
    assert sum(frame.kind == Kind.MESSAGE for frame in frames) + lost == shed


def test_a_word_that_was_routed_and_one_that_was_not_may_come_in_one_read() -> None:
    mesh = Mesh(TWO)
    near: list[bytes] = []
    far: list[tuple[int, Word]] = []
    mesh[2].traffic.on_near = lambda _, body: near.append(body)
    mesh[2].traffic.on_word = lambda origin, word: far.append((origin, word))
    link = mesh[1].links[2]
    probe = Probe(bytes(16), "10.0.0.3:7411")
    mesh[1].traffic.send_word(2, probe)
    link.owe(frame_of(Pong(1)) + frame_of(Pong(2)))
    mesh[1].traffic.send_word(2, probe)
    mesh[1].traffic.send_word(2, probe)
    mesh[1].flush()
    mesh.carry()
    assert far == [(1, probe)] * 3
    assert [decode(body) for body in near] == [Pong(1), Pong(2)]
    assert not mesh[2].links[1].is_over


def test_messages_beyond_what_an_envelope_is_for_end_the_link() -> None:
    mesh = Mesh(TWO)
    there = mesh[2].local(b"a")
    mesh.settle()
    mesh[1].local().publish(b"a", b"x")
    wire = mesh.wires[(1, 2)]
    wire.data += encode(Kind.MESSAGE, b"a", b"nobody's")
    mesh.carry()
    assert there.messages() == [b"x"]
    assert mesh[2].links[1].is_over
