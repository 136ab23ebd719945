import pytest

from weft.broker.auth.key_quota import KeyQuota
from weft.broker.limits import Limits
from weft.errors import TooMany


def test_one_holder_has_its_share_and_others_theirs() -> None:
    shares = KeyQuota("things")
    limits = Limits(share=0.25)
    for _ in range(3):
        shares.check("key a", 12, limits)
        shares.add("key a")
    told = r"this key has 3 things, which is its share of 12: see limits.share"
    with pytest.raises(TooMany, match=told):
        shares.check("key a", 12, limits)
    shares.check("connection 1", 12, limits)
    shares.add("key a", -1)
    shares.check("key a", 12, limits)
    assert shares.count("key a") == 2


def test_who_has_nothing_left_is_forgotten() -> None:
    shares = KeyQuota("things")
    shares.add("key a", 5)
    shares.add("key a", -5)
    shares.add("key b", -1)
    assert (shares.count("key a"), shares.count("key b")) == (0, 0)


def test_a_share_is_one_at_least() -> None:
    assert Limits(share=0.1).share_of(3) == 1
