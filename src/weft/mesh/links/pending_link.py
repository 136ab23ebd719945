"""Connection between two gateways that are not authenticated yet."""

from typing import Protocol

from weft.broker.mesh_hooks import Carrier
from weft.broker.replies import end_with
from weft.broker.service import Peer
from weft.errors import NotAdmitted, Refused, UnexpectedFrame, shortened
from weft.mesh.links.handshake import Handshake, Introduced
from weft.mesh.links.link_events import CLOSING, error_in
from weft.wire.byteops import cut
from weft.wire.frames import Frame, Kind, Run, parse


class PendingLinkOwner(Protocol):
    """Owner of pending links."""

    def met(self, newcomer: "PendingLink", other: Introduced) -> None:
        """Handle a completed handshake."""

    def missed(self, newcomer: "PendingLink", problem: str) -> None:
        """Handle a failed handshake; the connection is closed."""


class PendingLink(Carrier):
    """Pending link; `address` is the dialled one, or empty if the other side dialled."""

    def __init__(
        self, host: PendingLinkOwner, peer: Peer, handshake: Handshake, address: str = ""
    ) -> None:
        self.peer = peer
        self.address = address
        self._host = host
        self._handshake = handshake
        self._problem = ""
        # Dialled to register, not to link.
        self.is_registering = False

    def take(self, run: Run) -> None:
        """Handle frames of the handshake, or a refusal."""
        data = self.peer.service.arena.data
        if run.count != 1 or run.kind not in (Kind.LINK, Kind.ERROR, Kind.GOODBYE):
            raise UnexpectedFrame(f"frames of kind {run.kind} before authentication")
        self.hear(parse(cut(data, run.start, run.end)))

    def hear(self, frame: Frame) -> None:
        """Handle one frame."""
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
        """Handle a refusal by the other side, with its reason if there is one."""
        if frame.kind == Kind.GOODBYE:
            self._problem = CLOSING
            self.peer.end(None)
            return
        error = error_in(frame.body)
        # As the other side words it: "the other gateway" there is this one.
        self._problem = str(error)
        if isinstance(error, NotAdmitted):
            key = self._handshake.key.hex()
            self._problem += f": compare mesh.secret_file of both, and mesh.roster there with {key}"
        self.peer.end(error)

    @property
    def place(self) -> str:
        """Claimed name and address of the other side, and its remote address."""
        said, came = self._handshake.said, self.peer.address or "an unknown address"
        if said is None:
            return came
        return f"{came}, which claims to be {shortened(said.name)} at {shortened(said.address)}"

    def part(self) -> None:
        """Report a handshake that was not completed."""
        error = self.peer.error
        problem = self._problem or (str(error) if error is not None else "the connection ended")
        self._host.missed(self, problem)
