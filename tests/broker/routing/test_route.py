import pytest

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.broker.routing.route import GROUP_HIGH_BYTES, Route
from weft.broker.routing.subscription_trie import Interest, Subscriber
from weft.wire.frames import Kind, encode

FRAME = encode(Kind.MESSAGE, b"a.b", b"x" * 10)


class Town:
    """A few outboxes in one arena, with what they asked for."""

    def __init__(self, count: int = 4) -> None:
        self.arena = Arena(4096)
        self.outboxes = [Outbox(self.arena, Bounds()) for _ in range(count)]
        self.interest = Interest()

    def ask(
        self, number: int, pattern: bytes, group: bytes = b"", policy: Policy = Policy.CUT
    ) -> None:
        self.interest.add(pattern, group, Subscriber(self.outboxes[number], policy, False))

    def listen(self, number: int, pattern: bytes, group: bytes = b"") -> None:
        self.interest.add(pattern, group, Subscriber(self.outboxes[number], Policy.CUT, True))

    def chosen(self, sender: int | None = None, is_not_back: bool = False, turn: int = 0) -> int:
        """Whoever would be given a request; -1 if nobody would."""
        asker = Outbox(self.arena, Bounds()) if sender is None else self.outboxes[sender]
        outbox = self.route().responder(asker, is_not_back, turn)
        return -1 if outbox is None else self.outboxes.index(outbox)

    def route(self) -> Route:
        return Route(b"a.b", self.interest.match(b"a.b"))

    def deliver(
        self, route: Route, count: int = 1, sender: int | None = None, is_not_back: bool = False
    ) -> list[int]:
        """Deliver so many frames; return how many each outbox got."""
        start = self.arena.put(FRAME * count)
        before = [outbox.pending for outbox in self.outboxes]
        publisher = None if sender is None else self.outboxes[sender]
        route.deliver(start, start + count * len(FRAME), publisher, is_not_back)
        return [
            (outbox.pending - then) // len(FRAME)
            for outbox, then in zip(self.outboxes, before, strict=True)
        ]


def test_everyone_who_asked_gets_every_message() -> None:
    town = Town()
    town.ask(0, b"a.b")
    town.ask(2, b"a.*")
    assert town.deliver(town.route(), count=5) == [5, 0, 5, 0]


def test_a_route_nobody_asked_for_is_empty() -> None:
    town = Town()
    assert town.route().is_empty()
    town.ask(0, b"a.b", group=b"g")
    assert not town.route().is_empty()
    assert not Route(b"a.b", []).outboxes


def test_a_connection_gets_a_message_once_however_many_of_its_patterns_match() -> None:
    town = Town()
    for pattern in (b"a.b", b"a.*", b">", b"*.b"):
        town.ask(1, pattern)
    assert town.deliver(town.route()) == [0, 1, 0, 0]


@pytest.mark.parametrize("policies", [(Policy.LATEST, Policy.CUT), (Policy.CUT, Policy.LATEST)])
def test_of_several_policies_the_one_that_keeps_most_applies(
    policies: tuple[Policy, Policy],
) -> None:
    town = Town()
    for pattern, policy in zip((b"a.b", b"a.*"), policies, strict=True):
        town.ask(0, pattern, policy=policy)
    assert list(town.route().policies) == [Policy.CUT]


def test_a_publisher_hears_itself_unless_it_opts_out() -> None:
    town = Town()
    for number in (0, 1):
        town.ask(number, b"a.b")
    assert town.deliver(town.route(), sender=0) == [1, 1, 0, 0]
    assert town.deliver(town.route(), sender=0, is_not_back=True) == [0, 1, 0, 0]


def test_of_a_group_one_member_gets_each_message_in_turn() -> None:
    town = Town()
    for number in range(3):
        town.ask(number, b"a.b", group=b"g")
    assert town.deliver(town.route(), count=6) == [2, 2, 2, 0]


def test_turns_go_on_from_one_delivery_to_the_next() -> None:
    town = Town()
    for number in range(3):
        town.ask(number, b"a.b", group=b"g")
    route = town.route()
    assert [town.deliver(route).index(1) for _ in range(4)] == [0, 1, 2, 0]


