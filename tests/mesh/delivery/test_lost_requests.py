"""Requests that another gateway refuses, or that are lost on the way: whoever asked is told."""

import pytest
from tests.mesh.gateways import Local, Mesh

from weft.mesh.delivery.origin_stream import MISSED_MAX, Incoming
from weft.mesh.protocol import LostRanges
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.message import Message

TWO = [(1, 2)]
MASKED = Flag.REQUEST | Flag.MASKED


def ask(asking: Local, flags: int = Flag.REQUEST) -> bytes:
    """Ask for quotes; under which reply subject."""
    reply = asking.peer.inbox + b"r"
    asking.publish(b"quotes", b"?", reply=reply, flags=flags)
    return reply


def refusals(asking: Local) -> list[Frame]:
    """What somebody was refused since the last time."""
    return [frame for frame in asking.frames() if frame.kind == Kind.ERROR]


def name_of(refusal: Frame) -> str:
    return Message.from_body(refusal.body).get_string("name")


def lose(mesh: Mesh, source: int, target: int) -> None:
    """Lose what is on its way from one to the other, and have it given up there."""
    mesh.wires[(source, target)].data.clear()
    # What comes later shows that something is missing, and no question about it is heard.
    mesh[source].local().publish(b"later", b"x")
    mesh.carry()
    for _ in range(80):
        mesh[target].wait(50)
        mesh.wires[(target, source)].data.clear()


def prepared() -> tuple[Mesh, Local, Local]:
    """Two gateways, somebody at the first who asks, and somebody at the second who answers."""
    mesh = Mesh(TWO)
    for number in (1, 2):
        mesh[number].local(b"later")
    responder = mesh[2].local(b"quotes")
    mesh.settle()
    return mesh, mesh[1].local(), responder


@pytest.mark.parametrize("flags", [Flag.REQUEST, MASKED], ids=["plain", "masked"])
def test_a_responder_elsewhere_that_leaves_is_told_under_the_reply_of_the_request(
    flags: int,
) -> None:
    mesh, asking, responder = prepared()
    reply = ask(asking, flags)
    mesh.carry()
    responder.peer.end(None)
    mesh[2].flush()
    mesh.carry()
    (refusal,) = refusals(asking)
    assert (refusal.subject, refusal.reply, refusal.flags) == (b"quotes", reply, Flag.REQUEST)
    assert name_of(refusal) == "ResponderGone"
    assert not asking.peer.asking
    assert not asking.peer.masks


@pytest.mark.req("RLY-7")
@pytest.mark.parametrize("flags", [Flag.REQUEST, MASKED], ids=["plain", "masked"])
def test_whoever_asked_is_told_that_the_request_was_lost_on_its_way(flags: int) -> None:
    mesh, asking, responder = prepared()
    reply = ask(asking, flags)
    lose(mesh, 1, 2)
    mesh.wait(1000)
    assert responder.messages() == []
    (refusal,) = refusals(asking)
    assert (refusal.subject, refusal.reply, refusal.flags) == (b"quotes", reply, Flag.REQUEST)
    assert name_of(refusal) == "ResponderGone"
    assert not asking.peer.asking
    assert not asking.peer.masks


@pytest.mark.req("RLY-7")
@pytest.mark.parametrize("flags", [Flag.REQUEST, MASKED], ids=["plain", "masked"])
def test_whoever_asked_is_told_that_the_answer_was_lost_on_its_way(flags: int) -> None:
    mesh, asking, responder = prepared()
    reply = ask(asking, flags)
    mesh.carry()
    (request,) = responder.frames()
    responder.publish(request.reply, b"!")
    lose(mesh, 2, 1)
    mesh.wait(1000)
    (refusal,) = refusals(asking)
    assert (refusal.subject, refusal.reply, refusal.flags) == (b"quotes", reply, Flag.REQUEST)
    assert name_of(refusal) == "ResponderGone"
    assert not asking.peer.asking


def test_a_refusal_that_was_lost_on_its_way_is_said_again() -> None:
    mesh, asking, responder = prepared()
    responder.say(encode(Kind.UNSUBSCRIBE, b"quotes"))
    ask(asking)
    # Only what gateway 2 is sent is carried: its refusal is still on the way back.
    wire = mesh.wires[(1, 2)]
    mesh[2].read(mesh[2].links[1], bytes(wire.data))
    wire.data.clear()
    lose(mesh, 2, 1)
    mesh.wait(1000)
    (refusal,) = refusals(asking)
    assert name_of(refusal) == "NotKnown"


def test_an_answer_that_one_of_many_sent_is_not_refused() -> None:
    mesh, asking, responder = prepared()
    asking.publish(b"quotes", b"?", reply=asking.peer.inbox + b"r")
    mesh.carry()
    (message,) = responder.frames()
    responder.publish(message.reply, b"!")
    lose(mesh, 2, 1)
    mesh.wait(1000)
    assert asking.frames() == []


def test_what_was_lost_is_told_once() -> None:
    mesh, asking, responder = prepared()
    ask(asking)
    lose(mesh, 1, 2)
    mesh.wait(1000)
    assert len(refusals(asking)) == 1
    # The same reply subject once more: what was lost before is not about it.
    ask(asking)
    mesh.wait(2000)
    assert refusals(asking) == []
    assert len(responder.messages()) == 1


def test_what_was_lost_is_not_told_for_ever() -> None:
    mesh, asking, _ = prepared()
    ask(asking)
    lose(mesh, 1, 2)
    mesh.wait(40_000)
    wire = mesh.wires[(2, 1)]
    wire.carried.clear()
    mesh[1].local().publish(b"later", b"x")
    mesh.wait(1000)
    assert len(wire.frames(Kind.FORWARD)) == 1


@pytest.mark.parametrize(
    "ranges",
    [(), ((0, 1 << 40),), ((1, 0),), ((1 << 48, 1 << 48),)],
    ids=["none", "more than was sent", "the wrong way round", "another epoch"],
)
def test_what_cannot_be_lost_is_not(ranges: tuple[tuple[int, int], ...]) -> None:
    mesh, asking, _ = prepared()
    ask(asking)
    mesh[2].traffic.send_word(1, LostRanges(ranges))
    mesh[2].flush()
    mesh.wait(1000)
    assert refusals(asking) == []
    assert len(asking.peer.asking) == 1


def test_of_what_never_came_the_latest_is_told() -> None:
    incoming = Incoming(1, 0)
    for number in range(MISSED_MAX + 1):
        incoming.expected = 2 * number
        incoming.miss(2 * number + 1, 0)
    assert len(incoming.missed) == MISSED_MAX
    assert incoming.missed[0] == (2, 2)
    assert incoming.missed[-1] == (2 * MISSED_MAX, 2 * MISSED_MAX)


def test_another_epoch_has_lost_nothing_yet() -> None:
    incoming = Incoming(1, 0)
    incoming.miss(5, 0)
    incoming.begin_anew(1 << 48)
    assert incoming.missed == []
