"""A mesh in plain values, from whole gateways without sockets."""

from typing import Any

import pytest
from tests.mesh.mesh import Net, address_of, meshed

from weft.errors import BadSubject
from weft.mesh.report import interest_facts, listener_facts, mesh_facts, namer
from weft.mesh.settings import Rules
from weft.mesh.trace.trace_result import Journey

SMALL = Rules(join=(address_of(1),), max_links=2)

Facts = dict[str, Any]


def mesh_at(net: Net, place: int, limit: int = 100) -> Facts:
    node = net[place]
    return mesh_facts(node.service, node.fabric, limit)


def nodes_at(net: Net, place: int) -> dict[int, Facts]:
    return {node["number"]: node for node in mesh_at(net, place)["nodes"]}


def traced(net: Net, place: int, subject: bytes) -> Facts:
    """What a trace from a gateway comes to."""
    node = net[place]
    over: list[Journey] = []
    assert node.fabric.tracing.begin(subject, None, over.append) is None
    node.flush()
    net.carry()
    net.wait(2.1)
    [journey] = over
    return journey.facts(namer(node.service, node.fabric), 100)


def test_this_gateway_is_first_and_those_near_before_those_far_away() -> None:
    net = meshed(7, SMALL)
    nodes = mesh_at(net, 1)["nodes"]
    assert [node["state"] for node in nodes][:1] == ["here"]
    assert len(nodes) == 7
    assert [node["hops"] for node in nodes] == sorted(node["hops"] for node in nodes)
    assert {node["state"] for node in nodes if node["hops"] == 1} == {"linked"}
    assert {node["state"] for node in nodes if node["hops"] > 1} == {"reached"}


def test_whoever_is_reached_hangs_on_the_tree_of_ways() -> None:
    net = meshed(7, SMALL)
    nodes = mesh_at(net, 1)["nodes"]
    by_name = {node["name"]: node for node in nodes}
    assert any(node["hops"] > 1 for node in nodes)
    for node in nodes[1:]:
        assert node["hops"] == by_name[node["by"]]["hops"] + 1
        assert by_name[node["through"]]["state"] == "linked"
        assert by_name[node["by"]]["name"] in node["links"]


def test_links_say_who_dialled_and_both_ends_agree() -> None:
    net = meshed(3)
    for place in (1, 2, 3):
        links = mesh_at(net, place)["links"]
        assert {link["state"] for link in links} == {"ready"}
        for link in links:
            [back] = [
                each for each in mesh_at(net, link["number"])["links"] if each["number"] == place
            ]
            assert back["is_dialled"] != link["is_dialled"]
            assert link["address"] == address_of(link["number"])
            assert link["waiting_bytes"] == 0
            assert link["limit_bytes"] > 1 << 20


def test_a_gateway_that_is_lost_is_said_to_be_and_for_how_long() -> None:
    net = meshed(3)
    net.kill(3)
    net.wait(5)
    lost = nodes_at(net, 1)[3]
    assert (lost["state"], lost["hops"], lost["through"]) == ("lost", 0, "")
    assert 4 < lost["lost_s"] <= 5.1
    [target] = mesh_at(net, 1)["targets"]
    assert (target["address"], target["problem"]) == (address_of(3), "nobody listens")


def test_a_gateway_that_was_met_just_now_is_not_said_to_be_lost() -> None:
    net = Net()
    net.begin(1, Rules())
    net.begin(2)
    states: list[str] = []
    while "linked" not in states:
        net.wait(0.05)
        states += [node["state"] for node in mesh_at(net, 1)["nodes"][1:]]
    assert states == ["linking", "linked"]


def test_a_gateway_that_drained_and_left_is_neither_draining_nor_there() -> None:
    net = meshed(2)
    net[2].fabric.drain()
    net.wait(1)
    assert nodes_at(net, 1)[2]["is_draining"]
    net[2].fabric.leave()
    net.wait(3)
    row = nodes_at(net, 1)[2]
    assert (row["state"], row["is_draining"]) == ("left", False)


def test_a_gateway_that_was_killed_while_it_drained_is_lost_and_not_draining() -> None:
    net = meshed(2)
    net[2].fabric.drain()
    net.wait(1)
    net.kill(2)
    net.wait(1)
    row = nodes_at(net, 1)[2]
    assert (row["state"], row["is_draining"]) == ("lost", False)


