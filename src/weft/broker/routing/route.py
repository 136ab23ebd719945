"""Receivers of one subject, computed once and cached.

A connection is in a route once, however many of its patterns match. Of a queue group, one member
gets each message; groups of the same name are one group, whatever patterns their members have. A
request goes to one responder: a member of a group if there are any, else a plain subscriber.

Remote gateways are kept apart: each gets a message once, but messages of a queue group and
requests only if there is no receiver at this gateway.
"""

from typing import Any

from weft.broker.delivery.outbox import Outbox
from weft.broker.routing.subscription_trie import Audience, GroupMembers, Place, Subscriber
from weft.wire.byteops import u32_at

# A queue group is full when each member has more than this queued.
GROUP_HIGH_BYTES = 256 << 10

_GROUP_HIGH = GROUP_HIGH_BYTES
# More than any number of pending requests.
_LAST_RESORT = 1 << 40


class Group:
    """Queue group in one route: each message goes to one member.

    Members take turns while their sockets accept everything. One with a backlog is skipped; if all
    have one, the member with the smallest is next. `is_full`: that is over GROUP_HIGH_BYTES.
    """

    def __init__(self, name: bytes, source: GroupMembers) -> None:
        self.name = name
        self.members: list[Outbox] = []
        self.policies = bytearray()
        # Members with a plain subscription as well: they get every message by that one.
        self.is_plain = bytearray()
        self.is_full = False
        # Shared turn of all routes with this group.
        self._source = source

    def fill(self, gathered: "Gathered") -> None:
        """Add the members that were collected for this group."""
        for outbox, policy in gathered.members[self.name].items():
            self.members.append(outbox)
            self.policies.append(policy)
            self.is_plain.append(outbox in gathered.plain)

    def turn(self) -> int:
        """The position of the member that gets the next message, unless that is its sender."""
        return self._next(None)

    def pick(self, sender: Outbox | None) -> int:
        """The position of the member that gets this; the sender only if it is the only member."""
        turn = self._next(sender)
        self._source.turn = turn + 1
        return turn

    def _next(self, sender: Outbox | None) -> int:
        count = len(self.members)
        turn = self._source.turn % count
        member = self.members[turn]
        self.is_full = False
        if member.is_behind() or member is sender:
            return self._with_room(turn, sender)
        return turn

    def _with_room(self, turn: int, sender: Outbox | None) -> int:
        """The first member from `turn` without a backlog, else the one with the smallest."""
        count = len(self.members)
        best = turn
        best_cost = -1
        for step in range(count):
            position = (turn + step) % count
            member = self.members[position]
            if member is sender and count > 1:
                continue
            if not member.is_behind():
                return position
            cost = member.cost() + member.pending
            if best_cost < 0 or cost < best_cost:
                best = position
                best_cost = cost
        self.is_full = best_cost > _GROUP_HIGH
        return best


class Gathered:
    """Subscribers of one subject, each once."""

    def __init__(self) -> None:
        self.plain: dict[Outbox, int] = {}
        self.answering: dict[Outbox, None] = {}
        self.answering_in_groups: dict[Outbox, None] = {}
        self.groups: dict[bytes, Group] = {}
        self.members: dict[bytes, dict[Outbox, int]] = {}

    def add(self, subscriber: Subscriber) -> None:
        """Add a plain subscriber."""
        _add_subscriber(subscriber, self.plain, self.answering)

    def add_member(self, name: bytes, source: GroupMembers, subscriber: Subscriber) -> None:
        """Add a member of a group."""
        if name not in self.groups:
            self.groups[name] = Group(name, source)
            self.members[name] = {}
        _add_subscriber(subscriber, self.members[name], self.answering_in_groups)


