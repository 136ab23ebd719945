"""A made-up network: connections between processes, as TCP and Unix sockets have them.

Bytes come in order, in pieces, each after a time of its own. There is only so much under way until
the other end reads. Either end may close; a connection may be cut so that both are told, or one.
"""

import asyncio
import errno
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from tools.lane_runs.world import Process, World

Name = tuple[str, int | str]

FIRST_PORT = 40_000
DELAY_MIN_S = 0.00005


class Pace:
    """How slow a network is, and how much it takes before somebody reads."""

    def __init__(self, delay_max_s: float, window_bytes: int, splits: float) -> None:
        self.delay_max_s = delay_max_s
        self.window_bytes = window_bytes
        # How often what is sent together comes in two pieces.
        self.splits = splits


class Socket:
    """One end of a connection."""

    def __init__(self, network: "Network", process: Process, names: tuple[Name, Name]) -> None:
        self.process = process
        self.name, self.peer_name = names
        self.other: Socket
        self.received = bytearray()
        self.unsent = bytearray()
        # The other end sends no more; or the connection is broken.
        self.is_ended = False
        self.fault: OSError | None = None
        self.is_closed = False
        # Nothing gets through, and this end is not told.
        self.is_cut_off = False
        # Its process reads everything else first.
        self.is_stalled = False
        # Called in its process when there is something to read or room to send.
        self.on_event: Callable[[], None] = _ignore
        self._network = network
        self._world = network.world
        self._chance = random.Random(network.chance.random())
        self._in_flight = 0
        self._arrives_at = 0.0
        self._is_ending = False
        self._is_end_sent = False
        self._is_woken = False

    @property
    def has_room(self) -> bool:
        """Say if what is sent leaves at once."""
        return not self.unsent and self._in_flight < self._network.pace.window_bytes

    def send(self, data: bytes) -> None:
        """Send bytes, now or when there is room."""
        if not (self.is_closed or self._is_ending):
            self.unsent += data
            self._push()

    def read(self, limit: int) -> bytes:
        """Take what has come."""
        data = bytes(self.received[:limit])
        del self.received[:limit]
        other = self.other
        self._world.after(self._delay(), lambda: other._made_room(len(data)))
        return data

    def stall(self, seconds: float) -> None:
        """Read nothing for a while."""
        self.is_stalled = True
        self._world.after(seconds, self._go_on)

    def finish(self) -> None:
        """Send no more after what is sent by now."""
        self._is_ending = True
        self._push()

    def close(self) -> None:
        """Close: what is not read by then tells the other end that something is lost."""
        if self.is_closed:
            return
        is_rude = bool(self.received)
        self.finish()
        self.is_closed = True
        self._network.sockets.pop(self, None)
        if is_rude:
            self._reset_other()

    def abort(self) -> None:
        """Close, and send nothing that has not left."""
        self.unsent.clear()
        self.close()

    def break_off(self) -> None:
        """Be told that the connection is broken."""
        self.fault = self.fault or ConnectionResetError(errno.ECONNRESET, "it was reset")
        self.unsent.clear()
        self.wake()

    def wake(self) -> None:
        """Have its process look at it."""
        if not self._is_woken and not self.is_closed:
            self._is_woken = True
            self.process.call_soon(self._look)

    def _go_on(self) -> None:
        self.is_stalled = False
        self.wake()

    def _look(self) -> None:
        self._is_woken = False
        if not self.is_closed:
            self.on_event()

    def _delay(self) -> float:
        return self._chance.uniform(DELAY_MIN_S, self._network.pace.delay_max_s)

    def _push(self) -> None:
        """Send what there is room for; the last piece is the end, if it is to end."""
        pace = self._network.pace
        room = pace.window_bytes - self._in_flight
        # As TCP does: little room is no room, or everything would go in ever smaller pieces.
        if self.unsent and room >= min(len(self.unsent), pace.window_bytes // 4):
            data = bytes(self.unsent[:room])
            del self.unsent[:room]
            self._in_flight += len(data)
            first = len(data)
            if first > 1 and self._chance.random() < pace.splits:
                first = self._chance.randrange(1, first)
                self._transmit(partial(_bring, data[:first]))
                data = data[first:]
            self._transmit(partial(_bring, data))
        if self._is_ending and not self.unsent and not self._is_end_sent:
            self._is_end_sent = True
            self._transmit(_bring_end)

    def _transmit(self, act: Callable[["Socket"], None]) -> None:
        self._arrives_at = max(self._arrives_at, self._world.now + self._delay())
        other = self.other
        self._world.at(self._arrives_at, lambda: None if self.is_cut_off else act(other))

    def _arrive(self, data: bytes) -> None:
        if self.is_cut_off or self.fault is not None:
            return
        if self.is_closed:
            self._reset_other()
            return
        self.received += data
        self.wake()

    def _end(self) -> None:
        if not (self.is_cut_off or self.is_closed):
            self.is_ended = True
            self.wake()

    def _reset_other(self) -> None:
        other = self.other
        if not self.is_cut_off:
            self._world.after(self._delay(), other._was_reset)

    def _was_reset(self) -> None:
        if not (self.is_cut_off or self.is_closed):
            self.break_off()

    def _made_room(self, size: int) -> None:
        if self.is_cut_off or self.other.is_cut_off:
            return
        was_full = not self.has_room
        self._in_flight -= size
        self._push()
        if was_full:
            self.wake()


class Wire(asyncio.Transport):
    """What asyncio's protocols know a socket by; those that bring a buffer of their own."""

    def __init__(self, socket: Socket, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__({"socket": None, "sockname": socket.name, "peername": socket.peer_name})
        self._socket = socket
        self._protocol = protocol
        self._high = 64 << 10
        self._is_closing = False
        self._is_reading = True
        self._is_blocked = False
        socket.on_event = self._happened
        protocol.connection_made(self)
        socket.wake()

    def write(self, data: Any) -> None:
        """Send bytes."""
        if self._is_closing:
            return
        self._socket.send(bytes(data))
        if self._socket.fault is not None:
            self._socket.process.call_soon(self._lose, self._socket.fault)
        elif len(self._socket.unsent) > self._high and not self._is_blocked:
            self._is_blocked = True
            self._protocol.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say how much may wait; what is low follows from what is high."""
        del low
        self._high = self._high if high is None else high

    def get_write_buffer_size(self) -> int:
        """How much waits."""
        return len(self._socket.unsent)

    def is_closing(self) -> bool:
        """Say if it is closed, or about to be."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Leave what comes where it is."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Read again."""
        self._is_reading = True
        self._socket.wake()

    def close(self) -> None:
        """Close after what was written."""
        self._leave(self._socket.close)

    def abort(self) -> None:
        """Close now."""
        self._leave(self._socket.abort)

    def _leave(self, close: Callable[[], None]) -> None:
        if not self._is_closing:
            self._is_closing = True
            close()
            self._socket.process.call_soon(self._protocol.connection_lost, None)

    def _lose(self, error: OSError | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._socket.abort()
            self._protocol.connection_lost(error)

    def _happened(self) -> None:
        socket = self._socket
        if self._is_closing:
            return
        if self._is_blocked and len(socket.unsent) <= self._high // 4:
            self._is_blocked = False
            self._protocol.resume_writing()
        if not self._is_reading or socket.is_stalled or self._is_closing:
            return
        if socket.received:
            room = memoryview(self._protocol.get_buffer(-1))
            data = socket.read(len(room))
            room[: len(data)] = data
            # Before it is dealt with: that may close it.
            socket.wake()
            self._protocol.buffer_updated(len(data))
        elif socket.fault is not None or socket.is_ended:
            self._lose(socket.fault)


class Port:
    """Where somebody listens."""

    def __init__(self, network: "Network", process: Process, name: Name) -> None:
        self.process = process
        self.name = name
        self.accept: Callable[[Socket], object] = _refuse
        self.sockets = [self]
        self._network = network

    def getsockname(self) -> Name:
        """Its address, as of a real socket."""
        return self.name

    def close(self) -> None:
        """Listen no more."""
        if self._network.ports.get(self.name) is self:
            del self._network.ports[self.name]
        self.accept = _refuse


class Network:
    """Who listens where, and all connections, in the order in which they were made."""

    def __init__(self, world: World, pace: Pace) -> None:
        self.world = world
        self.pace = pace
        self.chance = random.Random(world.chance.random())
        self.ports: dict[Name, Port] = {}
        self.sockets: dict[Socket, None] = {}
        # What becomes of calls to others than the gateway: `refused`, `unanswered`, or nothing.
        self.lanes_are = ""
        self.gateway: Name = ("127.0.0.1", 7411)
        self._next_port = FIRST_PORT

    def listen(self, process: Process, name: Name, factory: Callable[[], Any]) -> Port:
        """Let others connect; port 0 is one that is free."""
        port = self.open_port(process, name)
        port.accept = lambda socket: _begin(socket, factory)
        return port

    def open_port(self, process: Process, name: Name) -> Port:
        """A port for whoever says what becomes of connections."""
        if name[1] == 0:
            self._next_port += 1
            name = (name[0], self._next_port)
        if name in self.ports:
            raise OSError(errno.EADDRINUSE, "it is in use")
        self.ports[name] = Port(self, process, name)
        return self.ports[name]

    async def connect(
        self, process: Process, name: Name, factory: Callable[[], Any]
    ) -> tuple[Wire, Any]:
        """Connect to whoever listens at a name.

        Raises:
            OSError: nobody does.
        """
        answered: asyncio.Future[None] = process.create_future()
        is_lane = name != self.gateway
        if not (is_lane and self.lanes_are == "unanswered"):
            delay_s = self.chance.uniform(DELAY_MIN_S, 2 * self.pace.delay_max_s)
            self.world.after(delay_s, lambda: _settle(answered))
        await answered
        port = self.ports.get(name)
        if port is None or (is_lane and self.lanes_are == "refused"):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens there")
        near, far = self._pair(process, port)
        port.process.call_soon(lambda: port.accept(far))
        return _begin(near, factory)

    def lanes(self) -> list[Socket]:
        """One end of each connection that does not lead to the gateway."""
        return [each for each in self.sockets if self._is_lane(each) and each.other in self.sockets]

    def lanes_of(self, process: Process) -> list[Socket]:
        """The ends of lanes that a process has."""
        return [each for each in self.of(process) if self._is_lane(each)]

    def of(self, process: Process) -> list[Socket]:
        """The ends that a process has."""
        return [each for each in self.sockets if each.process is process]

    def kill(self, process: Process) -> None:
        """Do what a system does with the sockets of a process that ended."""
        for port in [each for each in self.ports.values() if each.process is process]:
            port.close()
        for socket in self.of(process):
            socket.abort()

    def go_dark(self, process: Process) -> None:
        """Do what becomes of the connections of a machine without power: nobody is told."""
        for port in [each for each in self.ports.values() if each.process is process]:
            port.close()
        for socket in self.of(process):
            cut_off(socket)
            socket.abort()

    def _is_lane(self, socket: Socket) -> bool:
        return self.gateway not in (socket.name, socket.peer_name)

    def _pair(self, process: Process, port: Port) -> tuple[Socket, Socket]:
        self._next_port += 1
        near_name: Name = (process.host, self._next_port)
        near = Socket(self, process, (near_name, port.name))
        far = Socket(self, port.process, (port.name, near_name))
        near.other, far.other = far, near
        self.sockets[near] = self.sockets[far] = None
        return near, far


def _bring(data: bytes, socket: Socket) -> None:
    socket._arrive(data)


def _bring_end(socket: Socket) -> None:
    socket._end()


def cut(socket: Socket) -> None:
    """Break a connection, and tell both ends."""
    for end in (socket, socket.other):
        end.break_off()


def cut_off(socket: Socket) -> None:
    """Let nothing more through, and tell nobody."""
    socket.is_cut_off = socket.other.is_cut_off = True


def _begin(socket: Socket, factory: Callable[[], Any]) -> tuple[Wire, Any]:
    protocol = factory()
    return Wire(socket, protocol), protocol


def _refuse(socket: Socket) -> None:
    socket.abort()


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _ignore() -> None:
    """Nobody looks yet."""
