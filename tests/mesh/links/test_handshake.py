"""Two gateways know each other after three frames, and nobody else passes for either."""

import hashlib
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.broker.limits import Limits
from weft.errors import (
    BadGreeting,
    CopiedKey,
    LinkedToSelf,
    NotAdmitted,
    Refused,
    SameNumber,
    WeftError,
)
from weft.mesh.links.handshake import (
    HANDSHAKE_MAX_BYTES,
    NONCE_BYTES,
    Admission,
    GatewayIntroduction,
    Handshake,
    admission_mac,
    node_id,
)
from weft.mesh.links.signing import Signer, verify
from weft.wire.frames import HEADER_BYTES, NAME_MAX_BYTES, Frame, Kind, encode, parse

ANN = Signer(b"a" * 32)
BOB = Signer(b"b" * 32)
EVE = Signer(b"e" * 32)
ABOUT_ANN = GatewayIntroduction(11, 5, "ann", "127.0.0.1:7411", "north", 2)
ABOUT_BOB = GatewayIntroduction(4_000_000_000, 6, "bob", "[::1]:7412", "", 0, is_registering=True)
SECRET = b"what only members know"
FRAMES = ["hello", "answer", "proof"]


class Pair(NamedTuple):
    dialler: Handshake
    listener: Handshake


def pair(
    ann: Admission,
    bob: Admission,
    *,
    nonces: tuple[bytes, bytes] = (b"1", b"2"),
    about: GatewayIntroduction = ABOUT_ANN,
) -> Pair:
    first, second = (each * NONCE_BYTES for each in nonces)
    return Pair(
        Handshake(ann, "weather", about, first, is_dialler=True),
        Handshake(bob, "weather", ABOUT_BOB, second, is_dialler=False),
    )


def members(secret: bytes = SECRET, roster: frozenset[bytes] | None = None) -> Pair:
    return pair(Admission(ANN, verify, secret, roster), Admission(BOB, verify, secret, roster))


