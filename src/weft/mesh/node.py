"""One gateway of a mesh: its links, membership, routing and message traffic.

Does no I/O: the owner calls tick(), dials the addresses it returns, and reports the results.
"""

from functools import partial

import msgspec

from weft.broker.delivery.memory_budget import Budget
from weft.broker.delivery.policy import UNBOUNDED, Bounds
from weft.broker.replies import end_with
from weft.broker.service import Peer, Service
from weft.errors import BadWord, LinkedToSelf
from weft.mesh.admin.relay import Commanding
from weft.mesh.channels.coordinator import ChannelCoordinator
from weft.mesh.channels.protocol import ChannelWord
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.links.admission import Welcome, let_go
from weft.mesh.links.dial_scheduler import Dialling
from weft.mesh.links.dial_targets import RandomSource, is_address
from weft.mesh.links.handshake import NONCE_BYTES, Admission, Handshake, Introduced, node_id
from weft.mesh.links.heartbeat import Heartbeat
from weft.mesh.links.link import OUTBOX_AGE_NS, Link, mesh_links
from weft.mesh.links.link_events import CLOSING, LinkEvents
from weft.mesh.links.neighbour_selection import spare_links
from weft.mesh.links.pending_link import PendingLink
from weft.mesh.membership.gossip import Gossip
from weft.mesh.membership.members import Member, Members
from weft.mesh.membership.mesh_handle import Mesh
from weft.mesh.membership.own_advert import OwnAdvert
from weft.mesh.membership.registry import RegistrationTable
from weft.mesh.protocol import (
    CommandWord,
    Goodbye,
    Obeyed,
    Ping,
    Pong,
    Probe,
    Redirect,
    RegistrationConfirmed,
    Traced,
    Word,
    decode,
)
from weft.mesh.routing.reachability import Survey
from weft.mesh.settings import Rules
from weft.mesh.trace.tracing import Tracing
from weft.wire.frames import Frame

# Least interval between adverts of this gateway: a fixed part plus one per known gateway.
ADVERT_NS = 20_000_000
ADVERT_EACH_NS = 1_000_000
# Least interval between route computations, per known gateway: with a thousand one takes ms.
PLOT_EACH_NS = 100_000
LOOK_NS = 100_000_000
SWEEP_NS = 1_000_000_000
# Longest wait for the acknowledgement of sent frames before leaving.
LEAVE_NS = 2_000_000_000
# Neighbours that are asked to dial a lost gateway.
PROBES = 3
# Least interval between adverts that refute another gateway with a copy of this one's key.
REFUTE_NS = 1_000_000_000

_S = 1_000_000_000


