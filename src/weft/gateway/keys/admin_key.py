"""What the key of an administrator signs with: made from its text, so that there is one secret.

Gateways keep the public key of it. With that they can tell who gave a command, and cannot give any.
"""

import hmac
from typing import TYPE_CHECKING

from weft.errors import BadOption

if TYPE_CHECKING:
    from weft.mesh.links.signing import Signer

_LABEL = b"weft admin key 1"
_PACKAGE = "cryptography"


def identity_of(text: str) -> "Signer":
    """Who the owner of a key is to those who check what it has signed.

    Raises:
        BadOption: a package is missing.
    """
    try:
        from weft.mesh.links.signing import Signer  # noqa: PLC0415  # needs an extra
    except ModuleNotFoundError as error:
        raise BadOption(f'commands need {_PACKAGE}: pip install "weft-mesh[mesh]"') from error
    return Signer(hmac.digest(text.encode(), _LABEL, "sha256"))


def public_key_of(text: str) -> str:
    """The public key that belongs to a key, in hexadecimal; empty where none can be made."""
    try:
        return identity_of(text).key.hex()
    except BadOption:
        return ""
