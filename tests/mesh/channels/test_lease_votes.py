from weft.mesh.channels.lease_votes import COUNTED_NS, Standing
from weft.mesh.channels.leases import LEASE_NS


def test_a_channel_is_confirmed_while_a_majority_agrees() -> None:
    standing = Standing(0)
    standing.agree(b"a", 10)
    assert not standing.is_confirmed(2, 11)
    standing.agree(b"b", 20)
    assert standing.is_confirmed(2, 21)
    assert standing.confirmed_ns == 21
    assert not standing.is_confirmed(2, 10 + COUNTED_NS)
    assert standing.confirmed_ns == 21


def test_an_older_answer_that_comes_late_takes_nothing_away() -> None:
    standing = Standing(0)
    standing.agree(b"a", 20)
    standing.agree(b"a", 10)
    assert standing.is_confirmed(1, 19 + COUNTED_NS)


def test_who_refuses_agrees_no_more_and_the_other_way_round() -> None:
    standing = Standing(0)
    standing.agree(b"a", 0)
    standing.refuse(b"a", 1)
    assert (standing.is_confirmed(1, 2), standing.is_refused(1, 2)) == (False, True)
    standing.agree(b"a", 3)
    assert (standing.is_confirmed(1, 4), standing.is_refused(1, 4)) == (True, False)
    standing.refuse(b"a", 5)
    assert not standing.is_refused(1, 5 + COUNTED_NS)


def test_clocks_that_run_apart_by_a_tenth_leave_no_time_for_two() -> None:
    # As long as a slow clock counts on a promise, a fast one keeps it.
    assert COUNTED_NS / 0.9 < LEASE_NS / 1.1
