"""Settings below `[mesh]` and their validation."""

import ipaddress
import re
from typing import Literal

import msgspec

from weft.errors import BadOption, shortened
from weft.mesh.membership.members import MEMBERS_MAX
from weft.transports.link_dialer import LinkTarget
from weft.wire.address import addresses_from

MAX_LINKS_MAX = 1024
# Room for several control messages of maximum size.
OUTBOX_MIN_BYTES = 2 << 20
OUTBOX_MAX_BYTES = (1 << 31) - 1
# Size of a link handshake with names of ordinary length.
GREETING_LEAST_BYTES = 2048

REGION = re.compile(r"[A-Za-z0-9._-]{0,63}\Z")
_KEY = re.compile(r"[0-9a-fA-F]{64}\Z")


class MeshSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a gateway's part in a mesh: peers, authentication and limits.

    Raises:
        BadOption: Invalid value; the text names the key.
    """

    join: tuple[str, ...] = ()
    registry: tuple[str, ...] = ()
    max_links: int = 8
    relay: Literal["auto", "never"] = "auto"
    region: str = ""
    # Address that other gateways dial; empty: the listen address.
    address: str = ""
    secret_file: str = ""
    # Public keys in hexadecimal. Empty: every gateway that knows the secret.
    roster: tuple[str, ...] = ()
    # Public keys of administrators whose commands are executed, beside those in the key file.
    admins: tuple[str, ...] = ()
    plain: Literal["loopback", "allowed"] = "loopback"
    tls_ca: str = ""
    # Least number of gateways in the mesh; a quorum is more than half of them.
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
        """Return whether other gateways must prove that they belong to the mesh."""
        return bool(self.secret_file or self.roster)

    @property
    def is_asked_for(self) -> bool:
        """Return whether a setting is present that only makes sense in a mesh."""
        return bool(self.join or self.registry or self.is_guarded)


def target_of(address: str) -> LinkTarget:
    """Return the target of an address: `HOST:PORT`, or `tls://HOST:PORT`.

    Raises:
        BadOption: Not the address of a gateway.
    """
    found = addresses_from([address])[0]
    if found.is_web:
        raise BadOption(f"address {shortened(address)}: links do not use WebSocket")
    return LinkTarget(found.host, found.port, found.is_tls)


def address_of(target: LinkTarget) -> str:
    """Return the canonical text of a target."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{'tls://' if target.is_tls else ''}{host}:{target.port}"


def check_reachable(mesh: MeshSettings, host: str) -> None:
    """Check that other gateways can dial a gateway that listens on this address.

    Raises:
        BadOption: Unspecified address, and mesh.address is not set.
    """
    if mesh.is_asked_for and not mesh.address and ipaddress.ip_address(host).is_unspecified:
        raise BadOption(
            f"listen {host} is not an address that other gateways can dial: set mesh.address to one"
        )


def unguarded(mesh: MeshSettings, why: str) -> BadOption:
    """Return the error for a mesh without secret and roster, with the reason why it needs one."""
    key = "mesh.join" if mesh.join else "mesh.registry"
    return BadOption(
        f"{key} is set, but neither mesh.secret_file nor mesh.roster: {why}, so it links only with"
        " gateways that prove membership of its mesh; make a secret that all of them share:"
        " (umask 077; openssl rand -hex 32 > mesh.secret)"
    )


def _check_dialled(address: str) -> None:
    try:
        is_anywhere = ipaddress.ip_address(target_of(address).host).is_unspecified
    except ValueError:
        # A host name, which is not resolved here.
        return
    if is_anywhere:
        raise BadOption(f"mesh.address {shortened(address)} is not an address that others can dial")


def _check_address(key: str, address: str) -> None:
    try:
        target_of(address)
    except BadOption as error:
        raise BadOption(f"{key}: {error}") from error


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadOption(f"mesh.{name} is {value}; it must be {least} … {most}")
