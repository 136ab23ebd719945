"""Where the messages of one subject go, worked out once.

A connection is in a route once, however many of its patterns match. Of a queue group one member
gets each message; groups of the same name are one group, whatever patterns their members gave.
"""

from weft.core.interest import Audience, Place, Subscriber
from weft.core.outbox import Outbox
from weft.core.words import u32_at


class Group:
    """A queue group: each message goes to one member, in turn."""

    def __init__(self) -> None:
        self.members: list[Outbox] = []
        self.policies = bytearray()
        # Members that get every message by a plain subscription as well: once is enough.
        self.is_plain = bytearray()
        self._turn = 0

    def pick(self, sender: Outbox | None) -> int:
        """The position of the member whose turn it is; the sender only if nobody else is there."""
        count = len(self.members)
        turn = self._turn % count
        if count > 1 and self.members[turn] is sender:
            turn = (turn + 1) % count
        self._turn = turn + 1
        return turn


class Route:
    """Everyone who is to get what is sent to one subject."""

    def __init__(self, subject: bytes, places: list[Place]) -> None:
        self.subject = subject
        self.is_stale = False
        self.outboxes: list[Outbox] = []
        self.policies = bytearray()
        self.groups: list[Group] = []
        if places:
            self._gather(places)

    def is_empty(self) -> bool:
        """Say if nobody wants this subject."""
        return not self.outboxes and not self.groups

    def deliver(self, start: int, end: int, sender: Outbox | None, is_not_back: bool) -> None:
        """Owe whole frames of the arena to everyone, once each; not to the sender if so asked."""
        for position in range(len(self.outboxes)):
            outbox = self.outboxes[position]
            if not is_not_back or outbox is not sender:
                outbox.push(start, end - start, self.policies[position])
        for position in range(len(self.groups)):
            group = self.groups[position]
            _deliver_in_turn(group, start, end, sender, is_not_back)

    def _gather(self, places: list[Place]) -> None:
        plain: dict[Outbox, int] = {}
        grouped: dict[bytes, dict[Outbox, int]] = {}
        for place in places:
            _add_place(place, plain, grouped)
        for outbox, policy in plain.items():
            self.outboxes.append(outbox)
            self.policies.append(policy)
        for members in grouped.values():
            self.groups.append(_group(members, plain))


def _deliver_in_turn(
    group: Group, start: int, end: int, sender: Outbox | None, is_not_back: bool
) -> None:
    data = group.members[0].arena.data
    while start < end:
        length = u32_at(data, start)
        turn = group.pick(sender)
        outbox = group.members[turn]
        if not group.is_plain[turn] and not (is_not_back and outbox is sender):
            outbox.push(start, length, group.policies[turn])
        start += length


def _add_place(
    place: Place, plain: dict[Outbox, int], grouped: dict[bytes, dict[Outbox, int]]
) -> None:
    if not isinstance(place, Audience):
        _add_subscriber(place, plain)
        return
    for subscriber in place.plain:
        _add_subscriber(subscriber, plain)
    for name, members in place.groups.items():
        known = grouped.setdefault(name, {})
        for subscriber in members:
            _add_subscriber(subscriber, known)


def _add_subscriber(subscriber: Subscriber, known: dict[Outbox, int]) -> None:
    # Of several policies the one that keeps most applies.
    known[subscriber.outbox] = max(subscriber.policy, known.get(subscriber.outbox, 0))


def _group(members: dict[Outbox, int], plain: dict[Outbox, int]) -> Group:
    group = Group()
    for outbox, policy in members.items():
        group.members.append(outbox)
        group.policies.append(policy)
        group.is_plain.append(outbox in plain)
    return group
