"""The parts of the tool that breaks meshes: its plan, its proxies, what it makes of what it saw."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import combinations
from pathlib import Path
from time import monotonic_ns

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tools.chaos.audit import counted
from tools.chaos.book import Book
from tools.chaos.crowd import until
from tools.chaos.gateways import Gateway, Site
from tools.chaos.plan import FLAP, ISOLATE, KILL, KINDS, PAUSE, STALL, Fault, planned
from tools.chaos.proxy import Proxy, Way, Weather
from tools.chaos.recovery import Happened, affected, recovery
from tools.chaos.roles import Publisher, Requester

from weft.simulation.checker import LOST, check
from weft.simulation.history import SubscriberRecord

S = 1_000_000_000
HELLO = b"I am node-1."


# The plan.


def test_a_seed_gives_the_same_plan_each_time() -> None:
    plans = [planned(random.Random(7), 5, 120) for _ in range(2)]
    assert plans[0] == plans[1]
    assert plans[0] != planned(random.Random(8), 5, 120)


@given(st.integers(0, 1 << 32), st.floats(5, 200))
def test_all_faults_are_over_in_time_and_no_two_are_about_one_gateway(
    seed: int, seconds: float
) -> None:
    faults = planned(random.Random(seed), 5, seconds)
    assert all(fault.ends_s < seconds for fault in faults)
    for one, other in combinations(faults, 2):
        if set(one.gateways) & set(other.gateways):
            assert one.ends_s < other.begins_s


# In its first seconds everybody was busy, and the kind whose turn it was did not come again.
@example(2515)
@given(st.integers(0, 1 << 32))
def test_two_minutes_have_every_kind_of_fault(seed: int) -> None:
    assert {fault.kind for fault in planned(random.Random(seed), 5, 120)} == set(KINDS)


# The proxies.


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[Weather, Proxy]]:
    """A proxy as gateway 0, in front of somebody who says everything again."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    weather = Weather()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Proxy(0, weather, "node-") as proxy:
        proxy.target = server.sockets[0].getsockname()
        yield weather, proxy