def test_an_address_is_no_problem_any_more_once_its_gateway_has_dialled() -> None:
    net = Net()
    net.begin(1, Rules(join=(address_of(2),)))
    net.wait(3)
    assert [each["address"] for each in mesh_at(net, 1)["targets"]] == [address_of(2)]
    # Nothing gets from the first to the second: only the second can dial.
    net[1].dial = lambda address: net[1].fabric.unreachable(address, "connection refused")  # type: ignore[method-assign]
    net.begin(2, Rules(join=(address_of(1),)))
    net.wait(3)
    assert nodes_at(net, 1)[2]["state"] == "linked"
    assert mesh_at(net, 1)["targets"] == []


def test_a_registration_is_no_link_of_the_mesh() -> None:
    net = Net()
    net.begin(1, Rules())
    net.begin(2, Rules(registries=(address_of(1),)))
    net.wait(3)
    links = mesh_at(net, 1)["links"]
    assert sorted(link["state"] for link in links) == ["ready", "registered"]
    assert [link["is_registration"] for link in links if link["state"] == "registered"] == [True]


def test_an_address_that_is_configured_and_not_reached_is_told_with_the_reason() -> None:
    net = Net()
    net.begin(1, Rules(join=(address_of(9),)))
    net.wait(3)
    facts = mesh_at(net, 1)
    [target] = facts["targets"]
    assert target["address"] == address_of(9)
    assert target["is_configured"]
    assert target["problem"] == "nobody listens"
    assert 0 <= target["next_s"] <= 4


def test_what_each_gateway_wants_is_told() -> None:
    net = meshed(2)
    net[1].listen(b"a.*")
    net[2].listen(b"b", group=b"g")
    node = net[1]
    facts = interest_facts(node.service, node.fabric, 10)
    assert {(each["gateway"], each["pattern"], each["group"]) for each in facts["interest"]} == {
        ("gateway-1", "a.*", ""),
        ("gateway-2", "b", "g"),
    }
    assert facts["more_interest"] == 0
    assert {number: node["patterns"] for number, node in nodes_at(net, 1).items()} == {1: 1, 2: 1}


def test_what_is_left_out_is_counted() -> None:
    net = meshed(4)
    net[2].listen(b"a", b"b", b"c")
    facts = mesh_at(net, 1, limit=2)
    assert (len(facts["nodes"]), facts["more_nodes"]) == (2, 2)
    assert (len(facts["links"]), facts["more_links"]) == (2, 1)
    node = net[1]
    facts = interest_facts(node.service, node.fabric, 2)
    assert (len(facts["interest"]), facts["more_interest"]) == (2, 1)


def test_who_listens_is_told_here_and_elsewhere() -> None:
    net = meshed(3)
    here = net[1].listen(b"a.>")
    net[3].listen(b"a.*", b"a.b")
    node = net[1]
    facts = listener_facts(node.service, node.fabric, b"a.b", 10)
    assert [each["connection"] for each in facts["listeners"]] == [here.peer.number]
    assert {(each["name"], each["pattern"], each["hops"]) for each in facts["gateways"]} == {
        ("gateway-3", "a.*", 1),
        ("gateway-3", "a.b", 1),
    }
    with pytest.raises(BadSubject):
        listener_facts(node.service, node.fabric, b"a.*", 10)


def test_a_refusal_is_counted_by_its_name() -> None:
    net = meshed(2)
    net[1].traffic.counts.refuse("Loop", 3)
    assert mesh_at(net, 1)["counts"]["refused"]["Loop"] == 3


def test_a_trace_goes_over_several_links_where_there_are_few() -> None:
    net = meshed(7, SMALL)
    far = max(nodes_at(net, 1).values(), key=lambda node: node["hops"])
    assert far["hops"] > 1
    net[far["number"]].listen(b"a.b")
    facts = traced(net, 1, b"a.b")
    assert [place["state"] for place in facts["gateways"]] == [
        "here",
        *["answered"] * far["hops"],
    ]
    assert facts["gateways"][-1]["name"] == far["name"]
    assert len(facts["gateways"][-1]["path"]) == far["hops"]
    assert facts["is_heard"]


def test_a_trace_that_is_lost_on_a_dead_link_names_the_link() -> None:
    net = meshed(2)
    net[2].listen(b"a")
    net.cut(1, 2)
    facts = traced(net, 1, b"a")
    silent = facts["gateways"][1]
    assert silent["state"] == "silent"
    assert silent["text"] == "no answer; last sent from gateway-1 to gateway-2"
    assert not facts["is_heard"]


def test_after_a_trace_was_lost_the_next_one_knows_that_there_is_no_way() -> None:
    net = meshed(2)
    net[2].listen(b"a")
    net.cut(1, 2)
    net.wait(5)
    facts = traced(net, 1, b"a")
    assert facts["gateways"][1]["reason"] == "NoWay"
