"""One gateway's place in the mesh: with whom it is linked, what all know, and how messages go.

Nothing here waits or connects: whoever runs it tells the time by tick(), dials what that returns,
and says how it went.
"""

from functools import partial

import msgspec

from weft.broker.delivery.memory_budget import Budget
from weft.broker.delivery.policy import UNBOUNDED, Bounds
from weft.broker.replies import end_with
from weft.broker.service import Peer, Service
from weft.errors import BadWord, LinkedToSelf
from weft.mesh.admin.relay import Commanding
from weft.mesh.channels.coordinator import Channels
from weft.mesh.channels.protocol import ChannelWord
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.links.admission import Welcome, let_go
from weft.mesh.links.dial_scheduler import Dialling
from weft.mesh.links.dial_targets import Chance, is_address
from weft.mesh.links.handshake import NONCE_BYTES, Admission, Handshake, Introduced, node_id
from weft.mesh.links.heartbeat import Heartbeat
from weft.mesh.links.link import OUTBOX_AGE_NS, Link, mesh_links
from weft.mesh.links.link_events import CLOSING, LinkEvents
from weft.mesh.links.neighbour_selection import spare_links
from weft.mesh.links.pending_link import Newcomer
from weft.mesh.membership.gossip import Gossip
from weft.mesh.membership.members import Member, Members
from weft.mesh.membership.mesh_handle import Mesh
from weft.mesh.membership.own_advert import OwnAdvert
from weft.mesh.membership.registry import Registry
from weft.mesh.protocol import (
    CommandWord,
    Goodbye,
    Obeyed,
    Ping,
    Pong,
    Probe,
    Redirect,
    Registered,
    Traced,
    Word,
    decode,
)
from weft.mesh.routing.reachability import Survey
from weft.mesh.settings import Rules
from weft.mesh.trace.tracing import Tracing
from weft.wire.frames import Frame

# News of this gateway go out at most so often, and less often the more there are to hear them.
ADVERT_NS = 20_000_000
ADVERT_EACH_NS = 1_000_000
# Ways are worked out anew at most so often for each gateway that is known: with a thousand that
# takes milliseconds, and while a mesh comes together there are news in each of them.
PLOT_EACH_NS = 100_000
LOOK_NS = 100_000_000
SWEEP_NS = 1_000_000_000
# A gateway that goes waits so long for the others to have everything.
LEAVE_NS = 2_000_000_000
# Of those that are near, so many are asked to look for one that was lost.
PROBES = 3
# Whoever has the key of this gateway, too, is not answered more often than this.
REFUTE_NS = 1_000_000_000

_S = 1_000_000_000


