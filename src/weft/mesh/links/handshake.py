"""Mutual authentication of two gateways, before their connection becomes a link.

Three LINK frames: hello of the dialler, answer, proof of the dialler. Signatures and HMACs of the
shared secret cover the service, all earlier frames and the role of the sender, and both sides send
a nonce: frames of another handshake, or reflected ones, are rejected. Every authentication failure
sends the same error text.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadGreeting, CopiedKey, LinkedToSelf, NotAdmitted, SameNumber
from weft.mesh.links.identity import KEY_BYTES, SigningIdentity
from weft.mesh.protocol import LINK_KIND, Count, Number, Text
from weft.wire.frames import Frame
from weft.wire.frames import encode as encode_frame

VERSION = 1
NONCE_BYTES = 32
# The largest control message of a handshake fits into the default limit for greetings.
HANDSHAKE_MAX_BYTES = 3500

# Repair for two gateways with one identity.
REMEDY = (
    "a data folder was copied: on one of them stop the gateway, delete node.key in its data"
    " folder, and start it again"
)

_NODE_BYTES = 16
_MEMBER_BYTES = 16
_MAC_BYTES = 32
_ANSWER_LABEL = b"weft link 1: answer"
_PROOF_LABEL = b"weft link 1: proof"
_HELLO_LABEL = b"weft link 1: hello"
_MEMBER_LABEL = b"weft mesh 1: member"

Key = Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]
Nonce = Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
Signature = Annotated[bytes, Meta(max_length=128)]
Mac = Annotated[bytes, Meta(max_length=_MAC_BYTES)]


class GatewayIntroduction(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Self-description of a gateway; `links` is its number of links."""

    number: Number
    incarnation: Count
    name: Text
    address: Text
    region: Text
    links: Count
    is_registering: bool = False


class Admission(NamedTuple):
    """Credentials of a gateway and its criteria for others.

    Without a secret none is required; without a roster the secret suffices.
    """

    identity: SigningIdentity
    # Takes key, signature and signed bytes.
    verify: Callable[[bytes, bytes, bytes], bool]
    secret: bytes = b""
    roster: frozenset[bytes] | None = None


class Introduced(NamedTuple):
    """Authenticated key of a gateway, with its introduction."""

    key: bytes
    introduction: GatewayIntroduction


class _Hello(msgspec.Struct, tag=1, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: Count
    key: Key
    nonce: Nonce
    introduction: GatewayIntroduction
    # Adds no proof of identity, but without the secret a peer gets no answer.
    mac: Mac = b""


class _Answer(msgspec.Struct, tag=2, array_like=True, frozen=True, forbid_unknown_fields=True):
    key: Key
    nonce: Nonce
    introduction: GatewayIntroduction
    signature: Signature = b""
    mac: Mac = b""


class _Proof(msgspec.Struct, tag=3, array_like=True, frozen=True, forbid_unknown_fields=True):
    signature: Signature
    mac: Mac


_Said = _Hello | _Answer | _Proof

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Said] = msgspec.msgpack.Decoder(_Said)


