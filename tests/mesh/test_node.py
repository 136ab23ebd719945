"""Gateways that find each other, stay together, and let each other go."""

import pytest
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net, address_of, admission_of, identity_of, meshed

from weft.mesh.links.dial_targets import OFFER_NS
from weft.mesh.links.handshake import Admission
from weft.mesh.links.neighbour_selection import SPARE
from weft.mesh.links.signing import verify
from weft.mesh.node import LEAVE_NS
from weft.mesh.protocol import Goodbye, LinkReady, Redirect, Summary
from weft.mesh.settings import Rules


def heard_everywhere(net: Net, source: int) -> bool:
    """Whether what enters at one gateway is heard at all the others."""
    others = {place: net[place].local(b"all") for place in net.nodes if place != source}
    net.wait(0.5)
    net[source].local().publish(b"all", b"x")
    net.carry()
    return all(each.messages() == [b"x"] for each in others.values())


@pytest.mark.req("MM-12", "MM-21", "RLY-3", "RLY-5")
def test_gateways_that_were_told_of_one_find_all() -> None:
    net = meshed(5)
    assert all(len(node.fabric.links) == 4 for node in net.nodes.values())
    assert heard_everywhere(net, 3)


@pytest.mark.req("RLY-4")
def test_whoever_cannot_be_reached_stops_nobody_and_is_tried_again() -> None:
    net = Net()
    net.begin(2, Rules(join=(address_of(1), address_of(3))))
    net.begin(3, Rules())
    net.wait(1)
    assert net[2].knows() == {3}
    (target,) = [each for each in net[2].fabric.dialling.targets if each.problem]
    assert (target.address, target.problem) == (address_of(1), "nobody listens")
    net.begin(1, Rules())
    net.wait(5)
    assert net.is_whole()


@pytest.mark.req("RLY-5", "RLY-6")
def test_with_the_limit_reached_messages_still_reach_all() -> None:
    net = meshed(12, Rules(join=(address_of(1),), max_links=3))
    net.wait(5)
    assert net.is_whole()
    assert max(len(node.fabric.links) for node in net.nodes.values()) <= 2 * 3 + SPARE
    assert sum(len(node.fabric.links) for node in net.nodes.values()) < 12 * 6
    assert heard_everywhere(net, 7)


@pytest.mark.req("RLY-7")
def test_a_gateway_at_its_limit_takes_newcomers_in_or_sends_them_on() -> None:
    net = meshed(6, Rules(join=(address_of(1),), max_links=2))
    for place in range(7, 11):
        net.begin(place, Rules(join=(address_of(1),), max_links=2))
    net.wait(10)
    assert net.is_whole()
    assert heard_everywhere(net, 10)


@pytest.mark.req("RLY-7")
def test_a_redirected_gateway_is_told_where_to_go() -> None:
    net = meshed(3, Rules(join=(address_of(1),), max_links=1))
    lines = [Impostor(net, place).dial(net[1]) for place in range(90, 99)]
    net.wait(0.2)
    told = [line for line in lines if line.words(Redirect)]
    assert told
    for line in told:
        assert set(line.words(Redirect)[0].addresses) <= {address_of(place) for place in (1, 2, 3)}
        assert line.words(Goodbye) == [Goodbye()]
        assert line.is_over
    assert net.is_whole()


def test_whoever_is_sent_on_goes_there() -> None:
    net = meshed(1)
    first, second = Impostor(net, 98), Impostor(net, 99)
    net[1].fabric.dialling.targets.offer(first.address, net.now_ns)
    net.wait(0.2)
    first.lines[0].say(Redirect((second.address, net[1].address)), Goodbye())
    net.wait(0.5)
    assert len(second.lines) == 1
    assert len(first.lines) == 1


@pytest.mark.req("MM-20")
def test_gateways_that_register_find_each_other_and_the_registry() -> None:
    net = Net()
    net.begin(1, Rules())
    for place in (2, 3, 4):
        net.begin(place, Rules(registries=(address_of(1),)))
    net.wait(4)
    assert net.is_whole()
    assert net[1].fabric.registry.addresses == [address_of(place) for place in (2, 3, 4)]
    assert net[2].fabric.registry.registered_with == {address_of(1)}
    assert heard_everywhere(net, 2)


@pytest.mark.req("MM-20")
def test_whoever_registered_is_known_there_while_it_is_there() -> None:
    net = Net()
    net.begin(1, Rules())
    net.begin(2, Rules(registries=(address_of(1),)))
    net.wait(2)
    net.kill(2)
    net.wait(1)
    assert net[1].fabric.registry.addresses == []
    net.begin(2, Rules(registries=(address_of(1),)), number=22)
    net.wait(2)
    assert net[1].fabric.registry.addresses == [address_of(2)]


