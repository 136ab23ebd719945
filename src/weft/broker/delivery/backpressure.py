"""Pause reads from publishers while one of their subscribers is above its high-water mark.

A burst first fills the subscriber's backlog. Above the high-water mark its publishers are not read
from until it reaches its low-water mark, but at most for 250 ms. At least one read follows before
the next pause, so that other requests of a paused connection are answered. A link to a remote
gateway counts as a subscriber of the publishers at this gateway. How long a connection can be
paused, and can have others paused, is bounded by an allowance of 10 s that refills with time; when
it is used up, the bounds of the backlog apply.

No publisher is paused for a subscriber that is stalled or whose policy drops messages, or while the
publisher has a backlog itself: its reads may depend on its writes. Nor is any while the service
drains: its last messages must arrive before its GOODBYE.
"""

from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Policy
from weft.broker.service import Peer, Service

# Maximum time of one pause.
SLICE_NS = 250_000_000
# A subscriber that takes nothing for this long pauses no publisher any more.
STILL_NS = 1_000_000_000
# Total time that a connection can be paused, or pause others; refills at a sixth of real time.
ALLOWANCE_NS = 10_000_000_000
RESTORED_IN = 6

# A group whose members are all above routes.GROUP_HIGH_BYTES is full until one of them is down to
# this.
GROUP_LOW_BYTES = 128 << 10

_STILL = STILL_NS
_GROUP_LOW = GROUP_LOW_BYTES
_SLICE = SLICE_NS
_ALLOWANCE = ALLOWANCE_NS
_RESTORED = RESTORED_IN
_CUT = int(Policy.CUT)


class Allowance:
    """Time that can be spent, and refills."""

    def __init__(self) -> None:
        self._left_ns = _ALLOWANCE
        self._restored_ns = 0
        self._spent_ns = 0

    def left_ns(self, now_ns: int) -> int:
        """Return the time left."""
        restored = (now_ns - self._restored_ns) // _RESTORED
        self._left_ns = min(_ALLOWANCE, self._left_ns + restored)
        self._restored_ns = now_ns
        return self._left_ns

    def spend(self, since_ns: int, now_ns: int) -> None:
        """Spend the time since `since_ns`; overlapping intervals count once."""
        self._left_ns -= max(0, now_ns - max(since_ns, self._spent_ns))
        self._spent_ns = now_ns


class Allowances:
    """Allowances of one connection: for being paused, and for having others paused."""

    def __init__(self) -> None:
        self.held = Allowance()
        self.holding = Allowance()


class PublisherHold:
    """Publisher that is paused for one subscriber."""

    def __init__(self, publisher: Peer, reader: Outbox, since_ns: int) -> None:
        self.publisher = publisher
        self.reader = reader
        self.since_ns = since_ns


def hold_publisher(peer: Peer) -> None:
    """Pause a peer that has just published, if a subscriber is crowded and not stalled."""
    if not _can_be_held(peer):
        return
    reader = _plain_reader(peer)
    if reader is not None:
        _hold(peer, reader, reader.bounds.low_bytes)
        return
    reader = _full_group(peer)
    if reader is not None:
        _hold(peer, reader, min(reader.bounds.low_bytes, _GROUP_LOW))


def hold_for_link(peer: Peer, link: Outbox) -> None:
    """Pause a peer whose messages leave by a link above its high-water mark that is not stalled."""
    if _can_be_held(peer) and _may_hold(link, peer):
        _hold(peer, link, link.bounds.low_bytes)


def end_holds(service: Service) -> list[Peer]:
    """End the pauses whose subscriber caught up or whose time is over; return the publishers."""
    now_ns = service.now_ns
    ended: list[Peer] = []
    kept: list[PublisherHold] = []
    for position in range(len(service.holds)):
        hold: PublisherHold = service.holds[position]
        is_over = service.is_draining or now_ns - hold.since_ns >= _SLICE
        if not hold.reader.is_eased() and not is_over:
            kept.append(hold)
            continue
        _spend(hold, now_ns)
        ended.append(hold.publisher)
    service.holds = kept
    service.budget.is_eased = False
    return ended


def allowances(peer: Peer) -> Allowances:
    """The allowances of a peer, created on first use: most peers need none."""
    own: Allowances | None = peer.allowances
    if own is None:
        own = Allowances()
        peer.allowances = own
    return own


def _can_be_held(peer: Peer) -> bool:
    service = peer.service
    if peer.is_paused or peer.outbox.is_behind() or service.is_draining:
        return False
    return allowances(peer).held.left_ns(service.now_ns) > 0


def _hold(peer: Peer, reader: Outbox, low_bytes: int) -> None:
    service = peer.service
    reader.ask_for_ease(low_bytes)
    peer.is_paused = True
    service.holds.append(PublisherHold(peer, reader, service.now_ns))


def _plain_reader(peer: Peer) -> Outbox | None:
    """A crowded subscriber for which a publisher is to be paused."""
    route = peer.route
    if not peer.service.budget.crowded:
        return None
    for position in range(len(route.outboxes)):
        outbox: Outbox = route.outboxes[position]
        if outbox.is_crowded and route.policies[position] == _CUT and _may_hold(outbox, peer):
            return outbox
    return None


def _full_group(peer: Peer) -> Outbox | None:
    """A member of a full group for which a publisher is to be paused."""
    for group in peer.route.groups:
        if group.is_full:
            for outbox in group.members:
                if _may_hold(outbox, peer):
                    return outbox
    return None


def _may_hold(reader: Outbox, publisher: Peer) -> bool:
    owner: Peer | None = reader.owner
    now_ns = publisher.service.now_ns
    if owner is None or owner is publisher or reader.is_distant:
        return False
    if not reader.is_behind() or reader.stands_still(now_ns - _STILL):
        return False
    return allowances(owner).holding.left_ns(now_ns) > 0


def _spend(hold: PublisherHold, now_ns: int) -> None:
    """Charge both connections with the time of a pause."""
    owner: Peer | None = hold.reader.owner
    if owner is not None:
        allowances(owner).holding.spend(hold.since_ns, now_ns)
    allowances(hold.publisher).held.spend(hold.since_ns, now_ns)
