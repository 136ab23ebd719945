"""What was sent is kept for a while, found again, and given up in time."""

from hypothesis import given
from hypothesis import strategies as st

from weft.mesh.delivery.retransmit_buffer import CHUNK_BYTES, RING_NS, RetransmitBuffer, SentFrames
from weft.mesh.routing.forward_header import COUNT_AT, GROUP, PLAIN, PlannedGateway, make, mark_of
from weft.wire.frames import Kind, encode


def keep(
    ring: RetransmitBuffer, first: int, bodies: list[bytes], *numbers: int, now_ns: int = 0
) -> None:
    """Keep messages that were sent to some gateways."""
    frames = b"".join(encode(Kind.MESSAGE, b"a", body) for body in bodies)
    ring.begin(now_ns)
    for number in numbers:
        header = make(
            PLAIN, b"", [1], [PlannedGateway(99, 1, False), PlannedGateway(number, 0, True, first)]
        )
        header[COUNT_AT : COUNT_AT + 4] = len(bodies).to_bytes(4, "little")
        ring.add(header)
    ring.finish(bytearray(b"before" + frames + b"after"), 6, 6 + len(frames))


def bodies_of(frames: bytes) -> list[bytes]:
    found = []
    while frames:
        size = int.from_bytes(frames[:4], "little")
        found.append(frames[33:size])
        frames = frames[size:]
    return found


@given(
    st.lists(st.integers(1, 5), max_size=20),
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(0, 1 << 50),
)
def test_everything_that_is_asked_for_is_found(
    sizes: list[int], first: int, last: int, base: int
) -> None:
    ring = RetransmitBuffer()
    number = base
    for size in sizes:
        keep(ring, number, [b"%d" % (number + at) for at in range(size)], 2, 3)
        number += size
    wanted = range(base + first, min(base + last, number))
    pieces = ring.find(3, base + first, base + last)
    found = [body for piece in pieces for body in bodies_of(piece.frames)]
    assert found == [b"%d" % each for each in wanted]
    assert [piece.first for piece in pieces] == sorted({piece.first for piece in pieces})
    assert sum(piece.frame_count for piece in pieces) == len(found)


def test_what_was_for_others_or_only_passed_them_is_not_found() -> None:
    ring = RetransmitBuffer()
    keep(ring, 0, [b"x"], 2)
    assert ring.find(3, 0, 9) == ring.find(99, 0, 9) == []


def test_the_group_and_the_interest_that_it_was_for_are_found() -> None:
    ring = RetransmitBuffer()
    ring.begin(0)
    mark = mark_of(300)
    header = make(GROUP, b"workers", [1], [PlannedGateway(2, 0, True, 5, mark)])
    header[COUNT_AT] = 1
    ring.add(header)
    frame = encode(Kind.MESSAGE, b"a")
    ring.finish(bytearray(frame), 0, len(frame))
    assert ring.find(2, 0, 9) == [SentFrames(5, 1, GROUP, b"workers", frame, mark)]


def test_it_never_holds_much_more_than_its_bound() -> None:
    ring = RetransmitBuffer(4 * CHUNK_BYTES)
    for number in range(200):
        keep(ring, number, [b"x" * 20_000], 2)
        assert ring.size <= 6 * CHUNK_BYTES
    pieces = ring.find(2, 0, 1000)
    assert pieces[-1].first == 199
    assert [piece.first for piece in pieces] == list(range(pieces[0].first, 200))


def test_the_old_is_given_up() -> None:
    ring = RetransmitBuffer()
    keep(ring, 0, [b"x"], 2)
    ring.expire(RING_NS)
    assert ring.size > 0
    ring.expire(RING_NS + 1)
    assert ring.size == 0
    keep(ring, 1, [b"y"], 2)
    assert [piece.first for piece in ring.find(2, 0, 9)] == [1]
