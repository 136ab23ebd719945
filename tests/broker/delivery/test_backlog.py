import tracemalloc

import pytest

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.backlog import Backlog
from weft.broker.delivery.chunk import KEPT_COST_BYTES
from weft.broker.delivery.memory_budget import BACKLOG_FLOOR_BYTES, Budget
from weft.broker.delivery.policy import HOLE_ORIGINS_MAX, Bounds, Policy
from weft.wire.frames import HEADER_BYTES, Decoder, Kind, encode
from weft.wire.message.message import Message

AGE_NS = 1000
BOUNDS = Bounds(8 << 10, AGE_NS)


def message(subject: str, size: int) -> bytes:
    return encode(Kind.MESSAGE, subject.encode(), Message(body=b"x" * size).encode())


ARENA = Arena(1 << 16)


def keep(backlog: Backlog, frames: bytes, policy: Policy, now_ns: int = 0) -> None:
    span = ARENA.add_span(ARENA.put(frames), len(frames), policy)
    backlog.keep_span(ARENA, span, now_ns)
    ARENA.reset()


def taken(backlog: Backlog) -> list[str]:
    """Everything owed, as subjects; a gap is its reason and count."""
    decoder = Decoder()
    while not backlog.is_empty():
        data = backlog.take(1 << 16, 0)
        decoder.feed(bytes(data))
        backlog.sent(len(data))
    found = []
    for frame in iter(decoder.next_frame, None):
        received = Message.from_frame(frame)
        is_gap = frame[4] == Kind.GAP
        found.append(f"{received['reason']} {received['count']}" if is_gap else received.subject)
    return found


@pytest.mark.parametrize("policy", Policy)
def test_what_fits_is_kept_in_order(policy: Policy) -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abc":
        keep(backlog, message(subject, 100), policy)
    assert taken(backlog) == ["a", "b", "c"]
    assert backlog.size == 0


def test_cut_gives_up_the_reader_and_holds_nothing() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abc":
        keep(backlog, message(subject, 3000), Policy.CUT)
    assert backlog.is_cut
    assert backlog.size == 0


def test_drop_new_keeps_the_oldest_and_says_what_it_dropped() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abcd":
        keep(backlog, message(subject, 2400), Policy.DROP_NEW)
    assert taken(backlog) == ["a", "b", "slow 2"]


def test_drop_old_keeps_the_newest_and_says_what_it_dropped() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abcd":
        keep(backlog, message(subject, 2400), Policy.DROP_OLD)
    assert taken(backlog) == ["slow 2", "c", "d"]


def test_latest_keeps_the_newest_of_each_subject_in_the_order_they_came() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abcab":
        keep(backlog, message(subject, 10), Policy.LATEST)
    assert taken(backlog) == ["conflated 2", "c", "a", "b"]


def test_latest_conflates_within_one_span() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, b"".join(message(subject, 10) for subject in "aabaa"), Policy.LATEST)
    assert taken(backlog) == ["conflated 3", "b", "a"]


def test_latest_gives_way_when_subjects_are_too_many() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abcd":
        keep(backlog, message(subject, 2400), Policy.LATEST)
    assert taken(backlog) == ["slow 2", "c", "d"]


def test_a_subject_that_gave_way_can_come_again() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abca":
        keep(backlog, message(subject, 2400), Policy.LATEST)
    assert taken(backlog) == ["slow 2", "c", "a"]


@pytest.mark.parametrize("policy", [Policy.DROP_NEW, Policy.DROP_OLD, Policy.LATEST])
def test_a_message_that_can_never_fit_is_dropped_and_nothing_gives_way_to_it(
    policy: Policy,
) -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("small", 10), Policy.DROP_OLD)
    keep(backlog, message("big", 8000), policy)
    keep(backlog, message("after", 10), policy)
    # Announced in its place: after what came before it, before what comes after it.
    assert taken(backlog) == ["small", "slow 1", "after"]


@pytest.mark.parametrize("policy", [Policy.DROP_OLD, Policy.LATEST])
def test_what_may_be_dropped_gives_way_to_what_may_not(policy: Policy) -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 2400), policy)
    keep(backlog, message("b", 2400), policy)
    keep(backlog, message("must", 3600), Policy.CUT)
    assert taken(backlog) == ["slow 1", "b", "must"]


