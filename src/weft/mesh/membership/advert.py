"""Signed advertisement of a gateway, flooded to the whole mesh.

Other gateways forward the exact bytes that were signed. Of two adverts of a gateway the one with
the later incarnation is valid, then the one with the later sequence number.
"""

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadAdvert, NotAdmitted
from weft.mesh.links.handshake import Admission, admission_mac, node_id
from weft.mesh.membership.load_level import LOAD_MAX
from weft.mesh.protocol import AdvertWord, Count, Dense, Number, Text

LINKS_MAX = 256
# Highest incarnation; no restart can follow it.
LAST_LIFE = (1 << 62) - 1

_LABEL = b"weft advert 1\0"


class Advert(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Addresses, links and interest version of one gateway of a service.

    `room` is the number of further links that it accepts, `digest` that of its interest set at
    `version`.
    """

    key: Annotated[bytes, Meta(min_length=32, max_length=32)]
    admission: Annotated[bytes, Meta(max_length=32)]
    service: Text
    number: Number
    incarnation: Count
    sequence: Count
    name: Text
    address: Text
    region: Text
    links: Annotated[tuple[Number, ...], Meta(max_length=LINKS_MAX)]
    room: Count
    version: Count
    digest: Dense
    is_leaving: bool = False
    # The advertised interest is a superset.
    is_coarse: bool = False
    # A level of mesh/membership/load_level.py.
    load: Annotated[int, Meta(ge=0, le=LOAD_MAX)] = 0
    # It refuses new clients and sends connected ones elsewhere.
    is_draining: bool = False

    @property
    def age(self) -> tuple[int, int]:
        """Order of adverts of one gateway, the latest largest."""
        return self.incarnation, self.sequence


class SignedAdvert(NamedTuple):
    """Advert with its signed bytes."""

    advert: Advert
    said: bytes
    signature: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Advert)


def sign(advert: Advert, admission: Admission) -> SignedAdvert:
    """Encode and sign an advert."""
    said = _encoder.encode(advert)
    return SignedAdvert(advert, said, admission.identity.sign(_LABEL + said))


def read(word: AdvertWord) -> Advert:
    """Decode an advert without verifying it.

    Raises:
        BadAdvert: invalid encoding.
    """
    try:
        return _decoder.decode(word.said)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAdvert(f"invalid advert of {len(word.said)} bytes: {error}") from error


def check(word: AdvertWord, advert: Advert, admission: Admission, service: str) -> None:
    """Verify the signature of an advert and that its gateway is authorized.

    Raises:
        BadAdvert: wrong signature or another service.
        NotAdmitted: not on the roster, or without the secret of the mesh.
    """
    if advert.service != service:
        raise BadAdvert(f"an advert of another service than {service!r}")
    if not admission.verify(advert.key, word.signature, _LABEL + word.said):
        raise BadAdvert(f"the advert of {node_id(advert.key).hex()} has an invalid signature")
    if admission.roster is not None:
        if advert.key not in admission.roster:
            raise NotAdmitted(f"{node_id(advert.key).hex()} is not on the roster")
    elif advert.admission != admission_mac(admission.secret, advert.key):
        raise NotAdmitted(f"{node_id(advert.key).hex()} does not know the secret of the mesh")