def shake(both: Pair, frames: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """Let both hear each other, or the given frames instead; everything that they said."""
    instead = frames or {}
    said = {"hello": both.dialler.begin()}
    said["answer"] = both.listener.hear(parse(instead.get("hello", said["hello"])))
    said["proof"] = both.dialler.hear(parse(instead.get("answer", said["answer"])))
    assert both.listener.hear(parse(instead.get("proof", said["proof"]))) == b""
    return said


@pytest.mark.parametrize("secret", [b"", SECRET])
@pytest.mark.parametrize("roster", [None, frozenset({ANN.key, BOB.key})])
def test_both_learn_who_the_other_is(secret: bytes, roster: frozenset[bytes] | None) -> None:
    both = members(secret, roster)
    shake(both)
    assert both.listener.other == (ANN.key, ABOUT_ANN)
    assert both.dialler.other == (BOB.key, ABOUT_BOB)


def test_nobody_is_known_before_it_was_proven() -> None:
    both = members()
    answer = both.listener.hear(parse(both.dialler.begin()))
    assert both.listener.other is None
    assert both.dialler.other is None
    both.dialler.hear(parse(answer))
    assert both.listener.other is None


@pytest.mark.parametrize("secret", [b"", SECRET])
@pytest.mark.parametrize("name", FRAMES)
def test_no_byte_can_be_changed_on_the_way(name: str, secret: bytes) -> None:
    honest = shake(members(secret))[name]
    for at in range(4, len(honest)):
        for mask in (0x01, 0x1C, 0x80, 0xFF):
            changed = bytearray(honest)
            changed[at] ^= mask
            both = members(secret)
            with pytest.raises(WeftError):
                shake(both, {name: bytes(changed)})
            assert both.listener.other is None, f"byte {at} of {name} ^ {mask}"
            assert name == "proof" or both.dialler.other is None, f"byte {at} of {name} ^ {mask}"


@pytest.mark.parametrize("name", FRAMES)
def test_nothing_can_be_cut_off_or_added(name: str) -> None:
    honest = parse(shake(members())[name])
    bodies = [honest.body[:size] for size in range(len(honest.body))] + [honest.body + b"\x00"]
    for body in bodies:
        with pytest.raises(BadGreeting):
            shake(members(), {name: encode(honest.kind, honest.subject, body)})


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("secret", [b"", SECRET])
def test_what_was_said_on_another_link_is_not_believed(name: str, secret: bytes) -> None:
    earlier = pair(
        Admission(ANN, verify, secret), Admission(BOB, verify, secret), nonces=(b"8", b"9")
    )
    replayed = shake(earlier)[name]
    both = members(secret)
    with pytest.raises(NotAdmitted):
        shake(both, {name: replayed})
    assert both.listener.other is None


def test_a_whole_replayed_handshake_ends_at_the_fresh_nonce() -> None:
    heard = shake(members())
    listener = pair(
        Admission(ANN, verify, SECRET), Admission(BOB, verify, SECRET), nonces=(b"1", b"3")
    ).listener
    listener.hear(parse(heard["hello"]))
    with pytest.raises(NotAdmitted):
        listener.hear(parse(heard["proof"]))


def test_a_side_does_not_take_its_own_words_for_those_of_another() -> None:
    dialler = members().dialler
    with pytest.raises(BadGreeting):
        dialler.hear(parse(dialler.begin()))
    listener = members().listener
    answer = listener.hear(parse(members().dialler.begin()))
    with pytest.raises(BadGreeting):
        listener.hear(parse(answer))


def test_a_link_of_one_service_is_none_of_another() -> None:
    admission = Admission(ANN, verify)
    traffic = Handshake(admission, "traffic", ABOUT_ANN, b"1" * 32, is_dialler=True)
    hello = parse(traffic.begin())
    with pytest.raises(BadGreeting, match="service"):
        members(b"").listener.hear(hello)
    # Renamed on the way it is taken for what it is not, and then it cannot be proven.
    answer = members(b"").listener.hear(hello._replace(subject=b"weather"))
    with pytest.raises(NotAdmitted):
        traffic.hear(parse(answer)._replace(subject=b"traffic"))


@pytest.mark.parametrize(
    ("ann", "bob"), [(b"wrong", SECRET), (SECRET, b"wrong"), (b"", SECRET), (SECRET, b"")]
)
def test_both_must_know_the_same_secret(ann: bytes, bob: bytes) -> None:
    both = pair(Admission(ANN, verify, ann), Admission(BOB, verify, bob))
    with pytest.raises(NotAdmitted):
        shake(both)


def test_whoever_does_not_know_the_secret_is_told_nothing_at_all() -> None:
    both = pair(Admission(EVE, verify, b"guess"), Admission(BOB, verify, SECRET))
    with pytest.raises(NotAdmitted):
        both.listener.hear(parse(both.dialler.begin()))


def test_whoever_does_not_know_the_secret_cannot_pose_as_the_one_that_was_dialled() -> None:
    dialler = members().dialler
    dialler.begin()
    # Eve answers what Ann would have said to a mesh without a secret.
    without = pair(Admission(ANN, verify), Admission(EVE, verify))
    answer = without.listener.hear(parse(without.dialler.begin()))
    with pytest.raises(NotAdmitted):
        dialler.hear(parse(answer))


def test_a_roster_lets_nobody_else_in() -> None:
    roster = frozenset({BOB.key})
    both = pair(Admission(EVE, verify), Admission(BOB, verify, b"", roster))
    with pytest.raises(NotAdmitted):
        shake(both)


def test_a_dialler_goes_by_its_roster_too() -> None:
    both = pair(Admission(ANN, verify, b"", frozenset({ANN.key})), Admission(EVE, verify))
    answer = both.listener.hear(parse(both.dialler.begin()))
    with pytest.raises(NotAdmitted):
        both.dialler.hear(parse(answer))


def test_a_key_of_the_roster_is_of_no_use_without_its_seed() -> None:
    class Thief:
        key = ANN.key
        sign = staticmethod(EVE.sign)

    roster = frozenset({ANN.key, BOB.key})
    both = pair(Admission(Thief(), verify, b"", roster), Admission(BOB, verify, b"", roster))
    with pytest.raises(NotAdmitted):
        shake(both)
    assert both.listener.other is None


def test_every_refusal_of_a_stranger_reads_the_same() -> None:
    roster = frozenset({ANN.key, BOB.key})
    strangers = [
        pair(Admission(EVE, verify, b"guess"), Admission(BOB, verify, SECRET)),
        pair(Admission(EVE, verify), Admission(BOB, verify, b"", roster)),
        pair(Admission(EVE, verify, b"guess"), Admission(BOB, verify, SECRET, roster)),
    ]
    texts = set()
    for both in strangers:
        with pytest.raises(NotAdmitted) as caught:
            shake(both)
        texts.add(str(caught.value))
    both = members(b"")
    with pytest.raises(NotAdmitted) as caught:
        shake(both, {"proof": shake(pair(Admission(EVE, verify), Admission(BOB, verify)))["proof"]})
    assert texts == {str(caught.value)}


def test_a_gateway_that_meets_itself_says_so() -> None:
    admission = Admission(ANN, verify, SECRET)
    with pytest.raises(LinkedToSelf):
        shake(pair(admission, admission, about=ABOUT_BOB))


def test_a_gateway_that_meets_another_with_its_key_says_so() -> None:
    admission = Admission(ANN, verify, SECRET)
    with pytest.raises(CopiedKey, match="delete node"):
        shake(pair(admission, admission))


def test_two_gateways_with_one_number_do_not_link() -> None:
    same = GatewayIntroduction(ABOUT_BOB.number, 5, "ann", "127.0.0.1:7411", "", 0)
    both = pair(Admission(ANN, verify), Admission(BOB, verify), about=same)
    with pytest.raises(SameNumber, match="4000000000"):
        shake(both)
    assert both.dialler.other is None


def test_the_largest_introduction_fits_into_a_greeting() -> None:
    text = "\N{MUSICAL SYMBOL G CLEF}" * 255
    about = GatewayIntroduction((1 << 32) - 1, (1 << 62) - 1, text, text, text, (1 << 62) - 1)
    both = pair(Admission(ANN, verify, SECRET), Admission(BOB, verify, SECRET), about=about)
    said = shake(both)
    room = Limits().greeting_bytes - HEADER_BYTES - 2 * NAME_MAX_BYTES
    assert len(parse(said["hello"]).body) + 64 + 2 < HANDSHAKE_MAX_BYTES < room


@pytest.mark.parametrize(
    "about",
    [
        GatewayIntroduction(0, 5, "ann", "", "", 0),
        GatewayIntroduction(1 << 32, 5, "ann", "", "", 0),
        GatewayIntroduction(1, -1, "ann", "", "", 0),
        GatewayIntroduction(1, 5, "a" * 256, "", "", 0),
        GatewayIntroduction(1, 5, "ann", "a" * 256, "", 0),
        GatewayIntroduction(1, 5, "ann", "", "a" * 256, 0),
        GatewayIntroduction(1, 5, "ann", "", "", -1),
    ],
)
def test_what_is_over_its_bounds_is_refused(about: GatewayIntroduction) -> None:
    both = pair(Admission(ANN, verify), Admission(BOB, verify), about=about)
    with pytest.raises(BadGreeting):
        shake(both)


def test_a_greeting_over_the_limit_is_refused_unread() -> None:
    body = bytes(HANDSHAKE_MAX_BYTES + 1)
    with pytest.raises(BadGreeting, match=str(HANDSHAKE_MAX_BYTES)):
        members().listener.hear(Frame(Kind.LINK, 0, b"weather", b"", body))


def test_another_version_is_named() -> None:
    hello = members(b"").dialler.begin()
    other = parse(hello)
    # The array has one byte for itself and one for its tag, and then the version.
    body = other.body[:2] + b"\x02" + other.body[3:]
    with pytest.raises(BadGreeting, match="version 2 of links is not supported, only 1"):
        members(b"").listener.hear(other._replace(body=body))


def test_nothing_is_heard_after_an_error() -> None:
    both = members()
    with pytest.raises(BadGreeting):
        both.listener.hear(Frame(Kind.LINK, 0, b"weather", b"", b"?"))
    with pytest.raises(BadGreeting):
        both.listener.hear(parse(both.dialler.begin()))


def test_nothing_is_heard_after_the_end() -> None:
    both = members()
    said = shake(both)
    with pytest.raises(BadGreeting):
        both.listener.hear(parse(said["proof"]))
    with pytest.raises(BadGreeting):
        both.dialler.hear(parse(said["answer"]))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_order(body: bytes) -> None:
    with pytest.raises((BadGreeting, Refused)):
        members().listener.hear(Frame(Kind.LINK, 0, b"weather", b"", body))


def test_a_nonce_of_another_size_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Handshake(Admission(ANN, verify), "weather", ABOUT_ANN, bytes(16), is_dialler=True)


def test_a_node_is_known_by_its_key() -> None:
    assert node_id(ANN.key) == hashlib.sha256(ANN.key).digest()[:16]


def test_an_advert_shows_who_knows_the_secret() -> None:
    assert admission_mac(b"", ANN.key) == b""
    mac = admission_mac(SECRET, ANN.key)
    assert len(mac) == 16
    assert mac not in {admission_mac(SECRET, BOB.key), admission_mac(b"other", ANN.key)}


def test_an_improper_key_proves_nothing() -> None:
    signature = ANN.sign(b"data")
    assert verify(ANN.key, signature, b"data")
    assert not verify(ANN.key, signature, b"other")
    assert not verify(ANN.key[:31], signature, b"data")
    assert not verify(BOB.key, signature, b"data")
    assert not verify(ANN.key, signature[:63], b"data")


def test_a_seed_of_another_size_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Signer(bytes(31))
