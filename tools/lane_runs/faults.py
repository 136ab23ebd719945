"""What breaks in a run, and when: all of it is drawn by lot."""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

from tools.lane_runs.clients import Client, Hears, Publishes
from tools.lane_runs.hub import Hub
from tools.lane_runs.network import Network, Socket, cut, cut_off
from tools.lane_runs.world import Process, World

# A fault for which there is nothing to break yet is tried again, so long.
_AGAIN_S = 0.05
_TRIES = 40

RENEWAL = "lanes stall, receiver subscribes again"


class Faults:
    """Breaks what is there."""

    def __init__(self, world: World, network: Network, hub: Hub) -> None:
        self.counts: Counter[str] = Counter()
        self.clients: list[Client] = []
        self._world = world
        self._network = network
        self._hub = hub
        self._chance = random.Random(world.chance.random())
        self._kinds: dict[str, Callable[[], bool]] = {
            "lane cut": self._cut_lane,
            "lane cut, one end not told": self._cut_lane_at_one_end,
            "lane dead, nobody told": self._cut_lane_off,
            "lanes refused": lambda: self._block_lanes("refused"),
            "lanes unanswered": lambda: self._block_lanes("unanswered"),
            "receiver stands still": lambda: self._pause(Hears, 6.0),
            "publisher stands still": lambda: self._pause(Publishes, 6.0),
            "gateway stands still": self._pause_gateway,
            "receiver leaves": lambda: self._leave(Hears),
            "publisher leaves": lambda: self._leave(Publishes),
            "receiver killed": lambda: self._kill(Hears),
            "publisher killed": lambda: self._kill(Publishes),
            "connection cut": self._cut_connection,
            "connection dead, nobody told": self._cut_connection_off,
            "gateway restarts": lambda: self._restart(is_dark=False),
            "gateway loses power": lambda: self._restart(is_dark=True),
        }
        self._renewing = self._chance
        self._acts = {**self._kinds, RENEWAL: self._renew}

    def plan(self, count: int, until: float) -> None:
        """Have so many things break before a time; those of lanes are the most likely."""
        kinds = list(self._kinds)
        weights = [4, 4, 3, 2, 1, 4, 3, 1, 1, 1, 1, 1, 2, 1, 1, 1]
        for kind in self._chance.choices(kinds, weights, k=count):
            when = self._chance.uniform(0.5, until)
            self._world.at(when, partial(self._try, kind, _TRIES))

    def plan_renewals(self, chance: random.Random, count: int, until: float) -> None:
        """Have receivers subscribe again while their lanes stall; `chance` is for that alone."""
        self._renewing = chance
        for _ in range(count):
            self._world.at(chance.uniform(0.5, until), partial(self._try, RENEWAL, _TRIES))

    def _try(self, kind: str, tries: int) -> None:
        if self._acts[kind]():
            self.counts[kind] += 1
            self._world.tell(f"fault: {kind}")
        elif tries:
            self._world.after(_AGAIN_S, lambda: self._try(kind, tries - 1))

    def _lane(self) -> Socket | None:
        lanes = self._network.lanes()
        return self._chance.choice(lanes) if lanes else None

    def _cut_lane(self) -> bool:
        lane = self._lane()
        if lane is not None:
            cut(lane)
        return lane is not None

    def _cut_lane_at_one_end(self) -> bool:
        lane = self._lane()
        if lane is not None:
            cut_off(lane)
            lane.break_off()
        return lane is not None

    def _cut_lane_off(self) -> bool:
        lane = self._lane()
        if lane is not None:
            cut_off(lane)
        return lane is not None

    def _block_lanes(self, how: str) -> bool:
        self._network.lanes_are = how
        self._world.after(self._chance.uniform(0.5, 3.0), self._unblock_lanes)
        return True

    def _unblock_lanes(self) -> None:
        self._network.lanes_are = ""

    def _any(self, kind: type[Client]) -> Client | None:
        clients = [
            each
            for each in self.clients
            if isinstance(each, kind) and not each.is_over and not each.process.is_paused
        ]
        return self._chance.choice(clients) if clients else None

    def _pause(self, kind: type[Client], most_s: float) -> bool:
        client = self._any(kind)
        if client is not None:
            client.hit()
            self._stand_still(client.process, most_s)
        return client is not None

    def _pause_gateway(self) -> bool:
        if self._hub.process.is_paused:
            return False
        self._stand_still(self._hub.process, 2.0)
        return True

    def _stand_still(self, process: Process, most_s: float) -> None:
        pause_s = self._chance.choice((0.1, 0.6, 1.0)) * self._chance.uniform(0.1, most_s)
        self._world.tell(f"{process.name} stands still for {pause_s:.3f} s")
        process.pause()
        self._world.after(pause_s, process.resume)

    def _renew(self) -> bool:
        """Have what waits in the lanes of a receiver be read after its subscription is renewed."""
        chance = self._renewing
        receivers = [each for each in self.clients if isinstance(each, Hears) and each.can_renew]
        found = [each for each in receivers if self._network.lanes_of(each.process)]
        if not found:
            return False
        receiver = chance.choice(found)
        stall_s = chance.choice((0.02, 0.2, 0.5, 2.0)) * chance.random()
        for lane in self._network.lanes_of(receiver.process):
            lane.stall(stall_s)
        pause_s = chance.choice((0.0, 0.0, 0.001, 0.01, 0.1)) * chance.random()
        at_s = stall_s * chance.random()
        self._world.tell(f"{receiver.process.name} reads no lanes for {stall_s:.3f} s")
        self._world.after(at_s, lambda: receiver.renew(pause_s))
        return True

    def _leave(self, kind: type[Client]) -> bool:
        client = self._any(kind)
        if client is None or client.connection is None:
            return False
        client.close()
        return True

    def _kill(self, kind: type[Client]) -> bool:
        client = self._any(kind)
        if client is not None:
            self._world.tell(f"{client.process.name} is killed")
            client.kill()
        return client is not None

    def _connection(self) -> Socket | None:
        client = self._any(Client)
        if client is None:
            return None
        client.hit()
        gateway = self._network.gateway
        found = [each for each in self._network.of(client.process) if each.peer_name == gateway]
        return found[0] if found else None

    def _cut_connection(self) -> bool:
        connection = self._connection()
        if connection is not None:
            cut(connection)
        return connection is not None

    def _cut_connection_off(self) -> bool:
        connection = self._connection()
        if connection is not None:
            cut_off(connection)
        return connection is not None

    def _restart(self, *, is_dark: bool) -> bool:
        if not self._hub.is_up or self._hub.process.is_paused:
            return False
        for client in self.clients:
            client.hit()
        self._hub.kill(is_dark=is_dark)
        self._world.after(self._chance.uniform(0.02, 1.0), self._hub.begin)
        return True
