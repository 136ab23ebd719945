import logging
import os
from typing import Any

import pytest

from weft.client.connection.session import ClientDescription, ClientSession, unsubscribe_frame
from weft.client.options import SubscriptionOptions
from weft.client.publish.send_buffer import SendBuffer
from weft.client.status import Gap, Reporter, Status, What
from weft.client.subscriptions.registry import SubscriptionState
from weft.client.subscriptions.subscriptions import Subscriptions
from weft.errors import BadOption, NotOpen, Overloaded, Reserved
from weft.wire import frames
from weft.wire.frames import Decoder, Frame, Kind
from weft.wire.message.message import Message
from weft.wire.nonces import Nonces


class Kept:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.gaps: list[Gap] = []
        self.is_ended = False

    def put(self, frames: list[bytes]) -> None:
        """Never here."""

    def missed(self, gap: Gap) -> None:
        self.gaps.append(gap)

    def ended(self) -> None:
        self.is_ended = True


class Town:
    """Subscriptions, what they have asked for, and what they have said."""

    def __init__(self, *, is_asking: bool = True, limit: int = 10) -> None:
        self.statuses: list[Status] = []
        reporter = Reporter(logging.getLogger("weft.test"), "me.1", self.statuses.append)
        self.outgoing = SendBuffer(1 << 20, "raise", lambda: None, lambda: None)
        self.session = ClientSession(
            ClientDescription("default", "", "", "test"), limit, Nonces(os.urandom)
        )
        self.subscriptions = Subscriptions(self.session, self.outgoing, reporter, limit)
        self.subscriptions.is_asking = is_asking

    def add(self, *patterns: str, **wish: Any) -> SubscriptionState:
        listening = SubscriptionState(patterns, SubscriptionOptions(**wish), Kept())
        self.subscriptions.add(listening)
        return listening

    def asked(self) -> list[Frame]:
        said = bytearray()
        self.outgoing.pass_on(said.extend)
        return parsed(bytes(said))


def parsed(data: bytes) -> list[Frame]:
    decoder = Decoder()
    decoder.feed(data)
    return [frames.parse(frame) for frame in iter(decoder.next_frame, None)]


def sink(listening: SubscriptionState) -> Kept:
    assert isinstance(listening.sink, Kept)
    return listening.sink


@pytest.mark.req("HUB-4")
def test_a_list_of_patterns_is_asked_for_in_one_frame() -> None:
    town = Town()
    town.add("a", "b", group="g")
    (frame,) = town.asked()
    assert (frame.kind, frame.subject, frame.reply) == (Kind.SUBSCRIBE, b"a", b"g")
    assert Message.from_body(frame.body)["patterns"] == ["b"]


def test_nothing_is_asked_for_while_nobody_listens() -> None:
    town = Town(is_asking=False)
    listening = town.add("a")
    town.subscriptions.remove(listening)
    assert town.asked() == []


def test_only_what_nobody_else_asks_for_is_taken_back() -> None:
    town = Town()
    first, second = town.add("a", "b"), town.add("b")
    town.asked()
    town.subscriptions.remove(first)
    town.subscriptions.remove(second)
    assert [(frame.kind, frame.subject) for frame in town.asked()] == [
        (Kind.UNSUBSCRIBE, b"a"),
        (Kind.UNSUBSCRIBE, b"b"),
    ]


def test_a_new_gateway_is_asked_for_everything_in_order() -> None:
    town = Town(is_asking=False)
    for pattern in ("a", "b", "c"):
        town.add(pattern)
    assert [frame.subject for frame in parsed(town.subscriptions.ask_again())] == [b"a", b"b", b"c"]


def test_a_refused_one_is_gone_and_reported() -> None:
    town = Town()
    listening = town.add("_X.a")
    town.asked()
    town.subscriptions.refused(listening, Reserved("not yours"))
    assert [status.what for status in town.statuses] == [What.REFUSED]
    assert sink(listening).is_ended
    assert len(town.subscriptions.interests) == 0
    assert town.asked() == []


