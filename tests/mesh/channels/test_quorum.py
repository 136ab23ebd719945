from tests.mesh.mesh import Net, meshed

from weft.mesh.channels.quorum import LOST_NS, VOTERS_MAX, Voters
from weft.mesh.settings import Rules

OWN = b"o" * 16


def test_alone_one_is_the_majority() -> None:
    voters = Voters(OWN)
    assert (len(voters), voters.majority, OWN in voters) == (1, 1, True)


def test_more_than_half_are_a_majority() -> None:
    voters = Voters(OWN)
    nodes = [bytes([each]) * 16 for each in range(4)]
    found = []
    for node in nodes:
        voters.recall([node], lambda _node, _is_voter: None, 0)
        found.append((len(voters), voters.majority))
    assert found == [(2, 2), (3, 2), (4, 3), (5, 3)]
    assert all(node in voters for node in nodes)


def test_a_least_number_counts_whoever_is_known() -> None:
    assert Voters(OWN, least=5).majority == 3


def test_who_was_known_in_an_earlier_life_counts_as_lost_from_now_on() -> None:
    net = Net()
    net.begin(1, Rules(join=()))
    voters = Voters(OWN)
    noted: list[tuple[bytes, bool]] = []
    other = b"x" * 16
    voters.recall([other, OWN], lambda *each: noted.append(each), 1000)
    members = net[1].fabric.members
    voters.look(members, 1000 + LOST_NS)
    assert other in voters
    voters.look(members, 1001 + LOST_NS)
    assert other not in voters
    assert noted == [(other, False)]


def test_who_is_new_is_written_down_once() -> None:
    net = meshed(2)
    voters = Voters(net[1].node)
    noted: list[tuple[bytes, bool]] = []
    voters.recall([], lambda *each: noted.append(each), 0)
    for now_ns in (1, 2, 3):
        voters.look(net[1].fabric.members, now_ns)
    assert noted == [(net[2].node, True)]


def test_not_more_are_counted_than_a_limit() -> None:
    net = meshed(2)
    voters = Voters(net[1].node)
    many = [each.to_bytes(16) for each in range(VOTERS_MAX)]
    voters.recall(many, lambda _node, _is_voter: None, 0)
    voters.look(net[1].fabric.members, 1)
    assert net[2].node not in voters
