import asyncio
import os
from collections.abc import Iterator

import pytest
from benchmarks.peers.lanes.hearing import FOUND, STEP, TOLD, WRONG
from benchmarks.peers.lanes.part import Part
from benchmarks.peers.lanes.progress import AsyncProgress, Progress
from benchmarks.running import Failed

Pipes = list[tuple[int, int]]


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = [os.pipe(), os.pipe()]
    yield made
    for ends in made:
        for end in ends:
            os.close(end)


def part(pipes: Pipes, case: str = "flow") -> Part:
    return Part("", case, "", len(pipes), 16, 1.0, [reading for reading, _ in pipes])


def test_the_slowest_receiver_counts(pipes: Pipes) -> None:
    progress = Progress(part(pipes))
    progress.sent = 3 * STEP
    os.write(pipes[0][1], TOLD * 3)
    os.write(pipes[1][1], TOLD)
    progress.wait(2 * STEP)
    assert progress.is_ahead(2 * STEP - 1)
    with pytest.raises(Failed, match=f"stalled: {STEP} of {3 * STEP} were heard"):
        progress.wait(STEP, stall_s=0)


def test_all_are_found_once_each_has_said_so(pipes: Pipes) -> None:
    progress = Progress(part(pipes))
    os.write(pipes[0][1], FOUND)
    assert progress.look(0)
    assert not progress.has_found_all()
    os.write(pipes[1][1], FOUND)
    assert progress.look(0)
    assert progress.has_found_all()
    assert not progress.look(0)


def test_what_was_not_next_is_a_failure(pipes: Pipes) -> None:
    progress = Progress(part(pipes, "turns"))
    os.write(pipes[1][1], TOLD * 2)
    progress.look(0)
    os.write(pipes[1][1], WRONG)
    with pytest.raises(Failed, match="after 2 messages a receiver got what was not next"):
        progress.look(0)


def test_a_receiver_that_has_ended_is_a_failure() -> None:
    reading, writing = os.pipe()
    progress = Progress(part([(reading, writing)]))
    os.close(writing)
    with pytest.raises(Failed, match="a receiver has ended"):
        progress.look(0)
    os.close(reading)


async def test_a_publisher_on_a_loop_waits_for_room(pipes: Pipes) -> None:
    progress = AsyncProgress(part(pipes, "turns"))
    progress.sent = 1
    waiting = asyncio.create_task(progress.room(0))
    os.write(pipes[0][1], TOLD)
    await asyncio.sleep(0)
    assert not waiting.done()
    os.write(pipes[1][1], TOLD)
    await waiting
    progress.close()


async def test_a_publisher_on_a_loop_learns_of_a_failure(pipes: Pipes) -> None:
    progress = AsyncProgress(part(pipes, "turns"))
    progress.sent = 1
    os.write(pipes[0][1], WRONG)
    with pytest.raises(Failed, match="what was not next"):
        await progress.room(0)
    progress.close()
