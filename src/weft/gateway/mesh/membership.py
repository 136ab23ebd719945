"""What makes a gateway one of a mesh, as its front finds it out and tells its services."""

import importlib.util
import os
from pathlib import Path

import msgspec

from weft.errors import BadOption
from weft.gateway.config.mesh_settings import MeshSettings, address_of, target_of
from weft.gateway.config.settings import Address, Settings
from weft.gateway.keys.node_key import SEED_BYTES, seed_in
from weft.gateway.keys.private_file import read_private
from weft.transports.link_dialer import client_context

# What can be guessed is no secret: others may try, as often as they like, with what they overheard.
SECRET_LEAST_BYTES = 16
SECRET_MAX_BYTES = 4096

_WHAT = "mesh.secret_file"
# What the identity of a gateway needs.
_PACKAGE = "cryptography"


class Membership(msgspec.Struct, frozen=True):
    """Who a gateway is to others, and how they know that they belong together."""

    seed: bytes
    # What others should dial.
    address: str
    mesh: MeshSettings
    secret: bytes = b""

    def __repr__(self) -> str:
        return f"<Membership of {self.address}>"


def membership_of(settings: Settings) -> Membership | None:
    """What the settings make of a gateway; None where a mesh is neither possible nor asked for.

    Raises:
        BadOption: a file cannot be used, or a package is missing that was not missed so far.
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
    return Membership(seed, mesh.address, mesh, secret)


def located(membership: Membership, settings: Settings, listening: Address) -> Membership:
    """The same, with what others should dial now that it is known where the gateway listens."""
    target = target_of(membership.mesh.address or str(listening))
    # Whoever speaks TLS only cannot be dialled otherwise.
    target = target._replace(is_tls=target.is_tls or settings.tls.is_on)
    return msgspec.structs.replace(membership, address=address_of(target))


def _secret_in(path: Path) -> bytes:
    body = read_private(path, _WHAT, SECRET_MAX_BYTES)
    if body is None:
        raise BadOption(f"{_WHAT} {path} does not exist")
    secret = body.strip()
    if len(secret) < SECRET_LEAST_BYTES:
        raise BadOption(
            f"{_WHAT} {path} holds {len(secret)} bytes, and {SECRET_LEAST_BYTES} are the least:"
            f" (umask 077; openssl rand -hex 32 > {path})"
        )
    return secret