def test_a_full_backlog_of_droppable_messages_still_has_room_for_an_answer() -> None:
    backlog = Backlog(BOUNDS)
    for _ in range(100):
        keep(backlog, message("a", 100), Policy.DROP_NEW)
    keep(backlog, encode(Kind.PONG), Policy.CUT)
    assert not backlog.is_cut


def test_a_run_is_dropped_in_pieces_of_whole_frames() -> None:
    backlog = Backlog(BOUNDS)
    frames = b"".join(message(str(number), 30) for number in range(200))
    keep(backlog, frames, Policy.DROP_OLD)
    found = taken(backlog)
    count = int(found[0].split()[1])
    assert found == [f"slow {count}", *map(str, range(count, 200))]
    # No more is dropped than the bound and one piece ask for.
    frame = len(message("100", 30))
    frames_a_piece = BOUNDS.piece_bytes // frame
    cost = (200 - count) * frame + (200 - count) // frames_a_piece * KEPT_COST_BYTES
    assert cost > BOUNDS.drop_bytes - 2 * (BOUNDS.piece_bytes + KEPT_COST_BYTES)


@pytest.mark.parametrize("policy", [Policy.LATEST, Policy.DROP_OLD, Policy.DROP_NEW])
def test_the_bound_counts_what_it_takes_to_keep_many_tiny_frames(policy: Policy) -> None:
    backlog = Backlog(Bounds(1 << 18))
    tracemalloc.start()
    try:
        for number in range(3_000):
            keep(backlog, encode(Kind.MESSAGE, b"%d" % number), policy)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert backlog.cost <= 1 << 18
    # A dict keeps room for as many again; beyond that the cost is the memory.
    assert held < 3 << 18


def test_what_is_on_its_way_is_a_small_part_of_the_bound() -> None:
    backlog = Backlog(BOUNDS)
    for number in range(20):
        keep(backlog, message(f"old.{number}", 30), Policy.DROP_OLD)
    front = len(backlog.take(65_536, 0))
    for number in range(20):
        keep(backlog, message(f"new.{number}", 30), Policy.DROP_OLD)
    assert front < BOUNDS.limit_bytes // 8
    assert taken(backlog)[-1] == "new.19"


def test_taking_next_to_nothing_still_gets_on() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 30), Policy.CUT)
    assert len(backlog.take(0, 0)) > 0


def test_latest_keeps_the_older_one_if_the_newer_cannot_fit() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("full", 3500), Policy.DROP_NEW)
    keep(backlog, message("price", 100), Policy.LATEST)
    keep(backlog, message("price", 3000), Policy.LATEST)
    assert taken(backlog) == ["full", "price", "slow 1"]


def test_the_rest_of_a_frame_does_not_overwrite_what_is_owed() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.CUT)
    with pytest.raises(ValueError, match="come before the rest"):
        backlog.begin(b"rest", 0)


def test_what_is_lost_by_a_cut_is_counted() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abc":
        keep(backlog, message(subject, 3000), Policy.CUT)
    assert backlog.dropped == 3


def test_the_bound_holds_while_losses_are_announced() -> None:
    backlog = Backlog(BOUNDS)
    for _ in range(1000):
        keep(backlog, message("a", 200), Policy.DROP_OLD)
        keep(backlog, message("b", 200), Policy.CUT)
        if backlog.is_cut:
            break
        data = backlog.take(300, 0)
        assert backlog.size <= backlog.cost <= BOUNDS.limit_bytes
        backlog.sent(len(data) // 2)


def test_an_unfinished_frame_is_finished_before_a_gap_is_announced() -> None:
    backlog = Backlog(BOUNDS)
    whole = message("first", 100)
    backlog.begin(whole[40:], 0)
    for subject in "abcd":
        keep(backlog, message(subject, 2400), Policy.DROP_OLD)
    assert bytes(backlog.take(1 << 16, 0)) == whole[40:]
    backlog.sent(len(whole) - 40)
    assert taken(backlog) == ["slow 2", "c", "d"]


def test_an_unfinished_frame_over_the_bound_cuts() -> None:
    backlog = Backlog(BOUNDS)
    backlog.begin(b"x" * 8000, 0)
    assert backlog.is_cut


def test_a_loss_is_news_even_if_nothing_else_is_owed() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("big", 8000), Policy.DROP_NEW)
    assert backlog.size == 0
    assert not backlog.is_empty()
    assert taken(backlog) == ["slow 1"]


