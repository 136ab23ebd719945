"""LANE frames: a word, its fields, and what is none."""

import pytest

from weft.errors import BadMessage
from weft.wire import frames
from weft.wire.frames import Kind
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.message.message import Message


def test_a_word_and_its_fields_come_back() -> None:
    frame = lane_frame("invite", b"ticks.eur", ticket=b"\0\1", ttl_s=2.5)
    word, facts = word_in(frame)
    assert word == "invite"
    assert frames.parse(frame).kind == Kind.LANE
    assert facts.subject == "ticks.eur"
    assert facts.get_blob("ticket") == b"\0\1"
    assert facts.get_double("ttl_s") == 2.5


@pytest.mark.parametrize("body", [Message(), Message(word=7), Message(words="offer")])
def test_what_has_no_word_is_refused(body: Message) -> None:
    with pytest.raises(BadMessage, match="without the field word"):
        word_in(frames.encode(Kind.LANE, b"ticks", body.encode()))
