"""The clients of a run: the library as it is, and what each does with it."""

import asyncio
import random
from collections import Counter
from typing import Any

from tools.lane_runs.history import BY_LANE, NEVER, Episode, Gap, Heard, Published, Publisher
from tools.lane_runs.world import Process

from weft.client.asyncio.connection import AsyncConnection, AsyncSubscription
from weft.client.connection.engine import Engine
from weft.client.connection.reconnect import ReconnectLoop
from weft.client.lanes.lane import Lane
from weft.client.options import Options
from weft.client.received import AsyncReceived
from weft.client.status import Gap as Announced
from weft.client.status import Reporter, Status, What
from weft.errors import NotOpen, WeftError
from weft.wire.address import addresses_from

GATEWAY = "127.0.0.1:7411"
ASKED = "ask"
# A request that has neither an answer nor a refusal by then hangs.
REQUEST_S = 10.0


class Silence:
    """A log that nobody reads."""

    def info(self, message: str, /, *args: object) -> None:
        """Note nothing."""

    def warning(self, message: str, /, *args: object) -> None:
        """Note nothing."""

    def exception(self, message: str, /, *args: object) -> None:
        """Note nothing."""

    def error(self, message: str, /, *args: object, exc_info: BaseException | None = None) -> None:
        """Note nothing."""


class Client:
    """One process with one connection."""

    def __init__(self, process: Process, chance: random.Random) -> None:
        self.process = process
        self.chance = chance
        self.connection: AsyncConnection | None = None
        self._engine: Engine | None = None
        self.is_connected = False
        self.is_over = False
        # Nothing new is begun.
        self.is_stopping = False

    @property
    def now(self) -> float:
        """The time."""
        return self.process.world.now

    async def open(self) -> AsyncConnection:
        """Connect, however long it takes."""
        options = Options(
            name=self.process.name,
            wait=True,
            on_status=self._told,
            logger=Silence(),
            connect_timeout_s=2.0,
            # It goes by the real clock.
            look="never",
            backoff_cap_s=0.5,
        )
        reporter = Reporter(options.logger, options.name, options.on_status)
        engine = Engine(options, reporter, self.process.call_soon)
        self._engine = engine
        keeper = ReconnectLoop(engine, addresses_from(GATEWAY), self.chance.random)
        await keeper.open()
        self.connection = AsyncConnection(engine, keeper)
        return self.connection

    def close(self) -> None:
        """Leave in order."""
        if self.connection is not None and not self.is_over:
            self.is_stopping = True
            self.process.call_soon(lambda: self.process.begin(self._close()))

    def kill(self) -> None:
        """End without a word."""
        self.is_over = True
        self.is_connected = False
        self.process.die()
        self.process.network.kill(self.process)

    def ending_lanes(self) -> list[Lane]:
        """Lanes that it ended, and whoever is at the other end did not."""
        if self._engine is None or not self.is_connected or self.is_stopping:
            return []
        return [lane for lane in self._engine.lanes.table if lane.out.is_over]

    async def live(self) -> None:
        """Do what it is here for."""
        raise NotImplementedError

    async def _close(self) -> None:
        if self.connection is not None:
            await self.connection.close()
        self.is_over = True

    def hit(self) -> None:
        """Something is about to happen to it."""

    def connected(self) -> None:
        """There is a gateway."""
        self.is_connected = True

    def disconnected(self) -> None:
        """There is none."""
        self.is_connected = False

    def _told(self, status: Status) -> None:
        error = f": {status.error}" if status.error is not None else ""
        self.process.world.tell(f"{self.process.name} {status.what}: {status.detail}{error}")
        if status.what is What.CONNECTED:
            self.connected()
        elif status.what in (What.DISCONNECTED, What.CLOSED):
            self.disconnected()
            if "were not sent" in status.detail:
                self.hit()


