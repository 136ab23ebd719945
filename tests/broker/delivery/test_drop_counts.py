from weft.broker.delivery.drop_counts import Losses, put_gap
from weft.broker.delivery.policy import GAP_MAX_BYTES, GAPS_MAX, Reason
from weft.wire.buffer import Writer
from weft.wire.frames import Decoder, Frame, Kind, Run, Stamp, encode, parse
from weft.wire.message.message import Message


def stamped(count: int, origin: int, kind: Kind = Kind.MESSAGE) -> bytes:
    data = bytearray(encode(kind, b"a", b"body") * count)
    run = Run()
    run.read(data, 0, len(data))
    run.stamp(data, Stamp(origin))
    return bytes(data)


def gaps(stream: bytes) -> list[tuple[int, str, int]]:
    decoder = Decoder()
    decoder.feed(stream)
    found = []
    for frame in iter(decoder.next_frame, None):
        message = Message.from_frame(frame)
        assert parse(frame).kind == Kind.GAP
        assert len(frame) <= GAP_MAX_BYTES
        found.append((message.origin, message["reason"], message.get_uint64("count")))
    return found


def test_messages_are_counted_per_origin_and_reason() -> None:
    losses = Losses([0] * 4)
    losses.count(stamped(3, origin=1) + stamped(2, origin=2), Reason.SLOW)
    losses.count(stamped(1, origin=1), Reason.OLD)
    losses.count(stamped(4, origin=1), Reason.SLOW)
    assert losses.total == 10
    assert gaps(losses.take()) == [(1, "slow", 7), (2, "slow", 2), (1, "old", 1)]


def test_frames_that_are_no_messages_are_no_loss() -> None:
    losses = Losses([0] * 4)
    losses.count(stamped(3, origin=1, kind=Kind.GAP), Reason.SLOW)
    assert losses.total == 0
    assert losses.take() == b""


def test_a_loss_is_announced_once() -> None:
    losses = Losses([0] * 4)
    losses.add(1, Reason.CONFLATED, 5)
    assert gaps(losses.take()) == [(1, "conflated", 5)]
    assert len(losses) == 0
    assert losses.take() == b""
    assert losses.total == 5


def test_many_origins_are_announced_within_a_bound() -> None:
    losses = Losses([0] * 4)
    for origin in range(1, 1000):
        for reason in Reason:
            losses.add(origin, reason, 1)
    assert len(losses) <= GAPS_MAX
    announced = gaps(losses.take())
    assert sum(count for _, _, count in announced) == 999 * len(Reason)
    assert {reason for origin, reason, _ in announced if origin == 0} == {
        "slow",
        "old",
        "conflated",
    }


def test_the_longest_gap_fits_the_room_that_is_kept_for_it() -> None:
    writer = Writer()
    longest = max((reason.name.lower() for reason in Reason), key=len)
    put_gap(writer, 0xFFFFFFFF, longest, (1 << 64) - 1)
    assert len(writer.take()) <= GAP_MAX_BYTES


def test_a_gap_names_nothing_but_its_origin() -> None:
    writer = Writer()
    put_gap(writer, 7, "slow", 1)
    gap = parse(writer.take())
    assert gap == Frame(Kind.GAP, 0, b"", b"", gap.body, origin=7)


def test_losses_add_to_the_totals_of_all_by_reason() -> None:
    totals = [0, 100, 0, 0]
    for losses in (Losses(totals), Losses(totals)):
        losses.add(1, Reason.SLOW, 5)
        losses.add(2, Reason.CONFLATED, 7)
        losses.take()
    assert totals == [0, 110, 0, 14]
