import pytest

from weft.client.options import SubscriptionOptions
from weft.client.status import Gap
from weft.client.subscriptions.registry import SubscriptionRegistry, SubscriptionState
from weft.errors import BadOption, BadSubject, Reserved
from weft.wire.message.message import Message


class Ends:
    """A sink that knows only if it has ended."""

    def __init__(self) -> None:
        self.times = 0

    def put(self, frames: list[bytes]) -> None:
        """Never here."""

    def missed(self, gap: Gap) -> None:
        """Never here."""

    def ended(self) -> None:
        self.times += 1


def listening(
    *patterns: str, group: str = "", policy: str = "cut", only: bool = False
) -> SubscriptionState:
    wish = SubscriptionOptions(group=group, policy=policy, listen_only=only)  # type: ignore[arg-type]  # a literal
    return SubscriptionState(patterns, wish, Ends())


def test_a_text_is_one_pattern() -> None:
    assert SubscriptionState("a.b", SubscriptionOptions(), Ends()).patterns == (b"a.b",)


def test_a_pattern_that_is_given_twice_counts_once() -> None:
    assert listening("a", "b", "a").patterns == (b"a", b"b")


@pytest.mark.parametrize("pattern", ["", "a..b", "a.>.b"])
def test_a_pattern_is_checked(pattern: str) -> None:
    with pytest.raises(BadSubject):
        listening(pattern)


def test_a_group_is_a_subject() -> None:
    with pytest.raises(BadSubject):
        listening("a", group="*")


def test_a_subscription_needs_a_pattern() -> None:
    with pytest.raises(BadOption, match="needs a pattern"):
        listening()


def test_only_what_differs_from_the_default_is_said() -> None:
    assert listening("a").body == b""
    told = Message.from_body(listening("a", "b", policy="latest", only=True).body)
    assert told.to_dict() == {"policy": "latest", "listen_only": True, "patterns": ["b"]}


def test_it_ends_once_and_tells_its_sink() -> None:
    sink = Ends()
    ending = SubscriptionState("a", SubscriptionOptions(), sink)
    ending.failed(Reserved("no"))
    ending.end()
    assert sink.times == 1
    assert isinstance(ending.error, Reserved)
    assert ending.settled.is_set()


def test_a_lost_connection_leaves_it_waiting_for_the_next() -> None:
    waiting = listening("a")
    waiting.lost(Reserved("gone"))
    assert waiting.is_open
    assert not waiting.settled.is_set()
    waiting.answered(b"")
    assert waiting.settled.is_set()


def test_whoever_asks_for_a_subject_is_found() -> None:
    interests = SubscriptionRegistry()
    literal, star, tail, other = (listening(p) for p in ("a.b", "a.*", "a.>", "c"))
    for each in (literal, star, tail, other):
        interests.add(each)
    assert set(interests.find(b"a.b")) == {literal, star, tail}
    assert interests.find(b"a.x.y") == [tail]
    assert interests.find(b"z") == []


def test_one_whose_patterns_all_match_is_found_once() -> None:
    interests = SubscriptionRegistry()
    both = listening("a.*", "a.b", "*.b")
    interests.add(both)
    assert interests.find(b"a.b") == [both]


def test_the_last_to_leave_takes_the_pattern_with_it() -> None:
    interests = SubscriptionRegistry()
    first, second = listening("a.*", "b"), listening("a.*")
    interests.add(first)
    interests.add(second)
    assert interests.remove(first) == [b"b"]
    assert interests.find(b"a.x") == [second]
    assert interests.remove(second) == [b"a.*"]
    assert interests.find(b"a.x") == []
    assert len(interests) == 0


def test_to_leave_twice_does_nothing() -> None:
    interests = SubscriptionRegistry()
    first = listening("a")
    interests.add(first)
    interests.remove(first)
    assert interests.remove(first) == []


@pytest.mark.parametrize(("policy", "only"), [("latest", False), ("cut", True)])
def test_two_of_one_pattern_must_agree(policy: str, only: bool) -> None:
    interests = SubscriptionRegistry()
    interests.add(listening("a.b"))
    with pytest.raises(BadOption, match=r"'a\.b' is subscribed to already, with policy 'cut'"):
        interests.add(listening("x", "a.b", policy=policy, only=only))
    assert len(interests) == 1
    assert interests.find(b"x") == []


@pytest.mark.parametrize("group", ["", "others"])
def test_overlapping_patterns_must_be_of_one_group(group: str) -> None:
    interests = SubscriptionRegistry()
    interests.add(listening("jobs.*", group="workers"))
    with pytest.raises(BadOption, match=r"'jobs\.>' overlaps 'jobs\.\*' of the group 'workers'"):
        interests.add(listening("jobs.>", group=group))
    interests.add(listening("jobs.>", group="workers"))
    interests.add(listening("news.>", group=group))


def test_a_group_is_refused_where_no_group_is() -> None:
    interests = SubscriptionRegistry()
    interests.add(listening("jobs.>"))
    with pytest.raises(BadOption, match="of no group"):
        interests.add(listening("jobs.a", group="workers"))


def test_one_pattern_apart_may_be_of_two_groups_one_after_the_other() -> None:
    interests = SubscriptionRegistry()
    first = listening("jobs.*", group="workers")
    interests.add(first)
    interests.remove(first)
    interests.add(listening("jobs.*", group="others"))