class Publishes(Client):
    """Publishes numbers, most of them to hot subjects."""

    def __init__(self, process: Process, chance: random.Random, plan: "Plan") -> None:
        super().__init__(process, chance)
        # Its connection was broken, and perhaps nobody told it.
        self._is_hit = False
        self.log = Publisher(plan.number)
        self.requests: Counter[str] = Counter()
        self._plan = plan

    async def live(self) -> None:
        """Publish until it is told to stop."""
        connection = await self.open()
        if self._plan.asks:
            self.process.begin(self._ask())
        while not self.is_stopping:
            rate = self.chance.choice(self._plan.rates)
            until = self.now + self.chance.uniform(0.3, 2.5)
            if self.chance.random() < self._plan.pins:
                self.process.begin(self._pin())
            while self.now < until and not self.is_stopping:
                for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
                    await self._publish(connection)
                pause_s = self.chance.expovariate(rate)
                await asyncio.sleep(min(pause_s, max(until - self.now, 0.0)))

    def connected(self) -> None:
        """What is said from here on goes by this connection, or by none."""
        super().connected()
        self._is_hit = False
        self.log.steady_from = self.now

    def disconnected(self) -> None:
        """What was said may have gone with it."""
        was_connected = self.is_connected
        super().disconnected()
        if was_connected and not self.is_stopping:
            self.log.steady_from = NEVER

    def hit(self) -> None:
        """Whoever leaves before it is connected again may not get to say the last of it."""
        self._is_hit = True
        if self.is_stopping:
            self.log.steady_from = NEVER

    def kill(self) -> None:
        """What was said at last may have gone with it."""
        super().kill()
        self.log.steady_from = NEVER

    async def _close(self) -> None:
        was_connected = self.is_connected
        if self.connection is not None:
            lives = self.connection.statistics.connects
            await self.connection.close()
            is_same = lives == self.connection.statistics.connects
            if self._is_hit or not (was_connected and is_same):
                self.log.steady_from = NEVER
        self.is_over = True

    async def _publish(self, connection: AsyncConnection) -> None:
        plan = self._plan
        subject = plan.rare if self.chance.random() < plan.rarely else self.chance.choice(plan.hot)
        number = len(self.log.published)
        body = b"%d %d " % (self.log.number, number) + bytes(self.chance.choice(plan.sizes))
        self.log.published.append(Published(self.now, subject))
        try:
            await connection.publish(subject, body)
        except NotOpen:
            self.log.published.pop()

    async def _pin(self) -> None:
        if self.connection is None:
            return
        try:
            await self.connection.direct(self.chance.choice(self._plan.hot), 3.0)
        except (WeftError, TimeoutError):
            self.process.world.tell(f"{self.process.name} asked for lanes in vain")

    async def _ask(self) -> None:
        number = 0
        # Often enough for lanes, or not.
        rate = self.chance.choice((40, 100))
        while not self.is_stopping and self.connection is not None:
            await asyncio.sleep(self.chance.expovariate(rate))
            number += 1
            self.process.begin(self._request(number))

    async def _request(self, number: int) -> None:
        if self.connection is None:
            return
        self.requests["open"] += 1
        body = b"%d" % number
        try:
            answer = await self.connection.send_request(ASKED, body, REQUEST_S)
            way = "by a lane" if answer.sequence >= BY_LANE else "through the gateway"
            outcome = f"answered {way}" if answer.payload == b"re " + body else "wrong"
        except WeftError as error:
            outcome = type(error).__name__
            self.process.world.tell(f"{self.process.name} request {number}: {error!r}")
        self.requests["open"] -= 1
        self.requests[outcome] += 1


class Plan:
    """What a publisher does."""

    def __init__(self, number: int, hot: list[str], chance: random.Random) -> None:
        self.number = number
        self.hot = hot
        self.rare = "rare"
        self.rarely = chance.choice((0.0, 0.003, 0.01, 0.03, 0.2))
        self.rates = chance.choice(([40, 80], [60, 100, 5], [100], [80, 80, 1]))
        self.sizes = chance.choice(([0], [0, 100], [10, 3000]))
        self.pins = chance.choice((0.0, 0.0, 0.5))
        self.asks = False


