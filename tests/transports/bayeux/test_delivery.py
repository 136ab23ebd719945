import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.transports.bayeux.delivery import Delivery

pytestmark = pytest.mark.req("TUN-24")


def test_without_acknowledgements_what_was_said_is_forgotten() -> None:
    delivery = Delivery(is_acknowledged=False)
    delivery.add(b"1")
    delivery.add(b"2")
    assert (delivery.is_owed, delivery.take()) == (True, [b"1", b"2"])
    assert (delivery.is_owed, delivery.size) == (False, 0)


def test_what_is_not_acknowledged_is_said_again_in_order() -> None:
    delivery = Delivery(is_acknowledged=True)
    delivery.add(b"1")
    assert delivery.take() == [b"1"]
    delivery.add(b"2")
    assert delivery.take() == [b"1", b"2"]
    assert delivery.batch == 2


def test_what_is_acknowledged_is_not_said_again() -> None:
    delivery = Delivery(is_acknowledged=True)
    delivery.add(b"1")
    delivery.take()
    delivery.acknowledge(delivery.batch)
    assert not delivery.is_owed
    assert delivery.size == 0


def test_an_earlier_acknowledgement_leaves_what_came_later() -> None:
    delivery = Delivery(is_acknowledged=True)
    delivery.add(b"1")
    delivery.take()
    delivery.acknowledge(0)
    delivery.acknowledge(-1)
    assert delivery.is_owed


def test_what_was_not_said_cannot_be_acknowledged() -> None:
    delivery = Delivery(is_acknowledged=True)
    delivery.add(b"1")
    delivery.acknowledge(1 << 50)
    assert delivery.take() == [b"1"]


def test_a_batch_of_nothing_has_no_number() -> None:
    delivery = Delivery(is_acknowledged=True)
    assert delivery.take() == []
    assert delivery.batch == 0


@given(st.lists(st.one_of(st.just("add"), st.just("lost"), st.just("got"))))
def test_whoever_acknowledges_gets_everything_once_whatever_is_lost(steps: list[str]) -> None:
    delivery = Delivery(is_acknowledged=True)
    added: list[bytes] = []
    received: list[bytes] = []
    acknowledged = 0
    for step in steps:
        if step == "add":
            added.append(b"%d" % len(added))
            delivery.add(added[-1])
            continue
        delivery.acknowledge(acknowledged)
        pieces = delivery.take()
        if step == "got":
            received += pieces
            acknowledged = delivery.batch
    delivery.acknowledge(acknowledged)
    received += delivery.take()
    assert received == added
    delivery.acknowledge(delivery.batch)
    assert delivery.size == 0
