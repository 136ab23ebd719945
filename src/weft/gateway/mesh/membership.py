"""Membership of a gateway in a mesh, determined by its front and sent to its services."""

import importlib.util
import os
from pathlib import Path

import msgspec

from weft.errors import BadOption
from weft.gateway.config.mesh_settings import MeshSettings, address_of, target_of
from weft.gateway.config.settings import Settings, SocketAddress
from weft.gateway.keys.node_key import SEED_BYTES, seed_in
from weft.gateway.keys.private_file import read_private
from weft.transports.link_dialer import client_context

# A shorter secret could be guessed offline from an overheard handshake.
SECRET_LEAST_BYTES = 16
SECRET_MAX_BYTES = 4096

_WHAT = "mesh.secret_file"
# Needed for the identity of a gateway.
_PACKAGE = "cryptography"


class MeshMembership(msgspec.Struct, frozen=True):
    """Identity and address of a gateway, and the secret that authenticates its mesh."""

    seed: bytes
    # Address that other gateways dial.
    address: str
    mesh: MeshSettings
    secret: bytes = b""

    def __repr__(self) -> str:
        return f"<Membership of {self.address}>"


def membership_of(settings: Settings) -> MeshMembership | None:
    """Return the membership for the settings; None without a mesh in packages and settings.

    Raises:
        BadOption: Unusable file, or a missing package that the settings need.
    """
    mesh = settings.mesh
    if importlib.util.find_spec(_PACKAGE) is None:
        if mesh.is_asked_for:
            raise BadOption(f'a mesh needs {_PACKAGE}: pip install "weft-mesh[mesh]"')
        return None
    if mesh.tls_ca:
        client_context(mesh.tls_ca)
    seed = seed_in(Path(settings.data)) if settings.data else os.urandom(SEED_BYTES)
    secret = _secret_in(Path(mesh.secret_file)) if mesh.secret_file else b""
    return MeshMembership(seed, mesh.address, mesh, secret)


def located(
    membership: MeshMembership, settings: Settings, listening: SocketAddress
) -> MeshMembership:
    """Return the membership with the address to dial, once the listen address is known."""
    target = target_of(membership.mesh.address or str(listening))
    # A gateway with TLS accepts only TLS.
    target = target._replace(is_tls=target.is_tls or settings.tls.is_on)
    return msgspec.structs.replace(membership, address=address_of(target))


def _secret_in(path: Path) -> bytes:
    body = read_private(path, _WHAT, SECRET_MAX_BYTES)
    if body is None:
        raise BadOption(f"{_WHAT} {path} does not exist")
    secret = body.strip()
    if len(secret) < SECRET_LEAST_BYTES:
        raise BadOption(
            f"{_WHAT} {path} has {len(secret)} bytes, the minimum is {SECRET_LEAST_BYTES}:"
            f" (umask 077; openssl rand -hex 32 > {path})"
        )
    return secret
