import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.wire.frames import Decoder, Kind, Run, Stamp, encode
from weft.wire.message.message import Message

LIMIT = 16 << 10
AGE_NS = 1000
FRAME = encode(Kind.MESSAGE, b"a", b"x" * 17)  # 50 bytes


def made(size: int = 1 << 16) -> tuple[Arena, Outbox]:
    arena = Arena(size)
    return arena, Outbox(arena, Bounds(LIMIT, AGE_NS))


def gathered(outbox: Outbox) -> bytes:
    start = outbox.gather()
    return bytes(outbox.arena.data[start : start + outbox.gathered])


def test_an_empty_outbox_has_nothing_to_gather() -> None:
    _, outbox = made()
    assert gathered(outbox) == b""
    assert outbox.owed() == 0


def test_one_span_is_sent_from_where_it_was_read() -> None:
    arena, outbox = made()
    arena.put(b"skipped")
    start = arena.put(FRAME)
    outbox.push(start, len(FRAME), Policy.CUT)
    assert outbox.gather() == start
    assert gathered(outbox) == FRAME


def test_adjacent_frames_are_one_span() -> None:
    arena, outbox = made()
    for _ in range(100):
        outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    assert arena.span_count == 1
    assert gathered(outbox) == FRAME * 100


def test_frames_of_different_policies_are_different_spans() -> None:
    arena, outbox = made()
    for policy in (Policy.CUT, Policy.LATEST):
        outbox.push(arena.put(FRAME), len(FRAME), policy)
    assert arena.span_count == 2
    assert gathered(outbox) == FRAME * 2


def test_spans_apart_are_gathered_in_order() -> None:
    arena, outbox = made()
    arena.put(b"--one--two--three")
    for start, length in [(2, 3), (7, 3), (12, 5)]:
        outbox.push(start, length, Policy.CUT)
    assert gathered(outbox) == b"onetwothree"
    assert outbox.pending == 11


def test_an_outbox_waits_for_its_flush_once() -> None:
    arena, outbox = made()
    for _ in range(3):
        arena.put(b"gap")
        outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    assert arena.waiting == [outbox]


def test_what_was_sent_is_not_owed() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.gather()
    outbox.sent(len(FRAME))
    outbox.settle(0)
    assert outbox.owed() == 0
    assert not outbox.is_behind()


def test_more_than_the_arena_can_gather_is_gathered_in_parts() -> None:
    arena, outbox = made(100)
    arena.put(bytes(range(100)))
    outbox.push(0, 60, Policy.CUT)
    outbox.push(10, 60, Policy.CUT)
    assert gathered(outbox) == bytes(range(60))
    outbox.sent(60)
    assert gathered(outbox) == bytes(range(10, 70))


@pytest.mark.parametrize("count", [-1, 51])
def test_bytes_that_were_not_pending_cannot_have_been_sent(count: int) -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    with pytest.raises(ValueError, match="were not pending"):
        outbox.sent(count)


@pytest.mark.parametrize(
    ("start", "length"), [(-1, 5), (0, 0), (0, -1), (0, 51), (1 << 40, 1), (50, 1)]
)
def test_bytes_that_are_not_of_this_turn_are_not_owed(start: int, length: int) -> None:
    arena, outbox = made()
    arena.put(FRAME)
    with pytest.raises(ValueError, match="are not among the 50 of this turn"):
        outbox.push(start, length, Policy.CUT)


def test_nothing_overtakes_a_backlog() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.settle(0)
    with pytest.raises(ValueError, match="50 bytes of backlog must go first"):
        outbox.gather()


def test_nothing_is_taken_from_an_outbox_that_is_not_behind() -> None:
    _, outbox = made()
    assert bytes(outbox.take(100, 0)) == b""
    with pytest.raises(ValueError, match="not taken"):
        outbox.taken(1)
    outbox.expire(0)
    assert outbox.dropped() == 0


@pytest.mark.parametrize("count", range(151))
def test_what_the_socket_refuses_is_kept_and_sent_later(count: int) -> None:
    arena, outbox = made()
    for _ in range(3):
        arena.put(b"gap")
        outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    stream = gathered(outbox)[:count]
    outbox.sent(count)
    outbox.settle(0)
    arena.reset()
    while outbox.is_behind():
        piece = bytes(outbox.take(65_536, 0)[:11])
        outbox.taken(len(piece))
        stream += piece
    assert stream == FRAME * 3