@pytest.mark.parametrize("policy", [Policy.DROP_NEW, Policy.DROP_OLD, Policy.LATEST])
def test_what_waited_too_long_is_dropped(policy: Policy) -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("first", 10), policy, now_ns=0)
    keep(backlog, message("old", 10), policy, now_ns=0)
    keep(backlog, message("new", 10), policy, now_ns=500)
    backlog.sent(len(backlog.take(1, 400)))
    backlog.expire(AGE_NS + 1)
    assert taken(backlog) == ["old 1", "new"]


def test_what_must_not_be_dropped_cuts_when_it_waited_too_long() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.CUT, now_ns=0)
    backlog.expire(AGE_NS)
    assert not backlog.is_cut
    backlog.expire(AGE_NS + 1)
    assert backlog.is_cut


def test_what_must_not_be_dropped_cuts_however_the_reader_gets_on() -> None:
    backlog = Backlog(BOUNDS)
    for subject in ("first", "late"):
        keep(backlog, message(subject, 10), Policy.CUT, now_ns=0)
    keep(backlog, message("spare", 10), Policy.DROP_NEW, now_ns=0)
    backlog.sent(len(backlog.take(1, 400)))
    backlog.expire(AGE_NS)
    assert not backlog.is_cut
    backlog.expire(AGE_NS + 1)
    assert backlog.is_cut


def test_a_reader_that_takes_nothing_of_what_is_on_its_way_is_cut() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.DROP_NEW)
    backlog.take(100, 0)
    backlog.expire(AGE_NS + 1)
    assert backlog.is_cut


@pytest.mark.parametrize("count", [-1, 1])
def test_bytes_that_were_not_taken_cannot_have_been_sent(count: int) -> None:
    with pytest.raises(ValueError, match="were not taken"):
        Backlog(BOUNDS).sent(count)


