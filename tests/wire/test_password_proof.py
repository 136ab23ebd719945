import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.wire.password_proof import NOBODY, ProofInput, is_proven, prove, secret_of, sign

CLAIM = ProofInput("chat", b"games.chess", b"c" * 32, b"n" * 16)
SECRET = secret_of("chat", b"games.chess", "correct horse")


@pytest.mark.req("RLY-14")
def test_who_knows_the_password_proves_it() -> None:
    assert is_proven(SECRET.verifier, CLAIM, prove(SECRET, CLAIM))


def test_what_proves_a_password_is_not_shown() -> None:
    assert repr(SECRET) == "Secret(…)"
    assert repr(SECRET.client) not in repr([SECRET])


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize(
    ("service", "name", "password"),
    [
        ("chat", b"games.chess", "correct horsf"),
        ("chat", b"games.chess", ""),
        ("chat", b"games.go", "correct horse"),
        ("other", b"games.chess", "correct horse"),
    ],
)
def test_another_password_name_or_service_proves_nothing(
    service: str, name: bytes, password: str
) -> None:
    other = secret_of(service, name, password)
    assert not is_proven(SECRET.verifier, CLAIM, prove(other, CLAIM))


@pytest.mark.parametrize(
    "claim",
    [
        CLAIM._replace(challenge=b"d" * 32),
        CLAIM._replace(nonce=b"m" * 16),
        CLAIM._replace(name=b"games.go"),
        CLAIM._replace(service="other"),
    ],
)
def test_a_proof_is_good_for_its_own_claim_only(claim: ProofInput) -> None:
    assert not is_proven(SECRET.verifier, claim, prove(SECRET, CLAIM))


@given(proof=st.binary(max_size=64))
def test_no_bytes_prove_what_nobody_can(proof: bytes) -> None:
    assert not is_proven(NOBODY, CLAIM, proof)


def test_what_gateways_have_does_not_prove_anything() -> None:
    verifier = SECRET.verifier
    for key in verifier:
        assert not is_proven(verifier, CLAIM, prove(SECRET._replace(client=key), CLAIM))


def test_the_signature_shows_that_the_other_side_knows_the_keys() -> None:
    assert sign(SECRET.verifier.server, CLAIM) == sign(SECRET.server, CLAIM)
    assert sign(NOBODY.server, CLAIM) != sign(SECRET.server, CLAIM)


def test_a_password_is_the_same_however_its_letters_are_composed() -> None:
    assert secret_of("s", b"n", "caf\u00e9") == secret_of("s", b"n", "cafe\u0301")


def test_the_keys_are_those_that_the_docs_describe() -> None:
    salt = hashlib.sha256(b"weft channel salt 1\0chat\0games.chess").digest()
    salted = hashlib.scrypt(b"correct horse", salt=salt, n=16384, r=8, p=1, dklen=32)
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in salted.ljust(64, b"\0")) + b"client").digest()
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in salted.ljust(64, b"\0")) + inner).digest()
    assert SECRET.client == outer
    assert SECRET.verifier.stored == hashlib.sha256(outer).digest()
