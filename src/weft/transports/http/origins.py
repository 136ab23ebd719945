"""Which pages may talk to a gateway: the names it goes by, and the origins it trusts.

A browser can be led to any address by any page. It tells the page's origin with what it sends, so
a page from elsewhere is turned away; and it tells the name it was given, so a stranger's name that
leads here is, too.
"""

import ipaddress
import re
from collections.abc import Mapping

import msgspec

from weft.errors import NotAllowed, Refused, shortened
from weft.transports.tunnel.formats import FormatSettings

# Said by browsers alone: where the page came from that makes them ask.
_ELSEWHERE = {"cross-site", "same-site"}
# A name or an address, an IPv6 one in brackets, and maybe a port: nothing before, between, behind.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::[0-9]{0,5})?")

_ORIGIN_OF_PAGE = re.compile(r"(https?://[^/?#@\s]+)(?:[/?#]|\Z)")


class UntrustedOrigin(NotAllowed):
    """A page of an origin that is not among `web.origins`."""


class UnknownHost(Refused):
    """A request to a name that is not among `web.hosts`."""


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is allowed to pages and scripts; see docs/operations.md."""

    # Names that it goes by beside its address, and origins like `https://pages.example`.
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    deflate: bool = False
    # Answers as scripts, which a page from anywhere can run.
    jsonp: bool = False
    # Bayeux: how long a connect is held at most, how long a client should wait between two, how
    # long after that it is given up, how many there may be, and what one may be owed.
    bayeux_timeout_s: float = 30.0
    bayeux_interval_s: float = 0.0
    bayeux_lost_s: float = 10.0
    bayeux_sessions: int = 10_000
    bayeux_queue_bytes: int = 1 << 20
    # Let suites that test WebSockets talk to themselves at `/{service}/_echo`.
    debug_echo: bool = False
    # Tunnels: how many a service may have, and how long one stays that nobody is attached to.
    tunnels: int = 10_000
    # weft.js in the background looks once a minute if its connection is alive, gives it up a minute
    # later, and then connects.
    cull_s: float = 180.0
    # What is kept of each for whoever comes back.
    ring_bytes: int = 256 << 10
    ring_s: float = 180.0
    # And of all tunnels and Bayeux clients of a service together.
    kept_total_bytes: int = 512 << 20


class WebRules(WebSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a house goes by: the settings, and the formats that an operator has defined."""

    formats: dict[str, FormatSettings] = msgspec.field(default_factory=dict)


def is_here(host: str, hosts: tuple[str, ...]) -> bool:
    """Say if a Host header names this gateway, and not a name that a stranger gave it."""
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
    """Check that a request came neither by an unknown name nor from an untrusted page.

    Raises:
        UnknownHost: the host that it names is not this gateway.
        UntrustedOrigin: it comes from a page of an origin that is not trusted.
    """
    # Browsers always name the host; what does not is no browser that was lured here.
    host = headers.get("host")
    if host is not None and not is_here(host, rules.hosts):
        raise UnknownHost(f"this gateway does not go by the name {shortened(host)}: see web.hosts")
    if not is_welcome(headers, rules.origins) and not is_trusted_script(headers, rules):
        raise untrusted(headers)


def is_trusted_script(headers: Mapping[str, str], rules: WebSettings) -> bool:
    """Return whether a trusted page loads an answer as a script, where that is allowed.

    Of a script browsers do not send the page's origin, only a referrer: a page can leave that out,
    but not make it up.
    """
    if not rules.jsonp or "origin" in headers or headers.get("sec-fetch-dest") != "script":
        return False
    found = _ORIGIN_OF_PAGE.match(headers.get("referer", ""))
    return found is not None and found[1] in rules.origins


def untrusted(headers: Mapping[str, str]) -> UntrustedOrigin:
    """The refusal of a page, which names its origin."""
    origin = headers.get("origin")
    which = f"pages of {shortened(origin)}" if origin else "pages of another site"
    return UntrustedOrigin(f"{which} are not trusted: see web.origins")


def is_welcome(headers: Mapping[str, str], origins: tuple[str, ...]) -> bool:
    """Say if a request comes from no page, from a page of this gateway, or from one it trusts."""
    origin = headers.get("origin", "")
    if origin in origins and origin:
        return True
    if origin:
        # Of a page that is nobody's, `null` is said.
        return origin.partition("://")[2] == headers.get("host", "") != ""
    return headers.get("sec-fetch-site", "") not in _ELSEWHERE