def test_groups_of_one_name_are_one_group_whatever_their_patterns() -> None:
    town = Town()
    town.ask(0, b"a.b", group=b"g")
    town.ask(1, b"a.*", group=b"g")
    town.ask(2, b"a.>", group=b"h")
    assert town.deliver(town.route(), count=4) == [2, 2, 4, 0]


def test_a_group_prefers_a_member_that_is_not_the_sender() -> None:
    town = Town()
    for number in range(2):
        town.ask(number, b"a.b", group=b"g")
    assert town.deliver(town.route(), count=3, sender=0) == [0, 3, 0, 0]


def test_the_sender_serves_its_group_if_it_is_alone_in_it() -> None:
    town = Town()
    town.ask(0, b"a.b", group=b"g")
    assert town.deliver(town.route(), sender=0) == [1, 0, 0, 0]
    assert town.deliver(town.route(), sender=0, is_not_back=True) == [0, 0, 0, 0]


def test_a_member_that_is_a_plain_subscriber_too_gets_a_message_once() -> None:
    town = Town()
    town.ask(0, b"a.b")
    town.ask(0, b"a.b", group=b"g")
    town.ask(1, b"a.b", group=b"g")
    assert town.deliver(town.route(), count=4) == [4, 2, 0, 0]


def test_a_delivery_says_how_many_it_reached() -> None:
    town = Town()
    assert town.route().deliver(0, 0, None, False) == 0
    start = town.arena.put(FRAME * 2)
    town.ask(0, b"a.b")
    town.ask(1, b"a.b")
    # Handed by its plain subscription already: its group adds nothing.
    town.ask(1, b"a.b", group=b"g")
    assert town.route().deliver(start, town.arena.fill, None, False) == 2
    assert town.route().deliver(start, town.arena.fill, town.outboxes[0], True) == 1


def test_a_group_of_only_the_sender_is_nobody_if_it_opts_out() -> None:
    town = Town()
    start = town.arena.put(FRAME)
    town.ask(0, b"a.b", group=b"g")
    assert town.route().deliver(start, town.arena.fill, town.outboxes[0], True) == 0


def test_frames_beyond_the_turn_are_not_delivered() -> None:
    town = Town()
    town.arena.put(FRAME)
    town.ask(0, b"a.b", group=b"g")
    with pytest.raises(ValueError, match="are not among"):
        town.route().deliver(0, 1 << 40, None, False)


def test_the_members_that_are_not_the_sender_take_turns() -> None:
    town = Town()
    for number in range(3):
        town.ask(number, b"a.b", group=b"g")
    assert town.deliver(town.route(), count=6, sender=0) == [0, 3, 3, 0]


def test_a_member_of_several_groups_gets_a_message_once() -> None:
    town = Town()
    for group in (b"g", b"h", b"i"):
        town.ask(0, b"a.b", group=group)
    assert town.deliver(town.route(), count=5) == [5, 0, 0, 0]


def test_a_member_of_several_groups_gets_messages_in_order() -> None:
    town = Town(2)
    for group in (b"g", b"h"):
        for number in (0, 1):
            town.ask(number, b"a.b", group=group)
    town.ask(1, b"a.b", group=b"i")
    frames = [encode(Kind.MESSAGE, b"a.b", b"%d" % number) for number in range(6)]
    start = town.arena.put(b"".join(frames))
    town.route().deliver(start, town.arena.fill, None, False)
    for outbox in town.outboxes:
        at = outbox.gather()
        heard = bytes(town.arena.data[at : at + outbox.gathered])
        got = [frame for frame in frames if frame in heard]
        assert b"".join(got) == heard
        outbox.sent(outbox.gathered)


def test_nobody_answers_where_nobody_asked_for_it() -> None:
    assert Town().chosen() == -1


def test_a_request_is_given_to_whoever_has_fewest_unanswered() -> None:
    town = Town()
    for number, busy in enumerate([3, 1, 2, 1]):
        town.ask(number, b"a.b")
        town.outboxes[number].busy = busy
    assert [town.chosen(turn=turn) for turn in range(5)] == [1, 1, 3, 3, 1]


