"""Signing key of an administrator, derived from the text of the admin key.

Gateways store its public key: they can verify signed commands, but cannot sign any.
"""

import hmac
from typing import TYPE_CHECKING

from weft.errors import BadOption

if TYPE_CHECKING:
    from weft.mesh.links.signing import Signer

_LABEL = b"weft admin key 1"
_PACKAGE = "cryptography"


def identity_of(text: str) -> "Signer":
    """Return the signer for the text of an admin key.

    Raises:
        BadOption: Missing package.
    """
    try:
        from weft.mesh.links.signing import Signer  # noqa: PLC0415  # needs an extra
    except ModuleNotFoundError as error:
        raise BadOption(f'commands need {_PACKAGE}: pip install "weft-mesh[mesh]"') from error
    return Signer(hmac.digest(text.encode(), _LABEL, "sha256"))


def public_key_of(text: str) -> str:
    """Return the public key for the text of a key, hexadecimal; empty without the package."""
    try:
        return identity_of(text).key.hex()
    except BadOption:
        return ""
