import pytest
from tests.broker.locksmith import enter, locked, record
from tests.broker.talk import House

from weft.broker.channel_membership import Admissions
from weft.broker.limits import Limits
from weft.errors import TooMany
from weft.gateway.requests.channel_quotas import ChannelShares
from weft.mesh.channels.coordinator import HELD_HERE_MAX, OPENINGS_MAX


def shares_of(house: House, one_in: int) -> tuple[ChannelShares, Admissions]:
    house.service.set_limits(Limits(share=1 / one_in))
    admissions = Admissions()
    return ChannelShares(house.service, admissions), admissions


def test_a_key_opens_no_more_at_once_than_its_share() -> None:
    house = locked(record("one"), record("two"))
    one, two = enter(house, "one").peer, enter(house, "two").peer
    shares, _ = shares_of(house, OPENINGS_MAX)
    shares.begin(one)
    with pytest.raises(TooMany, match="this key has 1 channels that are being opened"):
        shares.begin(one)
    shares.begin(two)
    shares.end(one)
    shares.begin(one)


def test_a_channel_counts_for_its_first_member_until_it_has_none_here() -> None:
    house = locked(record("one"), record("two"))
    one, two = enter(house, "one").peer, enter(house, "two").peer
    shares, admissions = shares_of(house, HELD_HERE_MAX)
    for peer in (one, two):
        assert shares.problem(peer, b"a0") is None
        admissions.admit(peer, b"a0", b"name")
        shares.admitted(peer, b"a0")
    assert isinstance(shares.problem(one, b"a1"), TooMany)
    assert shares.problem(one, b"a0") is None
    assert shares.problem(two, b"a1") is None
    admissions.leave(one, b"a0")
    assert isinstance(shares.problem(one, b"a1"), TooMany)
    admissions.leave(two, b"a0")
    assert shares.problem(one, b"a1") is None


def test_without_keys_nothing_is_counted() -> None:
    house = House()
    peer = house.guest().peer
    shares, _ = shares_of(house, HELD_HERE_MAX)
    for channel in (b"a0", b"a1"):
        shares.begin(peer)
        assert shares.problem(peer, channel) is None
        shares.admitted(peer, channel)
    shares.end(peer)
