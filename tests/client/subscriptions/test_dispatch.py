import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.client.options import SubscriptionOptions
from weft.client.publish.encode import message_frame
from weft.client.status import Gap, Statistics
from weft.client.subscriptions import dispatch as module
from weft.client.subscriptions.dispatch import Dispatch
from weft.client.subscriptions.registry import SubscriptionRegistry, SubscriptionState
from weft.errors import BadFrame
from weft.wire.frames import Flag, Kind, encode, parse
from weft.wire.subjects import matches


class Kept:
    """A sink that keeps the subjects it is given."""

    def __init__(self) -> None:
        self.subjects: list[str] = []

    def put(self, frames: list[bytes]) -> None:
        self.subjects += [parse(frame).subject.decode() for frame in frames]

    def missed(self, gap: Gap) -> None:
        """Never here."""

    def ended(self) -> None:
        """Never here."""


class Town:
    """Subscriptions, and a dispatch over them."""

    def __init__(self) -> None:
        self.statistics = Statistics()
        self.interests = SubscriptionRegistry()
        self.dispatch = Dispatch(self.interests, self.statistics)

    def listen(self, *patterns: str, group: str = "", listen_only: bool = False) -> Kept:
        kept = Kept()
        wish = SubscriptionOptions(group=group, listen_only=listen_only)
        self.add(SubscriptionState(patterns, wish, kept))
        return kept

    def add(self, listening: SubscriptionState) -> None:
        listening.answered(b"")
        self.interests.add(listening)
        self.dispatch.forget()

    def send(self, subject: str, flags: int = 0) -> None:
        self.dispatch.deliver([message_frame(subject, b"", flags=flags)])


@pytest.mark.req("MM-2")
def test_every_subscription_that_matches_gets_a_message_once() -> None:
    town = Town()
    literal, star, both, other = (
        town.listen("a.b"),
        town.listen("a.*"),
        town.listen("a.b", "a.>"),
        town.listen("c"),
    )
    town.send("a.b")
    assert literal.subjects == star.subjects == both.subjects == ["a.b"]
    assert other.subjects == []


def test_one_who_comes_later_gets_what_comes_later() -> None:
    town = Town()
    first = town.listen("a")
    town.send("a")
    second = town.listen("a")
    town.send("a")
    assert (len(first.subjects), len(second.subjects)) == (2, 1)


def test_members_of_a_group_take_turns() -> None:
    town = Town()
    members = [town.listen("jobs.*", group="workers") for _ in range(3)]
    for _ in range(6):
        town.send("jobs.a")
    assert [len(member.subjects) for member in members] == [2, 2, 2]


def test_members_take_turns_over_messages_that_came_together() -> None:
    town = Town()
    members = [town.listen("jobs", group="workers") for _ in range(3)]
    frame = message_frame("jobs", b"")
    for count in (2, 5, 1, 4):
        town.dispatch.deliver([frame] * count)
    assert [len(member.subjects) for member in members] == [4, 4, 4]


def test_a_request_goes_to_one_who_answers() -> None:
    town = Town()
    listener = town.listen("quotes", listen_only=True)
    responders = [town.listen("*"), town.listen("*")]
    for _ in range(4):
        town.send("quotes", Flag.REQUEST)
    assert listener.subjects == []
    assert [len(responder.subjects) for responder in responders] == [2, 2]
    town.send("quotes")
    assert listener.subjects == ["quotes"]


def test_what_nobody_wants_is_counted() -> None:
    town = Town()
    town.listen("a", listen_only=True)
    town.send("b")
    town.send("a", Flag.REQUEST)
    assert town.statistics.unwanted == 2


@pytest.mark.parametrize("subject", [b"", b"a..b", b"a.*", b"\xff"])
def test_a_message_to_no_subject_breaks_the_stream(subject: bytes) -> None:
    with pytest.raises(BadFrame, match="invalid subject"):
        Town().dispatch.deliver([encode(Kind.MESSAGE, subject)])


def test_more_subjects_than_are_remembered_still_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_SUBJECTS_MAX", 3)
    town = Town()
    kept = town.listen("a.*")
    subjects = [f"a.{number % 5}" for number in range(20)]
    for subject in subjects:
        town.send(subject)
    assert kept.subjects == subjects
    assert len(town.dispatch._routes) <= 3


element = st.sampled_from(["a", "b"])
subjects = st.lists(element, min_size=1, max_size=3).map(".".join)
patterns = st.builds(
    lambda parts, tail: ".".join([*parts, *tail]),
    st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3),
    st.sampled_from([[], [">"]]),
)


