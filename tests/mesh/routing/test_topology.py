"""How the links of a mesh lie, and the ways that follow from them."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.mesh.routing.topology import LATELY_NS, Edges, edge, hops

numbers = st.integers(1, 12)
PAIRS = [(one, other) for one in range(1, 13) for other in range(one + 1, 13)]
pairs = st.sets(st.tuples(numbers, numbers).filter(lambda pair: pair[0] != pair[1]))


def links_of(edges: set[tuple[int, int]]) -> dict[int, frozenset[int]]:
    """What each end of links says, if both say so."""
    found: dict[int, set[int]] = {}
    for one, other in edges:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {number: frozenset(others) for number, others in found.items()}


def ways(
    own: int, near: Collection[int], links: dict[int, frozenset[int]], ends: Collection[int] = ()
) -> dict[int, int]:
    """The ways by links that gateways tell of, all at once."""
    edges = Edges(own)
    edges.update({**links, own: frozenset(near)}, 0)
    return edges.ways(near, ends)


def distances(own: int, edges: set[tuple[int, int]]) -> dict[int, int]:
    """How far away everyone is: a ten-line search."""
    links = links_of(edges)
    found = {own: 0}
    frontier = [own]
    while frontier:
        number = frontier.pop(0)
        for other in links.get(number, ()):
            if other not in found:
                found[other] = found[number] + 1
                frontier.append(other)
    return found


@given(pairs)
def test_ways_are_as_short_as_can_be_and_lead_to_everyone(edges: set[tuple[int, int]]) -> None:
    links = links_of(edges)
    parents = ways(1, links.get(1, ()), links)
    found = distances(1, edges)
    assert set(parents) == set(found) - {1}
    assert all(hops(parents, 1, number) == found[number] for number in parents)


@given(pairs, st.sets(numbers))
def test_no_way_leads_through_those_that_are_ends(
    edges: set[tuple[int, int]], ends: set[int]
) -> None:
    links = links_of(edges)
    parents = ways(1, links.get(1, ()), links, ends)
    assert not set(parents.values()) - {1} & ends
    inner = {pair for pair in edges if not ends - {1} & set(pair)}
    assert set(distances(1, inner)) - {1} <= set(parents)


@given(pairs)
def test_the_same_mesh_has_the_same_ways_whatever_is_said_first(
    edges: set[tuple[int, int]],
) -> None:
    links = links_of(edges)
    turned = dict(reversed(links.items()))
    near = sorted(links.get(1, ()))
    assert ways(1, near, links) == ways(1, near[::-1], turned)


def test_a_link_that_only_one_end_claims_is_no_way() -> None:
    assert ways(1, [2], {2: frozenset({1, 3}), 3: frozenset()}) == {2: 1}


def test_a_link_of_this_gateway_needs_no_word_of_others() -> None:
    assert ways(1, [2], {}) == {2: 1}


def test_gateways_differ_in_which_of_two_ways_they_take() -> None:
    links = links_of({(1, 2), (1, 3), (2, 4), (3, 4), (5, 2), (5, 3)})
    assert {ways(own, [2, 3], links)[4] for own in (1, 5, 6, 7)} == {2, 3}


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 1)])
def test_a_link_is_the_same_from_both_ends(one: int, other: int) -> None:
    assert edge(one, other) == (1, 2)


def test_an_edge_counts_if_both_of_its_ends_say_it_or_this_gateway_does() -> None:
    edges = Edges(1)
    edges.update({1: frozenset({2}), 2: frozenset({3}), 3: frozenset({1, 2, 4}), 4: frozenset()}, 0)
    assert (1, 2) in edges
    assert (2, 3) in edges
    # Nobody can say alone that it is linked with somebody else, not even with this one.
    assert (1, 3) not in edges
    assert (3, 4) not in edges
    assert len(edges) == 2


def test_an_edge_that_is_gone_is_remembered_for_a_while() -> None:
    edges = Edges(1)
    edges.update({1: frozenset({2})}, 0)
    edges.update({}, 100)
    assert not edges.expire(99 + LATELY_NS)
    assert (1, 2) in edges
    assert edges.expire(100 + LATELY_NS)
    assert (1, 2) not in edges


def test_an_edge_that_is_back_is_not_forgotten_by_what_was_before() -> None:
    edges = Edges(1)
    edges.update({1: frozenset({2})}, 0)
    edges.update({}, 100)
    edges.update({1: frozenset({2})}, 200)
    edges.expire(100 + LATELY_NS)
    assert (1, 2) in edges


@given(st.lists(st.tuples(numbers, st.none() | st.frozensets(numbers, max_size=5))))
def test_edges_that_follow_changes_are_those_that_are_looked_at_anew(
    changes: list[tuple[int, frozenset[int] | None]],
) -> None:
    links: dict[int, frozenset[int]] = {}
    edges = Edges(1)
    for now_ns, (number, others) in enumerate(changes):
        if others is None:
            links.pop(number, None)
        else:
            links[number] = others - {number}
        version, before = edges.version, {pair for pair in PAIRS if edges._is_linked(*pair)}
        edges.update(links, now_ns)
        anew = Edges(1)
        anew.update(dict(links), now_ns)
        after = {pair for pair in PAIRS if anew._is_linked(*pair)}
        assert {pair for pair in PAIRS if edges._is_linked(*pair)} == after
        assert len(edges) == len(after)
        assert (edges.version != version) == (before != after)
        near = links.get(1, frozenset())
        assert edges.ways(near) == anew.ways(near)
        assert all(pair in edges for pair in before | after)


@pytest.mark.parametrize("parents", [{}, {3: 2}, {2: 3, 3: 2}])
def test_there_are_no_links_on_a_way_that_is_none(parents: dict[int, int]) -> None:
    assert hops(parents, 1, 3) == 0
