"""Which pages may talk to a gateway: the names it goes by, and the origins it trusts.

A browser can be led to any address by any page. It tells the page's origin with what it sends, so
a page from elsewhere is turned away; and it tells the name it was given, so a stranger's name that
leads here is, too.
"""

import ipaddress
from collections.abc import Mapping

import msgspec

from weft.dialects.formats import FormatSettings

# Said by browsers alone: where the page came from that makes them ask.
_ELSEWHERE = {"cross-site", "same-site"}


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
    cull_s: float = 60.0
    # What is kept of each for whoever comes back.
    ring_bytes: int = 256 << 10
    ring_s: float = 60.0


class WebRules(WebSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a house goes by: the settings, and the formats that an operator has defined."""

    formats: dict[str, FormatSettings] = msgspec.field(default_factory=dict)


def is_here(host: str, hosts: tuple[str, ...]) -> bool:
    """Say if a Host header names this gateway, and not a name that a stranger gave it."""
    name = host.partition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]
    known = ("localhost", *hosts)
    if any(name.lower() == each.lower() for each in known):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_welcome(headers: Mapping[str, str], origins: tuple[str, ...]) -> bool:
    """Say if a request comes from no page, from a page of this gateway, or from one it trusts."""
    origin = headers.get("origin", "")
    if origin in origins and origin:
        return True
    if origin:
        # Of a page that is nobody's, `null` is said.
        return origin.partition("://")[2] == headers.get("host", "") != ""
    return headers.get("sec-fetch-site", "") not in _ELSEWHERE
