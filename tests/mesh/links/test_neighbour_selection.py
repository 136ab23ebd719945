"""With whom gateways link, and whom they let go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.mesh.links.neighbour_selection import (
    SPARE,
    are_neighbours,
    rank,
    ring_neighbours,
    spare_links,
)
from weft.mesh.links.neighbour_selection import wanted as wanted_of

nodes = st.sets(st.binary(min_size=16, max_size=16), min_size=1, max_size=16)


def wanted(own: bytes, others: list[bytes], linked: list[bytes], max_links: int) -> list[bytes]:
    ranked = sorted(others, key=lambda node: rank(own, node))
    return wanted_of(ranked, ring_neighbours(own, sorted(others)), linked, max_links)


def is_connected(links: dict[bytes, set[bytes]]) -> bool:
    found: set[bytes] = set()
    frontier = list(links)[:1]
    while frontier:
        node = frontier.pop()
        if node not in found:
            found.add(node)
            frontier += links[node]
            frontier += [other for other in links if node in links[other]]
    return found == set(links)


@given(nodes)
@pytest.mark.req("RLY-7")
def test_neighbours_on_the_ring_keep_any_set_in_one_piece(all_nodes: set[bytes]) -> None:
    ring = sorted(all_nodes)
    assert is_connected({node: set(ring_neighbours(node, ring)) for node in ring})


@given(nodes)
def test_to_be_neighbours_is_mutual(all_nodes: set[bytes]) -> None:
    ring = sorted(all_nodes)
    for node in ring:
        for other in ring_neighbours(node, ring):
            assert node in ring_neighbours(other, ring)


@given(nodes, st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_two_are_neighbours_if_they_are_next_to_each_other_once_both_are_there(
    all_nodes: set[bytes], one: bytes, other: bytes
) -> None:
    if one != other:
        whole = sorted({*all_nodes, one, other})
        is_next = other in ring_neighbours(one, whole)
        assert are_neighbours(one, other, sorted(all_nodes)) == is_next
        assert are_neighbours(one, other, whole) == is_next


def test_a_gateway_is_no_neighbour_of_itself() -> None:
    assert ring_neighbours(b"a", [b"a"]) == []
    assert ring_neighbours(b"a", []) == []
    assert ring_neighbours(b"a", [b"a", b"b"]) == [b"b"]


@given(nodes, st.integers(1, 8))
@pytest.mark.req("RLY-6", "RLY-7")
def test_what_everyone_wants_keeps_the_mesh_in_one_piece(
    all_nodes: set[bytes], max_links: int
) -> None:
    links = {
        node: set(wanted(node, sorted(all_nodes - {node}), [], max_links)) for node in all_nodes
    }
    assert is_connected(links)


@given(nodes, st.integers(1, 50))
@pytest.mark.req("MM-21")
def test_everyone_is_wanted_where_the_limit_allows(all_nodes: set[bytes], max_links: int) -> None:
    own, *others = sorted(all_nodes)
    if len(others) <= max_links:
        assert set(wanted(own, others, [], max_links)) == set(others)


def test_whoever_is_linked_with_is_not_wanted_again() -> None:
    assert wanted(b"a", [b"b", b"c"], [b"b"], 8) == [b"c"]


def test_neighbours_come_first_and_places_stay_free_for_others() -> None:
    others = [bytes([each]) * 16 for each in range(1, 30)]
    own = bytes(16)
    first, second, *chords = wanted(own, others, [], 6)
    assert {first, second} == {others[0], others[-1]}
    assert len(chords) == 2 * (6 - SPARE - 2)
    assert wanted(own, others, others[:1] + others[5:9] + others[-1:], 6) == []


def test_a_full_gateway_still_wants_its_neighbours() -> None:
    others = [bytes([each]) * 16 for each in range(1, 30)]
    assert set(wanted(bytes(16), others, others[5:13], 6)) == {others[0], others[-1]}


def test_both_see_how_near_they_are_to_each_other() -> None:
    assert rank(b"a", b"b") == rank(b"b", b"a") != rank(b"a", b"c")


@given(nodes, st.integers(1, 8))
def test_only_links_that_nobody_needs_are_let_go(all_nodes: set[bytes], max_links: int) -> None:
    own, *others = sorted(all_nodes)
    spare = spare_links(own, others, others, max_links)
    assert not set(spare) & set(ring_neighbours(own, others))
    if len(others) <= max_links:
        assert spare == []
    else:
        assert len(spare) == len(others) - len(ring_neighbours(own, others))


def test_the_farthest_goes_first() -> None:
    others = [bytes([each]) * 16 for each in range(1, 30)]
    spare = spare_links(bytes(16), others, others, 6)
    ranks = [rank(bytes(16), node) for node in spare]
    assert ranks == sorted(ranks, reverse=True)
