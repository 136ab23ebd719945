"""Two running gateways with one identity: the linked one stays, and operators are warned."""

from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net, Node, address_of, admission_of, meshed

from weft.mesh.links.dial_targets import REMEMBERED_PAUSE_NS
from weft.mesh.links.link_events import Warned
from weft.mesh.settings import Rules


def warnings(node: Node) -> list[Warned]:
    events = node.fabric.events.take()
    return [each for each in events if isinstance(each, Warned) and each.kind == "CopiedKey"]


def with_a_copy() -> Net:
    """A mesh of two, and a third gateway with the identity of the second."""
    net = meshed(2)
    net.begin(3, admission=admission_of(2))
    return net


def test_the_linked_gateway_stays_and_the_copy_asks_less_and_less_often() -> None:
    net = with_a_copy()
    first = net[1].link_to(net[2])
    net.wait(60)
    assert net[1].link_to(net[2]) is first
    assert net[1].knows() == {2}
    assert 3 < net[1].refused["CopiedKey"] < 12
    target = net[3].fabric.dialling.targets.at(address_of(1))
    assert target.pause_ns == REMEMBERED_PAUSE_NS


def test_the_third_gateway_and_the_copy_name_both_and_the_remedy() -> None:
    net = with_a_copy()
    net.wait(0.3)
    text = warnings(net[1])[0].text
    assert "'gateway-3' at '10.0.0.3:7411'" in text
    assert "'gateway-2' at '10.0.0.2:7411' has the same node.key and is linked" in text
    assert "delete node.key in its data folder" in text
    problem = net[3].fabric.dialling.targets.at(address_of(1)).problem
    assert problem.startswith("remote error: 'gateway-2' at '10.0.0.2:7411' has the same node.key")


def test_a_copy_that_is_dialled_is_refused_too() -> None:
    net = meshed(2)
    net.begin(3, Rules(), admission=admission_of(2))
    net[1].fabric.dialling.targets.fix(address_of(3))
    net.wait(60)
    assert net[1].knows() == {2}
    assert net[1].refused["CopiedKey"] < 12
    target = net[1].fabric.dialling.targets.at(address_of(3))
    assert "has the same node.key" in target.problem


def test_a_copy_takes_the_place_of_the_linked_one_once_that_is_gone() -> None:
    net = with_a_copy()
    net.wait(2)
    net.kill(2)
    net.wait(5)
    assert net[1].knows() == {3}
    assert net[3].knows() == {1}


def test_a_gateway_that_was_restarted_gets_in_at_once() -> None:
    net = meshed(2)
    net.kill(2, is_dark=True)
    net.wait(0.1)
    net.begin(2, number=22)
    net.wait(0.2)
    assert net[1].link_to(net[2]) is not None
    assert "CopiedKey" not in net[1].refused


def test_a_gateway_that_was_restarted_elsewhere_gets_in_once_its_link_is_doubtful() -> None:
    net = meshed(2)
    net.kill(2, is_dark=True)
    net.begin(3, admission=admission_of(2))
    net.wait(3)
    assert net[1].link_to(net[3]) is not None


def test_of_two_that_give_the_same_address_the_later_stays() -> None:
    net = meshed(1)
    first, second = Impostor(net), Impostor(net, number=98)
    second.incarnation = 6
    before = first.join(net[1])
    line = second.join(net[1])
    assert before.is_over
    again = first.dial(net[1])
    assert again.errors == ["CopiedKey"]
    assert not line.is_over


def test_a_copy_that_others_are_linked_with_changes_nothing_here() -> None:
    net = Net()
    for place in (1, 2):
        net.begin(place)
    net.wait(3)
    # Two meshes, each with one of the two; then they become one.
    net.begin(3, Rules())
    net.begin(4, Rules(join=(address_of(3),)), admission=admission_of(2))
    net.wait(3)
    net[3].fabric.dialling.targets.fix(address_of(1))
    net.wait(10)
    assert net[1].link_to(net[2]) is not None
    assert net[3].link_to(net[4]) is not None
    assert net[1].fabric.members[net[2].node].number == 2
    assert net[3].fabric.members[net[4].node].number == 4
    assert any("is elsewhere in the mesh" in each.text for each in warnings(net[1]))


def test_a_gateway_that_meets_its_copy_says_so_at_both_ends() -> None:
    net = Net()
    net.begin(1, Rules())
    net.begin(2, admission=admission_of(1))
    net.wait(1)
    assert "the other gateway has the node.key of this one" in warnings(net[1])[0].text
    problem = net[2].fabric.dialling.targets.at(address_of(1)).problem
    assert "the other gateway has the node.key of this one" in problem
