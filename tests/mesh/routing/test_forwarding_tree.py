"""Ways through the mesh, and the trees that envelopes carry."""

import random

from hypothesis import given
from hypothesis import strategies as st

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.mesh.delivery.remote_gateway import RemoteGateway
from weft.mesh.delivery.remote_transport import Post
from weft.mesh.routing.forward_header import PLAIN, PlannedGateway, read
from weft.mesh.routing.forwarding_tree import Branch, Ways

SERVICE = Service("weather", "one", 1, Limits())


def distant(number: int) -> RemoteGateway:
    return RemoteGateway(Peer(SERVICE, number, b"", Post.__new__(Post)), "", 0)


def outbox() -> Outbox:
    return Outbox(Arena(1024), Bounds())


def reached(entries: tuple[PlannedGateway, ...]) -> dict[int, int]:
    """Who passes it to whom, read from the tree of an envelope."""
    parents: dict[int, int] = {}

    def descend(at: int, end: int, parent: int) -> None:
        while at < end:
            parents[entries[at].number] = parent
            descend(at + 1, at + 1 + entries[at].below, entries[at].number)
            at += 1 + entries[at].below

    descend(0, len(entries), 1)
    return parents


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[int, int], list[int]]:
    """A tree of ways from gateway 1, and some of the gateways in it."""
    count = draw(st.integers(1, 60))
    chance = random.Random(draw(st.integers()))
    parents = {number: chance.randrange(1, number) for number in range(2, count + 2)}
    wanted = draw(st.lists(st.sampled_from(sorted(parents)), min_size=1, unique=True))
    return parents, wanted


@given(trees())
def test_a_plan_reaches_all_that_want_it_by_their_ways_and_nobody_else(
    drawn: tuple[dict[int, int], list[int]],
) -> None:
    parents, wanted = drawn
    links = {number: outbox() for number, parent in parents.items() if parent == 1}
    ways = Ways(1, parents, links)
    branches = ways.branches(PLAIN, b"", [distant(number) for number in wanted])
    told: dict[int, int] = {}
    for branch in branches:
        envelope = read(_counted(branch))
        assert links[envelope.entries[0].number] is branch.link
        assert envelope.entries[0].below == len(envelope.entries) - 1
        for number, parent in reached(envelope.entries).items():
            assert number not in told, "it is told twice"
            assert parents[number] == parent
            told[number] = parent
        assert {entry.number for entry in envelope.entries if entry.is_for} <= set(wanted)
    leaves = set(told) - set(told.values())
    assert set(wanted) <= set(told)
    assert leaves <= set(wanted), "somebody is on no way to anybody"
    assert len(branches) == len({branch.link for branch in branches})


def test_those_without_a_way_are_counted_apart() -> None:
    ways = Ways(1, {2: 1, 3: 2, 4: 9}, {2: outbox()})
    lost, there = distant(4), distant(3)
    branches = ways.branches(PLAIN, b"", [lost, there])
    assert [branch.link for branch in branches] == [ways.links[2], None]
    for branch in branches:
        branch.count(3)
    assert (lost.next, there.next) == (3, 3)


def test_a_way_by_a_link_that_is_down_is_none() -> None:
    assert Ways(1, {2: 1, 3: 2}, {}).to(3) == []


def test_parents_that_run_in_a_circle_lead_nowhere() -> None:
    assert Ways(1, {2: 3, 3: 2}, {}).to(3) == []


def test_a_branch_numbers_everyone_that_it_is_for() -> None:
    ways = Ways(1, {2: 1, 3: 2}, {2: outbox()})
    there = distant(3)
    (branch,) = ways.branches(PLAIN, b"", [there])
    for first in (0, 5):
        branch.count(5)
        assert read(branch.header).entries == (
            PlannedGateway(2, 1, False, 0),
            PlannedGateway(3, 0, True, first),
        )


def _counted(branch: Branch) -> bytes:
    branch.count(1)
    return bytes(branch.header)
