"""One link to another gateway, as this side of it stands."""

from weft.broker.service import Peer
from weft.mesh.links.handshake import Introduction
from weft.mesh.protocol import (
    AdvertWord,
    Known,
    Ping,
    Pong,
    Snapshot,
    Want,
    Wanted,
    Word,
    frame_of,
    wanted_bytes,
)

# What may wait to be sent by a link before messages, and then the link, are given up.
OUTBOX_BYTES = 16 << 20
# What the other side lacks is sent while no more than this waits: what one gateway wants fits in
# beside it, and so does what keeps the mesh together.
SUPPLY_BYTES = 1 << 20
# What the other side may say that it knows, before it is too much.
SUMMARY_ALL_MAX = 65_536

# A link that takes some of its backlog is kept: how long frames wait there has hardly a bound of
# its own, as their bytes have one, and heartbeats end links to gateways that are gone.
OUTBOX_AGE_NS = 600_000_000_000

_RTT_SHARE = 8
# Words that go before messages that wait. Others end something, or count what was sent before.
_URGENT = (Ping, Pong, AdvertWord, Want, Snapshot)


class Parts:
    """Of what a gateway wants, the parts that have come so far, one after the other."""

    def __init__(self, first: Snapshot) -> None:
        self.node = first.node
        self.version = first.version
        self.count = 0
        self.wanted: list[Wanted] = []
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
    """A connection that was greeted; it carries messages once both sides said that they are ready.

    `number` is that of the other gateway, `node` its id.
    """

    def __init__(self, peer: Peer, node: bytes, number: int, *, is_dialled: bool) -> None:
        self.peer = peer
        self.node = node
        self.number = number
        self.is_dialled = is_dialled
        # The address that was dialled, if it was from here.
        self.address = ""
        # Where its gateway says that it can be dialled, and when it began.
        self.advertised = ""
        self.incarnation = 0
        # Why it ends, where no error says so.
        self.ending = ""
        # Another gateway that registered here, or one that this has registered with.
        self.is_registration = False
        # Its gateway has advertised itself with the number that it gave when it was greeted.
        self.is_named = False
        self.is_ready_said = False
        self.is_ready_heard = False
        self.since_ns = peer.service.now_ns
        # The last ping that was not answered yet, and when it was sent; how long answers take.
        self.token = 0
        self.pinged_ns = 0
        self.rtt_ns = 0
        # Before this, silence does not count: this gateway itself stood still.
        self.grace_ns = 0
        # How often in a row the other side knew something else than this one.
        self.mismatches = 0
        self.summary_ns = 0
        self.summary: dict[bytes, Known] = {}
        # When the other side was last sent what it lacked; and when its digest was looked at.
        self.supplied_ns = 0
        self.compared_ns = 0
        # Gateways of which the other side lacks what they want: sent when there is room.
        self.lacking: dict[bytes, None] = {}
        # What a gateway wants, while not all of it is there: one comes after the other.
        self.parts: Parts | None = None

    @property
    def is_ready(self) -> bool:
        """Say if both sides know what the other did."""
        return self.is_ready_said and self.is_ready_heard and not self.peer.is_over

    @property
    def is_carrying(self) -> bool:
        """Say if messages may go by it: it is ready, and leads to whom it seems to."""
        return self.is_ready and self.is_named

    @property
    def has_room(self) -> bool:
        """Say if the other side can be sent what it lacks."""
        outbox = self.peer.outbox
        return outbox.cost() + outbox.pending < SUPPLY_BYTES and not self.peer.is_over

    def introduce(self, said: Introduction) -> None:
        """Note what the other gateway said of itself in the handshake."""
        self.peer.name = said.name
        self.advertised = said.address
        self.incarnation = said.incarnation

    def say(self, word: Word) -> None:
        """Say a word to the gateway at the other end, before messages that wait if it may be."""
        if isinstance(word, _URGENT):
            self.peer.owe_first(frame_of(word))
        else:
            self.peer.owe(frame_of(word))

    def answered(self, now_ns: int) -> None:
        """The last ping was answered."""
        took_ns = now_ns - self.pinged_ns
        if self.rtt_ns:
            self.rtt_ns += (took_ns - self.rtt_ns) // _RTT_SHARE
        else:
            self.rtt_ns = took_ns
        self.token = 0

    def silent_ns(self, now_ns: int) -> int:
        """For how long the other side has said nothing."""
        return now_ns - max(self.peer.heard_ns, self.since_ns, self.grace_ns)

    def unanswered_ns(self, now_ns: int) -> int:
        """For how long a ping has not been answered and nothing of a backlog was taken."""
        if not self.token:
            return 0
        return now_ns - max(self.pinged_ns, self.grace_ns, self.peer.outbox.moved_ns())


def mesh_links(links: dict[int, Link]) -> list[Link]:
    """Those that are part of the mesh, ready or not."""
    return [link for link in links.values() if not link.is_registration and not link.peer.is_over]
