"""Each connection has a direct-lane address of its own."""

import pytest
from tests.lanes.lane_house import LaneHouse

from weft.errors import BadOption, NotKnown, NotYours


@pytest.mark.req("HUB-2")
def test_an_address_is_that_of_one_connection() -> None:
    house = LaneHouse()
    claims = house.lanes.talk.claims
    ann, bob = house.knowing("ann").peer, house.knowing("bob").peer
    eve = house.knowing("eve", host="8.8.8.8").peer
    assert claims.claim(ann, 4000) == claims.claim(ann, 4000) == "127.0.0.1:4000"
    with pytest.raises(NotYours):
        claims.claim(bob, 4000)
    assert claims.claim(eve, 4000) == "8.8.8.8:4000"


def test_what_cannot_be_an_address_is_refused() -> None:
    house = LaneHouse()
    claims = house.lanes.talk.claims
    with pytest.raises(BadOption):
        claims.claim(house.knowing("ann").peer, 0)
    with pytest.raises(NotKnown):
        claims.claim(house.knowing("bob", host="").peer, 4000)
