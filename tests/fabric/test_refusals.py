"""Requests that another gateway refuses: whoever asked is told."""

import pytest
from tests.fabric.gateways import Local, Mesh

from weft.core.frames import Flag, Frame, Kind
from weft.core.messages import Message

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
