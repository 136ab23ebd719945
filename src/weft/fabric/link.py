"""One link to another gateway, as this side of it stands."""

from weft.core.service import Peer
from weft.fabric.words import Known, Wanted, Word, frame_of

# What may wait to be sent by a link before messages, and then the link, are given up.
OUTBOX_BYTES = 16 << 20
# What the other side may say that it knows, before it is too much.
SUMMARY_ALL_MAX = 65_536

_RTT_SHARE = 8


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
        # Another gateway that registered here, or one that this has registered with.
        self.is_registration = False
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
        # Parts of what gateways want, by the gateway, while not all are there.
        self.snapshots: dict[bytes, tuple[int, list[Wanted]]] = {}

    @property
    def is_ready(self) -> bool:
        """Say if it may carry messages."""
        return self.is_ready_said and self.is_ready_heard and not self.peer.is_over

    def say(self, word: Word) -> None:
        """Say a word to the gateway at the other end."""
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
        """For how long a ping has not been answered."""
        return now_ns - max(self.pinged_ns, self.grace_ns) if self.token else 0


def mesh_links(links: dict[int, Link]) -> list[Link]:
    """Those that are part of the mesh, ready or not."""
    return [link for link in links.values() if not link.is_registration and not link.peer.is_over]
