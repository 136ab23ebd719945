import asyncio
import os
from collections.abc import Callable

from tests.doors.loops import on_both_loops, unix_pair, until

from weft.core.limits import Limits
from weft.core.service import Service
from weft.doors.poll import READING, WRITING, Poll
from weft.doors.turn import Turn


class Noting:
    """Whoever is told of a socket, and takes note."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.told: list[int] = []
        self._then = then

    def happened(self, events: int) -> None:
        self.told.append(events)
        self._then()


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


async def test_what_was_owed_is_sent_although_a_door_failed() -> None:
    loop = asyncio.get_running_loop()
    failures: list[str] = []
    loop.set_exception_handler(lambda _, context: failures.append(str(context["exception"])))
    turn = Turn(Service("weather", "g", 1, Limits()), loop)
    poll = Poll(turn, loop)
    client, theirs = unix_pair()
    fd = os.dup(theirs.fileno())
    peer = turn.service.join(1, Unused())
    peer.outbox.fd = theirs.fileno()

    def fail() -> None:
        poll.watch(fd, door, 0)
        peer.owe(b"owed")
        raise RuntimeError("a door failed")

    door = Noting(fail)
    poll.watch(fd, door, WRITING)
    assert await loop.sock_recv(client.sock, 100) == b"owed"
    assert failures == ["a door failed"]
    poll.close()
    os.close(fd)
    client.close()
    theirs.close()


class Unused:
    """A door that nobody is to call."""

    def fall_behind(self) -> None:
        raise AssertionError

    def finish(self) -> None:
        raise AssertionError

    def abort(self) -> None:
        raise AssertionError
