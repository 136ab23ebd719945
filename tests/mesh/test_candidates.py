"""Which gateways a client is told of, and in which order."""

import msgspec
import pytest
from tests.mesh.gateways import Gateway
from tests.mesh.impostor import SERVICE
from tests.mesh.mesh import Net, address_of, admission_of, meshed

from weft.mesh.candidates import Candidate, candidates, elsewhere, lone, ranked, reachable
from weft.mesh.node import MeshNode
from weft.mesh.settings import Rules


def candidate(name: str, **facts: object) -> Candidate:
    return msgspec.structs.replace(lone(SERVICE, name), address=f"{name}:7411", **facts)


def names(found: list[Candidate]) -> list[str]:
    return [each.name for each in found]


def at(net: Net, place: int) -> list[Candidate]:
    return candidates(net[place].service, net[place].fabric)


@pytest.mark.req("RLY-17")
def test_the_region_that_is_asked_for_comes_first_then_the_lesser_load() -> None:
    found = [
        candidate("ann", load=3),
        candidate("bob", load=9, region="eu"),
        candidate("cat", load=2),
        candidate("dan", load=7, region="eu"),
    ]
    assert names(ranked(found, "eu", 9)) == ["dan", "bob", "cat", "ann"]
    assert names(ranked(found, "", 9)) == ["cat", "ann", "dan", "bob"]
    assert names(ranked(found, "us", 1)) == ["cat"]


@pytest.mark.parametrize("state", ["lost", "leaving", "linking"])
def test_those_that_cannot_be_gone_to_are_left_out(state: str) -> None:
    found = [candidate("ann", state=state), candidate("bob"), candidate("cat", is_draining=True)]
    assert names(ranked(found, "", 9)) == ["bob"]


def test_whoever_asks_twice_is_told_the_same() -> None:
    found = [candidate("cat"), candidate("ann"), candidate("bob")]
    assert names(ranked(found, "", 9)) == names(ranked(found[::-1], "", 9)) == ["ann", "bob", "cat"]


def test_a_gateway_without_a_mesh_knows_itself() -> None:
    gateway = Gateway(1)
    gateway.local()
    [own] = candidates(gateway.service, None)
    assert (own.name, own.state, own.address, own.load) == ("gateway-1", "here", "", 1)
    assert elsewhere(gateway.service, None, "") == []


def test_every_gateway_of_a_mesh_is_known_with_its_region() -> None:
    net = meshed(3, Rules(join=(address_of(1),), region="eu"))
    found = at(net, 2)
    assert [each.address for each in found] == [address_of(2), address_of(1), address_of(3)]
    assert {each.region for each in found} == {"eu"}
    assert {each.service for each in found} == {SERVICE}


@pytest.mark.req("RLY-17")
def test_load_is_told_to_the_others() -> None:
    net = meshed(2)
    for _ in range(5):
        net[1].local()
    net.wait(7)
    assert {each.name: each.load for each in at(net, 2)} == {"gateway-1": 3, "gateway-2": 0}


def test_load_is_told_only_when_its_step_is_another() -> None:
    net = meshed(2)
    net[1].local()
    net.wait(7)
    own = net[1].fabric.members.own
    before = own.advert.sequence
    net.wait(30)
    assert own.advert.sequence == before


def test_a_gateway_that_drains_sends_others_elsewhere_and_is_not_named() -> None:
    net = meshed(3)
    net[1].fabric.drain()
    net.wait(1)
    assert {each.name for each in at(net, 2) if each.is_draining} == {"gateway-1"}
    assert names(ranked(at(net, 2), "", 9)) == ["gateway-2", "gateway-3"]
    assert elsewhere(net[1].service, net[1].fabric, "") == [address_of(2), address_of(3)]
    assert elsewhere(net[2].service, net[2].fabric, "") == [address_of(3)]


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "", "a b", "ftp://a:1"])
def test_what_nobody_could_dial_is_no_address(address: str) -> None:
    assert reachable(address) == ""
    assert reachable("tls://a:1") == "tls://a:1"


def test_one_that_nobody_could_dial_is_known_only_to_those_who_reached_it() -> None:
    gateway = Gateway(1)
    nowhere = MeshNode(gateway.service, admission_of(1), "0.0.0.0:1", Rules(), Net().chance)
    [own] = candidates(gateway.service, nowhere)
    assert (own.state, own.address) == ("here", "")
