from tests.broker.locksmith import enter, locked, record
from tests.broker.talk import House

from weft.broker.auth.key_connections import holder_of
from weft.broker.disconnect import leave


def test_connections_with_one_key_are_counted_together_until_the_last_is_gone() -> None:
    house = locked(record("one"), record("two"))
    first, second, other = enter(house, "one"), enter(house, "one"), enter(house, "two")
    assert first.peer.holder is second.peer.holder
    assert first.peer.holder is not other.peer.holder
    leave(first.peer)
    leave(first.peer)
    assert len(house.service.holders) == 2
    leave(second.peer)
    assert [holder.peers for holder in house.service.holders.values()] == [1]


def test_without_keys_things_count_for_their_connection() -> None:
    house = House()
    guest = house.guest()
    assert guest.peer.holder is None
    assert holder_of(guest.peer, 5) == "connection 5"
    leave(guest.peer)
    keyed = enter(locked(record("one")), "one")
    assert holder_of(keyed.peer, 5) == "key one00000"
