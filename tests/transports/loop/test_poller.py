import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.transports.loops import Client, on_both_loops, unix_pair, until

from weft.broker.limits import Limits
from weft.broker.service import Service
from weft.errors import InternalError, WeftError
from weft.transports.loop.poller import READING, WRITING, Poll
from weft.transports.loop.turn import Turn


class Noting:
    """Whoever is told of a socket, and takes note."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.told: list[int] = []
        self._then = then

    def happened(self, events: int) -> None:
        self.told.append(events)
        self._then()

    def give_up(self, error: WeftError) -> None:
        raise error


def polling() -> Poll:
    loop = asyncio.get_running_loop()
    return Poll(Turn(Service("weather", "g", 1, Limits()), loop), loop)


@on_both_loops
async def test_a_door_is_told_of_what_it_asked_for_until_it_asks_for_nothing() -> None:
    poll = polling()
    client, theirs = unix_pair()
    door = Noting()
    poll.watch(theirs.fileno(), door, READING)
    await client.say(b"word")
    await until(lambda: door.told[:2] == [READING] * 2)
    poll.watch(theirs.fileno(), door, READING | WRITING)
    await until(lambda: door.told[-1] == READING | WRITING)
    poll.watch(theirs.fileno(), door, 0)
    door.told.clear()
    other = Noting()
    poll.watch(client.sock.fileno(), other, WRITING)
    await until(lambda: len(other.told) > 1)
    assert door.told == []
    poll.close()
    client.close()
    theirs.close()


@on_both_loops
async def test_a_broken_socket_is_told_of_until_it_is_dealt_with() -> None:
    poll = polling()
    client, theirs = unix_pair()
    door = Noting()
    poll.watch(theirs.fileno(), door, READING)
    client.close()
    await until(lambda: len(door.told) > 2)
    poll.close()
    theirs.close()


@on_both_loops
async def test_one_that_another_ended_in_the_same_batch_is_not_told() -> None:
    poll = polling()
    pairs = [unix_pair() for _ in range(2)]
    fds = [theirs.fileno() for _, theirs in pairs]

    def end_both() -> None:
        for fd in fds:
            poll.watch(fd, door, 0)

    door = Noting(end_both)
    for fd in fds:
        poll.watch(fd, door, WRITING)
    later = Noting()
    poll.watch(pairs[0][0].sock.fileno(), later, WRITING)
    await until(lambda: len(later.told) > 2)
    assert door.told == [WRITING]
    poll.close()
    for client, theirs in pairs:
        client.close()
        theirs.close()


class Failing:
    """A door with a fault."""

    def __init__(self) -> None:
        self.errors: list[WeftError] = []

    def happened(self, _events: int) -> None:
        raise RuntimeError("a door failed")

    def give_up(self, error: WeftError) -> None:
        self.errors.append(error)


@on_both_loops
async def test_a_door_that_fails_is_given_up_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    poll = polling()
    pairs = [unix_pair() for _ in range(2)]
    failing, door = Failing(), Noting()
    poll.watch(pairs[0][1].fileno(), failing, WRITING)
    poll.watch(pairs[1][1].fileno(), door, WRITING)
    await until(lambda: len(failing.errors) > 0 and len(door.told) > 0)
    assert isinstance(failing.errors[0], InternalError)
    assert "a door failed" in caplog.text
    poll.close()
    for client, theirs in pairs:
        client.close()
        theirs.close()


class Chain:
    """A door that gives itself something to read, some times over, and notes when the loop ran."""

    def __init__(self, poll: Poll, times: int) -> None:
        self.client, self.theirs = unix_pair()
        self.told = 0
        self.told_before_the_loop = 0
        self._times = times
        self._loop = asyncio.get_running_loop()
        poll.watch(self.theirs.fileno(), self, READING)

    def begin(self) -> None:
        self.client.sock.send(b"x")

    def happened(self, events: int) -> None:
        assert events == READING
        self.theirs.recv(1)
        self.told += 1
        if self.told == 1:
            self._loop.call_soon(self._ran)
        if self.told < self._times:
            self.client.sock.send(b"x")

    def give_up(self, error: WeftError) -> None:
        raise error

    def close(self) -> None:
        self.client.close()
        self.theirs.close()

    def _ran(self) -> None:
        self.told_before_the_loop = self.told


@contextmanager
def chain_of(times: int) -> Iterator[tuple[Poll, Chain, Client]]:
    """A poll that stays, its chain, and whoever speaks to its guest."""
    poll = polling()
    guest, guests_peer = unix_pair()
    poll.stay(guests_peer.fileno())
    chain = Chain(poll, times)
    yield poll, chain, guest
    poll.close()
    for each in (chain, guest, guests_peer):
        each.close()


@on_both_loops
async def test_a_poll_returns_to_the_loop_after_each_turn() -> None:
    poll = polling()
    chain = Chain(poll, 5)
    chain.begin()
    await until(lambda: chain.told == 5)
    assert chain.told_before_the_loop == 1
    poll.close()
    chain.close()


@on_both_loops
async def test_one_that_stays_makes_turns_without_the_loop() -> None:
    with chain_of(5) as (_, chain, _):
        chain.begin()
        await until(lambda: chain.told_before_the_loop > 0)
        assert (chain.told, chain.told_before_the_loop) == (5, 5)


@on_both_loops
async def test_one_that_stays_need_not_look() -> None:
    with chain_of(5) as (poll, chain, _):
        poll.looks = False
        chain.begin()
        await until(lambda: chain.told_before_the_loop > 0)
        assert (chain.told, chain.told_before_the_loop) == (5, 5)


@on_both_loops
async def test_one_that_stays_returns_when_the_loop_has_its_guest_to_read() -> None:
    with chain_of(5) as (_, chain, guest):
        await guest.say(b"here")
        chain.begin()
        await until(lambda: chain.told == 5)
        assert chain.told_before_the_loop == 1


@on_both_loops
async def test_one_that_stayed_leaves_for_good() -> None:
    with chain_of(5) as (poll, chain, guest):
        poll.leave()
        poll.leave()
        await guest.say(b"nobody minds")
        chain.begin()
        await until(lambda: chain.told == 5)
        assert chain.told_before_the_loop == 1


@on_both_loops
async def test_one_that_stays_does_not_keep_the_loop_for_long() -> None:
    with chain_of(1_000_000) as (_, chain, _):
        chain.begin()
        await until(lambda: chain.told_before_the_loop > 1)
        assert chain.told_before_the_loop < 1_000_000