class Fabric:
    """One gateway of a mesh, for one service."""

    def __init__(
        self,
        service: Service,
        admission: Admission,
        address: str,
        rules: Rules,
        chance: Chance,
    ) -> None:
        self._service = service
        self._admission = admission
        self._rules = rules
        self._chance = chance
        # Not the budget of the clients: however much they are owed, the mesh is kept together.
        budget = Budget(UNBOUNDED, service.budget)
        self._bounds = Bounds(rules.outbox_bytes, OUTBOX_AGE_NS, service.dropped, budget)
        self.traffic = Traffic(service, is_relay=rules.is_relay)
        self._own = OwnAdvert(service, admission, address, rules)
        self.members = Members(self._own.member)
        # By the numbers of their peers.
        self.links: dict[int, Link] = {}
        self.events = LinkEvents()
        self._gossip = Gossip(service, admission, self.traffic, self.members, self.links)
        self._gossip.copies.on_found = partial(self.events.warn, "CopiedKey")
        self.dialling = Dialling(self.members, address, rules.max_links, chance)
        for join in rules.join:
            self.dialling.targets.fix(join)
        for registry in rules.registries:
            self.dialling.targets.fix(registry, is_registry=True)
        self._welcome = Welcome(self.members, self.links, rules.max_links, chance)
        self.registry = Registry(self.links, self.members)
        self._heartbeat = Heartbeat(service, self.links, self.members)
        self.survey = Survey(self.members, self.traffic, is_relay=rules.is_relay)
        self.tracing = Tracing(service, self.traffic, self.links)
        # Whoever judges what administrators say; None: nobody does, and nothing is obeyed.
        self.commanding: Commanding | None = None
        self.channels: Channels | None = None
        self._is_changed = False
        self._advert_ns = self._look_ns = self._sweep_ns = self._left_ns = self._refuted_ns = 0
        # When ways may be worked out anew.
        self._plot_ns = 0
        self.is_gone = False
        service.on_link = self._greet
        self.traffic.on_near = self._hear_near
        self.traffic.on_word = self._hear_far
        self.traffic.on_trace = self.tracing.hear
        self.traffic.on_part = self._part

    # What whoever runs it says.

    def tick(self) -> list[str]:
        """See to everything that time brings; the addresses that are to be dialled now."""
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
        """An address was reached: whoever is there is greeted."""
        is_registry = self.dialling.targets.at(address).is_registry
        is_registering = is_registry and address not in self.registry.registered_with
        handshake = self._handshake(is_dialler=True, is_registering=is_registering)
        newcomer = Newcomer(self, peer, handshake, address)
        newcomer.is_registering = is_registering
        peer.carrier = newcomer
        peer.owe(handshake.begin())

    def unreachable(self, address: str, why: str) -> None:
        """An address was not reached."""
        targets = self.dialling.targets
        targets.failed(targets.at(address), why, self._service.now_ns)

    def leave(self) -> None:
        """Go in order: everyone learns what was the last, and that this gateway is no more."""
        if not self._left_ns:
            self._left_ns = self._service.now_ns
            self.traffic.leave()

    def drain(self) -> None:
        """Have everyone told that newcomers should go elsewhere; messages go on."""
        self._own.is_draining = True
        self._is_changed = True

    def obey(self, commanding: Commanding) -> None:
        """Have commands of administrators heard, and those that are given here passed on."""
        commanding.mesh = self._mesh()
        self.commanding = commanding

    def share(self, channels: Channels) -> None:
        """Have the channels of this gateway be those of the mesh."""
        channels.voters.own = self.members.own.node
        channels.mesh = self._mesh()
        self.channels = channels

    def limit_links(self, count: int) -> None:
        """Have so many links at most from now on; those that are too many are given up."""
        self._rules = msgspec.structs.replace(self._rules, max_links=count)
        self._own.max_links = self.dialling.max_links = self._welcome.max_links = count
        self._is_changed = True

    def _mesh(self) -> Mesh:
        return Mesh(self.members, self.traffic.counts, self.traffic.send_word)

    # Those who come, and those who were dialled.

    def met(self, newcomer: Newcomer, other: Introduced) -> None:
        """Somebody has proven who it is: link with it, unless there is a reason not to."""
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

    def missed(self, newcomer: Newcomer, problem: str) -> None:
        """Somebody did not prove who it is, or does not want to be linked with."""
        error = newcomer.peer.error
        is_known = False
        if newcomer.address:
            # Problems of addresses that were configured are logged already.
            now_ns = self._service.now_ns
            is_known = self.dialling.missed(newcomer.address, error, problem, now_ns).is_fixed
        if not isinstance(error, LinkedToSelf) and problem != CLOSING:
            text = f"not linked with a gateway at {newcomer.place}: {problem}"
            self.events.turned_away(newcomer.peer, text, is_logged=not is_known)

    def _greet(self, peer: Peer, frame: Frame) -> None:
        """Somebody asks to be linked with."""
        newcomer = Newcomer(self, peer, self._handshake(is_dialler=False))
        peer.carrier = newcomer
        newcomer.hear(frame)

    def _handshake(self, *, is_dialler: bool, is_registering: bool = False) -> Handshake:
        count = len(mesh_links(self.links))
        introduction = self._own.introduction(count, is_registering=is_registering)
        nonce = self._chance.randbytes(NONCE_BYTES)
        name = self._service.name
        return Handshake(self._admission, name, introduction, nonce, is_dialler=is_dialler)

    def _part(self, peer: Peer) -> None:
        """A link is over."""
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
        # What would go by this link has to go by another at once.
        self._plot_ns = 0

    # What others say.

    def _hear_near(self, peer: Peer, body: bytes) -> None:
        link = self.links.get(peer.number)
        word = decode(body)
        if link is None:
            return
        if link.is_registration and not isinstance(word, Ping | Pong | Registered | Goodbye):
            raise BadWord(f"{type(word).__name__} is not said where one only registers")
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
            case Redirect(addresses) | Registered(addresses) if link.is_dialled:
                for address in addresses:
                    if is_address(address):
                        self.dialling.targets.offer(address, now_ns)
                    else:
                        self.traffic.counts.refuse("BadAddress", 1)
            case Goodbye(is_leaving):
                link.ending = CLOSING if is_leaving else "it has as many links as it may"
                if not is_leaving:
                    self.dialling.let_go(link, now_ns)
                link.peer.end(None)
            case _:
                raise BadWord(f"{type(word).__name__} is not said by a link")

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
            raise BadWord(f"{type(word).__name__} is not said from afar")
        member = self.members.get(word.node)
        # Only where it says itself that it is: nobody can point this gateway at a stranger.
        if member is not None and member.advert.address == word.address:
            self.dialling.look_for(member, self._service.now_ns)

    def _hear_command(self, origin: int, word: CommandWord | Obeyed) -> None:
        if self.commanding is None:
            self.traffic.counts.refuse("NoCommands", 1)
        elif isinstance(word, CommandWord):
            self.commanding.hear(origin, word)
        else:
            self.commanding.hear_obeyed(origin, word)

    # What time brings.

    def _advertise_if_due(self, now_ns: int) -> None:
        if not (self._is_changed or self._claimed(now_ns) or self._service.router.changes):
            return
        if now_ns - self._advert_ns >= ADVERT_NS + ADVERT_EACH_NS * len(self.members):
            self._advert_ns = now_ns
            self._advertise()

    def _advertise(self, *, is_leaving: bool = False) -> None:
        """Say what is new about this gateway, if anything is."""
        self._is_changed = False
        claimed = self._claimed(self._service.now_ns)
        if claimed:
            self._refuted_ns = self._service.now_ns
        said = self._own.next(self.traffic, self.links, claimed, is_leaving=is_leaving)
        if said is not None:
            self._gossip.advertise(*said)

    def _claimed(self, now_ns: int) -> int:
        """The life that others take for this gateway's, if that is to be refuted now; or 0."""
        claimed = self._gossip.claimed
        is_due = now_ns - self._refuted_ns >= REFUTE_NS
        return claimed if is_due and claimed >= self.members.own.advert.incarnation else 0

    def _move(self) -> None:
        """Work out the ways anew: links came or went, here or elsewhere."""
        self._gossip.is_moved = False
        self._plot_ns = self._service.now_ns + PLOT_EACH_NS * len(self.members)
        self._is_changed = True
        self.dialling.settle(link for link in mesh_links(self.links) if link.is_ready)
        ready = {link.number: link.peer for link in mesh_links(self.links) if link.is_carrying}
        for member in self.survey.plot(ready, self._service.now_ns):
            self._look_for(member)

    def _look_for(self, member: Member) -> None:
        """A gateway was lost: have others that are near try to reach it."""
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
                # It may be back one day, when everybody has forgotten it.
                if is_address(member.advert.address) and not member.advert.is_leaving:
                    self.dialling.targets.remember(member.advert.address, now_ns)
                self._gossip.is_moved = True

    def _prune(self, now_ns: int) -> None:
        """Give up a link if there are too many, one that everybody can do without."""
        linked = {link.node: link for link in mesh_links(self.links)}
        members = self.members
        for node in spare_links(members.own.node, members.ring, linked, self._rules.max_links):
            link = linked[node]
            if link.is_carrying and self.survey.is_reached_without(link.number):
                self.dialling.let_go(link, now_ns)
                let_go(link)
                return

    def _go(self, now_ns: int) -> None:
        """Be gone once everyone has everything, or after a while."""
        if not self.traffic.is_quiet and now_ns - self._left_ns < LEAVE_NS:
            return
        self._advertise(is_leaving=True)
        for link in list(self.links.values()):
            link.ending = "this gateway is closing down"
            link.say(Goodbye(is_leaving=True))
            link.peer.end(None)
        self.is_gone = True