class Handshake:
    """One side of a handshake; unusable after the first error.

    `other` is set once the other side is authenticated. The nonce has to be 32 fresh random bytes.
    """

    def __init__(
        self,
        admission: Admission,
        service: str,
        introduction: GatewayIntroduction,
        nonce: bytes,
        *,
        is_dialler: bool,
    ) -> None:
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce of {len(nonce)} bytes is not one of {NONCE_BYTES}")
        self.other: Introduced | None = None
        # Introduction of the other side, possibly unproven; and the cause of a failure, for the
        # local log only.
        self.said: GatewayIntroduction | None = None
        self.detail = ""
        self._admission = admission
        self._service = service.encode()
        self._introduction = introduction
        self._nonce = nonce
        # Claimed identity of the other side, until proven.
        self._claimed: Introduced | None = None
        # Service, and all frames of both sides so far.
        self._transcript: list[bytes] = [self._service]
        self._awaited: type[_Said] | None = None if is_dialler else _Hello

    @property
    def key(self) -> bytes:
        """Public key of this side."""
        return self._admission.identity.key

    def begin(self) -> bytes:
        """Return the first frame of the dialler."""
        key = self._admission.identity.key
        bare = _Hello(VERSION, key, self._nonce, self._introduction)
        hello = msgspec.structs.replace(bare, mac=self._mac(_HELLO_LABEL, _encode(bare)))
        self._awaited = _Answer
        return self._say(hello)

    def hear(self, frame: Frame) -> bytes:
        """Handle a frame of the other side; return the answer, which may be empty.

        Raises:
            BadGreeting: unexpected frame or unsupported version.
            NotAdmitted: the other side is not authorized.
            LinkedToSelf: the other side is this gateway.
            CopiedKey: the other side is another gateway with the key of this one.
            SameNumber: the other side has the number of this gateway.
        """
        awaited, self._awaited = self._awaited, None
        said = self._read(frame)
        if awaited is None or type(said) is not awaited:
            raise BadGreeting("a link begins with a hello, its answer and a proof, in this order")
        if isinstance(said, _Hello):
            return self._hear_hello(said)
        if isinstance(said, _Answer):
            return self._hear_answer(said)
        self._hear_proof(said)
        return b""

    def _hear_hello(self, hello: _Hello) -> bytes:
        self.said = hello.introduction
        if hello.version != VERSION:
            raise BadGreeting(f"version {hello.version} of links is not supported, only {VERSION}")
        bare = msgspec.structs.replace(hello, mac=b"")
        self._check_mac(hello.mac, self._mac(_HELLO_LABEL, _encode(bare)))
        self._claimed = self._claim(hello.key, hello.introduction)
        self._transcript.append(_encode(hello))
        unsigned = _Answer(self._admission.identity.key, self._nonce, self._introduction)
        signature = self._sign(_ANSWER_LABEL, _encode(unsigned))
        signed = msgspec.structs.replace(unsigned, signature=signature)
        mac = self._mac(_ANSWER_LABEL, _encode(signed))
        self._awaited = _Proof
        return self._say(msgspec.structs.replace(signed, mac=mac))

    def _hear_answer(self, answer: _Answer) -> bytes:
        self.said = answer.introduction
        signed = msgspec.structs.replace(answer, mac=b"")
        self._check_mac(answer.mac, self._mac(_ANSWER_LABEL, _encode(signed)))
        claimed = self._claim(answer.key, answer.introduction)
        unsigned = msgspec.structs.replace(signed, signature=b"")
        self._prove(claimed, answer.signature, self._digest(_ANSWER_LABEL, _encode(unsigned)))
        self._transcript.append(_encode(answer))
        signature = self._sign(_PROOF_LABEL, b"")
        return self._say(_Proof(signature, self._mac(_PROOF_LABEL, signature)))

    def _hear_proof(self, proof: _Proof) -> None:
        self._check_mac(proof.mac, self._mac(_PROOF_LABEL, proof.signature))
        if self._claimed is not None:
            self._prove(self._claimed, proof.signature, self._digest(_PROOF_LABEL, b""))

    def _claim(self, key: bytes, introduction: GatewayIntroduction) -> Introduced:
        """Check key and roster; return the unproven identity."""
        admission = self._admission
        if key == admission.identity.key:
            if introduction.number != self._introduction.number:
                raise CopiedKey(f"the other gateway has the node.key of this one: {REMEDY}")
            raise LinkedToSelf("the gateway at the other end is this one")
        if admission.roster is not None and key not in admission.roster:
            raise self._not_admitted(f"its key {key.hex()} is not in mesh.roster here")
        return Introduced(key, introduction)

    def _prove(self, claimed: Introduced, signature: bytes, signed: bytes) -> None:
        """Verify the signature and accept the identity."""
        if not self._admission.verify(claimed.key, signature, signed):
            raise self._not_admitted("its signature is wrong")
        number = claimed.introduction.number
        if number == self._introduction.number:
            raise SameNumber(f"both gateways of the link have number {number}")
        self.other = claimed

    def _check_mac(self, said: bytes, right: bytes) -> None:
        if not hmac.compare_digest(said, right):
            raise self._not_admitted(_about_secret(said, right))

    def _not_admitted(self, detail: str) -> NotAdmitted:
        """Return the same error for every cause: details would help an attacker."""
        self.detail = detail
        return NotAdmitted("the other gateway did not prove that it belongs to this mesh")

    def _mac(self, label: bytes, last: bytes) -> bytes:
        """Return the HMAC of the transcript and `last`; empty without a secret."""
        secret = self._admission.secret
        return hmac.digest(secret, self._digest(label, last), sha256) if secret else b""

    def _sign(self, label: bytes, last: bytes) -> bytes:
        return self._admission.identity.sign(self._digest(label, last))

    def _digest(self, label: bytes, last: bytes) -> bytes:
        """Return the hash of the transcript and `last`, with the label of a role."""
        parts = (*self._transcript, last)
        joined = b"".join([len(part).to_bytes(4, "little") + part for part in parts])
        return label + b"\n" + sha256(joined).digest()

    def _say(self, said: _Said) -> bytes:
        body = _encode(said)
        self._transcript.append(body)
        return encode_frame(LINK_KIND, self._service, body)

    def _read(self, frame: Frame) -> _Said:
        if frame != Frame(LINK_KIND, 0, self._service, b"", frame.body):
            raise BadGreeting("a link begins with bare LINK frames to its service")
        size = len(frame.body)
        if size > HANDSHAKE_MAX_BYTES:
            raise BadGreeting(f"a greeting of {size} bytes is over {HANDSHAKE_MAX_BYTES}")
        try:
            said = _decoder.decode(frame.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadGreeting(f"invalid greeting of {size} bytes: {error}") from error
        # The exact bytes are signed, so only the canonical encoding is accepted.
        if _encode(said) != frame.body:
            raise BadGreeting(f"a greeting of {size} bytes is not in canonical form")
        return said


def node_id(key: bytes) -> bytes:
    """Return the gateway id: the first 16 bytes of the hash of its public key."""
    return sha256(key).digest()[:_NODE_BYTES]


def admission_mac(secret: bytes, key: bytes) -> bytes:
    """Return the proof in an advert that a gateway knows the secret; empty without one."""
    if not secret:
        return b""
    return hmac.digest(secret, _MEMBER_LABEL + b"\n" + key, sha256)[:_MEMBER_BYTES]


def _about_secret(said: bytes, right: bytes) -> str:
    """Return why a MAC is wrong, and the setting to check."""
    if not said:
        return "it has no secret: set its mesh.secret_file to that of this mesh"
    if not right:
        return "it has a secret, and this gateway has none: set mesh.secret_file here, too"
    return "it has another secret: compare mesh.secret_file of both gateways"
