import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadOption, TooMany
from weft.transports.peer_replay import HELD_MAX_BYTES, RECALLS_MAX, Recalls
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Flag, Kind, Stamp, encode, parse, stamp_frame
from weft.wire.message.message import Message
from weft.wire.nonces import Nonces

INBOX = b"_INBOX.00000001.000000000000000000000001."
# The first reply subject.
REPLY = INBOX + b"recall.0000000000000000"
WISH = encode(Kind.SUBSCRIBE, b"a.*", flags=Flag.ANSWER)


def draw(size: int) -> bytes:
    """Random bytes, but for those of the first name to be taken."""
    return os.urandom(size - 8) + bytes(8)


def answered(reply: bytes, page: Message) -> bytes:
    """A page as a gateway sends it."""
    return encode(Kind.MESSAGE, reply, page.encode(), flags=Flag.FROM_GATEWAY)


class Journal:
    """A gateway with a journal, and one peer of it."""

    def __init__(self, since: int = 0, wish: bytes = WISH, page_messages: int = 3) -> None:
        self.recalls = Recalls(INBOX, Nonces(draw))
        self.frames: list[bytes] = []
        self.stamp = Stamp(7, sequence=1)
        self.is_subscribed = False
        self.page_messages = page_messages
        # What it has yet to be sent, and what it was told.
        self.owed: list[bytes] = []
        self.told: list[bytes] = []
        self.recalls.begin(wish, since)

    def publish(self, body: bytes = b"") -> None:
        made = bytearray(encode(Kind.MESSAGE, b"a.b", body, flags=Flag.BARE))
        stamp_frame(made, 0, self.stamp)
        self.frames.append(bytes(made))
        if self.is_subscribed:
            self.owed.append(bytes(made))

    def send(self) -> None:
        """The peer gets what it is owed."""
        if self.owed:
            passed = self.recalls.pass_on(b"".join(self.owed))
            self.told += each_frame(passed) if passed else []
            self.owed = []

    def answer(self) -> bool:
        """Hear what is said for the peer; False if nothing is."""
        words, self.recalls.words = self.recalls.words, []
        for said in words:
            for data in each_frame(said):
                frame = parse(data)
                if frame.kind == Kind.SUBSCRIBE:
                    self.is_subscribed = True
                else:
                    self.owed.append(self._page(frame.reply, Message.from_body(frame.body)))
        return bool(words)

    def _page(self, reply: bytes, question: Message) -> bytes:
        start = question["position"]
        frames = self.frames[start : start + self.page_messages]
        page = Message(
            node="here",
            next=start + len(frames),
            head=len(self.frames),
            missing=0,
            left=0,
            frames=b"".join(frames),
        )
        return answered(reply, page)

    @property
    def sequences(self) -> list[int]:
        return [parse(frame).sequence for frame in self.told if frame[4] == Kind.MESSAGE]

    def finish(self) -> None:
        while len(self.recalls) or self.owed:
            self.send()
            self.answer()


@given(
    st.integers(0, 10),
    st.integers(1, 4),
    st.lists(st.sampled_from(["publish", "answer", "send"]), max_size=60),
)
def test_however_they_come_every_message_is_told_once_and_in_order(
    before: int, page_messages: int, steps: list[str]
) -> None:
    journal = Journal(page_messages=page_messages)
    for _ in range(before):
        journal.publish()
    for step in steps:
        getattr(journal, step)()
    journal.finish()
    journal.publish()
    journal.send()
    assert journal.sequences == list(range(1, len(journal.frames) + 1))


def test_what_is_not_asked_for_goes_through_untouched() -> None:
    journal = Journal()
    other = encode(Kind.MESSAGE, b"b", b"x")
    assert journal.recalls.pass_on(other) == other


def test_what_is_refused_of_history_is_told_of_the_subscription() -> None:
    journal = Journal()
    journal.answer()
    body = Message(number=4001, name="NotKnown", text="no journal", kind=5).encode()
    reply = REPLY
    told = journal.recalls.pass_on(encode(Kind.ERROR, b"_WEFT.ask.history", body, reply))
    frame = parse(told)
    assert (frame.kind, frame.flags, frame.subject) == (Kind.ERROR, Flag.ANSWER, b"a.*")
    assert Message.from_body(frame.body)["kind"] == Kind.SUBSCRIBE
    assert len(journal.recalls) == 0


