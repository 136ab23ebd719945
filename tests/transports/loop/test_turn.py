import asyncio
import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.broker.talk import ANSWER, REQUEST, NotedDoor, message, subscribe

from weft.broker.disconnect import leave
from weft.broker.ingest import READ_BYTES
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.transports.loop.syscalls import BROKEN, NOT_NOW
from weft.transports.loop.turn import Turn
from weft.wire.frames import Decoder, Flag, Frame, Kind, encode, parse

CONNECT = encode(Kind.CONNECT, b"weather")


class Caller:
    """One peer of a turn: a real socket, and a door that only takes note."""

    def __init__(self, hall: "Hall") -> None:
        self.hall = hall
        self.sock, self.theirs = socket.socketpair()
        self.sock.setblocking(False)
        self.theirs.setblocking(False)
        self.door = NotedDoor()
        self.peer = hall.turn.service.join(1, self.door)
        self.peer.outbox.fd = self.theirs.fileno()
        self.decoder = Decoder(64 << 20)

    def read(self) -> int:
        """What the loop does when the socket can be read."""
        return self.hall.turn.read(self.peer, self.theirs.fileno())

    def say(self, *frames: bytes) -> list[Frame]:
        """Say it in reads of one turn, then hear what is said."""
        data = b"".join(frames)
        while data:
            data = data[self.sock.send(data) :]
            while self.read() > 0:
                pass
        self.hall.turn.flush()
        return self.heard()

    def heard(self) -> list[Frame]:
        """What came, also of what a door would send when there is room for it."""
        outbox = self.peer.outbox
        while (data := self._received()) or outbox.is_behind():
            self.decoder.feed(data)
            piece = outbox.take(1 << 16, self.hall.turn.service.now_ns)
            if len(piece):
                outbox.taken(self.theirs.send(piece))
        return [parse(frame) for frame in iter(self.decoder.next_frame, None)]

    def _received(self) -> bytes:
        try:
            return self.sock.recv(1 << 20)
        except BlockingIOError:
            return b""

    def fill(self) -> None:
        """Leave no room between the two ends."""
        self.theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        try:
            while True:
                self.theirs.send(bytes(100))
        except BlockingIOError:
            pass