class Route:
    """Receivers of one subject."""

    def __init__(self, subject: bytes, places: list[Place]) -> None:
        self.subject = subject
        self.is_stale = False
        self.is_journaled = False
        self.outboxes: list[Outbox] = []
        self.policies = bytearray()
        self.groups: list[Group] = []
        self.responders: list[Outbox] = []
        # At remote gateways, if all responders here are away.
        self.far_responders: list[Outbox] = []
        # Remote gateways with plain subscribers, and groups with remote members only.
        self.far: list[Outbox] = []
        self.far_groups: list[Group] = []
        self.is_far = False
        # The last message found one of its groups full.
        self.is_full = False
        # Forwarding plan, set by the mesh.
        self.plan: Any = None
        if places:
            self._gather(places)

    def is_empty(self) -> bool:
        """Return whether the route has no receivers at this gateway."""
        return not self.outboxes and not self.groups

    def receivers(self) -> int:
        """The number of receivers, group members included."""
        count = len(self.outboxes)
        for group in self.groups:
            count += len(group.members)
        for group in self.far_groups:
            count += len(group.members)
        return count + len(self.far)

    def responder(self, sender: Outbox, is_not_back: bool, turn: int) -> Outbox | None:
        """The responder with the fewest pending requests; the sender only if there is no other.

        `turn` decides between equals. A responder with a backlog comes last, one that is away gets
        no request, and remote gateways are used if that leaves no responder here.
        """
        best = _least_busy(self.responders, sender, is_not_back, turn)
        if best is None and self.far_responders:
            best = _least_busy(self.far_responders, sender, is_not_back, turn)
        return best

    def deliver(self, start: int, end: int, sender: Outbox | None, is_not_back: bool) -> int:
        """Queue whole frames once for each receiver; `is_not_back` excludes the sender.

        Returns the number of deliveries; 0 if there are no receivers.
        """
        return self.deliver_to_each(start, end, sender, is_not_back) + self.deliver_in_turn(
            start, end, sender, is_not_back
        )

    def deliver_to_each(
        self, start: int, end: int, sender: Outbox | None, is_not_back: bool
    ) -> int:
        """The part of deliver() for plain subscribers; returns their number."""
        receivers = 0
        for position in range(len(self.outboxes)):
            outbox = self.outboxes[position]
            if not is_not_back or outbox is not sender:
                outbox.push(start, end - start, self.policies[position])
                receivers += 1
        return receivers

    def deliver_in_turn(
        self, start: int, end: int, sender: Outbox | None, is_not_back: bool
    ) -> int:
        """The part of deliver() for queue groups; returns the number of delivered frames."""
        handed = 0
        if not self.groups:
            return handed
        first = self.groups[0]
        any_member = first.members[0]
        arena = any_member.arena
        if start < 0 or end > arena.fill:
            raise ValueError(f"bytes {start} … {end} are not among the {arena.fill} of this turn")
        # Frame by frame, so that a member of several groups gets them in order.
        while start < end:
            length = u32_at(arena.data, start)
            for position in range(len(self.groups)):
                group = self.groups[position]
                handed += _hand(group, start, length, sender, is_not_back)
            start += length
        self.is_full = False
        for position in range(len(self.groups)):
            group = self.groups[position]
            self.is_full = self.is_full or group.is_full
        return handed

    def deliver_to_group(self, name: bytes, start: int, end: int) -> int:
        """Queue frames for one member each of the named group; return the number delivered."""
        for group in self.groups:
            if group.name == name:
                return _hand_each(group, start, end)
        return 0

    def _gather(self, places: list[Place]) -> None:
        here = Gathered()
        far = Gathered()
        for place in places:
            if not isinstance(place, Audience):
                _side(place, here, far).add(place)
                continue
            audience = place
            for subscriber in audience.plain:
                _side(subscriber, here, far).add(subscriber)
            for name, members in audience.groups.items():
                for subscriber in members.subscribers:
                    _side(subscriber, here, far).add_member(name, members, subscriber)
        self.outboxes.extend(here.plain)
        self.policies.extend(here.plain.values())
        for group in here.groups.values():
            group.fill(here)
            self.groups.append(group)
        if here.answering_in_groups or len(here.answering) < len(here.plain):
            self.responders = list(here.answering_in_groups or here.answering)
        else:
            self.responders = self.outboxes
        if far.plain or far.groups:
            self._gather_far(here, far)

    def _gather_far(self, here: "Gathered", far: "Gathered") -> None:
        self.far.extend(far.plain)
        for name, group in far.groups.items():
            if name not in here.groups:
                group.fill(far)
                self.far_groups.append(group)
        self.is_far = len(self.far) + len(self.far_groups) > 0
        self.far_responders = list(far.answering_in_groups or far.answering)


def _least_busy(
    responders: list[Outbox], sender: Outbox, is_not_back: bool, turn: int
) -> Outbox | None:
    """The responder that a request is given to; None if all are away."""
    count = len(responders)
    best: Outbox | None = None
    best_burden = 0
    for step in range(count):
        outbox = responders[(turn + step) % count]
        if outbox.is_away or (outbox is sender and is_not_back):
            continue
        burden = outbox.busy
        if outbox is sender or outbox.is_behind():
            burden += _LAST_RESORT
        if best is None or burden < best_burden:
            best = outbox
            best_burden = burden
        if burden == 0:
            break
    return best


def _hand_each(group: Group, start: int, end: int) -> int:
    handed = 0
    any_member = group.members[0]
    arena = any_member.arena
    if start < 0 or end > arena.fill:
        raise ValueError(f"bytes {start} … {end} are not among the {arena.fill} of this turn")
    while start < end:
        length = u32_at(arena.data, start)
        handed += _hand(group, start, length, None, False)
        start += length
    return handed


def _hand(group: Group, start: int, length: int, sender: Outbox | None, is_not_back: bool) -> int:
    """Queue one frame for the next member, unless it has it already; return 1 if it was queued."""
    turn = group.pick(sender)
    outbox = group.members[turn]
    if (
        group.is_plain[turn]
        or (is_not_back and outbox is sender)
        # It is a member of another group that was served first.
        or outbox.ends_at(start + length)
    ):
        return 0
    outbox.push(start, length, group.policies[turn])
    return 1


def _side(subscriber: Subscriber, here: Gathered, far: Gathered) -> Gathered:
    return far if subscriber.outbox.is_distant else here


def _add_subscriber(
    subscriber: Subscriber, known: dict[Outbox, int], answering: dict[Outbox, None]
) -> None:
    # Of several policies, the one that keeps most applies.
    known[subscriber.outbox] = max(subscriber.policy, known.get(subscriber.outbox, 0))
    if not subscriber.is_listener:
        answering[subscriber.outbox] = None
