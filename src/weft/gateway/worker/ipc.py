"""Messages between a front and its workers, and the stream that carries them."""

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
from weft.gateway.mesh.membership import MeshMembership
from weft.lanes.settings import LaneSettings
from weft.mesh.candidates import Candidate
from weft.transports.http.origins import WebRules

_SIZE = struct.Struct("<I")
_MESSAGE_MAX_BYTES = 1 << 20
# Longest interval between the counts that a worker sends.
BEAT_S = 1.0
# Bounds the orders that a front queues for a worker that does not read.
_UNSENT_MAX_BYTES = 1 << 20


class WorkerSettings(msgspec.Struct, frozen=True):
    """Settings of a worker that may change while it runs."""

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
    def of(cls, settings: Settings) -> "WorkerSettings":
        """Return the part of a gateway's settings that concerns its workers."""
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
    """Front to worker, first message: the service and its settings."""

    service: str
    gateway: str
    rules: WorkerSettings
    # Data folder; empty: nothing is stored.
    data: str = ""
    journal: JournalSettings = msgspec.field(default_factory=JournalSettings)
    # Keys of this service; None trusts every client.
    keys: tuple[KeyRecord, ...] | None = None
    # Connects the service to a mesh; None: no mesh.
    membership: MeshMembership | None = None


class SettingsChange(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: new settings."""

    rules: WorkerSettings


class KeySet(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: the accepted keys; None trusts every client."""

    keys: tuple[KeyRecord, ...] | None


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: request for the status; the answer has the same number."""

    number: int


class AskNodes(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: request for the known gateways; the answer has the same number."""

    number: int


class Announce(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: publish this event once there is a subscription."""

    event: str
    body: bytes


class Granted(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: result of a Wish, a problem or a sentence."""

    number: int
    problem: str
    text: str


class Drain(msgspec.Struct, frozen=True, tag=True):
    """Front to worker: drain all connections and exit."""

    within_s: float


class WorkerReady(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: ready to receive sockets."""


class WorkerStatus(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: status of the service."""

    number: int
    status: ServiceStatus


class Nodes(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: gateways of the service, its own first."""

    number: int
    nodes: tuple[Candidate, ...]


class ConnectionCount(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: sockets received since its start, and its current connections.

    Sent at least every BEAT_S, so that the front knows that the worker's loop makes turns.
    """

    received: int
    connections: int
    # A link or a journal needs the worker, even without connections.
    is_needed: bool = True


class Closing(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: it writes the rest of its journal and exits, without further counts."""


class GatewayRequest(msgspec.Struct, frozen=True, tag=True):
    """Worker to front: an admin command that concerns the whole gateway."""

    number: int
    verb: str
    value: str


Order = Start | SettingsChange | KeySet | Ask | AskNodes | Announce | Granted | Drain
News = WorkerReady | WorkerStatus | Nodes | ConnectionCount | Closing | GatewayRequest

Sent = TypeVar("Sent")
Received = TypeVar("Received")


class IpcChannel(Generic[Sent, Received]):
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
        """Queue a message without blocking; it is lost if the other process has ended.

        Raises:
            Overloaded: Over 1 MiB is queued because the other process does not read.
        """
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > _UNSENT_MAX_BYTES:
            raise Overloaded("the other process does not read its messages")
        body = msgspec.msgpack.encode(message)
        self._writer.write(_SIZE.pack(len(body)) + body)

    @property
    def is_drained(self) -> bool:
        """Return whether all messages have left this process."""
        return self._writer.transport.get_write_buffer_size() == 0

    async def receive(self) -> Received | None:
        """Return the next message; None if the other process has closed the stream.

        Raises:
            FrameTooBig: Message over the limit.
        """
        try:
            (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
            if size > _MESSAGE_MAX_BYTES:
                raise FrameTooBig(f"message of {size} bytes is over {_MESSAGE_MAX_BYTES}")
            return self._decoder.decode(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        """Close this end and drop queued messages."""
        self._writer.transport.abort()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            # The other process closed first.
            return


async def channel_to_worker(sock: socket.socket) -> IpcChannel[Order, News]:
    """Return the front's end."""
    decoder: msgspec.msgpack.Decoder[News] = msgspec.msgpack.Decoder(News)
    return IpcChannel(*await asyncio.open_unix_connection(sock=sock), decoder)


async def channel_to_front(sock: socket.socket) -> IpcChannel[News, Order]:
    """Return the worker's end."""
    decoder: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
    return IpcChannel(*await asyncio.open_unix_connection(sock=sock), decoder)
