"""A service with lanes and without sockets: guests speak about lanes by hand."""

from typing import Any, NamedTuple

from tests.broker.talk import Guest, House, connect, message, subscribe

from weft.broker.limits import Limits
from weft.lanes.coordinator import LaneCoordinator
from weft.lanes.report import route_facts
from weft.lanes.route_state import LaneRoute
from weft.lanes.settings import LaneSettings
from weft.wire.frames import Frame, Kind
from weft.wire.lane_messages import lane_frame
from weft.wire.message.message import Message

HERE = "127.0.0.1"
HOT = b"prices.fast"


class Word(NamedTuple):
    """What a guest was told about lanes."""

    word: str
    subject: bytes
    facts: dict[str, Any]


class LaneHouse(House):
    """A house whose guests know lanes, unless they are told apart; all come from one host."""

    def __init__(self, limits: Limits | None = None, **settings: Any) -> None:
        super().__init__(limits)
        # By name.
        self.hosts: dict[str, str] = {}
        self.lanes = LaneCoordinator(self.service, lambda peer: self.hosts.get(peer.name, HERE))
        self.lanes.settings = LaneSettings(**settings)
        self.service.laning = self.lanes

    def knowing(self, name: str, *patterns: bytes, host: str = HERE) -> Guest:
        """Someone who knows lanes, and subscribed to these."""
        self.hosts[name] = host
        guest = self.arrive()
        wanted = [subscribe(pattern, flags=0) for pattern in patterns]
        guest.say(connect(name=name.encode(), lanes=1), *wanted)
        guest.heard()
        return guest

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass, and see what it brings."""
        self.wait(seconds)
        self.lanes.tick()
        self.flush()

    def route(self, publisher: Guest, subject: bytes = HOT) -> LaneRoute:
        found = self.lanes.talk.routes.get(publisher.peer.number, subject)
        assert found is not None
        return found

    def reason(self, publisher: Guest, subject: bytes = HOT) -> str:
        """The state of a route and why, as people are told it."""
        number = publisher.peer.number
        [row] = route_facts(self.lanes, 10, subject, number)["routes"]
        return f"{row['state']}: {row['reason']}"


def words(frames: list[Frame]) -> list[Word]:
    """What was said about lanes, of everything that was heard."""
    found = []
    for frame in frames:
        if frame.kind == Kind.LANE:
            facts = Message.from_body(frame.body).to_dict()
            found.append(Word(facts.pop("word"), frame.subject, facts))
    return found


def names(frames: list[Frame]) -> list[str]:
    return [each.word for each in words(frames)]


def heat(publisher: Guest, subject: bytes = HOT, count: int = 4000) -> None:
    """Publish enough to be hot for a second."""
    publisher.say(*[message(subject) for _ in range(count)])


def make_hot(house: LaneHouse, publisher: Guest, subject: bytes = HOT) -> None:
    """Publish until it is time for lanes."""
    for _ in range(4):
        heat(publisher, subject)
        house.tick()


def accept(receiver: Guest, port: int = 4000, unix: str = "") -> Word:
    """Answer the last invitation."""
    [*_, invite] = [each for each in words(receiver.heard()) if each.word == "invite"]
    receiver.say(
        lane_frame("ready", invite.subject, ticket=invite.facts["ticket"], port=port, unix=unix)
    )
    return invite


def go_direct(house: LaneHouse, publisher: Guest, *receivers: Guest) -> None:
    """Bring the hot route of a publisher to lanes."""
    house.lanes.ask(publisher.peer, HOT)
    house.flush()
    for port, receiver in enumerate(receivers, 4000):
        accept(receiver, port)
    assert names(publisher.heard()) == ["offer"]
    publisher.say(lane_frame("direct", HOT))
    assert house.route(publisher).state == "direct"