@pytest.mark.req("MM-20")
def test_a_registry_that_is_gone_does_no_harm_and_is_found_again() -> None:
    net = Net()
    net.begin(1, Rules())
    for place in (2, 3):
        net.begin(place, Rules(registries=(address_of(1),)))
    net.wait(3)
    net.kill(1)
    net.wait(3)
    assert net.is_whole()
    net.begin(1, Rules(), number=11)
    net.wait(6)
    assert net[1].fabric.registry.addresses == [address_of(2), address_of(3)]
    assert net.is_whole()


@pytest.mark.req("MM-25")
@pytest.mark.parametrize("is_dark", [False, True])
def test_a_gateway_that_was_killed_is_found_again(is_dark: bool) -> None:
    net = meshed(3)
    net.kill(2, is_dark=is_dark)
    net.wait(4)
    assert net[1].knows() == {3}
    net.begin(2, number=22)
    net.wait(6)
    assert net.is_whole()
    assert heard_everywhere(net, 2)


@pytest.mark.req("MM-25")
def test_a_dropped_link_is_dialled_again() -> None:
    net = meshed(2)
    for pipe in net.between(1, 2):
        pipe.is_over = True
    net.wait(1)
    assert net[1].link_to(net[2]) is not None


def test_a_link_through_which_nothing_comes_is_given_up_on_both_sides() -> None:
    net = meshed(3)
    net.cut(1, 2)
    net.wait(4)
    assert net[1].link_to(net[2]) is None
    assert net[2].link_to(net[1]) is None
    assert net[1].refused["Silent"] == 1
    # There is another way.
    assert net.is_whole()
    net.join(1, 2)
    net.wait(6)
    assert net[1].link_to(net[2]) is not None


def test_two_that_dial_each_other_at_once_keep_one_link() -> None:
    net = Net()
    net.begin(1, Rules(join=(address_of(2),)))
    net.begin(2, Rules(join=(address_of(1),)))
    net.wait(3)
    assert net.is_whole()
    assert len(net[1].fabric.links) == len(net[2].fabric.links) == 1
    before = [id(pipe) for pipe in net.between(1, 2)]
    net.wait(5)
    assert [id(pipe) for pipe in net.between(1, 2)] == before


def test_a_gateway_that_was_just_linked_with_is_not_dialled_again() -> None:
    net = meshed(1)
    slow = Impostor(net)
    net[1].fabric.dialling.targets.offer(slow.address, net.now_ns)
    # It has yet to say what it knows, which may take a while.
    net.wait(1.5)
    assert len(slow.lines) == 1
    assert not slow.lines[0].is_over


def test_a_gateway_that_meets_itself_lets_go_for_a_while() -> None:
    net = Net()
    node = net.begin(1, Rules(join=("also.me:7411",)))
    net.sites["also.me:7411"] = node
    net.wait(20)
    assert node.fabric.links == {}
    assert node.service.refused == {"LinkedToSelf": 1}
    (target,) = node.fabric.dialling.targets
    assert target.problem == "remote error: the gateway at the other end is this one"
    net.wait(60)
    assert node.service.refused == {"LinkedToSelf": 3}


@pytest.mark.parametrize("secret", [b"", b"guess"])
def test_whoever_does_not_know_the_secret_stays_outside(secret: bytes) -> None:
    net = meshed(2)
    net.begin(3, admission=admission_of(3, secret))
    line = Impostor(net, secret=secret).dial(net[1])
    net.wait(10)
    assert line.errors == ["NotAdmitted"]
    assert net[3].knows() == set()
    assert net[1].knows() == {2}
    # With pauses of up to two seconds, and not twenty times a second.
    assert 1 < net[1].refused["NotAdmitted"] < 20
    assert net[1].link_to(net[2]) is not None


def test_whoever_is_not_on_the_roster_stays_outside() -> None:
    net = Net()
    roster = frozenset(identity_of(place).key for place in (1, 2))
    for place in (1, 2, 3):
        net.begin(place, admission=Admission(identity_of(place), verify, b"", roster))
    net.wait(3)
    assert net[1].knows() == {2}
    assert net[3].knows() == set()
    assert net[1].refused["NotAdmitted"] >= 1


def test_two_with_the_same_key_do_no_harm_to_the_others() -> None:
    net = meshed(3)
    net.begin(4, admission=admission_of(3), number=44)
    net.wait(10)
    assert 2 in net[1].knows()
    there = net[2].listen(b"a")
    net[1].local().publish(b"a", b"x")
    net.carry()
    assert there.messages() == [b"x"]
    assert net[1].link_to(net[2]) is not None


def test_two_with_the_same_number_do_no_harm_to_the_others() -> None:
    net = meshed(3)
    net.begin(4, number=3)
    net.wait(3)
    assert net[1].knows() == {2, 3}
    assert net[1].refused["SameNumber"] >= 1
    there = net[3].listen(b"a")
    net[1].local().publish(b"a", b"x")
    net.carry()
    assert there.messages() == [b"x"]


