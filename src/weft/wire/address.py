"""Addresses of gateways: `host:port`, or a URL with `tcp://`, `tls://`, `ws://` or `wss://`."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft.errors import BadOption, shortened

DEFAULT_ADDRESS = "127.0.0.1:7411"
DEFAULT_PORT = 7411

_SCHEMES = ("tcp", "tls", "ws", "wss")


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of one gateway, with or without TLS and WebSocket."""

    host: str
    port: int
    is_tls: bool
    is_web: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        plain, encrypted = ("ws", "wss") if self.is_web else ("tcp", "tls")
        return f"{encrypted if self.is_tls else plain}://{host}:{self.port}"


def addresses_from(given: str | Iterable[str]) -> tuple[Address, ...]:
    """Return the addresses in a comma-separated text or in several texts.

    Raises:
        BadOption: invalid address, or no address.
    """
    texts = given.split(",") if isinstance(given, str) else list(given)
    addresses = tuple(_address(text.strip()) for text in texts)
    if not addresses:
        raise BadOption("no gateway address was given")
    return addresses


def _address(text: str) -> Address:
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "tcp", text
    if scheme not in _SCHEMES:
        raise BadOption(f"address {shortened(text)} has a scheme other than tcp, tls, ws or wss")
    host, port = _host_and_port(rest)
    if not host or "/" in rest or "@" in rest:
        raise BadOption(f"address {shortened(text)} is not host:port")
    if not _is_name(host):
        raise BadOption(f"address {shortened(text)} has an invalid host name")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadOption(f"address {shortened(text)} has no port in 1 … 65535")
    return Address(host, int(port), scheme in ("tls", "wss"), scheme in ("ws", "wss"))


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, after = text[1:].partition("]")
        return host, after.removeprefix(":") if after else str(DEFAULT_PORT)
    host, separator, port = text.rpartition(":")
    if not separator:
        return text, str(DEFAULT_PORT)
    # A bare IPv6 address has colons of its own; only brackets tell where its port begins.
    return ("", port) if ":" in host else (host, port)


def _is_name(host: str) -> bool:
    try:
        # Encoded as for a DNS query: an empty label or one over 63 bytes raises.
        host.encode("idna")
    except UnicodeError:
        return False
    return host.isprintable() and " " not in host