def test_a_gap_is_told_to_the_owner_and_to_each() -> None:
    town = Town()
    both = [town.add("a"), town.add("b")]
    town.subscriptions.announce(Gap("slow", 3), "3 messages were missed")
    assert [sink(each).gaps for each in both] == [[Gap("slow", 3)]] * 2
    assert [status.gap for status in town.statuses] == [Gap("slow", 3)]


def test_withdrawn_ones_are_taken_back_and_never_asked_for_again() -> None:
    town = Town()
    listening = town.add("a", "b")
    town.asked()
    town.subscriptions.withdraw()
    town.subscriptions.withdraw()
    assert [frame.kind for frame in town.asked()] == [Kind.UNSUBSCRIBE]
    assert town.subscriptions.ask_again() == b""
    assert not sink(listening).is_ended
    with pytest.raises(NotOpen):
        town.add("c")
    town.subscriptions.finish()
    assert sink(listening).is_ended


def test_withdrawing_while_nobody_listens_asks_for_nothing() -> None:
    town = Town(is_asking=False)
    town.add("a")
    town.subscriptions.withdraw()
    assert town.asked() == []


def test_there_are_no_more_than_the_limit() -> None:
    town = Town(is_asking=False, limit=2)
    town.add("a")
    town.add("b")
    with pytest.raises(Overloaded, match="limit of 2 subscriptions"):
        town.add("c")


def test_one_that_cannot_be_asked_for_is_not_there() -> None:
    town = Town(limit=2)
    first = town.add("a")
    town.add("b")
    town.subscriptions.remove(first)
    # The answer to the first is still to come, and counts until it does.
    with pytest.raises(Overloaded, match="limit of 2 pending replies"):
        town.add("c")
    assert len(town.subscriptions.interests) == 1


def test_one_that_disagrees_changes_nothing() -> None:
    town = Town()
    town.add("a")
    town.asked()
    with pytest.raises(BadOption):
        town.add("a", policy="latest")
    assert town.asked() == []
    assert len(town.subscriptions.interests) == 1


def test_one_with_more_than_a_frame_can_name_is_refused() -> None:
    town = Town()
    with pytest.raises(BadOption, match="70000 patterns are too many"):
        town.add(*(f"a.{number}" for number in range(70_000)))
    long = [f"a.{number}.{'x' * 100}.{'y' * 90}" for number in range(6000)]
    with pytest.raises(BadOption, match=r"6000 patterns take \d+ bytes, over .* limit of 1048576"):
        town.add(*long)
    assert town.asked() == []
    assert len(town.subscriptions.interests) == 0


def test_one_that_the_buffer_cannot_take_takes_nobodys_answer() -> None:
    town = Town()
    name = "x" * 100
    while True:
        try:
            town.outgoing.put_control(unsubscribe_frame([name.encode()], b""))
        except Overloaded:
            break
    with pytest.raises(Overloaded):
        town.add(name, "y")
    assert len(town.subscriptions.interests) == 0
    assert town.session._waiting.take_question((False, name.encode(), b"")) is None
    assert town.session._waiting._abandoned == 0


def test_what_a_new_gateway_takes_no_frame_for_is_refused_and_the_rest_asked_for() -> None:
    town = Town(is_asking=False)
    long = town.add("a", "b", "c")
    town.add("d")
    town.session.body_limit_bytes = 10
    assert [frame.subject for frame in parsed(town.subscriptions.ask_again())] == [b"d"]
    assert isinstance(long.error, BadOption)
    assert sink(long).is_ended
    assert [status.what for status in town.statuses] == [What.REFUSED]


def test_cleared_there_are_none() -> None:
    town = Town()
    listening = town.add("a")
    town.subscriptions.clear()
    assert sink(listening).is_ended
    assert len(town.subscriptions.interests) == 0
