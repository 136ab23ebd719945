"""How a gateway is told to be one of a mesh: the settings below `[mesh]`, and what they may be."""

import ipaddress
import re
from typing import Literal

import msgspec

from weft.errors import BadOption, shortened
from weft.mesh.membership.members import MEMBERS_MAX
from weft.transports.link_dialer import Target
from weft.wire.address import addresses_from

MAX_LINKS_MAX = 1024
# What gateways say to each other about themselves must fit several times.
OUTBOX_MIN_BYTES = 2 << 20
OUTBOX_MAX_BYTES = (1 << 31) - 1
# A greeting between gateways takes so much, with names that are not excessive.
GREETING_LEAST_BYTES = 2048

REGION = re.compile(r"[A-Za-z0-9._-]{0,63}\Z")
_KEY = re.compile(r"[0-9a-fA-F]{64}\Z")


class MeshSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With whom to be linked, and how they know each other.

    Raises:
        BadOption: a value that cannot be; the text names the key.
    """

    join: tuple[str, ...] = ()
    registry: tuple[str, ...] = ()
    max_links: int = 8
    relay: Literal["auto", "never"] = "auto"
    region: str = ""
    # What others should dial; empty: where it listens.
    address: str = ""
    secret_file: str = ""
    # Public keys, in hexadecimal. Empty: whoever knows the secret.
    roster: tuple[str, ...] = ()
    # Public keys of administrators whose commands are obeyed, beside those in the file of keys.
    admins: tuple[str, ...] = ()
    plain: Literal["loopback", "allowed"] = "loopback"
    tls_ca: str = ""
    # How many gateways there are at least: more than half of them have to agree to some things.
    gateways: int = 1
    forget_s: float = 60.0
    outbox_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        for key, addresses in (("join", self.join), ("registry", self.registry)):
            for address in addresses:
                _check_address(f"mesh.{key}", address)
        if self.address:
            _check_address("mesh.address", self.address)
            _check_dialled(self.address)
        _check_range("max_links", self.max_links, 1, MAX_LINKS_MAX)
        _check_range("gateways", self.gateways, 1, MEMBERS_MAX)
        _check_range("outbox_bytes", self.outbox_bytes, OUTBOX_MIN_BYTES, OUTBOX_MAX_BYTES)
        if not REGION.match(self.region):
            raise BadOption(
                f"mesh.region {shortened(self.region)} is not up to 63 letters, digits, '-', '_'"
                " and '.'"
            )
        for name, keys in (("roster", self.roster), ("admins", self.admins)):
            for key in keys:
                if not _KEY.match(key):
                    raise BadOption(f"mesh.{name}: {shortened(key)} is not a key of 64 hex digits")

    @property
    def is_guarded(self) -> bool:
        """Say if other gateways must prove that they belong to the mesh."""
        return bool(self.secret_file or self.roster)

    @property
    def is_asked_for(self) -> bool:
        """Say if anything was set that makes no sense without a mesh."""
        return bool(self.join or self.registry or self.is_guarded)


def target_of(address: str) -> Target:
    """Where an address leads, as people write it: `HOST:PORT`, or `tls://HOST:PORT`.

    Raises:
        BadOption: it is not an address of a gateway.
    """
    found = addresses_from([address])[0]
    if found.is_web:
        raise BadOption(f"address {shortened(address)}: links are not made by WebSocket")
    return Target(found.host, found.port, found.is_tls)


def address_of(target: Target) -> str:
    """How a target is written, always in the same way."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{'tls://' if target.is_tls else ''}{host}:{target.port}"


def check_reachable(mesh: MeshSettings, host: str) -> None:
    """See that others know where to dial a gateway that listens on this address.

    Raises:
        BadOption: nobody could tell from it.
    """
    if mesh.is_asked_for and not mesh.address and ipaddress.ip_address(host).is_unspecified:
        raise BadOption(
            f"listen {host} is no address that other gateways could dial: set mesh.address to one"
        )


def unguarded(mesh: MeshSettings, why: str) -> BadOption:
    """What is wrong with joining a mesh without a secret or a roster, and why that matters."""
    key = "mesh.join" if mesh.join else "mesh.registry"
    return BadOption(
        f"{key} is set, but neither mesh.secret_file nor mesh.roster: {why}, so it is linked only"
        " with gateways that prove to belong to its mesh; make a secret that all of them share:"
        " (umask 077; openssl rand -hex 32 > mesh.secret)"
    )


def _check_dialled(address: str) -> None:
    try:
        is_anywhere = ipaddress.ip_address(target_of(address).host).is_unspecified
    except ValueError:
        # A name; whether it leads anywhere is for others to find out.
        return
    if is_anywhere:
        raise BadOption(f"mesh.address {shortened(address)} is nothing that others could dial")


def _check_address(key: str, address: str) -> None:
    try:
        target_of(address)
    except BadOption as error:
        raise BadOption(f"{key}: {error}") from error


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadOption(f"mesh.{name} is {value}; it must be {least} … {most}")