def test_slow_readers_of_the_same_frames_share_their_bytes() -> None:
    arena = Arena(1 << 16)
    frames = message("a", 6000)
    span = arena.add_span(arena.put(frames), len(frames), Policy.CUT)
    backlogs = [Backlog(BOUNDS) for _ in range(200)]
    tracemalloc.start()
    try:
        for backlog in backlogs:
            backlog.keep_span(arena, span, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(backlog.size for backlog in backlogs) == 200 * len(frames)
    assert peak < 100 * len(frames)


def frame_of(subject: str, length: int) -> bytes:
    """A message that is so many bytes in all."""
    return encode(Kind.MESSAGE, subject.encode(), bytes(length - HEADER_BYTES - len(subject)))


@pytest.mark.parametrize(
    ("policy", "limit", "beyond"),
    [
        (Policy.LATEST, BOUNDS.drop_bytes, ["slow 1", "b"]),
        (Policy.DROP_OLD, BOUNDS.drop_bytes, ["slow 1", "b"]),
        (Policy.DROP_NEW, BOUNDS.drop_bytes, ["a", "slow 1"]),
        (Policy.CUT, BOUNDS.keep_bytes, []),
    ],
)
def test_a_backlog_is_full_at_its_bound_and_not_before(
    policy: Policy, limit: int, beyond: list[str]
) -> None:
    for length, expected in [(limit - 1000, ["a", "b"]), (limit - 999, beyond)]:
        backlog = Backlog(BOUNDS)
        keep(backlog, frame_of("a", 1000), policy)
        keep(backlog, frame_of("b", length - 2 * KEPT_COST_BYTES), policy)
        assert backlog.is_cut is (expected == [])
        assert taken(backlog) == expected


@pytest.mark.parametrize("policy", [Policy.DROP_OLD, Policy.DROP_NEW, Policy.CUT])
def test_only_latest_lets_a_newer_message_replace_an_older_one(policy: Policy) -> None:
    backlog = Backlog(BOUNDS)
    for subject in "aba":
        keep(backlog, message(subject, 10), policy)
    assert taken(backlog) == ["a", "b", "a"]


@pytest.mark.parametrize("policy", [Policy.DROP_OLD, Policy.LATEST])
def test_nothing_gives_way_to_what_is_not_taken_in_when_full(policy: Policy) -> None:
    backlog = Backlog(BOUNDS)
    for subject in "ab":
        keep(backlog, message(subject, 2400), policy)
    keep(backlog, message("new", 2400), Policy.DROP_NEW)
    assert taken(backlog) == ["a", "b", "slow 1"]


def test_a_piece_is_as_many_frames_as_fit_in_it() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, frame_of("a", BOUNDS.piece_bytes // 4) * 52, Policy.DROP_OLD)
    # Thirteen pieces of four frames, 768 bytes each to keep: seven come under 5,824.
    assert taken(backlog) == ["slow 24", *["a"] * 28]


def test_a_reader_takes_no_more_frames_than_it_asks_for() -> None:
    backlog = Backlog(BOUNDS)
    for subject in "abc":
        keep(backlog, frame_of(subject, 100), Policy.CUT)
    for subject, limit in [("a", 1), ("b", 100)]:
        assert bytes(backlog.take(limit, 0)) == frame_of(subject, 100)
        backlog.sent(100)
    assert taken(backlog) == ["c"]


@pytest.mark.parametrize(("length", "is_cut"), [(0, False), (1, True)])
def test_an_unfinished_frame_may_fill_the_bound(length: int, is_cut: bool) -> None:
    backlog = Backlog(BOUNDS)
    backlog.begin(bytes(BOUNDS.keep_bytes + length), 0)
    assert backlog.is_cut is is_cut


def test_an_unfinished_frame_may_wait_as_long_as_any_other() -> None:
    backlog = Backlog(BOUNDS)
    backlog.begin(b"rest", 5000)
    backlog.expire(5000 + AGE_NS)
    assert not backlog.is_cut
    backlog.expire(5000 + AGE_NS + 1)
    assert backlog.is_cut


@pytest.mark.parametrize("policy", [Policy.DROP_NEW, Policy.DROP_OLD, Policy.LATEST])
def test_a_reader_that_takes_nothing_is_cut_however_new_what_it_is_owed_is(policy: Policy) -> None:
    backlog = Backlog(BOUNDS)
    for now_ns in (0, 500, 900):
        keep(backlog, message("a", 10), policy, now_ns)
    backlog.take(100, 950)
    backlog.expire(AGE_NS)
    assert not backlog.is_cut
    backlog.expire(AGE_NS + 1)
    assert backlog.is_cut


def test_a_reader_that_had_taken_everything_has_all_the_time_again() -> None:
    backlog = Backlog(BOUNDS)
    backlog.begin(b"rest", 0)
    backlog.sent(len(backlog.take(100, 100)))
    keep(backlog, message("a", 10), Policy.DROP_NEW, now_ns=5000)
    backlog.expire(5000 + AGE_NS)
    assert not backlog.is_cut


def test_a_reader_that_takes_a_little_has_all_the_time_again() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.DROP_NEW, now_ns=4500)
    backlog.take(100, 5000)
    backlog.sent(0)
    backlog.expire(4500 + AGE_NS)
    assert not backlog.is_cut
    backlog.take(100, 5000)
    backlog.sent(1)
    backlog.expire(5000 + AGE_NS)
    assert not backlog.is_cut
    backlog.expire(5000 + AGE_NS + 1)
    assert backlog.is_cut


def test_bytes_that_were_sent_cannot_be_sent_again() -> None:
    backlog = Backlog(BOUNDS)
    backlog.begin(b"rest", 0)
    backlog.sent(3)
    with pytest.raises(ValueError, match="2 bytes were not taken"):
        backlog.sent(2)


def test_a_reader_that_is_cut_has_nothing_to_take() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.CUT)
    backlog.cut("it reads no more")
    assert bytes(backlog.take(100, 0)) == b""
    backlog.sent(0)
    with pytest.raises(ValueError, match="1 bytes were not taken"):
        backlog.sent(1)


