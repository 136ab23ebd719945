"""Pages of a gateway for people, probes and Prometheus."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from weft.errors import BadOption, NoSuchService, Overloaded
from weft.gateway.http import discovery
from weft.gateway.http.metrics import metrics
from weft.gateway.http.report import GatewayReport
from weft.gateway.http.response import PageResponse, refused
from weft.gateway.http.static_files import static_files, static_page, versioned_path
from weft.mesh.candidates import Candidate
from weft.transports.http.exchange import status_of

_INDEX = """\
A Weft gateway.

/healthz           ok while it runs
/readyz            whether it takes connections and every worker is up
/status            the gateway and its services, JSON
/metrics           the same for Prometheus
/nodes             the gateways of the mesh, by service, JSON
/closest           gateways to connect to, best first: ?service=S&region=R&limit=N
/journal/SERVICE   the journal of a service, JSON
/weft.js           the client for browsers and Node; /weft.d.ts has its types
{versioned}
                   the same, which browsers cache permanently
"""


class Shown(Protocol):
    """Gateway that the pages describe."""

    @property
    def unready(self) -> str:
        """Reason why it is not ready; empty if it is."""

    async def report(self) -> GatewayReport:
        """Return the status of the gateway and its services."""

    @property
    def name(self) -> str:
        """Its configured name."""

    @property
    def running(self) -> list[str]:
        """Services that run there."""

    async def nodes(self, service: str) -> tuple[Candidate, ...]:
        """Return the gateways of a service; see `Finder.nodes`."""


class GatewayPages:
    """Pages by their path."""

    def __init__(self, gateway: Shown) -> None:
        self._gateway = gateway
        # Prepared now, so that no request waits for it.
        static_files()
        self._pages: dict[str, Callable[[], Awaitable[PageResponse]]] = {
            "/": self._index,
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/status": self._status,
            "/metrics": self._metrics,
            discovery.NODES: self._nodes,
        }

    async def page(self, path: str, query: str = "") -> PageResponse | None:
        """Return the page at a path; None if there is none."""
        if path == discovery.CLOSEST:
            return await _found(discovery.closest(self._gateway, query))
        make = self._pages.get(path)
        return static_page(path) if make is None else await make()

    async def _index(self) -> PageResponse:
        return PageResponse(200, _INDEX.format(versioned=versioned_path()))

    async def _health(self) -> PageResponse:
        return PageResponse(200, "ok\n")

    async def _readiness(self) -> PageResponse:
        reason = self._gateway.unready
        return PageResponse(503, f"{reason}\n") if reason else PageResponse(200, "ready\n")

    async def _status(self) -> PageResponse:
        body = msgspec.json.encode(await self._gateway.report())
        return PageResponse(200, body.decode() + "\n", "application/json")

    async def _nodes(self) -> PageResponse:
        return await _found(discovery.nodes(self._gateway))

    async def _metrics(self) -> PageResponse:
        body = metrics(await self._gateway.report())
        return PageResponse(200, body.decode(), CONTENT_TYPE_LATEST)


async def _found(finding_it: Awaitable[bytes]) -> PageResponse:
    """Return the page of a discovery answer or its error."""
    try:
        body = await finding_it
    except (BadOption, NoSuchService, Overloaded) as error:
        return refused(status_of(error), error)
    return PageResponse(200, body.decode() + "\n", "application/json")
