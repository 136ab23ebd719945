"""What a gateway says about itself to all the others, under its signature.

Nobody else can say it: whoever passes an advert on passes on the very bytes that were signed. Of
two adverts of a gateway the one of the later incarnation counts, and of those the later one.
"""

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadAdvert, NotAdmitted
from weft.mesh.links.handshake import Admission, admission_mac, node_id
from weft.mesh.membership.load_level import LOAD_MAX
from weft.mesh.protocol import AdvertWord, Count, Dense, Number, Text

LINKS_MAX = 256
# After this life of a gateway there can be no other.
LAST_LIFE = (1 << 62) - 1

_LABEL = b"weft advert 1\0"


class Advert(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One gateway of one service: who and where it is, its links, and the version of its interest.

    `room` is how many more links it would take, `digest` that of what it wants at `version`.
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
    # More is said to be wanted than is.
    is_coarse: bool = False
    # A step of mesh/membership/load_level.py.
    load: Annotated[int, Meta(ge=0, le=LOAD_MAX)] = 0
    # It takes no newcomers, and sends those away who are there.
    is_draining: bool = False

    @property
    def age(self) -> tuple[int, int]:
        """What is larger the later it was said."""
        return self.incarnation, self.sequence


class Signed(NamedTuple):
    """An advert, and the bytes of it that were signed."""

    advert: Advert
    said: bytes
    signature: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Advert)


def sign(advert: Advert, admission: Admission) -> Signed:
    """Say it."""
    said = _encoder.encode(advert)
    return Signed(advert, said, admission.identity.sign(_LABEL + said))


def read(word: AdvertWord) -> Advert:
    """What an advert says, whether that is true or not.

    Raises:
        BadAdvert: it is none.
    """
    try:
        return _decoder.decode(word.said)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAdvert(f"an advert of {len(word.said)} bytes cannot be read: {error}") from error


def check(word: AdvertWord, advert: Advert, admission: Admission, service: str) -> None:
    """Make sure that an advert was said by its gateway, and that this belongs to the mesh.

    Raises:
        BadAdvert: somebody else made it, or it is of another service.
        NotAdmitted: its gateway is none of the mesh, as far as is known here.
    """
    if advert.service != service:
        raise BadAdvert(f"an advert of another service than {service!r}")
    if not admission.verify(advert.key, word.signature, _LABEL + word.said):
        raise BadAdvert(f"the advert of {node_id(advert.key).hex()} was not signed by it")
    if admission.roster is not None:
        if advert.key not in admission.roster:
            raise NotAdmitted(f"{node_id(advert.key).hex()} is not on the roster")
    elif advert.admission != admission_mac(admission.secret, advert.key):
        raise NotAdmitted(f"{node_id(advert.key).hex()} does not know the secret of the mesh")