def test_another_gateway_at_the_same_address_is_another() -> None:
    net = meshed(3)
    net.kill(3)
    net.begin(3, number=33, admission=admission_of(30))
    net.wait(3)
    assert net[1].knows() == {2, 33}
    assert heard_everywhere(net, 1)


def test_halves_that_were_parted_come_together_again() -> None:
    net = meshed(4)
    for left in (1, 2):
        for right in (3, 4):
            net.cut(left, right)
    net.wait(5)
    assert net[1].knows() == {2}
    assert net[4].knows() == {3}
    for left in (1, 2):
        for right in (3, 4):
            net.join(left, right)
    net.wait(8)
    assert net.is_whole()
    assert heard_everywhere(net, 1)


def test_halves_that_have_forgotten_each_other_come_together_again() -> None:
    net = Net()
    net.begin(1, Rules(forget_s=2))
    net.begin(2, Rules(join=(address_of(1),), forget_s=2))
    net.wait(1)
    net.nodes[2].fabric.dialling.targets.at(address_of(1)).is_fixed = False
    net.cut(1, 2)
    net.wait(10)
    assert len(net[1].fabric.members) == 1
    net.join(1, 2)
    net.wait(40)
    assert net.is_whole()


def test_a_gateway_that_leaves_is_gone_for_all_at_once_and_not_looked_for() -> None:
    net = meshed(3, Rules(join=(address_of(1),), forget_s=2))
    net[3].fabric.leave()
    net[3].fabric.leave()
    net.wait(0.5)
    assert net[3].fabric.is_gone
    assert net[3].fabric.tick() == []
    assert net[1].knows() == {2}
    net.kill(3)
    net.wait(5)
    assert len(net[1].fabric.members) == 2
    # Its address is not worth more than one that somebody named.
    assert all(each.until_ns <= net.now_ns + OFFER_NS for each in net[1].fabric.dialling.targets)


def test_a_gateway_that_leaves_does_not_wait_for_ever() -> None:
    net = meshed(2)
    rogue = Impostor(net)
    rogue.join(net[1])
    there = net[2].listen(b"a")
    net[1].local().publish(b"a", b"x")
    net.cut(1, 2)
    net[1].fabric.leave()
    net.wait(LEAVE_NS / 1e9 + 0.2)
    assert net[1].fabric.is_gone
    assert there.messages() == []


def test_with_relay_never_only_those_at_the_end_of_a_link_are_reached() -> None:
    net = meshed(3)
    for place in (1, 2, 3):
        net.kill(place)
    for place in (1, 2, 3):
        net.begin(place, Rules(join=(address_of(1),), is_relay=False), number=place + 10)
    net.cut(2, 3)
    net.wait(3)
    assert net[2].knows() == {11}
    assert net[1].knows() == {12, 13}


def test_a_link_that_is_not_needed_is_let_go() -> None:
    net = meshed(5, Rules(join=(address_of(1),), max_links=8))
    for node in net.nodes.values():
        node.fabric._rules = Rules(join=(address_of(1),), max_links=3)
    net.wait(2)
    assert all(len(node.fabric.links) <= 3 for node in net.nodes.values())
    assert {number for node in net.nodes.values() for number in node.knows()} == {1, 2, 3, 4, 5}


def test_a_gateway_that_advertises_everything_and_brings_on_nothing_is_gone_around() -> None:
    net = meshed(4)
    hole = Impostor(net)
    first, second = hole.dial(net[1]), hole.dial(net[2])
    net.cut(1, 2)
    net.cut(1, 4)
    net.cut(3, 2)
    for line in (first, second):
        line.say(Summary((), True), LinkReady())
        line.say(hole.advert(links=(1, 2, 3, 4)))
    net.wait(4)
    there = net[2].listen(b"a")
    publisher = net[1].local()
    for at in range(100):
        publisher.publish(b"a", b"%d" % at)
        net.wait(0.1)
        first.say(hole.advert(links=(1, 2, 3, 4)))
    assert first.envelopes > 0
    assert net[1].refused["NotBroughtOn"] >= 1
    # It was asked for what went into it, by the way that works.
    assert [frame.body for frame in there.frames()] == [b"%d" % at for at in range(100)]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("identity", [90, 91, 92, 93])
def test_whoever_begins_anew_as_another_is_linked_with_once(count: int, identity: int) -> None:
    """A gateway without a data folder has another key each time, and the same address."""
    net = meshed(count)
    net.kill(2)
    net.wait(1)
    net.begin(2, number=22, admission=admission_of(identity))
    net.wait(5)
    assert net.is_whole()
    links = {place: set(node.fabric.links) for place, node in net.nodes.items()}
    # As long as the one that it was is not forgotten.
    net.wait(30)
    assert {place: set(node.fabric.links) for place, node in net.nodes.items()} == links
    assert net.is_whole()
