"""Queue of journal readers: READERS_MAX are answered at once, the others take turns.

One key has at most half of the slots and half of the queue, so that no key locks out others.
Without keys each connection has its own share. Stalled readers are disconnected while others wait.
"""

import socket
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from weft.broker.auth.key_quota import KeyQuota
from weft.broker.limits import Limits
from weft.errors import Overloaded
from weft.gateway.http.lingering_close import Lingering
from weft.gateway.journal.fair_queue import FairQueue
from weft.gateway.journal.lend import FileRequest
from weft.gateway.journal.transfer import Transfer

# Readers answered at once, and readers that may wait.
READERS_MAX = 64
WAITING_MAX = 256

# Default share of a key: half.
_LIMITS = Limits()

# Answers a request; raises OSError if the reader has closed its connection.
Answer = Callable[[Transfer, FileRequest], None]


class QueuedReader(NamedTuple):
    """A request and its connection."""

    holder: str
    sock: socket.socket
    request: FileRequest


class Readers:
    """Threads that answer requests, and the queue of waiting requests."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._threads = ThreadPoolExecutor(READERS_MAX)
        self._lock = threading.Lock()
        self._queue: FairQueue[QueuedReader] = FairQueue()
        self._waiting = KeyQuota("readers of journals that wait")
        self._busy = KeyQuota("readers of journals")
        self._active = 0
        self._number = 0
        self.lingering = Lingering()

    def take(self, sock: socket.socket, request: FileRequest) -> None:
        """Take over a connection whose request was read.

        Raises:
            TooMany: The key has its share of the queue; the caller keeps the connection.
            Overloaded: The queue is full; likewise.
        """
        with self._lock:
            self._number += 1
            holder = request.holder or f"connection {self._number}"
            self._waiting.check(holder, WAITING_MAX, _LIMITS)
            if len(self._queue) >= WAITING_MAX:
                raise Overloaded(f"{WAITING_MAX} readers of journals wait, which is the limit")
            sock.setblocking(False)
            self._queue.add(holder, self._number, QueuedReader(holder, sock, request))
            self._waiting.add(holder)
            self._start()

    def close(self) -> None:
        """Drop waiting requests, finish the others, and stop."""
        with self._lock:
            while (reader := self._queue.take()) is not None:
                reader.sock.close()
        self._threads.shutdown()
        self.lingering.close()

    def _start(self) -> None:
        """Start the next requests while slots are free; the lock is held."""
        while self._active < READERS_MAX:
            reader = self._queue.take(self._may_begin)
            if reader is None:
                return
            self._waiting.add(reader.holder, -1)
            self._busy.add(reader.holder)
            self._active += 1
            self._threads.submit(self._serve, reader)

    def _may_begin(self, holder: str) -> bool:
        return self._busy.count(holder) < _LIMITS.share_of(READERS_MAX)

    def _serve(self, reader: QueuedReader) -> None:
        is_answered = False
        try:
            is_crowded = partial(self._is_crowded, reader.holder)
            self._answer(Transfer(reader.sock.fileno(), is_crowded), reader.request)
            is_answered = True
        except OSError as error:
            print(f"reader disconnected: {error}", file=sys.stderr)
        except Exception:
            # A bug must cost neither the slot nor the connection.
            traceback.print_exc()
        finally:
            if is_answered:
                self.lingering.add(reader.sock)
            else:
                reader.sock.close()
            with self._lock:
                self._busy.add(reader.holder, -1)
                self._active -= 1
                self._start()

    def _is_crowded(self, holder: str) -> bool:
        """Return whether a waiting request could use the slot of a reader of this holder."""
        with self._lock:
            # Requests of holders at their own limit wait for another slot of the same holder.
            return any(each == holder or self._may_begin(each) for each in self._queue.holders())