def test_a_frame_may_be_sent_in_many_parts_in_one_turn() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME * 2), 2 * len(FRAME), Policy.DROP_NEW)
    stream = b""
    for _ in range(7):
        stream += gathered(outbox)[:10]
        outbox.sent(10)
    outbox.settle(0)
    stream += bytes(outbox.take(65_536, 0))
    assert stream == FRAME * 2


def test_a_reader_that_is_cut_is_owed_nothing_more() -> None:
    arena, outbox = made()
    outbox.push(arena.put(bytes(FRAME) * 400), len(FRAME) * 400, Policy.CUT)
    outbox.settle(0)
    assert outbox.is_cut
    arena.reset()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    assert outbox.owed() == 0
    assert arena.waiting == []


def test_a_cut_in_mid_turn_forgets_what_would_follow_half_a_frame() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.LATEST)
    outbox.gather()
    outbox.sent(10)
    outbox.settle(0)
    arena.reset()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.LATEST)
    outbox.expire(AGE_NS + 1)
    assert outbox.is_cut
    assert outbox.pending == 0
    outbox.settle(AGE_NS + 1)
    assert outbox.owed() == len(FRAME) - 10


def test_a_quiet_backlog_grows_too_old() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.settle(0)
    outbox.expire(AGE_NS)
    assert not outbox.is_cut
    outbox.expire(AGE_NS + 1)
    assert outbox.is_cut


def test_an_outbox_with_no_arena_is_an_error_and_no_crash() -> None:
    outbox = Outbox(None, None)  # type: ignore[arg-type]  # what an untyped caller may do
    with pytest.raises(AttributeError):
        outbox.push(0, 1, Policy.CUT)


def test_spans_that_fill_the_arena_are_gathered_at_once() -> None:
    arena, outbox = made(100)
    arena.put(bytes(range(100)))
    outbox.push(0, 60, Policy.CUT)
    outbox.push(60, 40, Policy.LATEST)
    assert gathered(outbox) == bytes(range(100))


def test_a_send_of_nothing_changes_nothing() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.sent(0)
    arena.put(b"gap")
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    assert gathered(outbox) == FRAME * 2
    assert arena.waiting == [outbox]


@pytest.mark.parametrize("times", range(1, 6))
@pytest.mark.parametrize("step", [1, 10, 25, 30])
def test_frames_apart_may_be_sent_in_many_parts_in_one_turn(step: int, times: int) -> None:
    arena, outbox = made()
    for _ in range(3):
        arena.put(b"gap")
        outbox.push(arena.put(FRAME), len(FRAME), Policy.DROP_NEW)
    stream = b""
    for _ in range(times):
        stream += gathered(outbox)[:step]
        outbox.sent(step)
    outbox.settle(0)
    while outbox.is_behind():
        piece = bytes(outbox.take(65_536, 0))
        outbox.taken(len(piece))
        stream += piece
    assert stream == FRAME * 3


def test_what_waits_in_the_arena_and_in_the_backlog_is_owed() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.sent(10)
    outbox.settle(0)
    assert outbox.owed() == 40
    arena.reset()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    assert outbox.owed() == 90


def test_drops_are_counted_while_a_reader_is_behind_and_afterwards() -> None:
    arena, outbox = made()
    large = encode(Kind.MESSAGE, b"a", bytes(8000))
    for total in (1, 2):
        outbox.push(arena.put(large * 2), 2 * len(large), Policy.DROP_NEW)
        outbox.settle(0)
        arena.reset()
        assert outbox.dropped() == total
        while outbox.is_behind():
            outbox.taken(len(outbox.take(65_536, 0)))
        assert outbox.dropped() == total


