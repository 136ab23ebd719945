"""What a front and its worker tell each other, as messages on a stream between them."""

import asyncio
import socket
import struct
from typing import Generic, TypeVar

import msgspec

from weft.broker.auth.keys import KeyRecord
from weft.broker.limits import Limits
from weft.errors import FrameTooBig, Overloaded
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import DRAIN_STALL_S, JournalSettings, Log, Settings, web_of
from weft.gateway.http.service_status import ServiceStatus
from weft.gateway.mesh.membership import Membership
from weft.lanes.settings import LaneSettings
from weft.mesh.candidates import Candidate
from weft.transports.http.origins import WebRules

_SIZE = struct.Struct("<I")
_MESSAGE_MAX_BYTES = 1 << 20
# How often a worker is heard of, whatever happens.
BEAT_S = 1.0
# A worker that reads nothing must not make its front keep what it is told.
_UNSENT_MAX_BYTES = 1 << 20


class Rules(msgspec.Struct, frozen=True):
    """The settings that a worker goes by, and that may change while it runs."""

    limits: Limits = msgspec.field(default_factory=Limits)
    log: Log = msgspec.field(default_factory=Log)
    drain_s: float = 10.0
    drain_stall_s: float = DRAIN_STALL_S
    looks: bool = True
    web: WebRules = msgspec.field(default_factory=WebRules)
    mesh: MeshSettings = msgspec.field(default_factory=MeshSettings)
    lanes: LaneSettings = msgspec.field(default_factory=LaneSettings)
    watchdog_s: float = 30.0

    @classmethod
    def of(cls, settings: Settings) -> "Rules":
        """What of a gateway's settings is for its workers."""
        return cls(
            limits=settings.limits,
            log=settings.log,
            drain_s=settings.drain_s,
            drain_stall_s=settings.drain_stall_s,
            looks=settings.look == "auto",
            web=web_of(settings),
            mesh=settings.mesh,
            lanes=settings.lanes,
            watchdog_s=settings.watchdog_s,
        )


class Start(msgspec.Struct, frozen=True, tag=True):
    """Front to worker, first of all: what to be."""

    service: str
    gateway: str
    rules: Rules
    # Where it keeps what must survive; empty if nothing must.
    data: str = ""
    journal: JournalSettings = msgspec.field(default_factory=JournalSettings)
    # The keys of this service; None trusts everyone.
    keys: tuple[KeyRecord, ...] | None = None
    # What makes it part of a mesh; None: nothing does.
    membership: Membership | None = None


class Change(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: what to go by from now on."""

    rules: Rules


class Keys(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: who may come in from now on, and stay; None trusts everyone."""

    keys: tuple[KeyRecord, ...] | None


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: how are you? The answer has the same number."""

    number: int


class AskNodes(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: which gateways of the service do you know? Answered by the number."""

    number: int


class Announce(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: publish this event, once anyone is there to hear it."""

    event: str
    body: bytes


class Granted(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: what came of a wish, a problem or a sentence."""

    number: int
    problem: str
    text: str


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: say goodbye to everyone and end."""

    within_s: float


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: sockets are welcome."""


class Answer(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: the service in numbers."""

    number: int
    status: ServiceStatus


class Nodes(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: the gateways of the service, the own one first."""

    number: int
    nodes: tuple[Candidate, ...]


class Count(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: sockets received since its start, and connections it has of them now.

    Sent at least every BEAT_S, so that the front knows that the worker still makes turns.
    """

    received: int
    connections: int
    # Something other than connections needs the worker: a link, or a journal.
    is_needed: bool = True


class Closing(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: it writes what is left of its journal and ends; it is silent meanwhile."""


class Wish(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: an administrator wants this of the whole gateway."""

    number: int
    verb: str
    value: str


Order = Start | Change | Keys | Ask | AskNodes | Announce | Granted | Drain
News = Ready | Answer | Nodes | Count | Closing | Wish

Sent = TypeVar("Sent")
Received = TypeVar("Received")


class Channel(Generic[Sent, Received]):
    """One end of the stream."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        decoder: "msgspec.msgpack.Decoder[Received]",
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = decoder

    def send(self, message: Sent) -> None:
        """Send a message; it never waits. To one that is gone it is lost: receive() tells of that.

        Raises:
            Overloaded: the other side has not read for long.
        """
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > _UNSENT_MAX_BYTES:
            raise Overloaded("the other process does not read what it is told")
        body = msgspec.msgpack.encode(message)
        self._writer.write(_SIZE.pack(len(body)) + body)

    @property
    def is_drained(self) -> bool:
        """Return whether everything that was sent has left this process."""
        return self._writer.transport.get_write_buffer_size() == 0

    async def receive(self) -> Received | None:
        """The next message; None if the other side is gone.

        Raises:
            FrameTooBig: it sent what neither side ever sends.
        """
        try:
            (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
            if size > _MESSAGE_MAX_BYTES:
                raise FrameTooBig(f"message of {size} bytes is over {_MESSAGE_MAX_BYTES}")
            return self._decoder.decode(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        """Close this end; what was not sent yet is lost."""
        self._writer.transport.abort()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            # The other side was faster, which comes to the same.
            return


async def channel_to_worker(sock: socket.socket) -> Channel[Order, News]:
    """The front's end."""
    decoder: msgspec.msgpack.Decoder[News] = msgspec.msgpack.Decoder(News)
    return Channel(*await asyncio.open_unix_connection(sock=sock), decoder)


async def channel_to_front(sock: socket.socket) -> Channel[News, Order]:
    """The worker's end."""
    decoder: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
    return Channel(*await asyncio.open_unix_connection(sock=sock), decoder)