class Hears(Client):
    """Subscribes, writes down what comes, and may come and go."""

    def __init__(self, process: Process, chance: random.Random, subjects: frozenset[str]) -> None:
        super().__init__(process, chance)
        self.episodes: list[Episode] = []
        self.comes_and_goes = False
        self.answers = False
        self._subjects = subjects
        self._subscription: AsyncSubscription | None = None

    async def live(self) -> None:
        """Hear until the end, at once or with pauses."""
        connection = await self.open()
        if self.answers:
            connection.subscribe(ASKED, _answer)
        while not self.is_stopping:
            await self._listen(connection)
            if not self.comes_and_goes:
                return
            await asyncio.sleep(self.chance.uniform(0.2, 3.0))
            await self._unlisten()
            await asyncio.sleep(self.chance.uniform(0.0, 0.5))

    @property
    def can_renew(self) -> bool:
        """Return whether the subscription is there, and nothing else closes it."""
        is_here = self.is_connected and not (self.is_over or self.is_stopping)
        return is_here and not self.comes_and_goes and self._subscription is not None

    def renew(self, pause_s: float) -> None:
        """Unsubscribe and subscribe again, in one turn if there is no pause."""
        self.process.call_soon(lambda: self.process.begin(self._renew(pause_s)))

    def finish(self) -> None:
        """The run ends: whoever is here now should have everything."""
        if self.episodes and self.is_connected and not self.is_over:
            spans = self.episodes[-1].spans
            self.episodes[-1].is_whole = bool(spans) and spans[-1][1] == NEVER

    def connected(self) -> None:
        """Subscriptions are asked for again; they are in force when this is answered."""
        super().connected()
        if self.connection is not None:
            self.process.begin(self._confirm())

    def disconnected(self) -> None:
        """Subscriptions are in force no more."""
        super().disconnected()
        if self.episodes:
            self.episodes[-1].end(self.now)

    def close(self) -> None:
        """Leave in order."""
        if self.connection is not None and self.episodes:
            self.episodes[-1].end(self.now)
        super().close()

    def kill(self) -> None:
        """End without a word."""
        if self.episodes:
            self.episodes[-1].end(self.now)
        super().kill()

    async def _listen(self, connection: AsyncConnection) -> None:
        number = len(self.episodes) + 1
        episode = Episode(f"{self.process.name}/{number}", self._subjects)
        self.episodes.append(episode)
        try:
            self._subscription = connection.subscribe(
                sorted(self._subjects),
                lambda message: self._heard(episode, message),
                on_gap=lambda gap: self._missed(episode, gap),
            )
            await self._subscription.ready(20.0)
        except WeftError as error:
            self.process.world.tell(f"{self.process.name} does not hear: {error!r}")
            return
        if self.is_connected and not self.is_stopping:
            self.process.world.tell(f"{episode.name} is confirmed")
            episode.begin(self.now)

    async def _unlisten(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None and not self.is_stopping:
            self.episodes[-1].end(self.now)
            await subscription.close()

    async def _renew(self, pause_s: float) -> None:
        connection = self.connection
        if connection is None or not self.can_renew:
            return
        await self._unlisten()
        if pause_s:
            await asyncio.sleep(pause_s)
        if not self.is_stopping:
            await self._listen(connection)

    async def _confirm(self) -> None:
        """Wait until a gateway that came back has dealt with what it was asked."""
        connection = self.connection
        if connection is None:
            return
        lives, subscription = connection.statistics.connects, self._subscription
        try:
            await connection.flush(5.0)
        except WeftError as error:
            self.process.world.tell(f"{self.process.name} cannot flush: {error!r}")
            return
        is_same = lives == connection.statistics.connects and self._subscription is subscription
        if is_same and subscription is not None and self.is_connected and not self.is_stopping:
            self.process.world.tell(f"{self.episodes[-1].name} is confirmed again")
            self.episodes[-1].begin(self.now)

    def _heard(self, episode: Episode, message: AsyncReceived) -> None:
        publisher, number, _ = message.payload.split(b" ", 2)
        incarnation = (message.origin, message.publisher)
        is_by_lane = message.sequence >= BY_LANE
        heard = Heard(int(publisher), int(number), incarnation, is_by_lane)
        episode.events.append(heard)
        way = "by lane" if is_by_lane else "relayed"
        told = f"{episode.name} hears p{heard.publisher} {heard.number} {way}"
        self.process.world.tell(f"{told}, {incarnation}")

    def _missed(self, episode: Episode, gap: Announced) -> None:
        episode.events.append(Gap(gap.reason, gap.count or 0))
        self.process.world.tell(f"{episode.name} is told of a gap: {gap.reason} {gap.count}")


def _answer(message: AsyncReceived) -> Any:
    return message.respond(b"re " + message.payload)
