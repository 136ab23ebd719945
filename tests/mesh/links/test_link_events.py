"""Events of links that an operator should see."""

import msgspec
import pytest
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import SECRET, Net, address_of, admission_of, identity_of, meshed

from weft.mesh.links.handshake import GatewayIntroduction, Handshake
from weft.mesh.links.link_events import EVENTS_MAX, LinkEnded, LinkEvents, Warned
from weft.mesh.settings import Rules
from weft.wire.frames import Kind, encode, parse
from weft.wire.message.message import Message


def ended(events: LinkEvents) -> list[LinkEnded]:
    return [event for event in events.take() if isinstance(event, LinkEnded)]


def test_a_link_that_is_closed_without_a_word_says_so() -> None:
    net = meshed(2)
    net.kill(2)
    net.wait(0.1)
    assert ended(net[1].fabric.events) == [LinkEnded(2, "its connection was closed", False)]


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
    assert ended(net[1].fabric.events) == [LinkEnded(2, "it is closing down", True)]
    assert ended(node.fabric.events) == [LinkEnded(1, "this gateway is closing down", True)]


def test_a_link_that_is_one_too_many_says_so_at_both_ends() -> None:
    net = meshed(4, Rules(join=("10.0.0.1:7411",), max_links=8))
    net[1].fabric.limit_links(2)
    net.wait(5)
    here, *_ = ended(net[1].fabric.events)
    assert here.text == "this gateway is at its limit of links"
    there, *_ = ended(net[here.number].fabric.events)
    assert there == LinkEnded(1, "it is at its limit of links", True)


def test_the_gateway_at_the_other_end_says_why_it_ends_a_link() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    line = rogue.join(net[1])
    body = Message(number=4007, name="NotAllowed", text="not with you").encode()
    line.send(encode(Kind.ERROR, body=body))
    assert ended(net[1].fabric.events) == [
        LinkEnded(rogue.number, "remote error: not with you", False)
    ]


def test_events_that_nobody_takes_are_bounded() -> None:
    events = LinkEvents()
    for number in range(EVENTS_MAX + 2):
        events.warn("Test", str(number), "text")
    assert events.dropped == 2
    taken = events.take()
    assert len(taken) == EVENTS_MAX
    assert taken[0] == Warned("Test", "0", "text")
    assert events.take() == []


def warned(events: LinkEvents) -> list[Warned]:
    return [event for event in events.take() if isinstance(event, Warned)]


@pytest.mark.parametrize(
    ("secret", "own", "check"),
    [
        (b"", SECRET, "it has no secret: set its mesh.secret_file to that of this mesh"),
        (b"another", SECRET, "it has another secret: compare mesh.secret_file of both gateways"),
        (SECRET, b"", "it has a secret, and this gateway has none: set mesh.secret_file here, too"),
    ],
)
def test_the_dialled_gateway_says_what_is_wrong_with_a_secret(
    secret: bytes, own: bytes, check: str
) -> None:
    net = Net()
    net.begin(1, admission=admission_of(1, own))
    line = Impostor(net, secret=secret).dial(net[1])
    net.wait(0.1)
    assert line.errors == ["NotAdmitted"]
    [event] = warned(net[1].fabric.events)
    assert event.kind == "NotAdmitted"
    assert "claims to be 'impostor' at '10.0.0.99:7411'" in event.text
    assert event.text.endswith(check)
    assert net[1].fabric.events.not_linked == {"NotAdmitted": 1}


def test_the_dialled_gateway_names_a_key_that_is_not_on_its_roster() -> None:
    net = Net()
    roster = frozenset((identity_of(1).key,))
    net.begin(1, admission=admission_of(1)._replace(roster=roster))
    rogue = Impostor(net)
    rogue.dial(net[1])
    net.wait(0.1)
    [event] = warned(net[1].fabric.events)
    assert event.text.endswith(f"its key {identity_of(99).key.hex()} is not in mesh.roster here")


def test_the_dialled_gateway_says_that_the_version_is_another() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    introduction = GatewayIntroduction(99, 5, "impostor", rogue.address, "", 0)
    shake = Handshake(rogue.admission, "weather", introduction, bytes(32), is_dialler=True)
    hello = msgspec.msgpack.decode(parse(shake.begin()).body)
    hello[1] = 2
    pipes = net.connect(rogue.address, net[1].address)
    assert pipes is not None
    pipes[0].took(encode(Kind.LINK, b"weather", msgspec.msgpack.encode(hello)))
    pipes[1].hear = lambda _: None
    pipes[1].hang_up = lambda: None
    net.carry()
    [event] = warned(net[1].fabric.events)
    assert (event.kind, event.text.rpartition(": ")[2]) == (
        "BadGreeting",
        "version 2 of links is not supported, only 1",
    )


def test_both_sides_say_it_if_the_dialler_does_not_accept_the_dialled() -> None:
    net = Net()
    net.begin(1)
    roster = frozenset((identity_of(2).key,))
    node = net.begin(2, admission=admission_of(2)._replace(roster=roster))
    net.wait(0.3)
    key = identity_of(1).key.hex()
    problem = node.fabric.dialling.targets.at(address_of(1)).problem
    assert problem.endswith(f"its key {key} is not in mesh.roster here")
    event = warned(net[1].fabric.events)[0]
    assert event.text.endswith(
        f"compare mesh.secret_file of both, and mesh.roster there with {key}"
    )
    # It was configured, and is logged by its address.
    assert warned(node.fabric.events) == []


def test_a_handshake_that_is_not_finished_is_counted_and_no_warning() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    pipes = net.connect(rogue.address, net[1].address)
    assert pipes is not None
    introduction = GatewayIntroduction(99, 5, "impostor", rogue.address, "", 0)
    shake = Handshake(rogue.admission, "weather", introduction, bytes(32), is_dialler=True)
    pipes[0].took(shake.begin())
    pipes[1].hear = lambda _: None
    pipes[1].hang_up = lambda: None
    net.wait(10)
    assert warned(net[1].fabric.events) == []
    assert net[1].fabric.events.not_linked == {"TooSlow": 1}