def test_what_the_turn_has_no_room_for_is_held_in_order() -> None:
    arena, outbox = made()
    frames = [encode(Kind.MESSAGE, b"a", b"%d" % number) for number in range(5)]
    outbox.push(arena.put(frames[0]), len(frames[0]), Policy.LATEST)
    outbox.hold(frames[1], 0)
    outbox.hold(frames[2], 0)
    outbox.push(arena.put(frames[3]), len(frames[3]), Policy.CUT)
    outbox.hold(frames[4], 0)
    assert arena.waiting == [outbox]
    assert outbox.pending == 0
    outbox.settle(0)
    arena.reset()
    assert bytes(outbox.take(65_536, 0)) == b"".join(frames)


def test_an_outbox_that_only_holds_waits_for_its_flush_too() -> None:
    arena, outbox = made()
    outbox.hold(FRAME, 0)
    assert (arena.waiting, arena.in_use) == ([outbox], 0)
    outbox.settle(0)
    arena.reset()
    outbox.hold(FRAME, 0)
    assert arena.waiting == [outbox]


def test_holding_more_than_the_bound_cuts_at_once() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.DROP_OLD)
    outbox.hold(encode(Kind.MESSAGE, b"a", bytes(LIMIT)), 0)
    assert outbox.is_cut
    assert not outbox.is_behind()
    assert arena.waiting == [outbox]
    outbox.hold(FRAME, 0)
    assert (outbox.owed(), outbox.cost(), arena.in_use) == (0, 0, 0)


def test_a_closed_outbox_owes_nothing_now_and_later() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.settle(0)
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.close()
    assert (outbox.owed(), outbox.cost(), outbox.fd, outbox.owner) == (0, 0, -1, None)
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.hold(FRAME, 0)
    outbox.settle(0)
    arena.reset()
    assert outbox.owed() == 0


def test_an_outbox_knows_where_the_last_it_was_owed_ends() -> None:
    arena, outbox = made()
    assert not outbox.ends_at(0)
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    assert outbox.ends_at(len(FRAME))
    assert not outbox.ends_at(len(FRAME) - 1)


