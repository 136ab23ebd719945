"""A link with little bandwidth and much to send stays up, and control goes before messages."""

from weft.mesh.settings import Rules
from weft.simulation.clients import Client, Requester, Responder, SimSubscriber
from weft.simulation.clock import MS, SECOND
from weft.simulation.gateway import SimGateway
from weft.simulation.history import DeliveryRecord, GapRecord
from weft.simulation.wire import Pace
from weft.simulation.world import World
from weft.wire.frames import Flag, Kind, encode

BYTES_PER_S = 1 << 20
MESSAGES = 800
PIECE = 15 << 10
# Together 12 s of the link.
BACKLOG_S = MESSAGES * PIECE // BYTES_PER_S + 1


def pair() -> tuple[World, SimGateway, SimGateway]:
    """Two gateways with a thin link."""
    world = World("thin")
    world.network.pace = Pace(5 * MS, MS, BYTES_PER_S)
    one, other = (world.add(Rules(join=("10.0.0.1:7411",))) for _ in range(2))
    one.begin()
    other.begin()
    world.clock.run(2 * SECOND)
    assert one.fabric.traffic.is_quiet
    return world, one, other


def flood(world: World, gateway: SimGateway) -> None:
    """Publish more at once than the link sends in ten seconds."""
    publisher = Client(world, "p", gateway)
    name = "x" * PIECE
    for counter in range(MESSAGES):
        body = f"{name} {counter}".encode()
        publisher.say(encode(Kind.MESSAGE, b"data.1", body, b"", int(Flag.BARE)))


def test_a_link_that_moves_bytes_stays_and_loses_nothing() -> None:
    world, one, other = pair()
    subscriber = SimSubscriber(world, "s", other, "data.>")
    world.clock.run(world.clock.now_ns + SECOND)
    before = [*one.fabric.links, *other.fabric.links]
    flood(world, one)
    world.clock.run(world.clock.now_ns + (BACKLOG_S + 5) * SECOND)
    assert [*one.fabric.links, *other.fabric.links] == before
    heard = [each.counter for each in subscriber.session.events if isinstance(each, DeliveryRecord)]
    assert heard == list(range(MESSAGES))
    assert not any(isinstance(each, GapRecord) for each in subscriber.session.events)


def test_news_of_a_subscription_goes_before_messages_that_wait() -> None:
    world, one, other = pair()
    SimSubscriber(world, "s", other, "data.>")
    publisher = Client(world, "q", other)
    world.clock.run(world.clock.now_ns + SECOND)
    flood(world, one)
    late = SimSubscriber(world, "t", one, "news")
    world.clock.run(world.clock.now_ns + SECOND)
    publisher.publish("news", range(7, 8))
    world.clock.run(world.clock.now_ns + SECOND)
    assert [each.counter for each in late.session.events if isinstance(each, DeliveryRecord)] == [7]


def test_requests_in_both_directions_are_answered_once_the_backlog_is_sent() -> None:
    world, one, other = pair()
    SimSubscriber(world, "s", other, "data.>")
    Responder(world, "r", other, "ask.there")
    Responder(world, "r", one, "ask.here")
    near, far = Requester(world, "q", one), Requester(world, "q", other)
    world.clock.run(world.clock.now_ns + SECOND)
    flood(world, one)
    for counter in range(20):
        near.ask("ask.there", counter)
        far.ask("ask.here", counter)
    world.clock.run(world.clock.now_ns + (BACKLOG_S + 5) * SECOND)
    assert [each.answers for each in world.history.asked] == 40 * [1]
