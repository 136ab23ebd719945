"""Whether frames come from whom they should."""

import pytest

from weft.wire.frame_senders import all_from, replies_in
from weft.wire.frames import Kind, Stamp, encode, stamp_frame

IDENTITY = bytes([5, 0, 0, 0, 6, 0, 0, 0])


def stamped(origin: int, publisher: int) -> bytes:
    frame = bytearray(encode(Kind.MESSAGE, b"s", b"body"))
    stamp_frame(frame, 0, Stamp(origin, publisher, 1, 2))
    return bytes(frame)


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(("origin", "publisher"), [(4, 6), (5, 7), (5, 6 + (1 << 24))])
def test_one_of_another_is_found_among_many(origin: int, publisher: int) -> None:
    own = [stamped(5, 6)] * 3
    assert all_from(own, IDENTITY)
    assert all_from([], IDENTITY)
    assert not all_from([*own, stamped(origin, publisher)], IDENTITY)


def test_an_identity_has_eight_bytes() -> None:
    with pytest.raises(ValueError, match="7 bytes"):
        all_from([stamped(5, 6)], bytes(7))


def test_only_those_that_await_an_answer_say_where() -> None:
    frames = [
        encode(Kind.MESSAGE, b"s", b"body", b"_INBOX.1"),
        encode(Kind.MESSAGE, b"long.subject", b"body"),
        encode(Kind.MESSAGE, b"long.subject", b"", b"r"),
    ]
    assert replies_in(frames) == [b"_INBOX.1", b"r"]
    assert replies_in([]) == []
