"""Connections whose gateways have yet to prove who they are."""

import pytest
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net, meshed

from weft.mesh.protocol import Ping, frame_of
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message


def dialled(net: Net, answer: bytes) -> str:
    """What a gateway notes of an address where somebody answers like this."""
    rogue = Impostor(net)
    net[1].fabric.dialling.targets.offer(rogue.address, net.now_ns)
    net.now_ns += 200_000_000
    net[1].tick()
    rogue.lines[0].send(answer)
    (target,) = [each for each in net[1].fabric.dialling.targets if each.address == rogue.address]
    assert not target.is_dialling
    assert target.next_ns > net.now_ns
    return target.problem


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"number": 3004, "text": "later"}, "remote error: later"),
        ({"number": "x", "text": "odd"}, "remote error: odd"),
        ({"text": 7}, "remote error: 7"),
        ({}, "remote error without a reason"),
    ],
)
def test_why_somebody_does_not_want_to_be_linked_is_noted(
    fields: dict[str, object], problem: str
) -> None:
    body = Message(**fields).encode()
    assert dialled(meshed(1), encode(Kind.ERROR, body=body)) == problem


def test_whoever_closes_down_says_goodbye() -> None:
    assert dialled(meshed(1), encode(Kind.GOODBYE)) == "it is closing down"


@pytest.mark.parametrize(
    "frame",
    [
        encode(Kind.ERROR, body=b"\xff\xff"),
        encode(Kind.MESSAGE, b"a", b"x"),
        encode(Kind.LINK, b"weather", b"junk"),
        encode(Kind.LINK, b"weather", b"junk") * 2,
        frame_of(Ping(1, 1)),
    ],
    ids=["error", "message", "greeting", "two", "word"],
)
def test_whoever_says_something_else_is_not_linked_with(frame: bytes) -> None:
    net = meshed(1)
    assert dialled(net, frame)
    assert net[1].fabric.links == {}


def test_whoever_hangs_up_is_tried_again() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    net[1].fabric.dialling.targets.offer(rogue.address, net.now_ns)
    net.now_ns += 200_000_000
    net[1].tick()
    for pipe in net.pipes:
        pipe.data.clear()
        pipe.is_over = True
    net.carry()
    (target,) = [each for each in net[1].fabric.dialling.targets if each.address == rogue.address]
    assert target.problem == "the connection ended"
    net.wait(1)
    assert len(rogue.lines) > 1


def test_whoever_never_says_who_it_is_is_cut() -> None:
    net = meshed(1)
    pipes = net.connect("10.9.9.9:1", net[1].address)
    assert pipes is not None
    _, back = pipes
    back.hear = lambda _: None
    back.hang_up = lambda: None
    net.wait(8)
    assert back not in net.pipes
    assert net[1].service.refused == {"TooSlow": 1}
