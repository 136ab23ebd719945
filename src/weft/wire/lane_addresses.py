"""Decides which client addresses a gateway reveals to another client for a lane.

A host is the remote address of the client's socket at the gateway, never a claim of the client. A
loopback, link-local or private address is revealed only to clients in the same kind of network.
"""

import ipaddress
import re

# Random part of the name of a Unix socket, which makes it unguessable.
UNIX_RANDOM_BYTES = 16
PORT_MAX = 65_535


_UNIX = "weft-lane-{}"
_IS_UNIX = re.compile(_UNIX.format(f"[0-9a-f]{{{2 * UNIX_RANDOM_BYTES}}}"), re.ASCII)


def unix_name(random: str) -> str:
    """The name of a lane listener's Unix socket."""
    return _UNIX.format(random)


def is_unix_name(name: str) -> bool:
    """Return whether a name has exactly the form of a lane listener's Unix socket."""
    return _IS_UNIX.fullmatch(name) is not None


def reach_of(host: str) -> str:
    """`loopback`, `link-local`, `private` or `public`; empty if the host is not an IP address."""
    address = _address(host)
    if address is None:
        return ""
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "private" if address.is_private else "public"


def may_be_told(sender: str, receiver: str) -> bool:
    """Return whether the address of `receiver` may be revealed to `sender`."""
    reach = reach_of(receiver)
    return reach == "public" or (reach != "" and reach == reach_of(sender))


def is_encrypted(sender: str, receiver: str) -> bool:
    """Return whether a lane between two hosts must be encrypted: not both are on loopback."""
    return not reach_of(sender) == reach_of(receiver) == "loopback"


def written(host: str, port: int) -> str:
    """Format an address as `host:port`; empty if the host is not an IP address."""
    address = _address(host)
    if address is None:
        return ""
    # A scope is valid only on this machine.
    plain = str(address).partition("%")[0]
    return f"[{plain}]:{port}" if address.version == 6 else f"{plain}:{port}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
