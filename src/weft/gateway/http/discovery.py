"""HTTP endpoints for gateway discovery: `/nodes` and `/closest`.

A gateway answers from the advertisements of the others and lists itself, too. Pages of the origins
that the settings trust may read the answers, other origins may not.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs, parse_qsl

import msgspec

from weft.broker.handshake import SERVICE_NAME
from weft.errors import BadOption, shortened
from weft.gateway.config.mesh_settings import REGION
from weft.gateway.service_pool_api import DEFAULT_SERVICE
from weft.mesh.candidates import Candidate, ranked
from weft.transports.http.origins import is_welcome, untrusted

CLOSEST = "/closest"
NODES = "/nodes"
LIMIT = 10
LIMIT_MAX = 100

_PARAMETERS = ("service", "region", "limit")
_PARAMETERS_MAX = 8
_LIMIT = re.compile(r"[0-9]{1,6}\Z")
# Every page may read whether a gateway runs, and measure its round-trip time.
_OPEN = "/healthz"
_SHARED = (CLOSEST, NODES)
_PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
    ("Access-Control-Allow-Headers", "Authorization"),
    ("Access-Control-Max-Age", "600"),
)

Headers = tuple[tuple[str, str], ...]


class Finder(Protocol):
    """Gateway that answers discovery requests."""

    @property
    def name(self) -> str:
        """Its configured name."""

    @property
    def running(self) -> list[str]:
        """Services that run there."""

    async def nodes(self, service: str) -> tuple[Candidate, ...]:
        """Return the known gateways of a service, itself first.

        Raises:
            NoSuchService: This gateway does not run the service.
            Overloaded: The service does not answer in time.
        """


class DiscoveryRequest(NamedTuple):
    """Parameters of a discovery request."""

    service: str = DEFAULT_SERVICE
    region: str = ""
    limit: int = LIMIT


class Closest(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `/closest`: candidates, best first."""

    gateway: str
    service: str
    region: str
    candidates: list[Candidate]


async def closest(gateway: Finder, query: str) -> bytes:
    """Return the candidates for a query, as JSON.

    Raises:
        BadOption: Invalid query; the text names the value and the limit.
        NoSuchService: This gateway does not run the service.
        Overloaded: The service does not answer in time.
    """
    sought = sought_in(query)
    found = ranked(await gateway.nodes(sought.service), sought.region, sought.limit)
    return msgspec.json.encode(
        Closest(
            gateway=gateway.name, service=sought.service, region=sought.region, candidates=found
        )
    )


async def nodes(gateway: Finder) -> bytes:
    """Return all known gateways by service, as JSON.

    Raises:
        Overloaded: A service does not answer in time.
    """
    found = {service: await gateway.nodes(service) for service in gateway.running}
    return msgspec.json.encode({"gateway": gateway.name, "services": found})


def sought_in(query: str) -> DiscoveryRequest:
    """Return the parameters of a query.

    Raises:
        BadOption: Invalid query.
    """
    try:
        given = parse_qsl(query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError as error:
        raise BadOption(f"a query has at most {_PARAMETERS_MAX} parameters") from error
    values = dict(given)
    if len(values) != len(given):
        raise BadOption("a parameter is given more than once")
    for name in values:
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise BadOption(f"there is no parameter {shortened(name)}, only {known}")
    service = values.get("service", DEFAULT_SERVICE)
    if not SERVICE_NAME.fullmatch(service.encode("utf-8", "replace")):
        raise BadOption(f"service {shortened(service)} is not 1 to 63 letters, digits, '-' and '_'")
    region = values.get("region", "")
    if not REGION.match(region):
        raise BadOption(
            f"region {shortened(region)} is not up to 63 letters, digits, '-', '_' and '.'"
        )
    limit = values.get("limit", str(LIMIT))
    if not _LIMIT.match(limit) or not 1 <= int(limit) <= LIMIT_MAX:
        raise BadOption(f"limit {shortened(limit)} is not in 1 … {LIMIT_MAX}")
    return DiscoveryRequest(service, region, int(limit))


def service_in(query: str) -> str:
    """Return the service that a query names, valid or not."""
    return parse_qs(query).get("service", [DEFAULT_SERVICE])[-1]


def shared_with(path: str, headers: Mapping[str, str], origins: tuple[str, ...]) -> Headers:
    """Return the headers that let a page of another origin read a path, mostly none.

    Raises:
        UntrustedOrigin: The page's origin is not trusted.
    """
    if path == _OPEN:
        return (("Access-Control-Allow-Origin", "*"),)
    if path not in _SHARED:
        return ()
    if not is_welcome(headers, origins):
        raise untrusted(headers)
    origin = headers.get("origin", "")
    if not origin:
        return ()
    return (("Access-Control-Allow-Origin", origin), ("Vary", "Origin"))


def preflight(path: str) -> Headers:
    """Return the headers that answer a preflight request; none where no origin may ask."""
    return _PREFLIGHT if path in (*_SHARED, _OPEN) else ()
