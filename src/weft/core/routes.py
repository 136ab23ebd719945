"""Where the messages of one subject go, worked out once.

A connection is in a route once, however many of its patterns match. Of a queue group one member
gets each message; groups of the same name are one group, whatever patterns their members gave.
"""

from weft.core.interest import Audience, Members, Place, Subscriber
from weft.core.outbox import Outbox
from weft.core.words import u32_at


class Group:
    """A queue group in one route: each message goes to one member, in turn."""

    def __init__(self, source: Members) -> None:
        self.members: list[Outbox] = []
        self.policies = bytearray()
        # Members that get every message by a plain subscription as well: once is enough.
        self.is_plain = bytearray()
        # Where the turn is kept, for all routes that this group is in.
        self._source = source

    def pick(self, sender: Outbox | None) -> int:
        """The position of the member whose turn it is; the sender only if nobody else is there."""
        count = len(self.members)
        turn = self._source.turn % count
        if count > 1 and self.members[turn] is sender:
            turn = (turn + 1) % count
        self._source.turn = turn + 1
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

    def deliver(self, start: int, end: int, sender: Outbox | None, is_not_back: bool) -> int:
        """Owe whole frames of the arena to everyone, once each; not to the sender if so asked.

        Returns how many deliveries that made; 0 means that nobody is there to hear it.
        """
        deliveries = 0
        for position in range(len(self.outboxes)):
            outbox = self.outboxes[position]
            if not is_not_back or outbox is not sender:
                outbox.push(start, end - start, self.policies[position])
                deliveries += 1
        for position in range(len(self.groups)):
            group = self.groups[position]
            deliveries += _deliver_in_turn(group, start, end, sender, is_not_back)
        return deliveries

    def _gather(self, places: list[Place]) -> None:
        plain: dict[Outbox, int] = {}
        grouped: dict[bytes, Group] = {}
        policies: dict[bytes, dict[Outbox, int]] = {}
        for place in places:
            if not isinstance(place, Audience):
                _add_subscriber(place, plain)
                continue
            audience = place
            for subscriber in audience.plain:
                _add_subscriber(subscriber, plain)
            for name, members in audience.groups.items():
                if name not in grouped:
                    grouped[name] = Group(members)
                    policies[name] = {}
                for subscriber in members.subscribers:
                    _add_subscriber(subscriber, policies[name])
        for outbox, policy in plain.items():
            self.outboxes.append(outbox)
            self.policies.append(policy)
        for name, group in grouped.items():
            for outbox, policy in policies[name].items():
                group.members.append(outbox)
                group.policies.append(policy)
                group.is_plain.append(outbox in plain)
            self.groups.append(group)


def _deliver_in_turn(
    group: Group, start: int, end: int, sender: Outbox | None, is_not_back: bool
) -> int:
    first = group.members[0]
    arena = first.arena
    if start < 0 or end > arena.fill:
        raise ValueError(f"bytes {start} … {end} are not among the {arena.fill} of this turn")
    deliveries = 0
    while start < end:
        length = u32_at(arena.data, start)
        turn = group.pick(sender)
        outbox = group.members[turn]
        if group.is_plain[turn]:
            deliveries += 1
        elif not is_not_back or outbox is not sender:
            outbox.push(start, length, group.policies[turn])
            deliveries += 1
        start += length
    return deliveries


def _add_subscriber(subscriber: Subscriber, known: dict[Outbox, int]) -> None:
    # Of several policies the one that keeps most applies.
    known[subscriber.outbox] = max(subscriber.policy, known.get(subscriber.outbox, 0))
