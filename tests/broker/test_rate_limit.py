import pytest
from tests.broker.talk import House

from weft.broker.limits import Limits
from weft.broker.rate_limit import spend
from weft.errors import ControlFlood

LIMITS = Limits(control_burst=100, control_per_s=10)


def test_the_whole_burst_may_be_spent_at_once_and_no_more() -> None:
    peer = House(LIMITS).arrive().peer
    spend(peer, 100)
    with pytest.raises(ControlFlood, match="over 100 control frames at once, or 10 a second"):
        spend(peer, 1)


def test_credit_comes_back_with_time_and_never_beyond_the_burst() -> None:
    house = House(LIMITS)
    peer = house.arrive().peer
    spend(peer, 100)
    house.wait(2)
    spend(peer, 20)
    house.wait(3600)
    spend(peer, 100)
    with pytest.raises(ControlFlood):
        spend(peer, 1)


def test_one_who_spends_does_not_take_from_another() -> None:
    house = House(LIMITS)
    spender, other = house.arrive().peer, house.arrive().peer
    spend(spender, 100)
    spend(other, 100)


def test_a_lower_burst_holds_from_now_on() -> None:
    house = House(LIMITS)
    peer = house.arrive().peer
    house.service.set_limits(Limits(control_burst=5, control_per_s=10))
    with pytest.raises(ControlFlood):
        spend(peer, 6)
