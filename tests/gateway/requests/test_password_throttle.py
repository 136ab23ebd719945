import pytest

from weft.gateway.requests import password_throttle
from weft.gateway.requests.password_throttle import (
    CHANNEL_FREE,
    FORGET_S,
    PLACE_FREE,
    SPACING_S,
    WAIT_MAX_S,
    Tries,
    TryOrigin,
)

S = 1_000_000_000
HERE, THERE = TryOrigin("key 12345678", is_lasting=True), TryOrigin("key ab12cd34", is_lasting=True)
CHESS, GO = b"games.chess", b"games.go"


def wrong(counted: Tries, times: int, place: TryOrigin = HERE, name: bytes = CHESS) -> None:
    for _ in range(times):
        counted.wrong(place, name, 0)


@pytest.mark.req("RLY-14")
def test_a_place_has_a_few_tries_before_it_waits() -> None:
    counted = Tries()
    wrong(counted, PLACE_FREE - 1)
    assert counted.wait_s(HERE, CHESS, 0) == 0
    wrong(counted, 1)
    assert counted.wait_s(HERE, CHESS, 0) == 1
    # For whatever it tries next.
    assert counted.wait_s(HERE, GO, 0) == 1


def test_it_waits_twice_as_long_each_time_and_not_for_ever() -> None:
    counted = Tries()
    wrong(counted, PLACE_FREE - 1)
    waits: list[float] = []
    for _ in range(20):
        wrong(counted, 1)
        waits.append(counted.wait_s(HERE, CHESS, 0))
    assert waits[:7] == [1, 2, 4, 8, 16, 32, WAIT_MAX_S]
    assert set(waits[7:]) == {WAIT_MAX_S}


def test_the_wait_passes() -> None:
    counted = Tries()
    wrong(counted, PLACE_FREE + 2)
    assert counted.wait_s(HERE, CHESS, 3 * S) == 1
    assert counted.wait_s(HERE, CHESS, 4 * S) == 0
    assert counted.wait_s(HERE, CHESS, 400 * S) == 0


@pytest.mark.req("RLY-14")
def test_others_are_not_kept_out_by_one_that_guesses() -> None:
    counted = Tries()
    wrong(counted, CHANNEL_FREE - 1)
    assert counted.wait_s(HERE, CHESS, 0) == WAIT_MAX_S
    assert counted.wait_s(THERE, CHESS, 0) == 0


def connection(number: int) -> TryOrigin:
    return TryOrigin(f"connection {number}", is_lasting=False)


def guessed_at() -> Tries:
    """Tries of a channel that many keys have guessed at."""
    counted = Tries()
    for number in range(CHANNEL_FREE):
        wrong(counted, 1, TryOrigin(f"key {number}", is_lasting=True))
    return counted


@pytest.mark.req("RLY-14")
def test_guesses_by_others_never_make_a_key_wait() -> None:
    counted = guessed_at()
    assert counted.wait_s(THERE, CHESS, 0) == 0
    assert counted.wait_s(THERE, GO, 0) == 0


@pytest.mark.req("RLY-14")
def test_a_channel_that_is_guessed_at_leaves_each_place_one_try() -> None:
    counted = guessed_at()
    wrong(counted, 1, THERE)
    assert counted.wait_s(THERE, CHESS, 0) == 1
    assert counted.wait_s(THERE, GO, 0) == 0
    wrong(counted, 1, THERE)
    assert counted.wait_s(THERE, CHESS, 0) == 2
    assert counted.wait_s(THERE, CHESS, 2 * S) == 0


@pytest.mark.req("RLY-14")
def test_tries_by_new_connections_at_such_a_channel_are_spaced_and_never_add_up() -> None:
    counted = Tries()
    for number in range(1000):
        wrong(counted, 1, connection(number))
    assert counted.wait_s(connection(2000), CHESS, 0) == SPACING_S
    assert counted.wait_s(connection(2000), GO, 0) == 0
    assert counted.wait_s(connection(2000), CHESS, S // 5) == 0
    assert counted.wait_s(connection(0), CHESS, S // 5) == 0.8


def test_a_correct_try_forgets_the_wrong_ones_of_its_place() -> None:
    counted = guessed_at()
    wrong(counted, PLACE_FREE)
    counted.right(HERE)
    assert counted.wait_s(HERE, CHESS, 0) == 0
    # The channel is still being guessed at.
    wrong(counted, 1)
    assert counted.wait_s(HERE, CHESS, 0) == 1


def test_what_was_long_ago_is_forgotten() -> None:
    counted = Tries()
    wrong(counted, CHANNEL_FREE)
    counted.expire(FORGET_S * S - 1)
    wrong(counted, 1)
    assert counted.wait_s(HERE, CHESS, 0) == WAIT_MAX_S
    assert counted.wait_s(connection(1), CHESS, 0) == SPACING_S
    counted.expire(FORGET_S * S)
    wrong(counted, 1)
    assert counted.wait_s(HERE, CHESS, 0) == 0
    assert counted.wait_s(connection(1), CHESS, 0) == 0


def test_no_more_are_counted_than_there_is_room_for_the_oldest_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(password_throttle, "COUNTED_MAX", 3)
    counted = Tries()
    wrong(counted, PLACE_FREE, THERE)
    wrong(counted, PLACE_FREE, HERE)
    for number in range(2):
        wrong(counted, 1, connection(number), f"name{number}".encode())
    assert counted.wait_s(THERE, GO, 0) == 0
    assert counted.wait_s(HERE, GO, 0) == 1
