"""How two gateways that were connected prove to each other that they belong to one mesh.

Three LINK frames: the dialler's hello, the answer to it, the dialler's proof. Signatures, and codes
of the shared secret, cover the service, all that was said before them, and which side says it; both
sides bring a nonce. So nothing that was said elsewhere, earlier or by this side itself passes.
Whoever is not admitted hears one sentence, whatever was wrong.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadGreeting, CopiedKey, LinkedToSelf, NotAdmitted, SameNumber
from weft.mesh.links.identity import KEY_BYTES, Identity
from weft.mesh.protocol import LINK_KIND, Count, Number, Text
from weft.wire.frames import Frame
from weft.wire.frames import encode as encode_frame

VERSION = 1
NONCE_BYTES = 32
# The largest word there can be fits into a greeting of the size that is allowed unless set.
HANDSHAKE_MAX_BYTES = 3500

# What an operator should do about two gateways with one identity.
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


class Introduction(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What a gateway says of itself; `links` is how many it has already."""

    number: Number
    incarnation: Count
    name: Text
    address: Text
    region: Text
    links: Count
    is_registering: bool = False


class Admission(NamedTuple):
    """How gateways of a mesh know each other.

    Without a secret none is asked for; without a roster whoever knows the secret is let in.
    """

    identity: Identity
    # Takes a key, a signature and what was signed.
    verify: Callable[[bytes, bytes, bytes], bool]
    secret: bytes = b""
    roster: frozenset[bytes] | None = None


class Introduced(NamedTuple):
    """A gateway that has proven to own a key, and what it said of itself."""

    key: bytes
    introduction: Introduction


class _Hello(msgspec.Struct, tag=1, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: Count
    key: Key
    nonce: Nonce
    introduction: Introduction
    # Proves nothing new, but whoever does not know the secret is told nothing after it.
    mac: Mac = b""


class _Answer(msgspec.Struct, tag=2, array_like=True, frozen=True, forbid_unknown_fields=True):
    key: Key
    nonce: Nonce
    introduction: Introduction
    signature: Signature = b""
    mac: Mac = b""


class _Proof(msgspec.Struct, tag=3, array_like=True, frozen=True, forbid_unknown_fields=True):
    signature: Signature
    mac: Mac


_Said = _Hello | _Answer | _Proof

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Said] = msgspec.msgpack.Decoder(_Said)


class Handshake:
    """One side of the introduction of two gateways; it is over after the first error.

    `other` is who is at the other end, once that was proven to this side. The nonce is 32 bytes
    that were never used before.
    """

    def __init__(
        self,
        admission: Admission,
        service: str,
        introduction: Introduction,
        nonce: bytes,
        *,
        is_dialler: bool,
    ) -> None:
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce of {len(nonce)} bytes is not one of {NONCE_BYTES}")
        self.other: Introduced | None = None
        # What the other side said of itself, proven or not; and what was wrong, for the log of
        # this side only.
        self.said: Introduction | None = None
        self.detail = ""
        self._admission = admission
        self._service = service.encode()
        self._introduction = introduction
        self._nonce = nonce
        # Who the other side says it is, until that was proven.
        self._claimed: Introduced | None = None
        # What was said so far, by both.
        self._transcript: list[bytes] = [self._service]
        self._awaited: type[_Said] | None = None if is_dialler else _Hello

    @property
    def key(self) -> bytes:
        """The public key of this side."""
        return self._admission.identity.key

    def begin(self) -> bytes:
        """The dialler's first frame."""
        key = self._admission.identity.key
        bare = _Hello(VERSION, key, self._nonce, self._introduction)
        hello = msgspec.structs.replace(bare, mac=self._mac(_HELLO_LABEL, _encode(bare)))
        self._awaited = _Answer
        return self._say(hello)

    def hear(self, frame: Frame) -> bytes:
        """What to answer a frame of the other side with; it may be nothing.

        Raises:
            BadGreeting: it is not the frame that comes next, or not one of this version.
            NotAdmitted: the other side does not belong to the mesh.
            LinkedToSelf: it is this side itself.
            CopiedKey: it is another gateway with the key of this side.
            SameNumber: it has the number of this side.
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
            raise BadGreeting(f"version {hello.version} of links is not spoken here, {VERSION} is")
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

    def _claim(self, key: bytes, introduction: Introduction) -> Introduced:
        """Whoever says it has this key, if it could be let in."""
        admission = self._admission
        if key == admission.identity.key:
            if introduction.number != self._introduction.number:
                raise CopiedKey(f"the other gateway has the node.key of this one: {REMEDY}")
            raise LinkedToSelf("the gateway at the other end is this one")
        if admission.roster is not None and key not in admission.roster:
            raise self._not_admitted(f"its key {key.hex()} is not in mesh.roster here")
        return Introduced(key, introduction)

    def _prove(self, claimed: Introduced, signature: bytes, signed: bytes) -> None:
        """Take the other side for what it says it is, if its signature is right."""
        if not self._admission.verify(claimed.key, signature, signed):
            raise self._not_admitted("its signature is wrong")
        number = claimed.introduction.number
        if number == self._introduction.number:
            raise SameNumber(f"number {number} is that of both gateways of a link")
        self.other = claimed

    def _check_mac(self, said: bytes, right: bytes) -> None:
        if not hmac.compare_digest(said, right):
            raise self._not_admitted(_about_secret(said, right))

    def _not_admitted(self, detail: str) -> NotAdmitted:
        """The same is said whatever was wrong: why would help whoever guesses."""
        self.detail = detail
        return NotAdmitted("the other gateway did not prove that it belongs to this mesh")

    def _mac(self, label: bytes, last: bytes) -> bytes:
        """The code of the secret for what was said so far, and last; empty without a secret."""
        secret = self._admission.secret
        return hmac.digest(secret, self._digest(label, last), sha256) if secret else b""

    def _sign(self, label: bytes, last: bytes) -> bytes:
        return self._admission.identity.sign(self._digest(label, last))

    def _digest(self, label: bytes, last: bytes) -> bytes:
        """What stands for everything that was said so far, and last, by the side of a label."""
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
            raise BadGreeting(f"a greeting of {size} bytes cannot be read: {error}") from error
        # What is signed are these very bytes: there is no second way to say the same.
        if _encode(said) != frame.body:
            raise BadGreeting(f"a greeting of {size} bytes is not in its shortest form")
        return said


def node_id(key: bytes) -> bytes:
    """By which a gateway is known for good: 16 bytes that follow from its key."""
    return sha256(key).digest()[:_NODE_BYTES]


def admission_mac(secret: bytes, key: bytes) -> bytes:
    """What shows in an advert that the owner of a key knows the secret; empty without one."""
    if not secret:
        return b""
    return hmac.digest(secret, _MEMBER_LABEL + b"\n" + key, sha256)[:_MEMBER_BYTES]


def _about_secret(said: bytes, right: bytes) -> str:
    """What is wrong with the code of a secret, and what to check."""
    if not said:
        return "it has no secret: set its mesh.secret_file to that of this mesh"
    if not right:
        return "it has a secret, and this gateway has none: set mesh.secret_file here, too"
    return "it has another secret: compare mesh.secret_file of both gateways"
