"""Simulated clients: publishers, subscribers, requesters and responders.

Each records its actions and the received messages in the history. A message names its publisher and
has a counter.
"""

from collections.abc import Callable
from struct import Struct
from typing import Protocol

from weft.broker.service import Peer
from weft.simulation.clock import Clock
from weft.simulation.gateway import SERVICE, SimGateway
from weft.simulation.history import (
    DeliveryRecord,
    GapRecord,
    History,
    Published,
    RequestRecord,
    SubscriberRecord,
)
from weft.wire.frames import Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Message

_CONNECT = encode(Kind.CONNECT, SERVICE.encode())
_SIZE = Struct("<I")
_BARE = int(Flag.BARE)
_REQUEST = int(Flag.REQUEST | Flag.BARE)


class Scene(Protocol):
    """Context of the clients: clock and history."""

    clock: Clock
    history: History


class Client:
    """One connection to a gateway, until it leaves or the gateway ends."""

    def __init__(self, scene: Scene, name: str, gateway: SimGateway) -> None:
        self.scene = scene
        self.name = f"{name}@{gateway.number}"
        self.gateway = gateway
        self.is_here = True
        self.peer: Peer = gateway.connect(self._took)
        gateway.on_end.append(self.lose)
        self.say(_CONNECT)

    def say(self, *frames: bytes) -> None:
        """Send frames while connected."""
        if self.is_here:
            self.gateway.act(lambda: self.gateway.read(self.peer, b"".join(frames)))

    def publish(self, subject: str, counters: range) -> None:
        """Publish messages in one batch."""
        self.gateway.act(lambda: self._enter(subject, counters))

    def leave(self) -> None:
        """Disconnect."""
        if self.is_here:
            self.gateway.act(self._go)

    def lose(self) -> None:
        """Note that the gateway has ended."""
        self.is_here = False

    def heard(self, frame: Frame) -> None:
        """Handle a received frame."""

    def _go(self) -> None:
        if self.is_here:
            self.lose()
            self.peer.end(None)

    def _enter(self, subject: str, counters: range) -> None:
        if not self.is_here:
            return
        gateway = self.gateway
        sequence = gateway.service.stamp.sequence
        reach = gateway.reach(subject.encode())
        frames = []
        for step, counter in enumerate(counters):
            self.scene.history.published.append(
                Published(
                    publisher=self.name,
                    counter=counter,
                    subject=subject,
                    origin=gateway.number,
                    time_ns=self.scene.clock.now_ns,
                    sequence=sequence + step,
                    reach=reach,
                )
            )
            body = f"{self.name} {counter}".encode()
            frames.append(encode(Kind.MESSAGE, subject.encode(), body, b"", _BARE))
        gateway.read(self.peer, b"".join(frames))

    def _took(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            end = at + _SIZE.unpack_from(data, at)[0]
            self.heard(parse(data[at:end]))
            at = end


class SimSubscriber(Client):
    """Client with subscriptions."""

    def __init__(self, scene: Scene, name: str, gateway: SimGateway, *asked: str) -> None:
        super().__init__(scene, name, gateway)
        patterns = tuple(each for each in asked if not each.startswith("group:"))
        group = "".join(each[6:] for each in asked if each.startswith("group:"))
        self.session = SubscriberRecord(
            self.name, gateway.number, patterns, group, scene.clock.now_ns, events=[]
        )
        gateway.act(self._subscribe)

    def lose(self) -> None:
        """Note the end of the session."""
        if self.is_here:
            self.session.ended_ns = self.scene.clock.now_ns
        super().lose()

    def heard(self, frame: Frame) -> None:
        """Record a message or a gap."""
        now_ns = self.scene.clock.now_ns
        if frame.kind == Kind.GAP:
            count = Message.from_body(frame.body).get_uint64("count")
            self.session.events.append(GapRecord(frame.origin, count, now_ns))
        elif frame.kind == Kind.MESSAGE:
            name, _, counter = frame.body.decode().partition(" ")
            self.session.events.append(
                DeliveryRecord(name, int(counter), frame.origin, frame.sequence, now_ns)
            )
            self.listened(int(counter))

    def listened(self, counter: int) -> None:
        """Handle the counter of a received message."""

    def _subscribe(self) -> None:
        if not self.is_here:
            return
        session = self.session
        session.began_ns = self.scene.clock.now_ns
        group = session.group.encode()
        for pattern in session.patterns:
            frame = encode(Kind.SUBSCRIBE, pattern.encode(), b"", group)
            self.gateway.read(self.peer, frame)
        session.version = self.gateway.wanted_version
        self.scene.history.sessions.append(session)


class Prober(SimSubscriber):
    """Client at each gateway that sends probes to all others and receives theirs."""

    def __init__(self, scene: Scene, gateway: SimGateway, on_probe: Callable[[int], None]) -> None:
        self._on_probe = on_probe
        super().__init__(scene, "probe", gateway, "probe.>")

    def listened(self, counter: int) -> None:
        """Report a probe."""
        self._on_probe(counter)


class Responder(Client):
    """Client that answers requests."""

    def __init__(self, scene: Scene, name: str, gateway: SimGateway, subject: str) -> None:
        super().__init__(scene, name, gateway)
        self.say(encode(Kind.SUBSCRIBE, subject.encode()))

    def heard(self, frame: Frame) -> None:
        """Answer a request after the turn."""
        if frame.kind == Kind.MESSAGE and frame.reply:
            answer = encode(Kind.MESSAGE, frame.reply, frame.body, b"", _BARE)
            self.scene.clock.after(1_000_000, lambda: self.say(answer))


class Requester(Client):
    """Client that sends requests."""

    def __init__(self, scene: Scene, name: str, gateway: SimGateway) -> None:
        super().__init__(scene, name, gateway)
        self._asked: dict[bytes, RequestRecord] = {}

    def ask(self, subject: str, counter: int) -> None:
        """Send a request."""
        self.gateway.act(lambda: self._ask(subject, counter))

    def lose(self) -> None:
        """Mark the pending requests as abandoned."""
        for asked in self._asked.values():
            asked.is_given_up = True
        super().lose()

    def heard(self, frame: Frame) -> None:
        """Record an answer or an error."""
        if frame.kind == Kind.MESSAGE and frame.subject in self._asked:
            self._asked[frame.subject].answers += 1
        elif frame.kind == Kind.ERROR and frame.reply in self._asked:
            self._asked[frame.reply].refusals += 1

    def _ask(self, subject: str, counter: int) -> None:
        if not self.is_here:
            return
        reply = self.peer.inbox + b"%d" % counter
        asked = RequestRecord(self.name, counter, self.scene.clock.now_ns)
        self._asked[reply] = asked
        self.scene.history.asked.append(asked)
        self.gateway.read(self.peer, encode(Kind.MESSAGE, subject.encode(), b"?", reply, _REQUEST))
