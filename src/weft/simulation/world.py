"""State of one run: clock, network, gateways, and the recorded history."""

from random import Random
from struct import Struct

from weft.mesh.routing.forward_header import AGAIN, HOPS_AT, WORD
from weft.mesh.settings import Rules
from weft.simulation.clients import Prober
from weft.simulation.clock import MS, SECOND, Clock
from weft.simulation.gateway import SimGateway
from weft.simulation.history import History, LinkRecord, Round
from weft.simulation.network import Network
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, Kind

PROBE_NS = 250 * MS
LOOK_NS = 100 * MS

_FORWARD = int(Kind.FORWARD)
_MESSAGE = int(Kind.MESSAGE)
_SIZE = Struct("<I")
_ENTRY = Struct("<IHHQ")


class World:
    """One run; `trace` collects a readable log, if given."""

    def __init__(self, seed: str, trace: list[str] | None = None) -> None:
        self.clock = Clock()
        self.network = Network(self.clock, Random(f"{seed}/network"))
        self.gateways: list[SimGateway] = []
        self.history = History()
        self.trace = trace
        # Traffic on links: messages, and everything else, in bytes.
        self.message_bytes = 0
        self.other_bytes = 0
        self.message_frames = 0
        self._probers: dict[int, Prober] = {}
        self._is_calm = False

    # Setup.

    def add(self, rules: Rules) -> SimGateway:
        """Add a machine."""
        gateway = SimGateway(self.network, len(self.gateways) + 1, rules, self)
        self.gateways.append(gateway)
        return gateway

    @property
    def up(self) -> list[SimGateway]:
        """The running gateways."""
        return [gateway for gateway in self.gateways if gateway.is_up]

    def settle_prober(self, gateway: SimGateway) -> None:
        """Connect a prober to a gateway that started."""
        self._probers[gateway.place] = Prober(self, gateway, self._probed)

    # Convergence.

    def begin_calm(self, patience_ns: int) -> None:
        """Start measuring convergence after the last fault."""
        self.tell("the last fault is over")
        self.history.calm_ns = self.clock.now_ns
        self.history.patience_ns = patience_ns
        self.history.agreed_ns = -1
        self._is_calm = True
        self._probe()
        self._look()

    @property
    def is_converged(self) -> bool:
        """Whether all gateways agree and a full round of probes has arrived."""
        history = self.history
        return history.agreed_ns >= 0 and any(
            len(each.heard_ns) == each.expected for each in history.rounds
        )

    @property
    def is_quiet(self) -> bool:
        """Whether every sent message has arrived or is known to be lost."""
        # A request may be pending at its own gateway, where no stream shows it.
        is_settled = all(each.is_over for each in self.history.asked)
        return is_settled and all(gateway.fabric.traffic.is_quiet for gateway in self.up)

    @property
    def is_agreed(self) -> bool:
        """Whether all gateways know the same of each other and can reach each other."""
        up = self.up
        if len({gateway.fabric.members.digest() for gateway in up}) > 1:
            return False
        for gateway in up:
            there = gateway.fabric.members.there()
            if len(there) != len(up) - 1 or not all(member.is_current for member in there):
                return False
        return True

    def _look(self) -> None:
        history = self.history
        if not self.is_agreed:
            history.agreed_ns = -1
        elif history.agreed_ns < 0:
            history.agreed_ns = self.clock.now_ns
            self.tell("all gateways know the same")
        if not self.is_converged:
            self.clock.after(LOOK_NS, self._look)

    def _probe(self) -> None:
        history = self.history
        if self.is_converged:
            return
        up = self.up
        history.rounds.append(Round(self.clock.now_ns, len(up) ** 2, []))
        counter = len(history.rounds)
        for gateway in up:
            self._probers[gateway.place].publish(
                f"probe.{gateway.place}", range(counter, counter + 1)
            )
        self.clock.after(PROBE_NS, self._probe)

    def _probed(self, counter: int) -> None:
        self.history.rounds[counter - 1].heard_ns.append(self.clock.now_ns)

    # Recording.

    def tell(self, text: str) -> None:
        """Add a line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{self.clock.now_ns / SECOND:9.4f}  {text}")

    def began(self, number: int, before: int) -> None:
        """Record the start of a gateway."""
        self.history.lives[number] = before

    def saw(self, data: bytes) -> None:
        """Record the messages sent on a link."""
        at = 0
        while at < len(data):
            size = _SIZE.unpack_from(data, at)[0]
            kind = data[at + 4]
            if kind == _FORWARD and not data[at + 5] & WORD:
                self._note(data, at, at + size)
            elif kind == _MESSAGE:
                self.message_frames += 1
                self.message_bytes += size
            else:
                self.other_bytes += size
            at += size

    def _note(self, data: bytes, at: int, end: int) -> None:
        """Record the path of the messages behind a forwarding header."""
        self.message_bytes += end - at
        hops_at = at + HEADER_BYTES + data[at + 7]
        entries_at = hops_at + 4 * data[at + HOPS_AT]
        path = [u32_at(data, hop) for hop in range(hops_at, entries_at, 4)]
        path.append(u32_at(data, entries_at))
        way = tuple(path)
        is_again = bool(data[at + 5] & AGAIN)
        passages = self.history.passages
        for number, _, is_for, first in _ENTRY.iter_unpack(data[entries_at:end]):
            if is_for:
                passages.append(LinkRecord(way[0], number, first, way, is_again))
        if self.trace is not None:
            self.tell(f"link {way[-2]} > {way[-1]}: {_told(passages[-1])}")


def _told(passage: LinkRecord) -> str:
    again = ", again" if passage.is_again else ""
    return f"number {passage.number} of {passage.origin} for {passage.destination}{again}"
