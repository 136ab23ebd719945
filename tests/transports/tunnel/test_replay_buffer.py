import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.transports.tunnel.replay_buffer import (
    KEPT_COST_BYTES,
    Item,
    Own,
    ReplayBuffer,
    identity_of,
    is_all_messages,
)
from weft.wire.frames import Kind, Stamp, encode, stamp_frame

ORIGIN = 7
LIMIT = 100_000


def message(sequence: int, size: int = 20) -> bytes:
    frame = bytearray(encode(Kind.MESSAGE, b"a", bytes(size)))
    stamp_frame(frame, 0, Stamp(ORIGIN, sequence=sequence))
    return bytes(frame)


COST = len(message(1)) + KEPT_COST_BYTES


def known_by(items: list[Item]) -> list[str]:
    """The ids of everything that is told."""
    ids: list[str] = []
    for item in items:
        if isinstance(item, Own):
            ids.append(item.known_by)
            continue
        at = 0
        while at < len(item):
            ids.append(f"{ORIGIN}.{int.from_bytes(item[at + 16 : at + 24], 'little')}")
            at += int.from_bytes(item[at : at + 4], "little")
    return ids


def gaps(items: list[Item]) -> list[tuple[str, int]]:
    own = [item.datagram["gap"] for item in items if isinstance(item, Own)]
    return [(gap["reason"], gap["count"]) for gap in own]


def sent(*items: Item, limit: int = LIMIT) -> ReplayBuffer:
    ring = ReplayBuffer()
    for item in items:
        ring.sent(item, 0, limit)
    return ring


def test_what_was_sent_is_told_again_from_the_first_that_is_not_proven() -> None:
    ring = sent(message(1), message(2), message(3))
    assert ring.confirm("7.1")
    assert known_by(ring.replay(0)) == ["7.2", "7.3"]
    assert ring.confirm("7.1")
    assert known_by(ring.replay(0)) == ["7.2", "7.3"]


def test_proof_of_the_last_leaves_nothing() -> None:
    ring = sent(message(1), message(2))
    assert ring.confirm("7.2")
    assert ring.replay(0) == []
    assert ring.is_empty
    assert ring.size == 0


def test_without_proof_everything_is_told_again() -> None:
    ring = sent(message(1), message(2))
    assert known_by(ring.replay(0)) == known_by(ring.replay(0)) == ["7.1", "7.2"]


def test_proof_may_lie_within_frames_that_came_together() -> None:
    ring = sent(message(1) + message(2) + message(3), message(4))
    assert ring.confirm("7.2")
    assert known_by(ring.replay(0)) == ["7.3", "7.4"]
    assert ring.size == 2 * COST


def test_what_is_no_message_has_a_number_of_the_tunnel() -> None:
    ring = ReplayBuffer()
    ring.sent(ring.own({"ok": 1}), 0, LIMIT)
    ring.sent(message(1), 0, LIMIT)
    assert known_by(ring.replay(0)) == ["t.1", "7.1"]
    assert ring.confirm("t.1")
    assert known_by(ring.replay(0)) == ["7.1"]


@pytest.mark.parametrize("last", ["7.9", "8.1", "t.1", "", "x", "7", ".", "7.", "-7.1", "²³.1"])
def test_what_was_never_told_proves_nothing(last: str) -> None:
    ring = sent(message(1), message(2))
    assert not ring.confirm(last)
    ring.reset(last, 0)
    assert known_by(ring.replay(0)) == ["t.1", "7.1", "7.2"]


def test_what_waits_proves_nothing_either() -> None:
    ring = sent(message(1))
    ring.wait(message(2), 0, LIMIT)
    assert not ring.confirm("7.2")


def test_a_long_id_is_not_read() -> None:
    assert identity_of("7." + "1" * 100) is None


def test_whoever_missed_what_had_to_give_way_is_told_how_many_at_most() -> None:
    ring = sent(*[message(number) for number in range(1, 11)], limit=3 * COST)
    assert not ring.confirm("7.2")
    ring.reset("7.2", 0)
    items = ring.replay(0)
    assert gaps(items) == [("reset", 5)]
    assert known_by(items) == ["t.1", "7.8", "7.9", "7.10"]


def test_the_last_that_gave_way_is_remembered() -> None:
    ring = sent(*[message(number) for number in range(1, 11)], limit=3 * COST)
    assert ring.confirm("7.7")
    assert known_by(ring.replay(0)) == ["7.8", "7.9", "7.10"]


