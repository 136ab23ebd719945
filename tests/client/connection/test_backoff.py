from weft.client.connection.backoff import Backoff


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(first_s=1.0, cap_s=5.0)
    assert [backoff.next_delay_s(1.0) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_any_part_of_a_delay_may_be_waited() -> None:
    backoff = Backoff(first_s=1.0, cap_s=5.0)
    assert [backoff.next_delay_s(chance) for chance in (0.0, 0.5, 0.25)] == [0.0, 1.0, 1.0]


def test_a_reset_begins_again() -> None:
    backoff = Backoff(first_s=1.0, cap_s=5.0)
    backoff.next_delay_s(1.0)
    backoff.next_delay_s(1.0)
    backoff.reset()
    assert backoff.next_delay_s(1.0) == 1.0
