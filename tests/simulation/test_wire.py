"""Bytes come in order, whatever happens to the way; what is lost is the tail."""

from random import Random

from weft.simulation.clock import MS, SECOND, Clock
from weft.simulation.wire import WINDOW_BYTES, Pace, Wire

WAY = (1, 2)
NEAR = Pace(10 * MS, 0, 1 << 30)


class Reader:
    """Notes what comes to it, and when."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.got: list[tuple[int, bytes]] = []
        self.is_hung_up = False

    def take(self, data: bytes) -> None:
        self.got.append((self.clock.now_ns // MS, data))

    def hang_up(self) -> None:
        self.is_hung_up = True


def laid(
    pace: Pace = NEAR,
) -> tuple[Clock, Wire, Reader, set[tuple[int, int]]]:
    """A wire, who reads from it, and the ways that are cut."""
    clock = Clock()
    cuts: set[tuple[int, int]] = set()
    wire = Wire(clock, Random(1), WAY, pace)
    wire.is_cut = cuts.__contains__
    reader = Reader(clock)
    wire.receiver = reader
    return clock, wire, reader, cuts


def test_bytes_arrive_after_a_while() -> None:
    clock, wire, reader, _ = laid()
    wire.send(b"a")
    clock.run(9 * MS)
    assert reader.got == []
    clock.run(SECOND)
    assert reader.got == [(10, b"a")]


def test_bytes_arrive_in_order_however_long_each_takes() -> None:
    clock, wire, reader, _ = laid(Pace(MS, 50 * MS, 1 << 30))
    for number in range(100):
        wire.send(b"%d" % number)
    clock.run(SECOND)
    assert [data for _, data in reader.got] == [b"%d" % number for number in range(100)]
    assert len({time for time, _ in reader.got}) > 1


def test_a_slow_wire_takes_time_for_each_byte() -> None:
    clock, wire, reader, _ = laid(Pace(0, 0, 1000))
    wire.send(bytes(100))
    wire.send(bytes(200))
    clock.run(SECOND)
    assert [time for time, _ in reader.got] == [100, 300]


def test_what_is_sent_while_a_way_is_cut_arrives_when_it_is_mended() -> None:
    clock, wire, reader, cuts = laid()
    wire.send(b"a")
    cuts.add(WAY)
    clock.run(20 * MS)
    wire.send(b"b")
    wire.end()
    clock.run(SECOND)
    assert (reader.got, reader.is_hung_up) == ([], False)
    cuts.clear()
    wire.go_on(50 * MS)
    clock.run(2 * SECOND)
    assert reader.got == [(1050, b"a"), (1050, b"b")]
    assert reader.is_hung_up


def test_the_other_end_is_told_after_all_that_was_sent() -> None:
    clock, wire, reader, _ = laid()
    wire.send(b"a")
    wire.end()
    wire.send(b"b")
    clock.run(SECOND)
    assert ([data for _, data in reader.got], reader.is_hung_up) == ([b"a"], True)
    assert wire.is_over


def test_what_is_swallowed_never_arrives_and_nobody_is_told() -> None:
    clock, wire, reader, _ = laid()
    wire.send(b"a")
    wire.swallow()
    wire.send(b"b")
    clock.run(SECOND)
    assert (reader.got, reader.is_hung_up) == ([], False)


def test_a_wire_takes_no_more_than_its_window_until_that_is_read() -> None:
    clock, wire, _, _ = laid()
    told: list[int] = []
    wire.on_room = lambda: told.append(clock.now_ns)
    wire.send(bytes(WINDOW_BYTES))
    clock.run(SECOND)
    had_room = wire.has_room
    wire.took(WINDOW_BYTES)
    assert (had_room, wire.has_room, told) == (False, True, [SECOND])
