"""Publishers wait while a link that their messages leave by has much to send, and moves."""

from tests.mesh.gateways import Local
from tests.mesh.mesh import Net, Node, Pipe, meshed

from weft.broker.delivery.backpressure import SLICE_NS, STILL_NS, end_holds
from weft.broker.delivery.policy import Bounds
from weft.broker.service import Peer
from weft.mesh.settings import Rules

RULES = Rules(join=("10.0.0.1:7411",), outbox_bytes=1 << 20)
HIGH = Bounds(RULES.outbox_bytes).high_bytes
BODY = bytes(16_000)


def pair(pattern: bytes = b"a", group: bytes = b"") -> tuple[Net, Node, Local, Peer]:
    """Two gateways, a publisher at the first, and the link to a subscriber at the second."""
    net = meshed(2, RULES)
    net[2].listen(pattern, group=group)
    link = net[1].link_to(net[2])
    assert link is not None
    return net, net[1], net[1].local(), link.peer


def publish(publisher: Local, size: int, subject: bytes = b"a") -> None:
    for _ in range(size // len(BODY) + 1):
        publisher.publish(subject, BODY)


def stall(net: Net) -> list[Pipe]:
    """Have the link take nothing until its pipes are no longer stalled."""
    pipes = net.between(1, 2)
    for pipe in pipes:
        pipe.is_stalled = True
    return pipes


def test_a_publisher_is_held_when_its_link_is_over_the_mark_and_not_before() -> None:
    net, _, publisher, link = pair()
    stall(net)
    publish(publisher, HIGH // 2)
    assert not publisher.peer.is_paused
    publish(publisher, HIGH)
    assert link.outbox.is_crowded
    assert publisher.peer.is_paused


def test_a_publisher_to_a_group_elsewhere_is_held() -> None:
    net, _, publisher, _ = pair(group=b"workers")
    stall(net)
    publish(publisher, 2 * HIGH)
    assert publisher.peer.is_paused


def test_a_publisher_goes_on_when_the_link_has_room() -> None:
    net, node, publisher, _ = pair()
    pipes = stall(net)
    publish(publisher, 2 * HIGH)
    assert end_holds(node.service) == []
    for pipe in pipes:
        pipe.is_stalled = False
    net.wait(0.1)
    assert node.service.budget.is_eased
    assert end_holds(node.service) == [publisher.peer]


def test_a_publisher_goes_on_when_its_slice_is_over() -> None:
    net, node, publisher, _ = pair()
    stall(net)
    publish(publisher, 2 * HIGH)
    node.service.now_ns += SLICE_NS
    assert end_holds(node.service) == [publisher.peer]


def test_nobody_is_held_for_a_link_that_stands_still() -> None:
    net, node, publisher, link = pair()
    stall(net)
    publish(publisher, 2 * HIGH)
    node.service.now_ns += STILL_NS + SLICE_NS
    end_holds(node.service)
    publisher.peer.is_paused = False
    publish(publisher, len(BODY))
    assert link.outbox.is_crowded
    assert not publisher.peer.is_paused


def test_nobody_is_held_who_publishes_to_subscribers_here() -> None:
    net, node, publisher, _ = pair()
    node.local(b"here")
    stall(net)
    publish(publisher, 2 * HIGH)
    other = node.local()
    publish(other, len(BODY), b"here")
    assert not other.peer.is_paused