class MeshNode:
    """One gateway of a mesh, for one service."""

    def __init__(
        self,
        service: Service,
        admission: Admission,
        address: str,
        rules: Rules,
        chance: RandomSource,
    ) -> None:
        self._service = service
        self._admission = admission
        self._rules = rules
        self._chance = chance
        # Not the memory budget of the clients: their backlogs must not break the links.
        budget = Budget(UNBOUNDED, service.budget)
        self._bounds = Bounds(rules.outbox_bytes, OUTBOX_AGE_NS, service.dropped, budget)
        self.traffic = Traffic(service, is_relay=rules.is_relay)
        self._own = OwnAdvert(service, admission, address, rules)
        self.members = Members(self._own.member)
        self.links: dict[int, Link] = {}  # by peer number
        self.events = LinkEvents()
        self._gossip = Gossip(service, admission, self.traffic, self.members, self.links)
        self._gossip.copies.on_found = partial(self.events.warn, "CopiedKey")
        self.dialling = Dialling(self.members, address, rules.max_links, chance)
        for join in rules.join:
            self.dialling.targets.fix(join)
        for registry in rules.registries:
            self.dialling.targets.fix(registry, is_registry=True)
        self._welcome = Welcome(self.members, self.links, rules.max_links, chance)
        self.registry = RegistrationTable(self.links, self.members)
        self._heartbeat = Heartbeat(service, self.links, self.members)
        self.survey = Survey(self.members, self.traffic, is_relay=rules.is_relay)
        self.tracing = Tracing(service, self.traffic, self.links)
        # Validates and executes admin commands; None: all are rejected.
        self.commanding: Commanding | None = None
        self.channels: ChannelCoordinator | None = None
        self._is_changed = False
        self._advert_ns = self._look_ns = self._sweep_ns = self._left_ns = self._refuted_ns = 0
        # Earliest time of the next route computation.
        self._plot_ns = 0
        self.is_gone = False
        service.on_link = self._greet
        self.traffic.on_near = self._hear_near
        self.traffic.on_word = self._hear_far
        self.traffic.on_trace = self.tracing.hear
        self.traffic.on_part = self._part

    # Called by the owner.

    def tick(self) -> list[str]:
        """Run everything that is due; return the addresses to dial now."""
        now_ns = self._service.now_ns
        if self.is_gone:
            return []
        self._advertise_if_due(now_ns)
        self._gossip.press()
        if self._gossip.is_moved and now_ns >= self._plot_ns:
            self._move()
        self._heartbeat.tick()
        self.traffic.tick()
        self.tracing.tick()
        if self.channels is not None:
            self.channels.tick()
        if now_ns - self._sweep_ns >= SWEEP_NS:
            self._sweep_ns = now_ns
            self._sweep(now_ns)
        if self._left_ns:
            self._go(now_ns)
            return []
        if now_ns - self._look_ns < LOOK_NS:
            return []
        self._look_ns = now_ns
        self._prune(now_ns)
        linked = {link.node for link in mesh_links(self.links)}
        return self.dialling.due(linked, self.registry.registered_with, now_ns)

    def dialled(self, address: str, peer: Peer) -> None:
        """Start the handshake on a connection that this gateway dialled."""
        is_registry = self.dialling.targets.at(address).is_registry
        is_registering = is_registry and address not in self.registry.registered_with
        handshake = self._handshake(is_dialler=True, is_registering=is_registering)
        newcomer = PendingLink(self, peer, handshake, address)
        newcomer.is_registering = is_registering
        peer.carrier = newcomer
        peer.owe(handshake.begin())

    def unreachable(self, address: str, why: str) -> None:
        """Record that an address could not be dialled."""
        targets = self.dialling.targets
        targets.failed(targets.at(address), why, self._service.now_ns)

    def leave(self) -> None:
        """Begin to leave: acknowledge everything received, then announce the departure."""
        if not self._left_ns:
            self._left_ns = self._service.now_ns
            self.traffic.leave()

    def drain(self) -> None:
        """Advertise that new clients should connect elsewhere; traffic continues."""
        self._own.is_draining = True
        self._is_changed = True

    def obey(self, commanding: Commanding) -> None:
        """Enable admin commands: execute those of the mesh and relay local ones."""
        commanding.mesh = self._mesh()
        self.commanding = commanding

    def share(self, channels: ChannelCoordinator) -> None:
        """Connect the channels of this gateway with those of the mesh."""
        channels.voters.own = self.members.own.node
        channels.mesh = self._mesh()
        self.channels = channels

    def limit_links(self, count: int) -> None:
        """Limit the number of links from now on; links above it are closed."""
        self._rules = msgspec.structs.replace(self._rules, max_links=count)
        self._own.max_links = self.dialling.max_links = self._welcome.max_links = count
        self._is_changed = True

    def _mesh(self) -> Mesh:
        return Mesh(self.members, self.traffic.counts, self.traffic.send_word)

    # Accepted and dialled connections.

    def met(self, newcomer: PendingLink, other: Introduced) -> None:
        """Turn an authenticated connection into a link, unless it is refused."""
        peer, number = newcomer.peer, other.introduction.number
        link = Link(peer, node_id(other.key), number, is_dialled=bool(newcomer.address))
        link.address = newcomer.address
        link.introduce(other.introduction)
        refusal = self._gossip.copies.refusal(link)
        if refusal is not None:
            end_with(peer, refusal)
            return
        link.is_registration = other.introduction.is_registering
        if link.address:
            self.dialling.targets.reached(self.dialling.targets.at(link.address), link.node)
            link.is_registration = newcomer.is_registering
        peer.is_greeted = True
        peer.run = self._service.link_run
        peer.outbox.bounds = self._bounds
        peer.carrier = self.traffic.carrier(number, peer)
        self.links[peer.number] = link
        if link.is_registration:
            self.dialling.settle([link])
            self.registry.begin(link, other.introduction.address)
        elif self._welcome.admit(link):
            self._gossip.begin(link)

    def missed(self, newcomer: PendingLink, problem: str) -> None:
        """Record a failed handshake or a refused link."""
        error = newcomer.peer.error
        is_known = False
        if newcomer.address:
            # Problems of configured addresses are logged elsewhere.
            now_ns = self._service.now_ns
            is_known = self.dialling.missed(newcomer.address, error, problem, now_ns).is_fixed
        if not isinstance(error, LinkedToSelf) and problem != CLOSING:
            text = f"not linked with a gateway at {newcomer.place}: {problem}"
            self.events.turned_away(newcomer.peer, text, is_logged=not is_known)

    def _greet(self, peer: Peer, frame: Frame) -> None:
        """Start the handshake on a connection that another gateway dialled."""
        newcomer = PendingLink(self, peer, self._handshake(is_dialler=False))
        peer.carrier = newcomer
        newcomer.hear(frame)

    def _handshake(self, *, is_dialler: bool, is_registering: bool = False) -> Handshake:
        count = len(mesh_links(self.links))
        introduction = self._own.introduction(count, is_registering=is_registering)
        nonce = self._chance.randbytes(NONCE_BYTES)
        name = self._service.name
        return Handshake(self._admission, name, introduction, nonce, is_dialler=is_dialler)

    def _part(self, peer: Peer) -> None:
        """Remove a closed link."""
        link = self.links.pop(peer.number, None)
        if link is None:
            return
        self.events.ended(link)
        if link.address:
            self.dialling.parted(link, self._service.now_ns)
        if link.is_registration:
            self.registry.end(link)
            return
        self._gossip.end(link)
        self._gossip.is_moved = True
        # Reroute at once: this link may have carried traffic.
        self._plot_ns = 0

    # Control messages.

    def _hear_near(self, peer: Peer, body: bytes) -> None:
        link = self.links.get(peer.number)
        word = decode(body)
        if link is None:
            return
        if link.is_registration and not isinstance(
            word, Ping | Pong | RegistrationConfirmed | Goodbye
        ):
            raise BadWord(f"{type(word).__name__} is not allowed on a registration")
        if not self._gossip.hear(link, word):
            self._hear(link, word)

    def _hear(self, link: Link, word: Word) -> None:
        now_ns = self._service.now_ns
        match word:
            case Ping():
                link.say(Pong(word.token))
                if link.is_ready:
                    self._gossip.hear_digest(link, word.digest)
            case Pong(token):
                self._heartbeat.hear(link, token)
            case Redirect(addresses) | RegistrationConfirmed(addresses) if link.is_dialled:
                for address in addresses:
                    if is_address(address):
                        self.dialling.targets.offer(address, now_ns)
                    else:
                        self.traffic.counts.refuse("BadAddress", 1)
            case Goodbye(is_leaving):
                link.ending = CLOSING if is_leaving else "it is at its limit of links"
                if not is_leaving:
                    self.dialling.let_go(link, now_ns)
                link.peer.end(None)
            case _:
                raise BadWord(f"{type(word).__name__} is not a message of a link")

    def _hear_far(self, origin: int, word: Word) -> None:
        if isinstance(word, Traced):
            self.tracing.hear_traced(origin, word)
            return
        if isinstance(word, CommandWord | Obeyed):
            self._hear_command(origin, word)
            return
        if isinstance(word, ChannelWord):
            if self.channels is not None:
                self.channels.hear(origin, word)
            return
        if not isinstance(word, Probe):
            raise BadWord(f"{type(word).__name__} cannot be forwarded")
        member = self.members.get(word.node)
        # Only the address in its own advert: a probe cannot direct this gateway elsewhere.
        if member is not None and member.advert.address == word.address:
            self.dialling.look_for(member, self._service.now_ns)

    def _hear_command(self, origin: int, word: CommandWord | Obeyed) -> None:
        if self.commanding is None:
            self.traffic.counts.refuse("NoCommands", 1)
        elif isinstance(word, CommandWord):
            self.commanding.hear(origin, word)
        else:
            self.commanding.hear_obeyed(origin, word)

    # Timers.

    def _advertise_if_due(self, now_ns: int) -> None:
        if not (self._is_changed or self._claimed(now_ns) or self._service.router.changes):
            return
        if now_ns - self._advert_ns >= ADVERT_NS + ADVERT_EACH_NS * len(self.members):
            self._advert_ns = now_ns
            self._advertise()

    def _advertise(self, *, is_leaving: bool = False) -> None:
        """Flood an advert of this gateway if anything changed."""
        self._is_changed = False
        claimed = self._claimed(self._service.now_ns)
        if claimed:
            self._refuted_ns = self._service.now_ns
        said = self._own.next(self.traffic, self.links, claimed, is_leaving=is_leaving)
        if said is not None:
            self._gossip.advertise(*said)

    def _claimed(self, now_ns: int) -> int:
        """Return a claimed incarnation, not below the own one, if now to be refuted; or 0."""
        claimed = self._gossip.claimed
        is_due = now_ns - self._refuted_ns >= REFUTE_NS
        return claimed if is_due and claimed >= self.members.own.advert.incarnation else 0

    def _move(self) -> None:
        """Recompute the routes: links opened or closed, here or elsewhere."""
        self._gossip.is_moved = False
        self._plot_ns = self._service.now_ns + PLOT_EACH_NS * len(self.members)
        self._is_changed = True
        self.dialling.settle(link for link in mesh_links(self.links) if link.is_ready)
        ready = {link.number: link.peer for link in mesh_links(self.links) if link.is_carrying}
        for member in self.survey.plot(ready, self._service.now_ns):
            self._look_for(member)

    def _look_for(self, member: Member) -> None:
        """Ask random neighbours to dial a gateway that was lost."""
        near = [link for link in mesh_links(self.links) if link.is_carrying]
        for _ in range(min(PROBES, len(near))):
            link = near.pop(self._chance.randrange(len(near)))
            self.traffic.send_word(link.number, Probe(member.node, member.advert.address))

    def _sweep(self, now_ns: int) -> None:
        if self._own.load.look(self._service):
            self._is_changed = True
        self._gossip.interests.tick()
        self.dialling.targets.expire(now_ns)
        self.registry.tick()
        if self.survey.sweep(now_ns):
            self._gossip.is_moved = True
        forget_ns = now_ns - int(self._rules.forget_s * _S)
        for member in self.members.others():
            if 0 < member.lost_ns < forget_ns:
                self._gossip.forget(member)
                # It may return after all others have forgotten it.
                if is_address(member.advert.address) and not member.advert.is_leaving:
                    self.dialling.targets.remember(member.advert.address, now_ns)
                self._gossip.is_moved = True

    def _prune(self, now_ns: int) -> None:
        """Close one link above the limit that no gateway is reached by alone."""
        linked = {link.node: link for link in mesh_links(self.links)}
        members = self.members
        for node in spare_links(members.own.node, members.ring, linked, self._rules.max_links):
            link = linked[node]
            if link.is_carrying and self.survey.is_reached_without(link.number):
                self.dialling.let_go(link, now_ns)
                let_go(link)
                return

    def _go(self, now_ns: int) -> None:
        """Announce the departure and close all links, once traffic is acknowledged or times out."""
        if not self.traffic.is_quiet and now_ns - self._left_ns < LEAVE_NS:
            return
        self._advertise(is_leaving=True)
        for link in list(self.links.values()):
            link.ending = "this gateway is closing down"
            link.say(Goodbye(is_leaving=True))
            link.peer.end(None)
        self.is_gone = True