def test_among_those_who_are_free_the_turn_decides() -> None:
    town = Town(3)
    for number in range(3):
        town.ask(number, b"a.*")
    assert [town.chosen(turn=turn) for turn in range(6)] == [0, 1, 2, 0, 1, 2]


def test_members_of_groups_answer_before_plain_subscribers() -> None:
    town = Town()
    town.ask(0, b"a.b")
    town.ask(1, b"a.b", b"g")
    town.ask(2, b"a.>", b"h")
    town.outboxes[1].busy = town.outboxes[2].busy = 50
    assert {town.chosen(turn=turn) for turn in range(9)} == {1, 2}


def test_one_that_only_listens_never_answers() -> None:
    town = Town()
    town.listen(0, b"a.b")
    town.listen(1, b"a.b", b"g")
    assert town.chosen() == -1
    town.ask(2, b"a.b")
    assert {town.chosen(turn=turn) for turn in range(9)} == {2}
    town.ask(0, b"a.*")
    assert {town.chosen(turn=turn) for turn in range(9)} == {0, 2}


def test_the_sender_answers_itself_only_if_nobody_else_can_and_it_did_not_opt_out() -> None:
    town = Town()
    town.ask(0, b"a.b")
    assert town.chosen(sender=0) == 0
    assert town.chosen(sender=0, is_not_back=True) == -1
    town.ask(1, b"a.b")
    town.outboxes[1].busy = 1000
    assert {town.chosen(sender=0, turn=turn) for turn in range(4)} == {1}


def test_one_that_does_not_read_answers_last() -> None:
    town = Town()
    for number in (0, 1):
        town.ask(number, b"a.b")
    town.outboxes[0].hold(FRAME, 0)
    town.outboxes[1].busy = 1000
    assert {town.chosen(turn=turn) for turn in range(4)} == {1}


def test_a_group_in_a_route_has_its_name() -> None:
    town = Town()
    town.ask(0, b"a.b", b"g")
    town.ask(1, b"a.*", b"h")
    assert [group.name for group in town.route().groups] == [b"g", b"h"]


def behind(town: Town, number: int, size: int = 1) -> None:
    """Have an outbox be owed so much that its socket did not take."""
    town.outboxes[number].hold(encode(Kind.MESSAGE, b"x", bytes(size)), 0)
    town.outboxes[number].settle(0)


def test_a_member_that_is_behind_is_passed_over() -> None:
    town = Town()
    for number in range(3):
        town.ask(number, b"a.b", b"workers")
    behind(town, 1)
    assert town.deliver(town.route(), count=6) == [3, 0, 3, 0]


def test_when_all_members_are_behind_the_one_that_is_owed_least_is_next() -> None:
    town = Town()
    for number, size in enumerate((300, 100, 200)):
        town.ask(number, b"a.b", b"workers")
        behind(town, number, size)
    assert town.deliver(town.route()) == [0, 1, 0, 0]
    counts = [0, 0, 0, 0]
    for _ in range(60):
        counts = [sum(pair) for pair in zip(counts, town.deliver(town.route()), strict=True)]
    assert counts[0] < counts[2] < counts[1]


def test_the_sender_is_passed_over_however_far_the_others_are_behind() -> None:
    town = Town()
    for number in range(3):
        town.ask(number, b"a.b", b"workers")
    for number in (1, 2):
        behind(town, number)
    assert town.deliver(town.route(), count=4, sender=0)[0] == 0


def test_a_group_is_full_when_no_member_has_room() -> None:
    town = Town()
    for number in range(2):
        town.ask(number, b"a.b", b"workers")
    route = town.route()
    behind(town, 0, GROUP_HIGH_BYTES)
    town.deliver(route)
    found = [route.is_full]
    behind(town, 1, GROUP_HIGH_BYTES)
    town.deliver(route)
    found.append(route.is_full)
    town.outboxes[0].draw(1, 0)
    town.deliver(route)
    found.append(route.is_full)
    assert found == [False, True, False]
