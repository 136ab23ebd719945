"""Whom to dial, and when."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net, address_of

from weft.mesh.links.dial_scheduler import LOST_MAX, YIELD_NS, Dialling
from weft.mesh.links.dial_targets import DIALS_MAX, TARGETS_MAX
from weft.mesh.membership.members import Member, Members

ROGUES = {place: Impostor(Net(), place) for place in range(1, 40)}
LATER_NS = 10 * YIELD_NS


def dialling(max_links: int = 8, *places: int) -> tuple[Dialling, Members]:
    """What the gateway of place 1 dials, which knows those of other places."""
    members = Members(Member(ROGUES[1].signed(), 0))
    for place in places:
        members.add(Member(ROGUES[place].signed(room=1), 0))
    return Dialling(members, address_of(1), max_links, Random(1)), members


def due(found: Dialling, now_ns: int = LATER_NS, *linked: int) -> set[str]:
    return set(found.due([ROGUES[place].node for place in linked], [], now_ns))


def test_what_was_configured_is_dialled_unless_it_is_there() -> None:
    found, members = dialling()
    found.targets.fix("a:1")
    assert due(found) == {"a:1"}
    target = found.targets.at("a:1")
    found.targets.reached(target, ROGUES[2].node)
    assert due(found, 2 * LATER_NS, 2) == set()
    assert due(found, 2 * LATER_NS) == {"a:1"}
    found.targets.reached(target, ROGUES[2].node)
    members.add(Member(ROGUES[2].signed(), 0))
    assert "a:1" not in due(found, 3 * LATER_NS)


def test_a_registry_is_dialled_unless_it_is_registered_with() -> None:
    found, _ = dialling()
    found.targets.fix("r:1", is_registry=True)
    assert found.due([], ["r:1"], 1) == []
    assert found.due([], [], 1) == ["r:1"]


def test_a_registry_may_be_linked_with_too() -> None:
    found, _ = dialling()
    found.targets.fix("r:1", is_registry=True)
    found.targets.offer("r:1", 1)
    assert found.due([], ["r:1"], 1) == ["r:1"]


def test_the_own_address_is_never_dialled() -> None:
    found, _ = dialling()
    found.targets.fix(address_of(1))
    assert due(found) == set()


def test_of_two_the_one_with_the_lower_id_dials_first() -> None:
    for place in range(2, 12):
        found, _ = dialling(8, place)
        is_first = ROGUES[1].node < ROGUES[place].node
        assert due(found, 1) == ({address_of(place)} if is_first else set())
        assert due(found, 1 + YIELD_NS) == (set() if is_first else {address_of(place)})


def test_whoever_is_linked_with_is_not_dialled_though_it_is_lost() -> None:
    found, members = dialling(8, 2)
    members.lose(members[ROGUES[2].node], 5)
    assert due(found, LATER_NS, 2) == set()
    assert due(found) == {address_of(2)}


def test_whoever_leaves_is_not_looked_for() -> None:
    found, members = dialling()
    members.add(Member(ROGUES[2].signed(is_leaving=True), 5))
    assert due(found) == set()


def test_of_many_that_are_lost_some_are_tried_at_a_time() -> None:
    found, members = dialling(8, *range(2, 30))
    for member in members.others():
        members.lose(member, 5)
    first = due(found)
    assert len(first) == LOST_MAX
    assert len(first | due(found)) > LOST_MAX


@given(st.integers(1, 4))
def test_it_falls_to_somebody_to_look_for_each_that_is_lost(max_links: int) -> None:
    places = range(1, 12)
    lost = 12
    finders = 0
    for own in places:
        members = Members(Member(ROGUES[own].signed(), 0))
        for place in places:
            if place != own:
                members.add(Member(ROGUES[place].signed(), 0))
        members.add(Member(ROGUES[lost].signed(), 5))
        found = Dialling(members, address_of(own), max_links, Random(1))
        found.due([ROGUES[place].node for place in places], [], LATER_NS)
        finders += found.targets.at(address_of(lost)).is_dialling
    assert 1 <= finders <= 2


def test_those_without_room_are_asked_only_by_their_neighbours() -> None:
    found, members = dialling(4, *range(2, 30))
    for member in members.others():
        place = member.number
        members.renew(member, ROGUES[place].signed(room=0))
    assert len(due(found, 1) | due(found, LATER_NS)) == 2


def test_junk_is_dialled_after_those_who_are_wanted() -> None:
    found, _ = dialling(8, 2, 3)
    for number in range(TARGETS_MAX):
        found.targets.offer(f"junk-{number}:1", LATER_NS)
    found.targets.fix("fixed:1")
    due(found, LATER_NS - YIELD_NS)
    for target in found.targets:
        target.is_dialling = False
    dialled = due(found)
    assert {"fixed:1", address_of(2), address_of(3)} <= dialled
    assert len(dialled) == DIALS_MAX
    assert due(found) == set()


def test_an_address_of_one_that_is_there_is_not_dialled_because_somebody_named_it() -> None:
    found, _ = dialling(8, 2)
    found.targets.offer(address_of(2), LATER_NS)
    assert due(found, LATER_NS, 2) == set()


@pytest.mark.parametrize("address", ["", "nonsense"])
def test_whoever_cannot_be_reached_by_anyone_is_not_dialled(address: str) -> None:
    found, members = dialling()
    members.add(Member(ROGUES[2].signed(address=address, room=1), 0))
    members.add(Member(ROGUES[3].signed(address=address), 5))
    assert due(found, 1) | due(found) == set()


def test_whoever_is_not_wanted_any_more_is_not_waited_for() -> None:
    places = [place for place in range(2, 12) if ROGUES[place].node < ROGUES[1].node]
    found, members = dialling(8, places[0])
    assert due(found, 1) == set()
    member = members[ROGUES[places[0]].node]
    members.lose(member, 5)
    due(found, 2, places[0])
    members.find(member)
    # Its time begins anew.
    assert due(found, 2 + YIELD_NS) == set()


def test_one_that_others_cannot_reach_is_looked_for_only_if_it_is_lost() -> None:
    found, members = dialling(8, 2)
    member = members[ROGUES[2].node]
    found.look_for(member, LATER_NS)
    assert list(found.targets) == []
    members.lose(member, 5)
    found.look_for(member, LATER_NS)
    assert [target.address for target in found.targets] == [address_of(2)]
