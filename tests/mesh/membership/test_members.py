"""Every gateway that is known."""

from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net

from weft.mesh.membership.members import Member, Members
from weft.mesh.protocol import Known

NET = Net()
ROGUES = [Impostor(NET, place) for place in range(1, 6)]


def member(at: int, sequence: int = 1, lost_ns: int = 0, **changes: object) -> Member:
    return Member(ROGUES[at].signed(sequence=sequence, **changes), lost_ns)


def members() -> Members:
    return Members(member(0))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), unique_by=lambda each: each[0]))
def test_the_digest_is_the_same_wherever_the_same_is_known(known: list[tuple[int, int]]) -> None:
    one, other = members(), members()
    for at, sequence in known:
        one.add(member(at, sequence))
    for at, sequence in reversed(known):
        other.add(member(at, sequence))
    assert one.digest() == other.digest()
    if known:
        at, sequence = known[0]
        other.renew(other[ROGUES[at].node], ROGUES[at].signed(sequence=sequence + 1))
        assert one.digest() != other.digest()


def test_whoever_is_lost_does_not_count_in_the_digest() -> None:
    one, other = members(), members()
    one.add(member(1, lost_ns=5))
    assert one.digest() == other.digest()
    assert one.there() == []
    assert len(one.others()) == 1


def test_one_is_found_by_its_node_and_by_its_number() -> None:
    found = members()
    other = member(1)
    found.add(other)
    assert found.get(other.node) is found.numbered(2) is found[other.node] is other
    found.renew(other, ROGUES[1].signed(number=22))
    assert found.numbered(2) is None
    assert found.numbered(22) is other
    found.forget(other)
    assert found.get(other.node) is None
    assert found.numbered(22) is None


def test_one_that_leaves_is_not_there_although_it_can_be_reached() -> None:
    assert not member(1, is_leaving=True).is_there


def test_what_it_wants_is_current_if_version_and_digest_are_those_that_it_signed() -> None:
    assert member(1).is_current
    assert not member(1, version=1).is_current
    assert not member(1, digest=1).is_current


def test_for_how_long_one_is_lost_is_told() -> None:
    assert member(1).word(10**9).lost_ms == 0
    assert member(1, lost_ns=10**9).word(10**9).lost_ms == 1
    assert member(1, lost_ns=10**9).word(3 * 10**9).lost_ms == 2000


def test_what_is_known_of_one_is_its_advert_and_the_version_that_is_there() -> None:
    other = member(1, sequence=9, version=4)
    assert other.known == Known(ROGUES[1].node, 5, 9, 0)


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[str, int, dict[str, object]]]:
    """What happens to gateways, one after the other."""
    changes = st.fixed_dictionaries(
        {
            "sequence": st.integers(1, 3),
            "links": st.sampled_from([(), (1,), (1, 2)]),
            "is_leaving": st.booleans(),
            "address": st.sampled_from(["10.0.0.1:1", "10.0.0.2:1"]),
        }
    )
    acts = st.sampled_from(["say", "lose", "find", "forget"])
    return draw(st.lists(st.tuples(acts, st.integers(1, 4), changes), max_size=20))


@given(lives())
def test_what_is_kept_is_what_follows_from_who_is_there(
    told: list[tuple[str, int, dict[str, object]]],
) -> None:
    kept = members()
    for act, at, changes in told:
        known = kept.get(ROGUES[at].node)
        if known is None:
            kept.add(Member(ROGUES[at].signed(**changes), 5 if act == "lose" else 0))
        elif act == "say":
            kept.renew(known, ROGUES[at].signed(**changes))
        elif act == "lose":
            kept.lose(known, 5)
        elif act == "find":
            kept.find(known)
        else:
            kept.forget(known)
        anew = members()
        for each in kept.others():
            anew.add(Member(each.signed, each.lost_ns))
        there = [each for each in kept.others() if each.is_there]
        assert kept.there() == there
        assert kept.there() is kept.there()
        assert kept.missed() == [each for each in kept.others() if each.is_missed]
        assert kept.digest() == anew.digest()
        assert kept.links == anew.links
        assert kept.ring == sorted(each.node for each in there)
        for address in ("10.0.0.1:1", "10.0.0.2:1"):
            assert kept.is_at(address) == any(each.advert.address == address for each in there)
        assert all(kept.is_said(each.signed.said) for each in kept)
        assert len(kept._said) == len(kept)
