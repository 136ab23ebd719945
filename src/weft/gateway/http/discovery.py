"""What a front answers to those who look for a gateway: `/nodes` and `/closest`.

Whoever is asked answers of what it knows from the adverts of the others, and is itself one of those
it names. Anybody's origin that the settings trust may read it, and nobody else's page.
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
# Anybody may see whether a gateway runs, and how far it is.
_OPEN = "/healthz"
_SHARED = (CLOSEST, NODES)
_PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
    ("Access-Control-Allow-Headers", "Authorization"),
    ("Access-Control-Max-Age", "600"),
)

Headers = tuple[tuple[str, str], ...]


class Finder(Protocol):
    """The gateway that is asked."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def running(self) -> list[str]:
        """The services that run there."""

    async def nodes(self, service: str) -> tuple[Candidate, ...]:
        """The gateways of a service that it knows, itself first.

        Raises:
            NoSuchService: it does not run it.
            Overloaded: the service does not say in time.
        """


class Sought(NamedTuple):
    """What somebody looks for."""

    service: str = DEFAULT_SERVICE
    region: str = ""
    limit: int = LIMIT


class Closest(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: where to try first, second and so on."""

    gateway: str
    service: str
    region: str
    candidates: list[Candidate]


async def closest(gateway: Finder, query: str) -> bytes:
    """The candidates for somebody who looks for a gateway, as JSON.

    Raises:
        BadOption: the query cannot be; the text names the value and the limit.
        NoSuchService: this gateway does not run the service.
        Overloaded: the service does not say in time.
    """
    sought = sought_in(query)
    found = ranked(await gateway.nodes(sought.service), sought.region, sought.limit)
    return msgspec.json.encode(
        Closest(
            gateway=gateway.name, service=sought.service, region=sought.region, candidates=found
        )
    )


async def nodes(gateway: Finder) -> bytes:
    """All gateways that are known, by service, as JSON.

    Raises:
        Overloaded: a service does not say in time.
    """
    found = {service: await gateway.nodes(service) for service in gateway.running}
    return msgspec.json.encode({"gateway": gateway.name, "services": found})


def sought_in(query: str) -> Sought:
    """What a query asks for.

    Raises:
        BadOption: it cannot be.
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
    return Sought(service, region, int(limit))


def service_in(query: str) -> str:
    """The service that a query names, whether it can be or not."""
    return parse_qs(query).get("service", [DEFAULT_SERVICE])[-1]


def shared_with(path: str, headers: Mapping[str, str], origins: tuple[str, ...]) -> Headers:
    """The headers that let a page of another origin read what is at a path; mostly none.

    Raises:
        UntrustedOrigin: it is a page of an origin that is not trusted.
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
    """What else is said to whoever asks whether it may ask; nothing where nobody may."""
    return _PREFLIGHT if path in (*_SHARED, _OPEN) else ()