class Hall:
    """A service, its turns, and callers."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.turn = Turn(Service("weather", "g", 1, limits or Limits()), self.loop)
        self.callers: list[Caller] = []

    def caller(self, *patterns: bytes) -> Caller:
        caller = Caller(self)
        self.callers.append(caller)
        caller.say(CONNECT, *(subscribe(pattern, flags=0) for pattern in patterns))
        return caller

    def close(self) -> None:
        self.loop.close()
        for caller in self.callers:
            caller.sock.close()
            caller.theirs.close()


@pytest.fixture
def hall() -> Iterator[Hall]:
    made = Hall()
    yield made
    made.close()


def bodies(frames: list[Frame]) -> list[bytes]:
    return [frame.body for frame in frames if frame.kind == Kind.MESSAGE]


def test_what_is_read_is_dealt_with_and_sent_at_the_end_of_the_turn(hall: Hall) -> None:
    one, other = hall.caller(), hall.caller(b"a")
    one.sock.send(message(b"a", b"1"))
    assert one.read() == len(message(b"a", b"1"))
    assert other.heard() == []
    hall.turn.flush()
    assert bodies(other.heard()) == [b"1"]
    assert hall.turn.service.bytes_out > 0


def test_nothing_to_read_changes_nothing(hall: Hall) -> None:
    caller = hall.caller(b"a")
    caller.sock.send(message(b"a")[:7])
    caller.read()
    for _ in range(3):
        assert caller.read() == NOT_NOW
    caller.sock.send(message(b"a")[7:])
    assert caller.read() > 0
    hall.turn.flush()
    assert bodies(caller.heard()) == [b"hi"]


def test_reads_of_many_peers_share_a_turn(hall: Hall) -> None:
    listener, senders = hall.caller(b">"), [hall.caller() for _ in range(5)]
    for number, sender in enumerate(senders):
        sender.sock.send(message(b"a", b"%d" % number) + message(b"b")[:9])
        sender.read()
    hall.turn.flush()
    assert bodies(listener.heard()) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_full_arena_is_flushed_before_the_next_read(hall: Hall) -> None:
    one, other = hall.caller(b"b"), hall.caller(b"a")
    one.sock.send(message(b"a", b"first") + message(b"b")[:5])
    one.read()
    arena = hall.turn.service.arena
    arena.reserve(arena.room() - READ_BYTES - 4)
    one.sock.send(message(b"b")[5:])
    assert one.read() > 0
    assert bodies(other.heard()) == [b"first"]
    assert arena.fill == len(message(b"b"))
    hall.turn.flush()
    assert bodies(one.heard()) == [b"hi"]


def test_a_large_frame_makes_room_for_itself(hall: Hall) -> None:
    caller = hall.caller(b"a")
    frame = message(b"a", bytes(300_000))
    arena = hall.turn.service.arena
    sent = 0
    while sent < len(frame):
        sent += caller.sock.send(frame[sent:])
        while caller.read() > 0:
            arena.reserve(max(0, arena.room() - 2 * READ_BYTES))
    hall.turn.flush()
    assert bodies(caller.heard()) == [frame[-300_000:]]
    assert hall.turn.service.unfinished_bytes == 0


def test_a_large_masked_frame_and_its_answer_make_room_for_their_copies(hall: Hall) -> None:
    asker, server = hall.caller(), hall.caller(b"a")
    arena = hall.turn.service.arena
    body = bytes(Limits().body_bytes)

    def say(caller: Caller, frame: bytes) -> None:
        sent = 0
        while sent < len(frame):
            sent += caller.sock.send(frame[sent:])
            while caller.read() > 0:
                arena.reserve(max(0, arena.room() - 2 * len(body)))
        hall.turn.flush()

    for _ in range(3):
        say(asker, message(b"a", body, asker.peer.inbox + b"1", REQUEST | Flag.MASKED))
        (asked,) = server.heard()
        # Its own reply is masked as well: two copies.
        say(server, message(asked.reply, body, server.peer.inbox + b"1", Flag.MASKED))
        assert bodies(asker.heard()) == [body]


def test_one_who_reads_is_not_cut_because_a_turn_has_no_room_for_its_answers() -> None:
    hall = Hall(Limits(outbox_bytes=8192))
    try:
        caller = hall.caller()
        arena = hall.turn.service.arena
        arena.reserve(arena.room() - READ_BYTES - 100)
        heard = caller.say(*[subscribe(b"a..b")] * 500)
        assert [frame.kind for frame in heard] == [Kind.ERROR] * 500
        assert not caller.peer.outbox.is_cut
    finally:
        hall.close()


def test_the_time_is_told_with_every_read(hall: Hall) -> None:
    caller = hall.caller(b"a")
    before = hall.turn.service.wall_ns
    (got,) = caller.say(message(b"a"))
    assert got.time_ns == hall.turn.service.wall_ns > before > 1_700_000_000 * 10**9
    assert caller.peer.heard_ns == hall.turn.service.now_ns


def test_what_one_who_is_over_sends_is_read_and_ignored(hall: Hall) -> None:
    caller = hall.caller(b"a")
    caller.say(b"\0\0\0\0")
    caller.sock.send(message(b"a"))
    assert caller.read() == len(message(b"a"))
    assert hall.turn.service.total.messages == 0


def test_a_socket_that_takes_nothing_now_leaves_the_rest_to_its_door(hall: Hall) -> None:
    slow, sender = hall.caller(b"a"), hall.caller(b"a")
    slow.fill()
    sender.say(message(b"a", b"x" * 5000))
    assert slow.door.told == ["fall behind"]
    assert slow.peer.outbox.owed() > 5000
    assert bodies(sender.say(message(b"a", b"2"))) == [b"2"]
    assert slow.door.told == ["fall behind"] * 2


def test_a_broken_socket_is_aborted_at_once(hall: Hall) -> None:
    gone, sender = hall.caller(b"a"), hall.caller()
    gone.sock.close()
    sender.say(message(b"a"))
    assert gone.door.told == ["abort"]
    assert gone.read() == 0


def test_a_closed_descriptor_is_broken(hall: Hall) -> None:
    caller = hall.caller()
    fd = caller.theirs.fileno()
    caller.theirs.close()
    assert hall.turn.read(caller.peer, fd) == BROKEN


def test_one_who_is_over_is_sent_the_last_word_before_its_door_is_told(hall: Hall) -> None:
    caller = hall.caller()
    heard = caller.say(encode(Kind.PING), b"\0\0\0\0")
    assert [frame.kind for frame in heard] == [Kind.PONG, Kind.ERROR]
    assert caller.door.told == ["finish"]


def test_a_flush_is_asked_for_once_a_turn(hall: Hall) -> None:
    calls: list[str] = []

    class Loop:
        """Counts what it is asked to call soon."""

        def call_soon(self, call: object) -> None:
            calls.append(getattr(call, "__name__", ""))

    turn = Turn(hall.turn.service, Loop())  # type: ignore[arg-type]  # all that is asked of a loop
    turn.wake()
    turn.wake()
    assert calls == ["flush"]
    turn.flush()
    turn.wake()
    assert calls == ["flush", "flush"]


class Doing(NotedDoor):
    """A door that does something to someone when it is told that its peer fell behind."""

    def __init__(self, hall: Hall, peers: list[Peer]) -> None:
        super().__init__()
        self.hall = hall
        self.peers = peers

    def fall_behind(self) -> None:
        super().fall_behind()
        for peer in self.peers:
            leave(peer)

    def finish(self) -> None:
        super().finish()
        for peer in self.peers:
            leave(peer)


@pytest.mark.parametrize("order", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
def test_doors_may_make_anyone_leave_while_everyone_is_being_sent_to(
    hall: Hall, order: list[int]
) -> None:
    callers = [hall.caller(b"a", b"_WEFT.event.disconnected") for _ in range(3)]
    callers[0].fill()
    callers[0].peer.door = Doing(hall, [callers[number].peer for number in order])
    watcher, sender = hall.caller(b"_WEFT.event.disconnected"), hall.caller()
    sender.say(message(b"a", b"x" * 5000))
    hall.turn.flush()
    assert len(bodies(watcher.heard())) == len(order)
    assert hall.turn.service.arena.in_use == 0
    assert len(hall.turn.service.peers) == 5 - len(order)
    # Whoever was sent to before the others left has it; nobody who stayed has less.
    for number in {1, 2} - set(order):
        assert len(bodies(callers[number].heard())[0]) == 5000


def test_a_door_that_makes_others_leave_at_the_end_gives_rise_to_another_turn(hall: Hall) -> None:
    asker, server, other = hall.caller(), hall.caller(b"a"), hall.caller()
    asker.say(message(b"a", b"?", asker.peer.inbox + b"1", REQUEST))
    other.peer.door = Doing(hall, [server.peer])
    other.say(encode(Kind.GOODBYE))
    hall.turn.flush()
    assert [frame.kind for frame in asker.heard()] == [Kind.ERROR]


def test_a_reader_that_is_cut_by_a_flush_in_the_middle_of_its_own_read_is_left_alone() -> None:
    hall = Hall(Limits(outbox_bytes=8192))
    try:
        caller = hall.caller(b"a")
        caller.fill()

        class Cutting(NotedDoor):
            def fall_behind(self) -> None:
                super().fall_behind()
                leave(caller.peer)

        caller.peer.door = Cutting()
        caller.sock.send(message(b"a", bytes(9000)) + message(b"a")[:5])
        caller.read()
        arena = hall.turn.service.arena
        arena.reserve(arena.room())
        caller.sock.send(message(b"a")[5:])
        assert caller.read() == NOT_NOW
        assert hall.turn.service.peers == {}
        assert arena.in_use == 0
    finally:
        hall.close()


def test_who_wants_to_know_is_told_when_a_peer_has_left(hall: Hall) -> None:
    left: list[int] = []
    one = hall.caller()
    hall.turn.on_left = lambda: left.append(1)
    assert left == []
    leave(one.peer)
    hall.turn.left()
    assert left == [1]


TALK = [
    subscribe(b"a.*"),
    subscribe(b"b", b"g", patterns=["c.>"]),
    *[message(b"a.b", b"%d" % number) for number in range(3)],
    message(b"a.b", b"y" * 4000, flags=ANSWER),
    message(b"b", b"z" * 90_000),
    message(b"_x", flags=ANSWER),
    encode(Kind.PING),
]
ENDS = [b"", message(b"b")[:20], encode(Kind.GOODBYE), b"\x01\0\0\0"]


def outcome(parts: list[bytes]) -> tuple[list[Frame], dict[str, int], int]:
    hall = Hall()
    try:
        caller = Caller(hall)
        hall.callers.append(caller)
        heard: list[Frame] = []
        for part in parts:
            heard += caller.say(part)
        service = hall.turn.service
        return [frame._replace(time_ns=0) for frame in heard], service.refused, service.deliveries
    finally:
        hall.close()


@pytest.mark.req("MM-8")
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_split_of_what_is_read_gives_the_same_result(data: st.DataObject) -> None:
    said = data.draw(st.lists(st.sampled_from(TALK), max_size=8))
    stream = b"".join([CONNECT, *said, data.draw(st.sampled_from(ENDS))])
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10))
    parts = [stream[start:end] for start, end in pairwise([0, *sorted(cuts), len(stream)])]
    assert outcome(parts) == outcome([stream])