def test_to_come_back_with_nonsense_again_and_again_says_no_more() -> None:
    ring = sent(*[message(number) for number in range(1, 11)], limit=3 * COST)
    for _ in range(100):
        assert not ring.confirm("1.1")
        ring.reset("1.1", 0)
        items = ring.replay(0)
    assert gaps(items) == [("reset", 7)]
    assert len(items) == 4


def test_what_is_larger_than_the_ring_is_sent_and_not_kept() -> None:
    ring = sent(message(1), message(2, size=1000), limit=500)
    assert ring.replay(0) == []
    assert ring.confirm("7.2")


def test_while_nobody_is_attached_the_newest_are_not_taken_in() -> None:
    ring = ReplayBuffer()
    for number in range(1, 11):
        ring.wait(message(number), 0, 3 * COST)
    items = ring.replay(0)
    assert known_by(items) == ["7.1", "7.2", "7.3", "t.1"]
    assert gaps(items) == [("slow", 7)]


def test_of_frames_that_came_together_as_many_are_taken_in_as_fit() -> None:
    ring = ReplayBuffer()
    ring.wait(b"".join(message(number) for number in range(1, 11)), 0, 3 * COST)
    items = ring.replay(0)
    assert known_by(items) == ["7.1", "7.2", "7.3", "t.1"]
    assert gaps(items) == [("slow", 7)]


def test_what_was_sent_gives_way_to_what_waits() -> None:
    ring = sent(message(1), message(2), message(3), limit=3 * COST)
    ring.wait(message(4), 0, 3 * COST)
    assert known_by(ring.replay(0)) == ["7.2", "7.3", "7.4"]


def test_news_of_a_loss_comes_where_the_loss_was() -> None:
    ring = ReplayBuffer()
    for number in (1, 2):
        ring.wait(message(number), 0, COST)
    ring.wait(message(3), 0, 2 * COST)
    assert known_by(ring.replay(0)) == ["7.1", "t.1", "7.3"]


def test_what_waited_too_long_is_lost_and_that_is_told() -> None:
    ring = ReplayBuffer()
    ring.wait(message(1) + message(2), 1, LIMIT)
    ring.wait(message(3), 5, LIMIT)
    ring.expire(5)
    assert gaps(ring.replay(5)) == [("old", 2)]
    assert known_by(ring.replay(5)) == ["t.1", "7.3"]


def test_what_was_sent_long_ago_is_forgotten_in_silence() -> None:
    ring = sent(message(1), message(2))
    ring.expire(1)
    assert ring.replay(5) == []
    assert ring.confirm("7.2")


def test_whoever_polls_proves_what_was_sent_and_no_more() -> None:
    ring = sent(message(1))
    ring.wait(message(2), 0, LIMIT)
    ring.confirm_sent()
    assert known_by(ring.replay(0)) == ["7.2"]


def test_messages_are_told_from_everything_else() -> None:
    ping = encode(Kind.PING)
    assert is_all_messages(message(1) + message(2))
    assert not is_all_messages(message(1) + ping)
    assert not is_all_messages(ping + message(1))


STEPS = st.lists(
    st.tuples(st.sampled_from(["sent", "wait", "back", "expire"]), st.integers(1, 30)), max_size=40
)


@given(STEPS)
def test_whoever_comes_back_gets_everything_once_or_hears_of_a_loss(
    steps: list[tuple[str, int]],
) -> None:
    limit = 5 * COST
    ring, got, told, seen, now = ReplayBuffer(), "", 0, 0, 0
    for step, number in steps:
        now += number
        if step in {"sent", "wait"}:
            told += 1
            if step == "sent":
                # Only somebody who is attached is sent anything: what waits was sent by then.
                ring.replay(now)
            getattr(ring, step)(message(told), now, limit)
        elif step == "expire":
            ring.expire(now - 20)
        else:
            if got and not ring.confirm(got):
                ring.reset(got, now)
            items = ring.replay(now)
            ids = known_by(items)
            numbers = [int(each[2:]) for each in ids if each.startswith("7.")]
            assert numbers == sorted(set(numbers))
            assert all(each > seen for each in numbers)
            if got:
                missing = set(range(seen + 1, told + 1)) - set(numbers)
                assert len(missing) <= sum(count for _, count in gaps(items))
            got = ids[-1] if ids else got
            seen = told
        # Besides the bound there is room for the news of losses.
        assert ring.size <= limit + 4 * 512
