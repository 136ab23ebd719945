"""Clients that go direct and come back at random, with everything on its way for a while.

Whoever has its OK gets everything that is published from then on, once, by whatever way it comes.
"""

import random
from collections import Counter, deque
from collections.abc import Sized
from typing import Any

import pytest
from tests.broker.talk import Guest, message, subscribe, unsubscribe
from tests.lanes.lane_house import HOT, LaneHouse

from weft.broker.disconnect import leave
from weft.wire.frames import Frame, Kind
from weft.wire.lane_messages import lane_frame
from weft.wire.message.message import Message

STEPS = 600
PUBLISHERS = 2
CLIENTS = 5


class Client:
    """One that publishes, subscribes and follows what it is told about lanes."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.guest: Guest = world.house.knowing(name)
        self.going: deque[bytes] = deque()
        self.coming: deque[Frame] = deque()
        # Where what it publishes goes if it is direct.
        self.lanes: list[Client] | None = None
        self.offer: list[Client] | None = None
        self.got: Counter[bytes] = Counter()
        # It asked; and since which of all messages it has its OK.
        self.is_asking = False
        self.since: int | None = None

    def publish(self) -> None:
        """Publish by whatever way it is to."""
        body = self.world.next_body()
        if self.lanes is None:
            self.going.append(message(HOT, body))
        else:
            for other in self.lanes:
                other.got[body] += 1
        for client in self.world.clients:
            if client.since is not None and client is not self:
                self.world.due.setdefault(client, set()).add(body)

    def change_mind(self) -> None:
        """Subscribe, or unsubscribe."""
        if self.is_asking:
            return
        if self.since is None:
            self.is_asking = True
            self.going.append(subscribe(HOT))
        else:
            # From here on nothing has to come, but what is due must.
            self.since = None
            self.going.append(unsubscribe(HOT, flags=0))
            self.world.forget(self)

    def send(self) -> None:
        """Let some of what it said arrive."""
        for _ in range(self.world.some(self.going)):
            self.guest.send(self.going.popleft())
        self.world.house.flush()

    def hear(self) -> None:
        """Deal with some of what it was told."""
        self.coming.extend(self.guest.heard())
        for _ in range(self.world.some(self.coming)):
            self.deal(self.coming.popleft())

    def deal(self, frame: Frame) -> None:
        """Deal with one frame."""
        if frame.kind == Kind.MESSAGE:
            self.got[frame.body] += 1
        elif frame.kind == Kind.OK and self.is_asking:
            self.is_asking = False
            self.since = self.world.published
        elif frame.kind == Kind.LANE:
            facts = Message.from_body(frame.body).to_dict()
            self.obey(facts["word"], facts)

    def obey(self, word: str, facts: dict[str, Any]) -> None:
        """Do what a word about lanes says, or do not: nobody must."""
        chance = self.world.chance
        if word == "invite":
            answer = {"ticket": facts["ticket"], "port": 4000 + self.guest.peer.number, "unix": ""}
            if chance.random() < 0.9:
                self.going.append(lane_frame("ready", HOT, **answer))
        elif word == "offer":
            numbers = {each["receiver"] for each in facts["lanes"]}
            clients = [each for each in self.world.clients if each.guest.peer.number in numbers]
            self.offer = clients
        elif word == "withdraw":
            self.offer = None
            self.lanes = None
            self.going.append(lane_frame("withdrawn", HOT))

    def take_up(self) -> None:
        """Go direct, if that was offered; or say why not."""
        if self.offer is not None:
            if self.world.chance.random() < 0.8:
                self.lanes = self.offer
                self.going.append(lane_frame("direct", HOT))
            else:
                self.going.append(lane_frame("declined", HOT, reason="no"))
            self.offer = None


class World:
    """Some clients of one service."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.house = LaneHouse(retry_s=0.5)
        self.clients: list[Client] = []
        self.published = 0
        self.made = 0
        # What each client must have got in the end.
        self.due: dict[Client, set[bytes]] = {}
        for _ in range(CLIENTS):
            self.come()

    def some(self, queue: Sized) -> int:
        """How much of a queue is dealt with at once."""
        return self.chance.randint(0, len(queue))

    def next_body(self) -> bytes:
        self.published += 1
        return b"%d" % self.published

    def come(self) -> None:
        self.made += 1
        self.clients.append(Client(self, f"c{self.made}"))

    @property
    def publishers(self) -> list[Client]:
        """Those who do not subscribe, most of the time: then nobody could go direct."""
        return self.clients[:PUBLISHERS]

    def go(self, client: Client) -> None:
        """One leaves; nobody owes it anything any more, and it owes nobody."""
        self.clients.remove(client)
        self.due.pop(client, None)
        leave(client.guest.peer)
        self.house.flush()

    def forget(self, client: Client) -> None:
        self.due.pop(client, None)

    def step(self) -> None:
        """Something happens."""
        chance = self.chance
        client = chance.choice(self.clients)
        publisher = chance.choice(self.publishers)
        roll = chance.random()
        if roll < 0.25:
            publisher.publish()
        elif roll < 0.50:
            client.send()
        elif roll < 0.80:
            client.hear()
        elif roll < 0.86:
            publisher.take_up()
        elif roll < 0.87:
            if client not in self.publishers or chance.random() < 0.1:
                client.change_mind()
        elif roll < 0.90:
            self.house.lanes.ask(publisher.guest.peer, HOT)
        elif roll < 0.99:
            self.pass_time()
        elif len(self.clients) > 2 and not client.going and client.lanes is None:
            self.go(client)
            self.come()

    def pass_time(self) -> None:
        """A moment passes; nobody is so slow that it would be ended for it."""
        for client in self.clients:
            for _ in range(2):
                client.hear()
                client.send()
        self.house.tick(0.2)

    def settle(self) -> None:
        """Let everything arrive."""
        for _ in range(100):
            for client in self.clients:
                client.send()
                client.hear()


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize("seed", range(60))
def test_whoever_has_its_ok_gets_everything_once(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    for client in world.clients:
        assert not client.guest.peer.is_over
        missing = world.due.get(client, set()) - set(client.got)
        assert not missing, f"{client.name} misses {sorted(missing)}"
        twice = [body for body, count in client.got.items() if count > 1]
        assert not twice, f"{client.name} got {twice} more than once"


def test_the_clients_do_go_direct_and_come_back() -> None:
    promotions = demotions = 0
    for seed in range(10):
        world = World(seed)
        for _ in range(STEPS):
            world.step()
        promotions += world.house.lanes.talk.promotions
        demotions += sum(world.house.lanes.talk.demotions.values())
    assert promotions > 5
    assert demotions > 5
