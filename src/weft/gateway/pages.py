"""The pages that a gateway shows to people, probes and Prometheus."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from importlib import resources
from pathlib import PurePath
from typing import Protocol

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from weft.errors import BadOption, NoSuchService, Overloaded
from weft.fabric.candidates import Candidate
from weft.gateway import finding
from weft.gateway.metrics import metrics
from weft.gateway.report import GatewayReport
from weft.gateway.web import Page

_INDEX = """\
A Weft gateway.

/healthz           ok while it runs
/readyz            whether it takes connections and every worker is up
/status            the gateway and its services, JSON
/metrics           the same for Prometheus
/nodes             the gateways of the mesh, by service, JSON
/closest           those to connect to, the best guess first: ?service=S&region=R&limit=N
/journal/SERVICE   what is kept of a service, JSON
/weft.js           the client for browsers and Node; /weft.d.ts has its types
"""

# What is served as it is, by the end of its name.
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".ts": "application/typescript; charset=utf-8",
}


class Shown(Protocol):
    """The gateway that the pages are about."""

    @property
    def unready(self) -> str:
        """Why it is not ready; empty if it is."""

    async def report(self) -> GatewayReport:
        """Everything it tells about itself."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def running(self) -> list[str]:
        """The services that run."""

    async def nodes(self, service: str) -> tuple[Candidate, ...]:
        """The gateways of a service, as Finder says."""


class Pages:
    """The pages by their path."""

    def __init__(self, gateway: Shown) -> None:
        self._gateway = gateway
        self._pages: dict[str, Callable[[], Awaitable[Page]]] = {
            "/": self._index,
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/status": self._status,
            "/metrics": self._metrics,
            finding.NODES: self._nodes,
        }
        self._files = files()

    async def page(self, path: str, query: str = "") -> Page | None:
        """The page at a path; None if there is none."""
        if path == finding.CLOSEST:
            return await _found(finding.closest(self._gateway, query))
        make = self._pages.get(path)
        return self._files.get(path) if make is None else await make()

    async def _index(self) -> Page:
        return Page(200, _INDEX)

    async def _health(self) -> Page:
        return Page(200, "ok\n")

    async def _readiness(self) -> Page:
        reason = self._gateway.unready
        return Page(503, f"{reason}\n") if reason else Page(200, "ready\n")

    async def _status(self) -> Page:
        body = msgspec.json.encode(await self._gateway.report())
        return Page(200, body.decode() + "\n", "application/json")

    async def _nodes(self) -> Page:
        return await _found(finding.nodes(self._gateway))

    async def _metrics(self) -> Page:
        body = metrics(await self._gateway.report())
        return Page(200, body.decode(), CONTENT_TYPE_LATEST)


async def _found(finding_it: Awaitable[bytes]) -> Page:
    """What somebody who looks for a gateway is answered."""
    try:
        body = await finding_it
    except BadOption as error:
        return Page(400, f"{error}\n")
    except NoSuchService as error:
        return Page(404, f"{error}\n")
    except Overloaded as error:
        return Page(503, f"{error}\n")
    return Page(200, body.decode() + "\n", "application/json")


def files() -> dict[str, Page]:
    """The files for browsers that come with Weft, by the paths that they are served at."""
    found = {}
    for file in resources.files("weft.pages").iterdir():
        kind = _KINDS.get(PurePath(file.name).suffix)
        if kind is not None:
            text = file.read_text(encoding="utf-8")
            tag = f'"{sha256(text.encode()).hexdigest()[:16]}"'
            found[f"/{file.name}"] = Page(200, text, kind, tag)
    return found