def test_what_is_missing_in_the_journal_is_a_gap() -> None:
    journal = Journal()
    page = Message(node="here", next=5, head=9, missing=5, left=0, frames=b"")
    told = parse(journal.recalls.pass_on(answered(REPLY, page)))
    assert told.kind == Kind.GAP
    assert Message.from_body(told.body).to_dict() == {"reason": "journal", "count": 5}


def test_a_large_message_comes_in_several_pages() -> None:
    journal = Journal()
    journal.publish(bytes(1000))
    whole = journal.frames[0]
    reply = REPLY
    for start, left in ((0, len(whole) - 600), (600, 0)):
        part = whole[start : start + 600]
        page = Message(node="here", next=1 - bool(left), head=1, missing=0, left=left, frames=part)
        told = journal.recalls.pass_on(answered(reply, page))
    assert told == whole


def test_what_comes_live_is_held_within_a_bound_and_the_rest_is_a_gap() -> None:
    journal = Journal(page_messages=1000)
    journal.answer()
    journal.send()
    # Subscribed, and the last question is asked: what comes now is before its answer.
    words, journal.recalls.words = journal.recalls.words, []
    journal.is_subscribed = True
    half = bytes(HELD_MAX_BYTES // 2)
    for _ in range(3):
        journal.publish(half)
    journal.send()
    journal.frames.clear()
    journal.recalls.words = [said[len(WISH) :] if said.startswith(WISH) else said for said in words]
    journal.finish()
    assert journal.sequences == [1]
    assert [frame[4] for frame in journal.told][-1] == Kind.GAP


def test_a_member_of_a_queue_group_has_no_history() -> None:
    with pytest.raises(BadOption, match="queue group"):
        Journal(wish=encode(Kind.SUBSCRIBE, b"a", reply=b"workers"))


def test_how_many_are_in_the_past_is_bounded() -> None:
    journal = Journal()
    for _ in range(RECALLS_MAX - 1):
        journal.recalls.begin(WISH, 0)
    with pytest.raises(TooMany, match=f"{RECALLS_MAX}"):
        journal.recalls.begin(WISH, 0)


GOODBYE = encode(Kind.GOODBYE, body=Message(reason="x", elsewhere=["evil:1"]).encode())
GOOD = {"node": "here", "next": 5, "head": 9, "missing": 0, "left": 0, "frames": b""}
ODD_PAGES = {
    "no size": GOOD | {"frames": bytes(32)},
    "a huge size": GOOD | {"frames": b"\xff" * 40},
    "half a frame": GOOD | {"frames": WISH[:-1]},
    "a goodbye": GOOD | {"frames": GOODBYE},
    "no fields": {},
    "texts": GOOD | {"next": "5"},
    "no blob": GOOD | {"frames": "text"},
    "a list": GOOD | {"missing": [1]},
}


@pytest.mark.parametrize("page", ODD_PAGES.values(), ids=ODD_PAGES.keys())
def test_a_page_that_cannot_be_is_an_error_of_the_subscription(page: dict[str, object]) -> None:
    journal = Journal()
    data = answered(REPLY, Message.from_dict(page))
    (told,) = map(parse, each_frame(journal.recalls.pass_on(data)))
    assert (told.kind, told.flags, told.subject) == (Kind.ERROR, Flag.ANSWER, b"a.*")
    assert Message.from_body(told.body)["kind"] == Kind.SUBSCRIBE
    assert len(journal.recalls) == 0


def test_a_page_of_anybody_else_is_an_ordinary_message() -> None:
    journal = Journal()
    forged = encode(Kind.MESSAGE, REPLY, Message.from_dict(GOOD | {"missing": 5}).encode())
    assert journal.recalls.pass_on(forged) == forged
    assert len(journal.recalls) == 1


def test_questions_about_the_past_have_replies_that_nobody_can_guess() -> None:
    recalls = Recalls(INBOX, Nonces(os.urandom))
    for _ in range(RECALLS_MAX):
        recalls.begin(WISH, 0)
    replies = {parse(question).reply for question in recalls.words}
    assert len({reply[-16:] for reply in replies}) == RECALLS_MAX