def test_whole_frames_can_be_kept_from_anywhere() -> None:
    backlog = Backlog(BOUNDS)
    backlog.keep(message("a", 10) + message("b", 10), Policy.CUT, 0)
    keep(backlog, message("c", 10), Policy.CUT)
    assert taken(backlog) == ["a", "b", "c"]


def test_what_is_drawn_is_whole_frames_and_as_good_as_sent() -> None:
    backlog = Backlog(BOUNDS)
    one, other = message("one", 10), message("other", 10)
    keep(backlog, one, Policy.CUT)
    keep(backlog, other, Policy.CUT)
    assert backlog.draw(1, 0) == one
    assert backlog.draw(1, 0) == other
    assert backlog.is_empty()
    assert (backlog.size, backlog.cost) == (0, 0)


def test_news_of_losses_is_drawn_before_what_is_left() -> None:
    backlog = Backlog(BOUNDS)
    for number in range(3):
        keep(backlog, message(f"a.{number}", 3 << 10), Policy.DROP_OLD)
    drawn = backlog.draw(1 << 16, 0)
    assert drawn[4] == Kind.GAP
    assert drawn.endswith(message("a.2", 3 << 10))


def test_whoever_was_owed_the_same_draws_the_same_object() -> None:
    one, other = Backlog(BOUNDS), Backlog(BOUNDS)
    frames = message("a", 10) + message("b", 10)
    span = ARENA.add_span(ARENA.put(frames), len(frames), Policy.CUT)
    for backlog in (one, other):
        backlog.keep_span(ARENA, span, 0)
    ARENA.reset()
    drawn = one.draw(1 << 16, 0)
    assert drawn == frames
    assert other.draw(1 << 16, 0) is drawn


def test_half_a_frame_cannot_be_drawn() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.CUT)
    backlog.take(1 << 16, 0)
    backlog.sent(1)
    with pytest.raises(ValueError, match="1 bytes"):
        backlog.draw(1 << 16, 0)


def kinds(backlog: Backlog, limit_bytes: int = 1 << 16) -> list[list[Kind]]:
    """Everything owed, by what is sent at once."""
    found = []
    while not backlog.is_empty():
        decoder = Decoder()
        decoder.feed(backlog.draw(limit_bytes, 0))
        found.append([Kind(frame[4]) for frame in iter(decoder.next_frame, None)])
    return found


ENVELOPE = encode(Kind.FORWARD)
CONTROL = encode(Kind.FABRIC)


def test_control_frames_go_before_an_envelope_and_not_before_what_it_announces() -> None:
    backlog = Backlog(BOUNDS)
    for frames in (message("rest", 1), ENVELOPE, message("a", 1), ENVELOPE, message("b", 1)):
        keep(backlog, frames, Policy.CUT)
    backlog.overtake(CONTROL)
    backlog.overtake(encode(Kind.PING))
    assert kinds(backlog) == [
        [Kind.MESSAGE, Kind.FABRIC, Kind.PING, *2 * (Kind.FORWARD, Kind.MESSAGE)]
    ]
    assert (backlog.size, backlog.cost) == (0, 0)


def test_control_frames_wait_for_what_is_on_its_way_and_for_nothing_else() -> None:
    backlog = Backlog(BOUNDS)
    for _ in range(3):
        keep(backlog, ENVELOPE, Policy.CUT)
        keep(backlog, message("a", 600), Policy.CUT)
    backlog.sent(len(backlog.take(1, 0)))
    backlog.overtake(CONTROL)
    assert kinds(backlog, 1)[:3] == [[Kind.MESSAGE], [Kind.FABRIC], [Kind.FORWARD]]


def test_control_frames_go_behind_the_last_envelope_if_no_other_waits() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 1), Policy.CUT)
    backlog.overtake(CONTROL)
    assert kinds(backlog) == [[Kind.MESSAGE, Kind.FABRIC]]


def test_control_frames_over_the_bound_cut() -> None:
    backlog = Backlog(BOUNDS)
    while not backlog.is_cut:
        assert backlog.cost <= BOUNDS.keep_bytes
        backlog.overtake(CONTROL)
    assert (backlog.size, backlog.cost, backlog.is_empty()) == (0, 0, True)