class SlowReader(RuleBasedStateMachine):
    """Any mix of policies, sizes, partial sends and time: the promises hold throughout."""

    def __init__(self) -> None:
        super().__init__()
        self.arena, self.outbox = made()
        self.run_of_frames = Run()
        self.stamp = Stamp(origin=9, sequence=1)
        self.decoder = Decoder()
        self.now_ns = 0
        self.expected = 0
        self.received: list[int] = []
        self.announced = 0

    @rule(
        policy=st.sampled_from(Policy),
        subject=st.sampled_from([b"a", b"b", b"c"]),
        size=st.integers(0, 3000),
        count=st.integers(1, 8),
    )
    def publish(self, policy: Policy, subject: bytes, size: int, count: int) -> None:
        frames = encode(Kind.MESSAGE, subject, b"x" * size) * count
        start = self.arena.put(frames)
        if start < 0:
            self.flush(0)
            start = self.arena.put(frames)
        self.run_of_frames.read(self.arena.data, start, start + len(frames))
        self.run_of_frames.stamp(self.arena.data, self.stamp)
        self.expected += count
        self.outbox.push(start, len(frames), policy)

    @rule(accepted=st.integers(0, 20_000))
    def flush(self, accepted: int) -> None:
        if not self.outbox.is_behind():
            data = gathered(self.outbox)[:accepted]
            self.outbox.sent(len(data))
            self.decoder.feed(data)
        self.outbox.settle(self.now_ns)
        self.arena.reset()

    @rule(accepted=st.integers(0, 20_000), limit=st.integers(1, 70_000))
    def drain(self, accepted: int, limit: int) -> None:
        if self.outbox.is_behind():
            data = bytes(self.outbox.take(limit, self.now_ns)[:accepted])
            self.outbox.taken(len(data))
            self.decoder.feed(data)

    @rule(elapsed_ns=st.integers(0, AGE_NS // 2))
    def wait(self, elapsed_ns: int) -> None:
        self.now_ns += elapsed_ns
        self.outbox.expire(self.now_ns)

    @invariant()
    def the_bound_is_never_exceeded(self) -> None:
        assert self.outbox.owed() - self.outbox.pending <= self.outbox.cost() <= LIMIT

    @invariant()
    def order_is_kept_and_every_loss_announced_first(self) -> None:
        for frame in iter(self.decoder.next_frame, None):
            message = Message.from_frame(frame)
            if frame[4] == Kind.GAP:
                assert message.origin == 9
                self.announced += message["count"]
                continue
            assert not self.received or message.sequence > self.received[-1]
            self.received.append(message.sequence)
            missing = message.sequence - len(self.received)
            assert missing <= self.announced

    def teardown(self) -> None:
        self.flush(0)
        while self.outbox.is_behind():
            self.drain(1 << 20, 1 << 20)
        self.order_is_kept_and_every_loss_announced_first()
        if not self.outbox.is_cut:
            assert len(self.received) + self.announced == self.expected
            assert self.outbox.dropped() == self.announced


SlowReader.TestCase.settings = settings(stateful_step_count=40)
TestSlowReader = SlowReader.TestCase


def test_a_door_that_keeps_frames_itself_draws_them_until_nothing_is_owed() -> None:
    arena, outbox = made()
    assert outbox.draw(1 << 16, 0) == b""
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.settle(0)
    assert outbox.is_behind()
    assert outbox.draw(1 << 16, 0) == FRAME
    assert not outbox.is_behind()
    assert outbox.owed() == 0


def test_control_frames_overtake_a_backlog_and_nothing_else() -> None:
    _, outbox = made()
    control, envelope = encode(Kind.FABRIC), encode(Kind.FORWARD)
    with pytest.raises(ValueError, match="no backlog for 32 bytes to overtake"):
        outbox.overtake(control)
    assert outbox.moved_ns() == 0
    outbox.hold(envelope, 7)
    assert outbox.moved_ns() == 7
    outbox.overtake(control)
    assert outbox.draw(1 << 16, 9) == control + envelope
    assert not outbox.is_behind()


def test_control_frames_over_the_bound_cut_at_once() -> None:
    _, outbox = made()
    outbox.hold(encode(Kind.FORWARD), 0)
    outbox.overtake(bytes(outbox.bounds.limit_bytes))
    assert outbox.is_cut
    assert not outbox.is_behind()


def test_a_reader_that_was_cut_can_be_told_why_once() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME), len(FRAME), Policy.CUT)
    outbox.gather()
    outbox.sent(10)
    outbox.settle(0)
    assert not outbox.part(b"too early")
    outbox.expire(AGE_NS + 1)
    assert "outbox_age_s" in outbox.problem()
    assert outbox.part(b"last words")
    assert bytes(outbox.take(1 << 16, 0)) == FRAME[10:] + b"last words"
    outbox.taken(len(FRAME))
    assert not outbox.is_behind()
    assert not outbox.part(b"again")
    assert outbox.problem() == ""


def test_a_reader_that_was_cut_and_closed_gives_back_its_memory() -> None:
    arena, outbox = made()
    outbox.push(arena.put(FRAME * 100), 100 * len(FRAME), Policy.CUT)
    outbox.settle(0)
    outbox.expire(AGE_NS + 1)
    dropped = outbox.dropped()
    assert outbox.part(b"last words")
    outbox.close()
    assert outbox.dropped() == dropped == 100
    assert outbox.bounds.budget.used_bytes == 0


def test_an_outbox_knows_when_its_reader_last_took_as_much_as_it_must() -> None:
    _, outbox = made()
    assert outbox.paced_ns() == 0
    outbox.hold(FRAME * 40, 7)
    assert outbox.paced_ns() == 7
    outbox.taken(len(outbox.take(1, 8)) * 3 // 4)
    assert (outbox.moved_ns(), outbox.paced_ns()) == (8, 8)
    outbox.take(1, 9)
    outbox.taken(1)
    assert (outbox.moved_ns(), outbox.paced_ns()) == (9, 8)


def test_a_reader_can_be_given_up_and_told_why() -> None:
    arena, outbox = made()
    outbox.give_up("nothing is owed")
    assert not outbox.is_cut
    outbox.push(arena.put(FRAME * 3), len(FRAME) * 3, Policy.CUT)
    outbox.sent(20)
    outbox.settle(0)
    outbox.give_up("the gateway closes")
    outbox.give_up("again")
    assert (outbox.is_cut, outbox.problem(), outbox.dropped()) == (True, "the gateway closes", 2)
    assert outbox.part(b"why")
    assert bytes(outbox.take(1 << 16, 1)) == FRAME[20:] + b"why"
