"""Origin checks: the host names of a gateway, and the web origins that it trusts.

Any web page can make a browser connect to any address. Browsers send the page's origin, so requests
from untrusted origins are refused; and they send the host name that they resolved, so unknown names
are refused, too (DNS rebinding).
"""

import ipaddress
import re
from collections.abc import Mapping

import msgspec

from weft.errors import NotAllowed, Refused, shortened
from weft.transports.tunnel.formats import FormatSettings

# Values of Sec-Fetch-Site for pages of another origin; only browsers send it.
_ELSEWHERE = {"cross-site", "same-site"}
# A name or an address, an IPv6 one in brackets, and an optional port; nothing else.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::[0-9]{0,5})?")

_ORIGIN_OF_PAGE = re.compile(r"(https?://[^/?#@\s]+)(?:[/?#]|\Z)")


class UntrustedOrigin(NotAllowed):
    """Origin of a page that is not listed in `web.origins`."""


class UnknownHost(Refused):
    """Host name that is not listed in `web.hosts`."""


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings for web pages and scripts; see docs/operations.md."""

    # Host names of the gateway besides its address, and origins like `https://pages.example`.
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    deflate: bool = False
    # JSONP: responses as scripts, which any page can run.
    jsonp: bool = False
    # Bayeux: how long a connect is held at most, how long a client should wait between two, after
    # which further time it is lost, the number of sessions, and the queued bytes of each.
    bayeux_timeout_s: float = 30.0
    bayeux_interval_s: float = 0.0
    bayeux_lost_s: float = 10.0
    bayeux_sessions: int = 10_000
    bayeux_queue_bytes: int = 1 << 20
    # `/{service}/_echo`, for WebSocket test suites.
    debug_echo: bool = False
    # Tunnels: their number per service, and how long a detached one is kept.
    tunnels: int = 10_000
    # weft.js in a background tab checks its connection once a minute, closes it a minute later, and
    # then reconnects.
    cull_s: float = 180.0
    # Replay buffer of each tunnel.
    ring_bytes: int = 256 << 10
    ring_s: float = 180.0
    # Total for all tunnels and Bayeux sessions of a service.
    kept_total_bytes: int = 512 << 20


class WebRules(WebSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules of an HTTP server: the settings and the operator's own formats."""

    formats: dict[str, FormatSettings] = msgspec.field(default_factory=dict)


def is_here(host: str, hosts: tuple[str, ...]) -> bool:
    """Return whether a Host header names this gateway: a configured name or a loopback address."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1] or found[2]
    known = ("localhost", *hosts)
    if any(name.lower() == each.lower() for each in known):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_page(headers: Mapping[str, str], rules: WebSettings) -> None:
    """Check the host name and the origin of a request.

    Raises:
        UnknownHost: the Host header does not name this gateway.
        UntrustedOrigin: the page's origin is not trusted.
    """
    # Browsers always send Host; clients without it are not browsers.
    host = headers.get("host")
    if host is not None and not is_here(host, rules.hosts):
        raise UnknownHost(f"{shortened(host)} is not a name of this gateway: see web.hosts")
    if not is_welcome(headers, rules.origins) and not is_trusted_script(headers, rules):
        raise untrusted(headers)


def is_trusted_script(headers: Mapping[str, str], rules: WebSettings) -> bool:
    """Return whether a trusted page loads a response as a script, with JSONP enabled.

    For scripts browsers send no origin, only a referrer, which a page can omit but not forge.
    """
    if not rules.jsonp or "origin" in headers or headers.get("sec-fetch-dest") != "script":
        return False
    found = _ORIGIN_OF_PAGE.match(headers.get("referer", ""))
    return found is not None and found[1] in rules.origins


def untrusted(headers: Mapping[str, str]) -> UntrustedOrigin:
    """Return the error for an untrusted page; it names the origin."""
    origin = headers.get("origin")
    which = f"pages of {shortened(origin)}" if origin else "pages of another site"
    return UntrustedOrigin(f"{which} are not trusted: see web.origins")


def is_welcome(headers: Mapping[str, str], origins: tuple[str, ...]) -> bool:
    """Return whether a request comes from no page, the gateway's own page or a trusted one."""
    origin = headers.get("origin", "")
    if origin in origins and origin:
        return True
    if origin:
        # Browsers send `null` for a page without an origin.
        return origin.partition("://")[2] == headers.get("host", "") != ""
    return headers.get("sec-fetch-site", "") not in _ELSEWHERE
