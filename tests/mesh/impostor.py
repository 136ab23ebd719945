"""Somebody that speaks as gateways do, and says whatever a test wants it to."""

from typing import Any

import msgspec
from tests.broker.talk import fields
from tests.mesh.mesh import SECRET, Net, Node, Pipe, address_of, identity_of

from weft.errors import Refused
from weft.mesh.links.handshake import (
    NONCE_BYTES,
    Admission,
    GatewayIntroduction,
    Handshake,
    admission_mac,
    node_id,
)
from weft.mesh.links.signing import verify
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import Advert, SignedAdvert
from weft.mesh.protocol import (
    AdvertWord,
    Delta,
    InterestEntry,
    Known,
    LinkReady,
    Ping,
    Pong,
    Snapshot,
    Summary,
    Word,
    decode,
    frame_of,
)
from weft.mesh.routing.forward_header import COUNT_AT, WORD, PlannedGateway, make
from weft.wire.frames import Decoder, Kind, parse

SERVICE = "weather"


class Line:
    """A connection of an impostor: what is said by it, and what was heard."""

    def __init__(self, impostor: "Impostor", outgoing: Pipe, handshake: Handshake) -> None:
        self.is_answering = True
        self.is_over = False
        self.heard: list[Word] = []
        self.envelopes = 0
        # The names of the errors that it was told.
        self.errors: list[str] = []
        self._impostor = impostor
        self._outgoing = outgoing
        self._handshake = handshake
        self._decoder = Decoder(64 << 20)

    @property
    def is_met(self) -> bool:
        """Say if both sides have proven who they are."""
        return self._handshake.other is not None

    def say(self, *words: Word) -> "Line":
        """Say words, and let everyone hear them."""
        return self.send(*(frame_of(word) for word in words))

    def send(self, *frames: bytes | bytearray) -> "Line":
        """Send any bytes, and let everyone hear them."""
        self._outgoing.took(b"".join(frames))
        self._impostor.net.carry()
        return self

    def route(
        self, to: int, frame: bytes, path: list[int], below: list[PlannedGateway] | None = None
    ) -> "Line":
        """Send a frame in an envelope of words, as if it came by a path."""
        behind = below or []
        header = make(WORD, b"", path, [PlannedGateway(to, len(behind), not behind), *behind])
        header[COUNT_AT] = 1
        return self.send(header, frame)

    def close(self) -> None:
        """Hang up."""
        self._outgoing.is_over = True
        self._impostor.net.carry()

    def words(self, kind: type[Word]) -> list[Any]:
        """The words of a kind that were heard."""
        return [word for word in self.heard if isinstance(word, kind)]

    def hear(self, data: bytes) -> None:
        """Something comes."""
        self._decoder.feed(data)
        for raw in iter(self._decoder.next_frame, None):
            frame = parse(raw)
            if frame.kind == Kind.LINK:
                self._shake(frame)
            elif frame.kind == Kind.ERROR:
                self.errors.append(fields(frame)["name"])
            elif frame.kind == Kind.FORWARD:
                self.envelopes += 1
            elif frame.kind == Kind.FABRIC:
                self._note(decode(frame.body))

    def hang_up(self) -> None:
        """The other side is gone."""
        self.is_over = True
        self._outgoing.is_over = True

    def _shake(self, frame: Any) -> None:
        try:
            answer = self._handshake.hear(frame)
        except Refused:
            self._outgoing.is_over = True
            return
        self._outgoing.took(answer)

    def _note(self, word: Word) -> None:
        self.heard.append(word)
        if isinstance(word, Ping) and self.is_answering:
            self._outgoing.took(frame_of(Pong(word.token)))


class Impostor:
    """Whoever has an identity and a secret, right or wrong; by default it is a member."""

    def __init__(
        self, net: Net, place: int = 99, *, secret: bytes = SECRET, number: int = 0
    ) -> None:
        self.net = net
        self.number = number or place
        self.address = address_of(place)
        self.admission = Admission(identity_of(place), verify, secret)
        self.node = node_id(self.admission.identity.key)
        self.lines: list[Line] = []
        self.is_registering = False
        self.incarnation = 5
        self.sequence = 0
        net.sites[self.address] = self

    def accept(self, outgoing: Pipe, incoming: Pipe) -> None:
        """Somebody has dialled it."""
        self._line(outgoing, incoming, is_dialler=False)

    def dial(self, node: Node) -> Line:
        """Connect to a gateway and show who it is."""
        pipes = self.net.connect(self.address, node.address)
        assert pipes is not None
        line = self._line(*pipes, is_dialler=True)
        self.net.carry()
        return line

    def join(self, node: Node, **changes: Any) -> Line:
        """Become a member of the mesh by a link with a gateway."""
        line = self.dial(node)
        line.say(self.advert(**{"links": (node.number,), **changes}))
        line.say(Summary((), True), LinkReady())
        self.net.wait(0.5)
        return line

    def signed(self, **changes: Any) -> SignedAdvert:
        """An advert of it, the next one, with any changes, that it has signed."""
        self.sequence += 1
        key = self.admission.identity.key
        advert = Advert(
            key=key,
            admission=admission_mac(self.admission.secret, key),
            service=SERVICE,
            number=self.number,
            incarnation=self.incarnation,
            sequence=self.sequence,
            name="impostor",
            address=self.address,
            region="",
            links=(),
            room=0,
            version=0,
            digest=0,
        )
        return adverts.sign(msgspec.structs.replace(advert, **changes), self.admission)

    def advert(self, delta: Delta | None = None, **changes: Any) -> AdvertWord:
        """The word that says its next advert."""
        signed = self.signed(**changes)
        return AdvertWord(signed.said, signed.signature, delta)

    def known(self, **changes: Any) -> Known:
        """What it says that it knows of itself."""
        return Known(self.node, self.incarnation, self.sequence, 0)._replace(**changes)

    def snapshot(
        self, version: int, *wanted: InterestEntry, part: int = 0, is_last: bool = True
    ) -> Snapshot:
        """A part of what it says that it wants."""
        return Snapshot(self.node, version, part, is_last, wanted)

    def _line(self, outgoing: Pipe, incoming: Pipe, *, is_dialler: bool) -> Line:
        introduction = GatewayIntroduction(
            self.number,
            self.incarnation,
            "impostor",
            self.address,
            "",
            0,
            is_registering=self.is_registering and is_dialler,
        )
        nonce = self.net.chance.randbytes(NONCE_BYTES)
        shake = Handshake(self.admission, SERVICE, introduction, nonce, is_dialler=is_dialler)
        line = Line(self, outgoing, shake)
        incoming.hear = line.hear
        incoming.hang_up = line.hang_up
        self.lines.append(line)
        if is_dialler:
            outgoing.took(shake.begin())
        return line
