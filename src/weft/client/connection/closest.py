"""Discovery of the closest gateway: request candidates, measure them, and rank them.

The gateway that is asked ranks candidates by region and load, which is a first guess. The measured
round-trip time decides; candidates within a tolerance of the closest keep the order of the guess.
Every wait is bounded. A client that uses TLS is never sent to an address without TLS.
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

# Limit for the request, and limit for all measurements together.
ASK_S = 1.0
MEASURE_S = 1.0
# Maximum number of candidates to measure, and of round trips per candidate; the best one counts.
MEASURED_MAX = 3
TRIES = 2
# A candidate is as close as the closest if it is slower by at most this time, or this fraction.
NEAR_S = 0.005
NEAR_PART = 0.1

# Statuses that mean a refusal of this client or its request.
_REFUSALS = {400, 401, 403, 404}


class Named(msgspec.Struct, frozen=True):
    """A candidate in a gateway's answer; unknown fields are ignored."""

    name: str
    address: str
    region: str = ""
    load: int = 0


class ClosestResponse(msgspec.Struct, frozen=True):
    """Answer of `/closest`."""

    candidates: list[Named]


class DiscoveryQuery(NamedTuple):
    """Parameters of a discovery request."""

    service: str
    region: str
    key: str
    tls: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate with its round-trip time."""

    name: str
    address: Address
    region: str = ""
    load: int = 0
    # Infinite: it did not answer in time.
    rtt_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Choice:
    """Gateways to try, best first; if there are none, the reason."""

    found: tuple[RankedCandidate, ...] = ()
    source: str = ""
    problem: WeftError | None = None

    def addresses(self, given: Sequence[Address]) -> tuple[Address, ...]:
        """Return the addresses to try in order: the found ones, then the given ones."""
        best = [each.address for each in self.found]
        return (*best, *(each for each in given if each not in best))

    def why(self, address: Address) -> str:
        """Return the reason why an address was selected."""
        for place, each in enumerate(self.found, 1):
            if each.address == address:
                order = "the closest" if place == 1 else f"number {place}"
                took = f"{1e3 * each.rtt_s:.1f} ms"
                return f"{order} of {len(self.found)} that answered, in {took}; {self.source}"
        return "given" if self.problem is None else f"given, as {self.problem}"


async def ask(asked: Address, sought: DiscoveryQuery, limit: int) -> list[RankedCandidate]:
    """Return the usable candidates that a gateway lists, in its order.

    Raises:
        Unreachable: No answer within the limit, or an invalid one.
        NotAllowed: The gateway refused the request.
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


async def measure(
    found: Sequence[RankedCandidate], tls: ssl.SSLContext | None
) -> list[RankedCandidate]:
    """Return the candidates with their round-trip times, in the order to try them.

    Candidates that did not answer in time are last.
    """
    trips = await asyncio.gather(*(_best_trip_s(each.address, tls) for each in found))
    measured = [replace(each, rtt_s=rtt_s) for each, rtt_s in zip(found, trips, strict=True)]
    closest_s = min(trips, default=math.inf)
    near_s = closest_s + max(NEAR_S, NEAR_PART * closest_s)
    # The sort is stable: candidates with equal keys keep the order of the guess.
    return sorted(measured, key=lambda each: 0.0 if each.rtt_s <= near_s else each.rtt_s)


class Seeker:
    """Finds the closest gateway whenever a connection needs one."""

    def __init__(self, options: Options, given: tuple[Address, ...]) -> None:
        """Determine the discovery addresses.

        Raises:
            BadOption: A client that uses TLS would send the request without it.
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
            # Created once: it reads many certificates.
            tls = ssl.create_default_context()
        self._sought = DiscoveryQuery(options.service, options.region, options.key or "", tls)

    async def seek(self) -> Choice:
        """Ask the discovery addresses in turn; measure the candidates of the first answer."""
        problem: WeftError = Unreachable("no discovery address")
        for asked in self._asked:
            try:
                found = await ask(asked, self._sought, MEASURED_MAX)
            except WeftError as error:
                problem = error
                continue
            return await self._chosen(found, f"named by {asked}")
        return Choice(problem=problem)

    async def among(self, named: Sequence[str], adviser: Address) -> Choice:
        """Measure the candidates that a gateway advised when it sent this client away."""
        rows = [Named(name="", address=each) for each in named[:MEASURED_MAX]]
        found = [each for row in rows if (each := _usable(row, adviser)) is not None]
        return await self._chosen(found, f"advised by {adviser}")

    async def _chosen(self, found: list[RankedCandidate], source: str) -> Choice:
        fit = [
            replace(each, address=replace(each.address, is_web=self._is_web))
            for each in found
            if each.address.is_tls or not self._is_tls
        ]
        if not fit:
            return Choice(problem=Unreachable(f"no usable gateway was {source}"))
        measured = await measure(fit, self._sought.tls)
        there = tuple(each for each in measured if math.isfinite(each.rtt_s))
        if not there:
            text = f"none of {len(fit)} gateways {source} answered within {MEASURE_S:g} s"
            return Choice(problem=Unreachable(text))
        return Choice(there, source)


def _usable(named: Named, asked: Address) -> RankedCandidate | None:
    """Return the candidate if its address is valid and keeps TLS, else None."""
    if not named.address:
        # The gateway does not know its own address; the one that we used works.
        return RankedCandidate(named.name, asked, named.region, named.load)
    try:
        address = addresses_from([named.address])[0]
    except BadOption:
        return None
    if asked.is_tls and not address.is_tls:
        return None
    address = replace(address, is_web=asked.is_web)
    return RankedCandidate(named.name, address, named.region, named.load)


async def _best_trip_s(address: Address, tls: ssl.SSLContext | None) -> float:
    best_s = math.inf
    try:
        async with asyncio.timeout(MEASURE_S):
            for _ in range(TRIES):
                best_s = min(best_s, await round_trip_s(address, tls))
    except (Unreachable, TimeoutError):
        # Earlier round trips count.
        return best_s
    return best_s


_decoder = msgspec.json.Decoder(ClosestResponse)
