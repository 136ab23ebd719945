"""What a simulated gateway makes of what comes to it."""

from random import Random

import pytest

from weft.mesh.settings import Rules
from weft.simulation.clients import SimSubscriber
from weft.simulation.clock import MS, SECOND
from weft.simulation.gateway import SERVICE
from weft.simulation.history import DeliveryRecord
from weft.simulation.network import FAST
from weft.simulation.wire import Wire
from weft.simulation.world import World
from weft.wire.frames import Flag, Kind, encode

CONNECT = encode(Kind.CONNECT, SERVICE.encode())
MESSAGE = encode(Kind.MESSAGE, b"a.b", b"somebody 7", b"", int(Flag.BARE))


@pytest.mark.parametrize("turn_ns", [0, 2 * MS])
def test_what_was_sent_before_a_connection_ended_is_dealt_with(turn_ns: int) -> None:
    world = World("1")
    gateway = world.add(Rules())
    gateway.turn_ns = turn_ns
    gateway.begin()
    subscriber = SimSubscriber(world, "s", gateway, "a.>")
    outgoing, incoming = (Wire(world.clock, Random(1), way, FAST) for way in ((1, 2), (2, 1)))
    gateway.accept(outgoing, incoming)
    incoming.send(CONNECT + MESSAGE)
    incoming.end()
    world.clock.run(SECOND)
    events = subscriber.session.events
    assert [each.counter for each in events if isinstance(each, DeliveryRecord)] == [7]
    assert outgoing.is_ended
