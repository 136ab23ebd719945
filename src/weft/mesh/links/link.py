"""State of one link to another gateway."""

from weft.broker.service import Peer
from weft.mesh.links.handshake import GatewayIntroduction
from weft.mesh.protocol import (
    AdvertWord,
    InterestEntry,
    Known,
    Ping,
    Pong,
    Snapshot,
    Want,
    Word,
    frame_of,
    wanted_bytes,
)

# Backlog limit of a link: above it messages are skipped, then the link is closed.
OUTBOX_BYTES = 16 << 20
# Snapshots are sent while the backlog is below this, so that one whole interest set and control
# messages still fit.
SUPPLY_BYTES = 1 << 20
# Bound on the entries of a whole summary.
SUMMARY_ALL_MAX = 65_536

# The age of a backlog is practically unbounded while it makes progress: its bytes are bounded, and
# heartbeats close links to lost gateways.
OUTBOX_AGE_NS = 600_000_000_000

_RTT_SHARE = 8
# Control messages that overtake queued messages. Others end a stream or count sent frames.
_URGENT = (Ping, Pong, AdvertWord, Want, Snapshot)


class SnapshotParts:
    """Snapshot parts of one interest set that have arrived so far, in order."""

    def __init__(self, first: Snapshot) -> None:
        self.node = first.node
        self.version = first.version
        self.count = 0
        self.wanted: list[InterestEntry] = []
        self.bytes = 0

    def take(self, word: Snapshot) -> bool:
        """Add a part; False if it is not the next one."""
        if (word.node, word.version, word.part) != (self.node, self.version, self.count):
            return False
        self.count += 1
        self.wanted += word.wanted
        self.bytes += sum(map(wanted_bytes, word.wanted))
        return True


class Link:
    """Authenticated connection; it carries messages once both sides are ready.

    `number` is that of the other gateway, `node` its id.
    """

    def __init__(self, peer: Peer, node: bytes, number: int, *, is_dialled: bool) -> None:
        self.peer = peer
        self.node = node
        self.number = number
        self.is_dialled = is_dialled
        # The dialled address; empty if the other side dialled.
        self.address = ""
        # Advertised address and incarnation of the other gateway.
        self.advertised = ""
        self.incarnation = 0
        # Reason for an orderly end.
        self.ending = ""
        # Whether one of both gateways only registered with the other.
        self.is_registration = False
        # Whether the other gateway advertises the number that it authenticated with.
        self.is_named = False
        self.is_ready_said = False
        self.is_ready_heard = False
        self.since_ns = peer.service.now_ns
        # Last unanswered ping, time of its sending, and smoothed round-trip time.
        self.token = 0
        self.pinged_ns = 0
        self.rtt_ns = 0
        # Silence is counted from here: this gateway itself was paused before.
        self.grace_ns = 0
        # Consecutive pings with a different digest.
        self.mismatches = 0
        self.summary_ns = 0
        self.summary: dict[bytes, Known] = {}
        # Time of the last supply of missing adverts, and of the last digest comparison.
        self.supplied_ns = 0
        self.compared_ns = 0
        # Gateways whose snapshots the other side lacks; sent when there is room.
        self.lacking: dict[bytes, None] = {}
        # Snapshot that has not arrived completely; one at a time.
        self.parts: SnapshotParts | None = None

    @property
    def is_ready(self) -> bool:
        """Whether both sides have sent what the other lacked."""
        return self.is_ready_said and self.is_ready_heard and not self.peer.is_over

    @property
    def is_carrying(self) -> bool:
        """Whether messages may use it: it is ready, and its number is confirmed."""
        return self.is_ready and self.is_named

    @property
    def has_room(self) -> bool:
        """Whether a snapshot can be sent."""
        outbox = self.peer.outbox
        return outbox.cost() + outbox.pending < SUPPLY_BYTES and not self.peer.is_over

    def introduce(self, said: GatewayIntroduction) -> None:
        """Note the introduction of the other gateway."""
        self.peer.name = said.name
        self.advertised = said.address
        self.incarnation = said.incarnation

    def say(self, word: Word) -> None:
        """Send a control message to the neighbour; urgent ones overtake queued messages."""
        if isinstance(word, _URGENT):
            self.peer.owe_first(frame_of(word))
        else:
            self.peer.owe(frame_of(word))

    def answered(self, now_ns: int) -> None:
        """Note that the last ping was answered."""
        took_ns = now_ns - self.pinged_ns
        if self.rtt_ns:
            self.rtt_ns += (took_ns - self.rtt_ns) // _RTT_SHARE
        else:
            self.rtt_ns = took_ns
        self.token = 0

    def silent_ns(self, now_ns: int) -> int:
        """Return the time since anything arrived."""
        return now_ns - max(self.peer.heard_ns, self.since_ns, self.grace_ns)

    def unanswered_ns(self, now_ns: int) -> int:
        """Return how long a ping has been unanswered without progress of the backlog."""
        if not self.token:
            return 0
        return now_ns - max(self.pinged_ns, self.grace_ns, self.peer.outbox.moved_ns())


def mesh_links(links: dict[int, Link]) -> list[Link]:
    """Return the open links of the mesh, ready or not."""
    return [link for link in links.values() if not link.is_registration and not link.peer.is_over]
