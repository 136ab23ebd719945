"""Who can be reached, by which way, and who is gone around."""

from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.gateways import Gateway, Wire, wanted
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net

from weft.broker.service import Peer
from weft.mesh.membership.members import Member, Members
from weft.mesh.routing.reachability import BLAME_NS, SHUN_NS, Survey
from weft.mesh.routing.topology import LATELY_NS, hops

ROGUES = {place: Impostor(Net(), place) for place in range(1, 9)}
SQUARE: dict[int, tuple[int, ...]] = {2: (1, 4), 3: (1, 4), 4: (2, 3)}


class Scene:
    """Gateway 1, and what the others say of their links."""

    def __init__(self, links: dict[int, tuple[int, ...]], *, is_relay: bool = True) -> None:
        self.gateway = Gateway(1)
        self.members = Members(Member(ROGUES[1].signed(), 0))
        for place, others in links.items():
            self.members.add(Member(ROGUES[place].signed(links=others), 1))
            self.gateway.traffic.meet(place, "another")
        self.survey = Survey(self.members, self.gateway.traffic, is_relay=is_relay)

    @property
    def now_ns(self) -> int:
        return self.gateway.service.now_ns

    def peer(self) -> Peer:
        """The other end of a link where nobody listens."""
        self.gateway.link(Gateway(9), Wire(self.gateway, self.gateway))
        return self.gateway.links[9]

    def plot(self, *near: int) -> list[int]:
        ready = {number: self.peer() for number in near}
        return [member.number for member in self.survey.plot(ready, self.now_ns)]

    def member(self, number: int) -> Member:
        return self.members[ROGUES[number].node]

    def send_unconfirmed(self, number: int) -> None:
        """Something is sent to a gateway, which says nothing of it."""
        self.gateway.traffic.want(number, [wanted(b"a")], [])
        self.gateway.local().publish(b"a", b"x")
        self.gateway.wait(1000)
        self.gateway.service.now_ns += BLAME_NS


def test_those_that_there_is_a_way_to_are_there() -> None:
    scene = Scene({2: (1, 3), 3: (2,), 4: ()})
    assert scene.plot(2) == []
    assert [member.number for member in scene.members.there()] == [2, 3]
    assert scene.survey.parents == {2: 1, 3: 2}


def test_whoever_is_lost_is_named_once() -> None:
    scene = Scene({2: (1, 3), 3: (2,)})
    scene.plot(2)
    assert scene.plot() == [2, 3]
    assert scene.member(3).lost_ns == scene.now_ns
    assert scene.plot() == []


def test_whoever_leaves_is_not_lost() -> None:
    scene = Scene({2: (1,)})
    scene.plot(2)
    member = scene.member(2)
    scene.members.renew(member, ROGUES[2].signed(is_leaving=True))
    assert scene.plot() == []
    assert member.lost_ns == scene.now_ns


def test_without_relays_only_those_that_are_near_are_there() -> None:
    scene = Scene({2: (1, 3), 3: (2,)}, is_relay=False)
    scene.plot(2)
    assert scene.survey.parents == {2: 1}


def test_whoever_does_not_bring_on_what_it_should_is_gone_around_for_a_while() -> None:
    scene = Scene(SQUARE)
    scene.plot(2, 3)
    blamed = scene.survey.parents[4]
    scene.send_unconfirmed(4)
    assert scene.survey.sweep(scene.now_ns)
    scene.plot(2, 3)
    assert {scene.survey.parents[4], blamed} == {2, 3}
    assert scene.survey.parents[blamed] == 1
    assert scene.gateway.traffic.counts.refused == {"NotBroughtOn": 1}
    scene.gateway.service.now_ns += SHUN_NS
    scene.gateway.traffic.part(4)
    assert scene.survey.sweep(scene.now_ns)
    scene.plot(2, 3)
    assert scene.survey.parents[4] == blamed


def test_whoever_is_the_only_way_is_gone_through_all_the_same() -> None:
    scene = Scene({2: (1, 4), 4: (2,)})
    scene.plot(2)
    scene.send_unconfirmed(4)
    scene.survey.sweep(scene.now_ns)
    scene.plot(2)
    assert scene.survey.parents == {2: 1, 4: 2}


def test_nobody_is_blamed_for_one_that_is_near() -> None:
    scene = Scene({2: (1,)})
    scene.plot(2)
    scene.send_unconfirmed(2)
    assert not scene.survey.sweep(scene.now_ns)
    assert scene.gateway.traffic.counts.refused == {}


def test_blame_is_found_although_links_elsewhere_come_and_go() -> None:
    scene = Scene({**SQUARE, 5: (2,)})
    ready = {number: scene.peer() for number in (2, 3)}
    scene.survey.plot(ready, scene.now_ns)
    scene.gateway.traffic.want(4, [wanted(b"a")], [])
    scene.gateway.local().publish(b"a", b"x")
    for turn in range(10):
        scene.gateway.wait(500)
        scene.members.renew(scene.member(5), ROGUES[5].signed(links=(2,) if turn % 2 else ()))
        scene.survey.plot(ready, scene.now_ns)
    assert scene.survey.sweep(scene.now_ns)


def test_links_that_were_there_lately_are_forgotten_by_and_by() -> None:
    scene = Scene({2: (1,)})
    scene.plot(2)
    scene.members.renew(scene.member(2), ROGUES[2].signed())
    scene.plot()
    assert not scene.survey.sweep(scene.now_ns)
    assert scene.survey.sweep(scene.now_ns + LATELY_NS)


def test_a_link_can_be_spared_if_there_is_another_way() -> None:
    scene = Scene({2: (1, 3), 3: (1, 2), 4: (1,)})
    scene.plot(2, 3, 4)
    assert scene.survey.is_reached_without(2)
    assert not scene.survey.is_reached_without(4)


@given(
    st.sets(st.tuples(st.integers(1, 8), st.integers(1, 8)).filter(lambda pair: pair[0] < pair[1])),
    st.sets(st.integers(2, 8)),
)
def test_ways_around_those_that_are_shunned_end_here(
    edges: set[tuple[int, int]], shunned: set[int]
) -> None:
    links: dict[int, tuple[int, ...]] = {
        place: tuple(sum(pair) - place for pair in edges if place in pair) for place in range(2, 9)
    }
    scene = Scene(links)
    near = [place for place in links if 1 in links[place]]
    scene.plot(*near)
    before = set(scene.survey.parents)
    scene.survey._shunned_ns = dict.fromkeys(shunned, 1)
    scene.plot(*near)
    assert set(scene.survey.parents) == before
    assert all(hops(scene.survey.parents, 1, number) > 0 for number in before)