@given(st.lists(st.lists(patterns, min_size=1, max_size=2), max_size=5), st.lists(subjects))
def test_each_gets_what_its_patterns_match(wanted: list[list[str]], sent: list[str]) -> None:
    town = Town()
    kept = [(each, town.listen(*each)) for each in wanted]
    for subject in sent:
        town.send(subject)
    for each, sink in kept:
        assert sink.subjects == [
            subject
            for subject in sent
            if any(matches(pattern.encode(), subject.encode()) for pattern in each)
        ]


def stamped(origin: int, *sequences: int, subject: str = "a", flags: int = 0) -> list[bytes]:
    frames = []
    for sequence in sequences:
        frame = bytearray(message_frame(subject, b"", flags=flags))
        frame[8:12] = origin.to_bytes(4, "little")
        frame[16:24] = sequence.to_bytes(8, "little")
        frames.append(bytes(frame))
    return frames


class Numbers(Kept):
    """A sink that keeps origins and sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[tuple[int, int]] = []

    def put(self, frames: list[bytes]) -> None:
        parsed = [parse(frame) for frame in frames]
        self.received += [(frame.origin, frame.sequence) for frame in parsed]


def test_what_was_received_over_an_earlier_line_is_dropped_if_it_comes_again() -> None:
    town = Town()
    numbers = Numbers()
    town.add(SubscriptionState(["a"], SubscriptionOptions(), numbers))
    deliver = town.dispatch.deliver
    deliver(stamped(1, 5, 6) + stamped(2, 3))
    deliver(stamped(1, 9))
    town.dispatch.resume()
    deliver(stamped(1, 5, 6, 9, 10) + stamped(2, 2, 3, 4) + stamped(3, 1))
    deliver(stamped(1, 8))
    assert numbers.received == [(1, 5), (1, 6), (2, 3), (1, 9), (1, 10), (2, 4), (3, 1)]
    assert town.statistics.repeated == 6
    town.dispatch.resume()
    deliver(stamped(1, 10, 11))
    assert numbers.received[-1] == (1, 11)


def test_over_one_line_nothing_is_dropped_whatever_its_number() -> None:
    town = Town()
    numbers = Numbers()
    town.add(SubscriptionState(["a"], SubscriptionOptions(), numbers))
    town.dispatch.deliver(stamped(1, 5, 4) + stamped(2, 1) + stamped(1, 4))
    assert len(numbers.received) == 4


def test_requests_and_messages_with_other_numbers_are_not_taken_for_repeated() -> None:
    town = Town()
    numbers = Numbers()
    town.add(SubscriptionState(["a"], SubscriptionOptions(), numbers))
    direct = (1 << 63) + 1
    town.dispatch.deliver(stamped(1, 5, direct))
    town.dispatch.resume()
    town.dispatch.deliver(stamped(1, 0, direct))
    town.dispatch.deliver(stamped(1, 4, flags=int(Flag.REQUEST)))
    assert numbers.received == [(1, 5), (1, direct), (1, 0), (1, direct), (1, 4)]
    assert town.statistics.repeated == 0


def test_messages_of_a_group_are_not_taken_for_repeated() -> None:
    """Another gateway was given them, and has them late."""
    town = Town()
    plain, member = Numbers(), Numbers()
    town.add(SubscriptionState(["a"], SubscriptionOptions(), plain))
    town.add(SubscriptionState(["jobs"], SubscriptionOptions(group="workers"), member))
    town.dispatch.deliver(stamped(1, 5, 7))
    town.dispatch.resume()
    town.dispatch.deliver(stamped(1, 6, subject="jobs"))
    town.dispatch.deliver(stamped(1, 7, 8))
    assert member.received == [(1, 6)]
    assert plain.received == [(1, 5), (1, 7), (1, 8)]
    assert town.statistics.repeated == 1


def test_of_many_origins_those_heard_of_last_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ORIGINS_MAX", 3)
    town = Town()
    numbers = Numbers()
    town.add(SubscriptionState(["a"], SubscriptionOptions(), numbers))
    for origin in (1, 2, 3, 1, 4, 5):
        town.dispatch.deliver(stamped(origin, 7))
    town.dispatch.resume()
    for origin in range(1, 6):
        town.dispatch.deliver(stamped(origin, 7))
    assert numbers.received[6:] == [(2, 7), (3, 7)]
