"""Reconnect loop: dial, handshake, watch for silence, and dial again after a loss, without limit.

Every attempt and every failure is reported. The addresses are tried in turn, without a delay within
a round; the delay before each further round grows. After a refusal by a gateway the next round
follows the maximum delay. If no gateway accepts the key, the loop ends: retrying would not help.
"""

import asyncio
import random
from collections.abc import Callable

from weft.client.connection.backoff import Backoff
from weft.client.connection.closest import Choice, Seeker
from weft.client.connection.engine import Engine
from weft.client.connection.transport import SocketTransport, dial
from weft.client.connection.ws_transport import dial_web
from weft.client.status import Status, What
from weft.errors import BadKey, ConnectionLost, InternalError, NotOpen, Unreachable, WeftError
from weft.wire.address import Address

# Limit on waiting for a gateway to close the connection, or to read more bytes.
CLOSE_S = 2.0


class ReconnectLoop:
    """Supplies an engine with one transport after the other."""

    def __init__(
        self,
        engine: Engine,
        addresses: tuple[Address, ...],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._engine = engine
        self._options = engine.options
        self._given = self._addresses = addresses
        self._seeker = Seeker(engine.options, addresses) if engine.options.closest else None
        self._choice = Choice()
        # The gateways that a GOODBYE recommended, and the address that it came from.
        self._advice: tuple[tuple[str, ...], Address] | None = None
        self._chance = chance
        self._backoff = Backoff(self._options.backoff_first_s, self._options.backoff_cap_s)
        self._at = 0
        self._attempts = 0
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self._given_up: BadKey | None = None
        self._closed = asyncio.Event()

    async def open(self) -> None:
        """Connect for the first time.

        Raises:
            Unreachable: No gateway answers, unless `wait=True`.
            Refused: A gateway rejected this client, unless `wait=True`.
            BadKey: Every gateway rejected the key.
            NotOpen: It was opened or closed before.
        """
        if self._task is not None or self._is_closing:
            raise NotOpen("the connection was opened or closed before")
        try:
            line = None if self._options.wait else await self._first_line()
            self._task = self._engine.loop.create_task(self._keep(line))
            if line is None:
                await self._until_open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Send buffered frames, disconnect and stop. Idempotent.

        If cancelled, it stops at once.
        """
        if self._is_closing:
            await self._closed.wait()
            return
        self._is_closing = True
        try:
            await self._part()
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Stop at once; unsent frames are lost.

        Waits for nothing, so that a cancelled caller leaves neither a socket nor a waiter behind.
        """
        if self._closed.is_set():
            return
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
        unsent = self._engine.close()
        detail = f"closed, and {unsent} bytes were not sent" if unsent else "closed"
        error = (
            ConnectionLost("the connection was closed before all messages were sent")
            if unsent
            else None
        )
        self._engine.reporter.report(Status(What.CLOSED, detail, error))
        self._closed.set()

    async def _until_open(self) -> None:
        try:
            await self._engine.until_open()
        except NotOpen:
            if self._given_up is not None:
                raise self._given_up from None
            raise

    async def _first_line(self) -> SocketTransport:
        errors: list[WeftError] = []
        await self._seek()
        for address in self._addresses:
            try:
                return await self._attempt(address, is_raised=True)
            except WeftError as error:
                errors.append(error)
                self._turn_to_next()
        # A refusal is more informative than an unreachable address.
        raise next((error for error in errors if not _is_passing(error)), errors[-1])

    async def _keep(self, line: SocketTransport | None) -> None:
        try:
            while not self._is_closing:
                if line is None:
                    line = await self._reach()
                await self._watch(line)
                line = None
        except BadKey as error:
            self._given_up = error
            detail = "no gateway accepts the key; the connection is closed"
            self._engine.reporter.report(Status(What.CLOSED, detail, error))
            self._engine.fail(error)
            self._engine.close()
        except Exception as error:
            # Only an internal error gets here: report it instead of staying silent.
            self._engine.reporter.report(
                Status(What.CLOSED, "internal error of the client; the connection is closed", error)
            )
            self._engine.fail(InternalError(f"the client failed: {error!r}"))
            self._engine.close()

    async def _watch(self, line: SocketTransport) -> None:
        """Wait until a transport ends, sending heartbeats."""
        loop = self._engine.loop
        began = loop.time()
        while not line.ended.done():
            await asyncio.wait({line.ended}, timeout=self._engine.keep_alive())
        if loop.time() - began >= self._options.backoff_cap_s:
            # Connections that end soon after they begin keep the back-off delay.
            self._backoff.reset()
        if self._engine.is_parting:
            self._turn_to_next()
            self._choice = Choice()
            self._advice = (self._engine.elsewhere, line.address)

    async def _reach(self) -> SocketTransport:
        """Try every address in turn until one accepts, without limit."""
        delay_s = self._backoff.next_delay_s(self._chance())
        while True:
            self._report_pause(delay_s)
            await asyncio.sleep(delay_s)
            await self._seek()
            errors: list[WeftError] = []
            for _ in self._addresses:
                try:
                    return await self._attempt(self._addresses[self._at])
                except WeftError as error:
                    errors.append(error)
                    self._turn_to_next()
            if all(isinstance(error, BadKey) for error in errors):
                raise errors[0]
            self._choice = Choice()
            delay_s = self._backoff.next_delay_s(self._chance())
            if not all(map(_is_passing, errors)):
                delay_s = self._options.backoff_cap_s

    async def _seek(self) -> None:
        """Find the closest gateway, if `closest` is set and none is known.

        The given addresses are tried after those found, so the list is never empty. Without
        `closest` the recommendations of gateways are ignored: only given addresses are used.
        """
        advice, self._advice = self._advice, None
        if self._seeker is None or self._choice.found:
            return
        choice = Choice()
        if advice is not None and advice[0]:
            choice = await self._seeker.among(*advice)
        if not choice.found:
            choice = await self._seeker.seek()
        self._choice = choice
        self._addresses = choice.addresses(self._given)
        self._at = 0
        first = self._addresses[0]
        detail = f"selected {first}: {choice.why(first)}"
        self._engine.reporter.report(Status(What.CHOSEN, detail))

    async def _attempt(self, address: Address, *, is_raised: bool = False) -> SocketTransport:
        """Connect to one gateway; with `is_raised` the caller reports a failure."""
        self._attempts += 1
        limit_s = self._options.connect_timeout_s
        deadline = self._engine.loop.time() + limit_s
        try:
            async with asyncio.timeout_at(deadline):
                line = await self._dial(address)
            self._engine.why = self._choice.why(address)
            await self._greet(line, deadline)
        except WeftError as error:
            self._report_failure(error, is_raised)
            raise
        except TimeoutError as error:
            late = Unreachable(f"{address} did not answer within {limit_s} s")
            self._report_failure(late, is_raised)
            raise late from error
        self._attempts = 0
        return line

    async def _dial(self, address: Address) -> SocketTransport:
        tls = self._options.tls
        if address.is_web:
            options = self._options
            return await dial_web(address, tls, self._engine, options.service, options.key or "")
        return await dial(address, tls, self._engine)

    async def _greet(self, line: SocketTransport, deadline: float) -> None:
        """Send CONNECT and wait for WELCOME; without it, abort the transport."""
        engine = self._engine
        engine.begin(line)
        answers = {line.welcomed, line.ended}
        try:
            # Not cancelled by a timeout: a loop that was blocked finds WELCOME and the deadline at
            # the same time, and an accepted connection must not count as a failure.
            left_s = max(deadline - engine.loop.time(), 0.0)
            await asyncio.wait(answers, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            line.abort()
            raise
        if line.welcomed.done():
            return
        if line.ended.done():
            raise engine.cause(line)
        line.abort()
        raise TimeoutError

    async def _part(self) -> None:
        engine = self._engine
        line = engine.line
        engine.refuse()
        if line is None:
            return
        # A GOODBYE of the gateway was already answered with ours.
        if engine.say_goodbye() or engine.is_parting:
            engine.reading.steer()
            await self._let_go(line)
        line.abort()
        if not line.ended.done():
            await asyncio.wait({line.ended}, timeout=CLOSE_S)

    async def _let_go(self, line: SocketTransport) -> None:
        """Wait until the gateway closes the connection, as long as it keeps reading."""
        loop = self._engine.loop
        deadline = loop.time() + self._options.timeout_s
        unsent = line.unsent_bytes + 1
        while not line.ended.done() and line.unsent_bytes < unsent and loop.time() < deadline:
            unsent = line.unsent_bytes
            await asyncio.wait({line.ended}, timeout=min(CLOSE_S, deadline - loop.time()))

    def _turn_to_next(self) -> None:
        self._at = (self._at + 1) % len(self._addresses)

    def _report_pause(self, delay_s: float) -> None:
        names = ", ".join(str(address) for address in self._addresses)
        detail = f"attempt {self._attempts + 1} to reach {names} in {delay_s:.3f} s"
        self._engine.reporter.report(Status(What.RECONNECTING, detail))

    def _report_failure(self, error: WeftError, is_raised: bool) -> None:
        what = What.FAILED if _is_passing(error) else What.REFUSED
        status = Status(what, f"attempt {self._attempts} to connect failed", error)
        self._engine.reporter.report(status, is_raised=is_raised)


def _is_passing(error: WeftError) -> bool:
    """Return whether another attempt soon could succeed."""
    return isinstance(error, ConnectionLost)
