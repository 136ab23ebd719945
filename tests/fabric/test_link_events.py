"""Events of links that an operator should see."""

from tests.fabric.impostor import Impostor
from tests.fabric.mesh import meshed

from weft.core.frames import Kind, encode
from weft.core.messages import Message
from weft.fabric.link_events import EVENTS_MAX, Ended, LinkEvents, Warned
from weft.fabric.rules import Rules


def ended(events: LinkEvents) -> list[Ended]:
    return [event for event in events.take() if isinstance(event, Ended)]


def test_a_link_that_is_closed_without_a_word_says_so() -> None:
    net = meshed(2)
    net.kill(2)
    net.wait(0.1)
    assert ended(net[1].fabric.events) == [Ended(2, "its connection was closed", False)]


def test_a_link_whose_gateway_is_silent_says_for_how_long() -> None:
    net = meshed(2)
    net.kill(2, is_dark=True)
    net.wait(3)
    [event] = ended(net[1].fabric.events)
    assert event.text.startswith("gateway gateway-2 has not answered for 2.")
    assert not event.is_orderly


def test_a_gateway_that_leaves_ends_its_links_in_order_at_both_ends() -> None:
    net = meshed(2)
    node = net[2]
    node.fabric.leave()
    net.wait(3)
    assert ended(net[1].fabric.events) == [Ended(2, "it is closing down", True)]
    assert ended(node.fabric.events) == [Ended(1, "this gateway is closing down", True)]


def test_a_link_that_is_one_too_many_says_so_at_both_ends() -> None:
    net = meshed(4, Rules(join=("10.0.0.1:7411",), max_links=8))
    net[1].fabric.limit_links(2)
    net.wait(5)
    here, *_ = ended(net[1].fabric.events)
    assert here.text == "this gateway has as many links as it may"
    there, *_ = ended(net[here.number].fabric.events)
    assert there == Ended(1, "it has as many links as it may", True)


def test_the_gateway_at_the_other_end_says_why_it_ends_a_link() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    line = rogue.join(net[1])
    body = Message(number=4007, name="NotAllowed", text="not with you").encode()
    line.send(encode(Kind.ERROR, body=body))
    assert ended(net[1].fabric.events) == [Ended(rogue.number, "it says: not with you", False)]


def test_events_that_nobody_takes_are_bounded() -> None:
    events = LinkEvents()
    for number in range(EVENTS_MAX + 2):
        events.warn("Test", str(number), "text")
    assert events.dropped == 2
    taken = events.take()
    assert len(taken) == EVENTS_MAX
    assert taken[0] == Warned("Test", "0", "text")
    assert events.take() == []
