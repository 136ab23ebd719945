"""Authentication of links, with the identity and secret that the front has sent to its services."""

import os

from weft.errors import NoSuchService, WeftError
from weft.gateway.mesh.membership import MeshMembership
from weft.mesh.links.handshake import NONCE_BYTES, Admission, GatewayIntroduction, Handshake
from weft.mesh.links.signing import Signer, verify
from weft.wire.frames import Frame

_NOBODY = GatewayIntroduction(1, 0, "", "", "", 0)


def admission_of(membership: MeshMembership) -> Admission:
    """Return the identity of this gateway, and the condition for admitting others."""
    roster = frozenset(bytes.fromhex(key) for key in membership.mesh.roster)
    identity = Signer(membership.seed)
    return Admission(identity, verify, membership.secret, roster or None)


def refusal(membership: MeshMembership, service: str, hello: Frame) -> WeftError:
    """Return the error for a gateway that asks for a service which does not run.

    Only a gateway of this mesh learns that; others get the same error as from a running service.
    """
    nonce = os.urandom(NONCE_BYTES)
    listener = Handshake(admission_of(membership), service, _NOBODY, nonce, is_dialler=False)
    try:
        listener.hear(hello)
    except WeftError as error:
        return error
    return NoSuchService(f"this gateway does not run a service {service!r} at the moment")
