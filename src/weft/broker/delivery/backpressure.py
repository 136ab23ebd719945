"""Publishers that are held back while a reader of theirs is behind, but reading.

A burst goes into the reader's backlog first. Above its high-water mark the publishers of that
reader are not read from until it is at its low-water mark, or a slice of time is over. Then one
read at least follows, so that what a held connection asks for is answered, before that is decided
again. A link to another gateway is such a reader, too, for those who publish at this gateway.
How long a connection can be held, and can hold others, is bounded by an allowance that time
restores; beyond that, the bound of the backlog applies.

No publisher is held for a reader that stands still or whose policy drops messages, or while the
publisher is behind itself: what it reads may depend on what it writes. Nor is any while the service
drains: what it has yet to say goes before its goodbye.
"""

from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Policy
from weft.broker.service import Peer, Service

# How long a publisher is held at once, at most.
SLICE_NS = 250_000_000
# A reader that takes nothing for this long holds no publisher any more.
STILL_NS = 1_000_000_000
# How long a connection can be held, or hold others, in all; a sixth of the time restores it.
ALLOWANCE_NS = 10_000_000_000
RESTORED_IN = 6

# A group whose members are all owed more than routes.GROUP_HIGH_BYTES is full until one of them is
# owed no more than this.
GROUP_LOW_BYTES = 128 << 10

_STILL = STILL_NS
_GROUP_LOW = GROUP_LOW_BYTES
_SLICE = SLICE_NS
_ALLOWANCE = ALLOWANCE_NS
_RESTORED = RESTORED_IN
_CUT = int(Policy.CUT)


class Allowance:
    """Time that can be spent, and comes back."""

    def __init__(self) -> None:
        self._left_ns = _ALLOWANCE
        self._restored_ns = 0
        self._spent_ns = 0

    def left_ns(self, now_ns: int) -> int:
        """Return how much is left."""
        restored = (now_ns - self._restored_ns) // _RESTORED
        self._left_ns = min(_ALLOWANCE, self._left_ns + restored)
        self._restored_ns = now_ns
        return self._left_ns

    def spend(self, since_ns: int, now_ns: int) -> None:
        """Spend the time since then; what overlaps counts once."""
        self._left_ns -= max(0, now_ns - max(since_ns, self._spent_ns))
        self._spent_ns = now_ns


class Allowances:
    """For how long one connection may be held, and may have others held."""

    def __init__(self) -> None:
        self.held = Allowance()
        self.holding = Allowance()


class Hold:
    """A publisher that is not read from, for the sake of one reader."""

    def __init__(self, publisher: Peer, reader: Outbox, since_ns: int) -> None:
        self.publisher = publisher
        self.reader = reader
        self.since_ns = since_ns


def hold_publisher(peer: Peer) -> None:
    """Hold a peer that has just published, if a reader of it is crowded and reads."""
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
    """Hold a peer whose messages leave by a link that is over its high-water mark, but moves."""
    if _can_be_held(peer) and _may_hold(link, peer):
        _hold(peer, link, link.bounds.low_bytes)


def end_holds(service: Service) -> list[Peer]:
    """Return the publishers to read from again: a reader caught up, or their slice is over."""
    now_ns = service.now_ns
    ended: list[Peer] = []
    kept: list[Hold] = []
    for position in range(len(service.holds)):
        hold: Hold = service.holds[position]
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
    """What a peer has; most never need any."""
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
    service.holds.append(Hold(peer, reader, service.now_ns))


def _plain_reader(peer: Peer) -> Outbox | None:
    """A subscriber for whom a publisher is to be held."""
    route = peer.route
    if not peer.service.budget.crowded:
        return None
    for position in range(len(route.outboxes)):
        outbox: Outbox = route.outboxes[position]
        if outbox.is_crowded and route.policies[position] == _CUT and _may_hold(outbox, peer):
            return outbox
    return None


def _full_group(peer: Peer) -> Outbox | None:
    """A member of a group, of which no member has room, for whom a publisher is to be held."""
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


def _spend(hold: Hold, now_ns: int) -> None:
    """Charge both ends with the time that a hold took."""
    owner: Peer | None = hold.reader.owner
    if owner is not None:
        allowances(owner).holding.spend(hold.since_ns, now_ns)
    allowances(hold.publisher).held.spend(hold.since_ns, now_ns)