@asynccontextmanager
async def dialled(
    proxy: Proxy, hello: bytes = HELLO
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = proxy.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(hello)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def heard(reader: asyncio.StreamReader) -> bytes:
    """What comes next; nothing at the end, in whatever way that comes."""
    with suppress(ConnectionError):
        return await reader.read(1000)
    return b""


async def test_bytes_go_through_both_ways() -> None:
    async with echoing() as (_, proxy), dialled(proxy) as (reader, writer):
        assert await heard(reader) == HELLO
        writer.write(b"more")
        assert await heard(reader) == b"more"


async def test_who_dials_is_known_however_its_greeting_is_split() -> None:
    async with echoing() as (weather, proxy), dialled(proxy, HELLO[:7]) as (reader, writer):
        await weather.refuse(Way(1, 0))
        writer.write(HELLO[7:])
        assert await heard(reader) == b""


async def test_a_link_that_is_refused_is_cut_and_no_other() -> None:
    async with (
        echoing() as (weather, proxy),
        dialled(proxy) as (cut, _),
        dialled(proxy, b"node-2.") as (spared, other),
    ):
        assert await heard(cut) == HELLO
        assert await heard(spared) == b"node-2."
        await weather.refuse(Way(0, 1))
        assert await heard(cut) == b""
        other.write(b"still here")
        assert await heard(spared) == b"still here"


async def test_who_is_refused_is_let_through_when_that_is_over() -> None:
    async with echoing() as (weather, proxy):
        await weather.refuse(Way(1, 0))
        async with dialled(proxy) as (reader, _):
            assert await heard(reader) == b""
        await weather.clear(Way(1, 0), Way(0, 1))
        async with dialled(proxy) as (reader, _):
            assert await heard(reader) == HELLO


@pytest.mark.parametrize("way", [Way(1, 0), Way(0, 1)])
async def test_what_is_stopped_comes_when_that_is_over(way: Way) -> None:
    async with (
        echoing() as (weather, proxy),
        dialled(proxy) as (reader, writer),
        dialled(proxy, b"node-2.") as (others, other),
    ):
        assert await heard(reader) == HELLO
        assert await heard(others) == b"node-2."
        await weather.stop(way)
        writer.write(b"late")
        coming = asyncio.create_task(heard(reader))
        # Whoever is not stopped goes there and back meanwhile, again and again.
        for _ in range(50):
            other.write(b"in time")
            assert await heard(others) == b"in time"
        assert not coming.done()
        await weather.clear(way)
        assert await coming == b"late"


async def test_nobody_hears_of_an_end_behind_what_is_stopped() -> None:
    async with echoing() as (weather, proxy), dialled(proxy) as (reader, writer):
        assert await heard(reader) == HELLO
        await weather.stop(Way(0, 1))
        writer.write_eof()
        coming = asyncio.create_task(heard(reader))
        async with dialled(proxy, b"node-2.") as (others, _):
            assert await heard(others) == b"node-2."
        assert not coming.done()
        await weather.clear(Way(0, 1))
        assert await coming == b""


# What was seen.


def test_a_fault_is_in_the_way_of_its_pair_or_of_all_of_its_gateway() -> None:
    assert affected(Fault(FLAP, 0, 1, 2, 1), 3) == [(2, 1), (1, 2)]
    assert set(affected(Fault(PAUSE, 0, 1, 2), 3)) == {(2, 0), (0, 2), (2, 1), (1, 2)}


def probed(*heard_s: tuple[float, float]) -> Book:
    """Probes from 0 to 1 and back that were published and heard at these times."""
    book = Book()
    for pair in ((0, 1), (1, 0)):
        published, heard = zip(*heard_s, strict=True)
        book.probes[pair] = ([int(each * S) for each in published], [int(e * S) for e in heard])
    return book


def test_recovery_is_from_the_end_of_a_fault_to_the_first_probe_from_after_it() -> None:
    book = probed((1, 1), (2.9, 3.6), (3.1, 3.5), (3.2, 3.7))
    times = recovery(book, [Happened(Fault(STALL, 0, 1, 0, 1), 2 * S, 3 * S)], 2)
    assert times == (2, 0.5, 0.5, 0.5, 0)


def test_of_faults_that_overlap_the_end_of_the_last_counts() -> None:
    book = probed((1, 1), (3.1, 5.1), (4.5, 5.25))
    faults = [
        Happened(Fault(STALL, 0, 1, 0, 1), 2 * S, 3 * S),
        Happened(Fault(KILL, 0, 1, 0), int(2.5 * S), 4 * S),
    ]
    assert recovery(book, faults, 2) == (2, 1.25, 1.25, 1.25, 0)


def test_what_does_not_recover_is_counted() -> None:
    times = recovery(probed((1, 1)), [Happened(Fault(ISOLATE, 0, 1, 0), 2 * S, 3 * S)], 2)
    assert times == (0, 0.0, 0.0, 0.0, 2)


def told(*counters: int) -> Book:
    """Three messages of one publisher, and a subscriber that heard some of them."""
    book = Book()
    session = SubscriberRecord("s", 9, ("data.>",), "", monotonic_ns(), events=[])
    book.sessions.append(session)
    life = book.begin("p", 0, 7)
    for sequence in range(3):
        counter = book.publish(life, "data.a")
        book.lives[life].sequences[counter] = sequence + 1
    session.events += [book.hear(life, counter, 7, counter + 1) for counter in counters]
    return book


def test_what_was_heard_is_judged_by_the_checker() -> None:
    assert check(told(0, 1, 2).history()).violations == []
    assert [each.kind for each in check(told(0, 2).history()).violations] == [LOST]


def test_a_message_that_nobody_confirmed_and_nobody_heard_comes_last() -> None:
    book = told(0, 1, 2)
    unknown = book.publish(0, "data.b")
    heard = book.publish(0, "data.a")
    book.sessions[0].events.append(book.hear(0, heard, 7, 4))
    assert book.unconfirmed == 1
    assert [each.counter for each in book.history().published] == [1, 2, 3, heard + 1, unknown + 1]


async def test_whoever_is_to_be_quiet_says_nothing_more(tmp_path: Path) -> None:
    """What is said after the end is heard by nobody, and would look lost."""
    gateway, book = Gateway(0, tmp_path, Site()), Book()
    await gateway.start()
    publisher = Publisher("p", gateway, book, ["data.a"], rate=10_000)
    requester = Requester("q", gateway, book, rate=10_000)
    keeping = [asyncio.create_task(each.keep()) for each in (publisher, requester)]
    speaking = [asyncio.create_task(publisher.publish()), asyncio.create_task(requester.ask())]
    await until(lambda: bool(book.lives and book.lives[0].subjects and book.asked), "no word")
    publisher.is_quiet = requester.is_quiet = True
    said = len(book.lives[0].subjects), len(book.asked)
    await asyncio.gather(*speaking)
    assert (len(book.lives[0].subjects), len(book.asked)) == said
    for task in keeping:
        task.cancel()
    assert await gateway.end() == 0


@pytest.mark.parametrize(
    ("kind", "is_right"),
    [("lost", True), ("missing_positions", True), ("doubled", False), ("misordered", False)],
)
@pytest.mark.parametrize("killed", [(), ("chaos-1",)])
def test_what_spark_finds_twice_or_out_of_order_is_wrong(
    kind: str, is_right: bool, killed: tuple[str, ...]
) -> None:
    audit = counted([{"kind": kind, "node": "chaos-1", "count": 3}] * 2, killed)
    assert audit.is_right == is_right
    found = audit.at_killed if killed else audit.elsewhere
    assert found == {kind: 6}