def test_messages_that_are_not_taken_in_are_announced_between_their_neighbours() -> None:
    backlog = Backlog(Bounds(1 << 16))
    for subject in ("a", "b", "lost", "lost"):
        keep(backlog, message(subject, 24_000), Policy.DROP_NEW)
    backlog.sent(len(backlog.take(1, 0)))
    for subject in ("c", "lost"):
        keep(backlog, message(subject, 24_000), Policy.DROP_NEW)
    assert taken(backlog) == ["b", "slow 2", "c", "slow 1"]
    assert backlog.dropped == 3


def test_losses_of_many_origins_in_one_place_are_announced_as_of_any_origin() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 5000), Policy.DROP_NEW)
    for origin in range(1, 11):
        frame = bytearray(message("b", 2000))
        frame[8] = origin
        keep(backlog, bytes(frame), Policy.DROP_NEW)
    assert taken(backlog) == ["a", *["slow 1"] * HOLE_ORIGINS_MAX, "slow 7"]


def test_without_room_to_note_its_place_a_loss_is_announced_early() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", BOUNDS.keep_bytes - 800), Policy.CUT)
    keep(backlog, message("b", 100), Policy.DROP_NEW)
    assert taken(backlog) == ["slow 1", "a"]


def test_with_too_many_places_to_note_a_loss_is_announced_in_the_last_before_it() -> None:
    backlog = Backlog(BOUNDS)
    assert BOUNDS.holes_max == 1
    keep(backlog, message("a", 4000), Policy.DROP_NEW)
    for subject in ("b", "c"):
        keep(backlog, message("lost", 4900), Policy.DROP_NEW)
        keep(backlog, message(subject, 10), Policy.DROP_NEW)
    keep(backlog, message("lost", 4900), Policy.DROP_NEW)
    assert taken(backlog) == ["a", "slow 3", "b", "c"]


def test_places_of_losses_take_no_room_from_what_is_kept() -> None:
    backlog = Backlog(Bounds(1 << 18))
    number = 0
    for number in range(5000):
        keep(backlog, message(f"new.{number}", 6000), Policy.DROP_NEW)
        keep(backlog, message("price", 6000), Policy.LATEST)
    keep(backlog, encode(Kind.PONG), Policy.CUT)
    assert not backlog.is_cut
    found = taken(backlog)
    assert "price" in found
    gaps = [each.split() for each in found if " " in each]
    assert sum(int(count) for _, count in gaps) + len(found) - len(gaps) == 10_001


@pytest.mark.parametrize("policy", Policy)
def test_the_budget_is_given_back_whatever_happens(policy: Policy) -> None:
    budget = Budget()
    for end in ("sent", "drawn", "cut", "closed", "expired"):
        backlog = Backlog(Bounds(8 << 10, AGE_NS, budget=budget))
        backlog.begin(message("begun", 100)[50:], 0)
        for number in range(30):
            keep(backlog, message(str(number % 7), 400), policy)
        backlog.sent(len(backlog.take(1, 0)))
        if end == "sent":
            taken(backlog)
        elif end == "drawn":
            while not backlog.is_empty():
                backlog.draw(1, 0)
        elif end == "expired":
            backlog.take(1, 0)
            backlog.expire(AGE_NS + 1)
        elif end == "cut" and not backlog.is_cut:
            backlog.cut("enough")
        backlog.close()
        assert (budget.used_bytes, backlog.cost, backlog.firm) == (0, 0, 0), end


def test_what_many_hold_is_charged_once() -> None:
    budget = Budget()
    bounds = Bounds(8 << 10, AGE_NS, budget=budget)
    arena = Arena(1 << 16)
    frames = message("a", 6000)
    span = arena.add_span(arena.put(frames), len(frames), Policy.CUT)
    backlogs = [Backlog(bounds) for _ in range(20)]
    for backlog in backlogs:
        backlog.keep_span(arena, span, 0)
        backlog.take(1 << 16, 0)
    assert budget.used_bytes < len(frames) + 20 * KEPT_COST_BYTES
    for backlog in backlogs:
        backlog.sent(len(frames))
    assert budget.used_bytes == 0


