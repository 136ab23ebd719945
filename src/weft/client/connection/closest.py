"""Finds the closest gateway: asks one for candidates, measures those, and says which to take.

Regions and load are a first guess, by which the one that is asked ranks them. What counts is the
round trip that is measured here; those as close as the closest are taken in the order of the guess.
Every wait is bounded. Who began with TLS is never led to a gateway without.
"""

import asyncio
import math
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from weft.client.connection.http_get import fetch, problem_in, round_trip_s
from weft.client.options import Options
from weft.errors import BadOption, NotAllowed, Unreachable, WeftError
from weft.wire.address import Address, addresses_from

# How long the one that is asked may take, and how long all measurements together.
ASK_S = 1.0
MEASURE_S = 1.0
# So many are measured, and the best of so many round trips counts.
MEASURED_MAX = 3
TRIES = 2
# Not farther than the closest, as far as anybody could tell: by so much, or so large a part.
NEAR_S = 0.005
NEAR_PART = 0.1

# Refused for what we are or asked for: not because there is nobody.
_REFUSALS = {400, 401, 403, 404}


class Named(msgspec.Struct, frozen=True):
    """A candidate as a gateway names it; more may be said of it."""

    name: str
    address: str
    region: str = ""
    load: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What `/closest` answers."""

    candidates: list[Named]


class Sought(NamedTuple):
    """What is asked for, and how."""

    service: str
    region: str
    key: str
    tls: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate, and how far it is."""

    name: str
    address: Address
    region: str = ""
    load: int = 0
    # Not a number that is finite: it did not answer in time.
    rtt_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Choice:
    """Which gateways to try, best first; none if none were found, and then why not."""

    found: tuple[Found, ...] = ()
    source: str = ""
    problem: WeftError | None = None

    def addresses(self, given: Sequence[Address]) -> tuple[Address, ...]:
        """Where to try, in turn: those that were given come last, and are always tried."""
        best = [each.address for each in self.found]
        return (*best, *(each for each in given if each not in best))

    def why(self, address: Address) -> str:
        """Why one address was taken."""
        for place, each in enumerate(self.found, 1):
            if each.address == address:
                order = "the closest" if place == 1 else f"number {place}"
                took = f"{1e3 * each.rtt_s:.1f} ms"
                return f"{order} of {len(self.found)} that answered, in {took}; {self.source}"
        return "given" if self.problem is None else f"given, as {self.problem}"


async def ask(asked: Address, sought: Sought, limit: int) -> list[Found]:
    """The candidates that a gateway names, the best guess first, as far as they can be used.

    Raises:
        Unreachable: it does not answer in time, or nonsense.
        NotAllowed: it does not tell us.
    """
    query = {"service": sought.service, "limit": limit}
    if sought.region:
        query["region"] = sought.region
    try:
        async with asyncio.timeout(ASK_S):
            page = await fetch(asked, f"/closest?{urlencode(query)}", sought.key, sought.tls)
    except TimeoutError as error:
        raise Unreachable(f"{asked} did not answer within {ASK_S:g} s") from error
    if page.status in _REFUSALS:
        problem = f"{page.status} {problem_in(page.body)}"
        raise NotAllowed(f"{asked} does not name gateways: {problem}")
    try:
        named = _decoder.decode(page.body).candidates
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{asked} names no gateways: {page.status}, {error}") from error
    return [found for each in named[:limit] if (found := _usable(each, asked)) is not None]


async def measure(found: Sequence[Found], tls: ssl.SSLContext | None) -> list[Found]:
    """The same, each with its round trip, in the order that they should be tried in.

    Those that did not answer in time are the last.
    """
    trips = await asyncio.gather(*(_best_trip_s(each.address, tls) for each in found))
    measured = [replace(each, rtt_s=rtt_s) for each, rtt_s in zip(found, trips, strict=True)]
    closest_s = min(trips, default=math.inf)
    near_s = closest_s + max(NEAR_S, NEAR_PART * closest_s)
    # A sort that keeps the order of what is equal keeps that of the guess.
    return sorted(measured, key=lambda each: 0.0 if each.rtt_s <= near_s else each.rtt_s)


class Seeker:
    """Looks for the closest gateway whenever a connection needs one."""

    def __init__(self, options: Options, given: tuple[Address, ...]) -> None:
        """Take note of whom to ask.

        Raises:
            BadOption: who speaks TLS would have to ask without it.
        """
        asked = given if options.closest is True else addresses_from(str(options.closest))
        self._is_tls = any(each.is_tls for each in given)
        for each in asked:
            if self._is_tls and not each.is_tls:
                raise BadOption(f"closest: {each} would be asked without TLS for one with it")
        self._asked = asked
        self._is_web = any(each.is_web for each in given)
        tls = options.tls
        if tls is None and (self._is_tls or any(each.is_tls for each in asked)):
            # Made once: it reads many certificates.
            tls = ssl.create_default_context()
        self._sought = Sought(options.service, options.region, options.key or "", tls)

    async def seek(self) -> Choice:
        """Ask in turn, and measure what the first names that answers."""
        problem: WeftError = Unreachable("nobody was asked")
        for asked in self._asked:
            try:
                found = await ask(asked, self._sought, MEASURED_MAX)
            except WeftError as error:
                problem = error
                continue
            return await self._chosen(found, f"named by {asked}")
        return Choice(problem=problem)

    async def among(self, named: Sequence[str], adviser: Address) -> Choice:
        """Measure those that a gateway named to whoever has to leave it."""
        rows = [Named(name="", address=each) for each in named[:MEASURED_MAX]]
        found = [each for row in rows if (each := _usable(row, adviser)) is not None]
        return await self._chosen(found, f"advised by {adviser}")

    async def _chosen(self, found: list[Found], source: str) -> Choice:
        fit = [
            replace(each, address=replace(each.address, is_web=self._is_web))
            for each in found
            if each.address.is_tls or not self._is_tls
        ]
        if not fit:
            return Choice(problem=Unreachable(f"no gateway that can be used was {source}"))
        measured = await measure(fit, self._sought.tls)
        there = tuple(each for each in measured if math.isfinite(each.rtt_s))
        if not there:
            text = f"none of {len(fit)} gateways {source} answered within {MEASURE_S:g} s"
            return Choice(problem=Unreachable(text))
        return Choice(there, source)


def _usable(named: Named, asked: Address) -> Found | None:
    """A candidate, if it can be gone to from where it was named."""
    if not named.address:
        # It does not know where it can be reached, but we do.
        return Found(named.name, asked, named.region, named.load)
    try:
        address = addresses_from([named.address])[0]
    except BadOption:
        return None
    if asked.is_tls and not address.is_tls:
        return None
    address = replace(address, is_web=asked.is_web)
    return Found(named.name, address, named.region, named.load)


async def _best_trip_s(address: Address, tls: ssl.SSLContext | None) -> float:
    best_s = math.inf
    try:
        async with asyncio.timeout(MEASURE_S):
            for _ in range(TRIES):
                best_s = min(best_s, await round_trip_s(address, tls))
    except (Unreachable, TimeoutError):
        # What was measured so far counts.
        return best_s
    return best_s


_decoder = msgspec.json.Decoder(Answer)
