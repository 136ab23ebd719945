"""Which address of one client another may be told: never one that leads to a stranger.

A host is what the gateway's own socket says that a client comes from, never what a client says. An
address that means something else elsewhere is told only to those who come from the like of it.
"""

import ipaddress
import re

# What nobody can guess of the name of a listener on the machine.
UNIX_RANDOM_BYTES = 16
PORT_MAX = 65_535


_UNIX = "weft-lane-{}"
_IS_UNIX = re.compile(_UNIX.format(f"[0-9a-f]{{{2 * UNIX_RANDOM_BYTES}}}"), re.ASCII)


def unix_name(random: str) -> str:
    """What a listener is called on its machine."""
    return _UNIX.format(random)


def is_unix_name(name: str) -> bool:
    """Say if a name could be that of a listener, and of nothing else on the machine."""
    return _IS_UNIX.fullmatch(name) is not None


def reach_of(host: str) -> str:
    """From where a host is reached: `loopback`, `link-local`, `private`, or `public`; or empty."""
    address = _address(host)
    if address is None:
        return ""
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "private" if address.is_private else "public"


def may_be_told(sender: str, receiver: str) -> bool:
    """Say if whoever comes from one host may be told the address of the other."""
    reach = reach_of(receiver)
    return reach == "public" or (reach != "" and reach == reach_of(sender))


def is_encrypted(sender: str, receiver: str) -> bool:
    """Say if what goes between two hosts could be heard by others."""
    return not reach_of(sender) == reach_of(receiver) == "loopback"


def written(host: str, port: int) -> str:
    """An address as people write it."""
    address = _address(host)
    if address is None:
        return ""
    # A scope means something at this gateway alone.
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