def test_a_backlog_may_take_what_others_leave() -> None:
    budget = Budget(4 << 20)
    bounds = Bounds(3 << 20, AGE_NS, budget=budget)
    piece = message("a", 60_000)
    backlogs = [Backlog(bounds) for _ in range(3)]
    for backlog in backlogs:
        while not backlog.is_cut and backlog.cost < 3 << 20:
            backlog.keep(piece, Policy.CUT, 0)
            if backlog.cost + len(piece) > bounds.keep_bytes - len(piece):
                break
    first, second, third = backlogs
    # The first was alone; with what it left, a floor is sure for the others.
    assert first.is_cut
    assert "all backlogs take" in first.problem
    assert "4194304 bytes for all (backlogs_bytes)" in first.problem
    assert not second.is_cut or second.dropped > 0
    assert third.dropped * len(piece) > BACKLOG_FLOOR_BYTES - 2 * len(piece)


def test_a_reader_that_keeps_its_pace_is_not_cut_for_what_is_old() -> None:
    backlog = Backlog(BOUNDS)
    for _ in range(8):
        keep(backlog, message("a", 400), Policy.CUT)
    for now_ns in range(500, 5 * AGE_NS, 500):
        backlog.sent(len(backlog.take(BOUNDS.pace_bytes, now_ns)))
        backlog.expire(now_ns)
        assert not backlog.is_cut


def test_a_reader_that_takes_a_little_of_what_is_old_is_cut() -> None:
    backlog = Backlog(BOUNDS)
    for _ in range(8):
        keep(backlog, message("a", 400), Policy.CUT)
    for now_ns in range(0, AGE_NS + 1, 100):
        backlog.take(BOUNDS.pace_bytes, now_ns)
        backlog.sent(10)
    backlog.expire(AGE_NS)
    assert backlog.problem == ""
    backlog.expire(AGE_NS + 1)
    assert backlog.is_cut
    assert backlog.problem == "it took less than 512 bytes in 1e-06 s (outbox_age_s)"


@pytest.mark.parametrize("count", [0, 10, 100])
def test_a_reader_that_is_cut_gets_the_rest_of_a_frame_and_the_last_words(count: int) -> None:
    backlog = Backlog(BOUNDS)
    first, last = message("first", 20), encode(Kind.ERROR)
    keep(backlog, first, Policy.CUT)
    keep(backlog, message("second", 100), Policy.CUT)
    sent = bytes(backlog.take(1 << 16, 0))[:count]
    backlog.sent(count)
    backlog.cut("enough")
    backlog.finish_with(last)
    decoder = Decoder()
    decoder.feed(sent + bytes(backlog.take(1 << 16, 0)))
    kinds = [frame[4] for frame in iter(decoder.next_frame, None)]
    assert kinds[-1] == Kind.ERROR
    assert len(kinds) == (1 if count == 0 else 2 if count == 10 else 3)
    assert backlog.dropped + len(kinds) - 1 == 2


def test_half_a_frame_whose_rest_is_too_large_leaves_nothing_to_be_said() -> None:
    backlog = Backlog(BOUNDS)
    backlog.begin(bytes(BOUNDS.keep_bytes + 1), 0)
    assert backlog.is_torn
    assert "the limit of 8192 (outbox_bytes)" in backlog.problem


def test_a_reader_that_was_cut_is_not_cut_again() -> None:
    backlog = Backlog(BOUNDS)
    keep(backlog, message("a", 10), Policy.CUT)
    backlog.cut("enough")
    backlog.finish_with(b"last")
    backlog.expire(10 * AGE_NS)
    assert (backlog.problem, backlog.size) == ("enough", 4)


def test_what_must_not_be_dropped_has_all_the_time_however_slow_its_reader() -> None:
    backlog = Backlog(BOUNDS)
    for number in range(8):
        keep(backlog, message(str(number), 400), Policy.LATEST)
    for now_ns in (500, 900):
        backlog.take(100, now_ns)
        backlog.sent(1)
    keep(backlog, encode(Kind.PING), Policy.CUT, AGE_NS)
    backlog.expire(AGE_NS + 100)
    assert backlog.problem == ""
    backlog.take(100, AGE_NS + 200)
    backlog.sent(1)
    backlog.expire(2 * AGE_NS + 1)
    assert backlog.is_cut
