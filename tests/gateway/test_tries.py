import pytest

from weft.gateway import tries
from weft.gateway.tries import (
    CHANNEL_FREE,
    FORGET_S,
    PLACE_FREE,
    WAIT_MAX_S,
    Tries,
)

S = 1_000_000_000
HERE, THERE = "host 10.0.0.1", "key ab12cd34"
CHESS, GO = b"games.chess", b"games.go"


def wrong(counted: Tries, times: int, place: str = HERE, name: bytes = CHESS) -> None:
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


@pytest.mark.req("RLY-14")
def test_guesses_from_many_places_at_one_channel_have_to_wait_too() -> None:
    counted = Tries()
    for number in range(CHANNEL_FREE):
        assert counted.wait_s(f"host {number}", CHESS, 0) == 0
        wrong(counted, 1, f"host {number}")
    assert counted.wait_s(THERE, CHESS, 0) == 1
    assert counted.wait_s(THERE, GO, 0) == 0


def test_who_is_right_begins_anew_and_the_channel_does_not() -> None:
    counted = Tries()
    wrong(counted, CHANNEL_FREE)
    counted.right(HERE)
    counted.right(THERE)
    assert counted.wait_s(HERE, GO, 0) == 0
    assert counted.wait_s(HERE, CHESS, 0) == 1


def test_what_was_long_ago_is_forgotten() -> None:
    counted = Tries()
    wrong(counted, CHANNEL_FREE)
    counted.expire(FORGET_S * S - 1)
    wrong(counted, 1)
    assert counted.wait_s(HERE, CHESS, 0) == WAIT_MAX_S
    assert counted.wait_s(THERE, CHESS, 0) == 2
    counted.expire(FORGET_S * S)
    wrong(counted, 1)
    assert counted.wait_s(HERE, CHESS, 0) == 0
    assert counted.wait_s(THERE, CHESS, 0) == 0


def test_no_more_are_counted_than_there_is_room_for_the_oldest_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tries, "COUNTED_MAX", 3)
    counted = Tries()
    wrong(counted, PLACE_FREE, THERE)
    wrong(counted, PLACE_FREE, HERE)
    for number in range(2):
        wrong(counted, 1, f"host {number}", f"name{number}".encode())
    assert counted.wait_s(THERE, GO, 0) == 0
    assert counted.wait_s(HERE, GO, 0) == 1
