"""A connection whose two gateways have yet to prove to each other who they are."""

from typing import Protocol

from weft.broker.mesh_hooks import Carrier
from weft.broker.replies import end_with
from weft.broker.service import Peer
from weft.errors import NotAdmitted, Refused, UnexpectedFrame, shortened
from weft.mesh.links.handshake import Handshake, Introduced
from weft.mesh.links.link_events import CLOSING, error_in
from weft.wire.byteops import cut
from weft.wire.frames import Frame, Kind, Run, parse


class Host(Protocol):
    """Whoever waits for those that prove who they are."""

    def met(self, newcomer: "Newcomer", other: Introduced) -> None:
        """One did."""

    def missed(self, newcomer: "Newcomer", problem: str) -> None:
        """One did not, and is over."""


class Newcomer(Carrier):
    """One that is being greeted; `address` is what was dialled, empty if it came by itself."""

    def __init__(self, host: Host, peer: Peer, handshake: Handshake, address: str = "") -> None:
        self.peer = peer
        self.address = address
        self._host = host
        self._handshake = handshake
        self._problem = ""
        # It was dialled to register there, and not to be linked with.
        self.is_registering = False

    def take(self, run: Run) -> None:
        """Deal with frames of the handshake, and with what is said instead of them."""
        data = self.peer.service.arena.data
        if run.count != 1 or run.kind not in (Kind.LINK, Kind.ERROR, Kind.GOODBYE):
            raise UnexpectedFrame(f"frames of kind {run.kind} before it is known whose they are")
        self.hear(parse(cut(data, run.start, run.end)))

    def hear(self, frame: Frame) -> None:
        """Deal with one frame."""
        if frame.kind != Kind.LINK:
            self._hear_no(frame)
            return
        try:
            answer = self._handshake.hear(frame)
        except Refused as error:
            self._problem = ": ".join(filter(None, (str(error), self._handshake.detail)))
            end_with(self.peer, error)
            return
        if answer:
            self.peer.owe(answer)
        if self._handshake.other is not None:
            self._host.met(self, self._handshake.other)

    def _hear_no(self, frame: Frame) -> None:
        """The other side does not want to be linked with, and may say why."""
        if frame.kind == Kind.GOODBYE:
            self._problem = CLOSING
            self.peer.end(None)
            return
        error = error_in(frame.body)
        # In its words: what is another gateway there is this one.
        self._problem = str(error)
        if isinstance(error, NotAdmitted):
            key = self._handshake.key.hex()
            self._problem += f": compare mesh.secret_file of both, and mesh.roster there with {key}"
        self.peer.end(error)

    @property
    def place(self) -> str:
        """What it says that it is, if it did, and where its connection comes from."""
        said, came = self._handshake.said, self.peer.address or "an unknown address"
        if said is None:
            return came
        return f"{came}, which says that it is {shortened(said.name)} at {shortened(said.address)}"

    def part(self) -> None:
        """It was not greeted, and will not be."""
        error = self.peer.error
        problem = self._problem or (str(error) if error is not None else "the connection ended")
        self._host.missed(self, problem)
