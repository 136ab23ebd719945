import pytest

from weft.broker.delivery.policy import GAP_MAX_BYTES, GAPS_MAX, Bounds, Policy, Reason


def test_what_may_be_dropped_leaves_room_for_what_may_not() -> None:
    bounds = Bounds(1 << 20)
    assert bounds.drop_bytes < bounds.keep_bytes
    assert bounds.keep_bytes + GAP_MAX_BYTES * GAPS_MAX <= bounds.limit_bytes


@pytest.mark.parametrize("limit", [0, -1, 8191])
def test_a_bound_too_small_to_announce_losses_in_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=f"{limit} bytes is under 8192"):
        Bounds(limit)


@pytest.mark.parametrize("age", [0, -1])
def test_a_bound_on_age_is_positive(age: int) -> None:
    with pytest.raises(ValueError, match="not positive"):
        Bounds(limit_age_ns=age)


def test_the_policy_that_keeps_most_is_the_highest() -> None:
    assert max(Policy) is Policy.CUT
    assert min(Policy) is Policy.LATEST


@pytest.mark.parametrize("limit", [8 << 10, 1 << 20, 1 << 30])
def test_a_piece_is_small_against_the_bound(limit: int) -> None:
    assert 0 < Bounds(limit).piece_bytes <= min(limit // 16, 64 << 10)


def test_policies_and_reasons_are_numbered_from_what_keeps_least() -> None:
    assert (Policy.LATEST, Policy.DROP_OLD, Policy.DROP_NEW, Policy.CUT) == (0, 1, 2, 3)
    assert (Reason.SLOW, Reason.OLD, Reason.CONFLATED) == (1, 2, 3)


def test_those_who_share_bounds_count_their_losses_together() -> None:
    assert Bounds().dropped == [0, 0, 0, 0]
    dropped = [0, 1, 2, 3]
    assert Bounds(dropped=dropped).dropped is dropped
