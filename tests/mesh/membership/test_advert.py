"""What gateways say about themselves under their signature."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.impostor import SERVICE, Impostor
from tests.mesh.mesh import Net, admission_of, identity_of

from weft.errors import BadAdvert, NotAdmitted, WeftError
from weft.mesh.links.handshake import Admission
from weft.mesh.links.signing import verify
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import LINKS_MAX
from weft.mesh.membership.load_level import LOAD_MAX
from weft.mesh.protocol import AdvertWord

ROGUE = Impostor(Net())
MEMBER = admission_of(1)


def test_what_was_signed_is_what_is_read() -> None:
    signed = ROGUE.signed(name="weather-1", links=(1, 2), version=3)
    word = AdvertWord(signed.said, signed.signature)
    assert adverts.read(word) == signed.advert
    adverts.check(word, signed.advert, MEMBER, SERVICE)


def test_a_later_life_counts_more_than_a_later_word() -> None:
    first, second = ROGUE.signed(incarnation=1, sequence=9), ROGUE.signed(incarnation=2, sequence=1)
    assert first.advert.age < second.advert.age


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_byte_of_what_was_signed_can_be_changed(at: int, mask: int) -> None:
    word = ROGUE.advert()
    said = bytearray(word.said)
    said[at % len(said)] ^= mask
    changed = msgspec.structs.replace(word, said=bytes(said))
    with pytest.raises(WeftError):
        adverts.check(changed, adverts.read(changed), MEMBER, SERVICE)


@given(st.binary(max_size=300))
def test_any_bytes_are_an_advert_or_refused(said: bytes) -> None:
    with pytest.raises(BadAdvert):
        adverts.read(AdvertWord(said, b""))


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 0},
        {"number": 1 << 32},
        {"incarnation": -1},
        {"incarnation": 1 << 62},
        {"sequence": 1 << 62},
        {"links": tuple(range(1, LINKS_MAX + 2))},
        {"links": (0,)},
        {"load": -1},
        {"load": LOAD_MAX + 1},
        {"name": "x" * 256},
        {"address": "x" * 256},
        {"key": b"x"},
        {"digest": -1},
    ],
)
def test_what_is_over_its_bounds_is_no_advert(changes: dict[str, Any]) -> None:
    with pytest.raises(BadAdvert):
        adverts.read(ROGUE.advert(**changes))


def test_whoever_does_not_know_the_secret_is_not_admitted() -> None:
    word = Impostor(Net(), secret=b"guess").advert()
    with pytest.raises(NotAdmitted):
        adverts.check(word, adverts.read(word), MEMBER, SERVICE)


def test_a_roster_counts_more_than_the_secret() -> None:
    word = ROGUE.advert()
    for keys, is_admitted in (
        (frozenset({ROGUE.admission.identity.key}), True),
        (frozenset(), False),
    ):
        admission = Admission(identity_of(1), verify, b"another", keys)
        if is_admitted:
            adverts.check(word, adverts.read(word), admission, SERVICE)
        else:
            with pytest.raises(NotAdmitted):
                adverts.check(word, adverts.read(word), admission, SERVICE)
