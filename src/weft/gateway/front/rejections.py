"""Refused connections: counted by reason, sent the error, closed, and logged with a rate limit."""

import logging
import socket
from collections import Counter
from http import HTTPStatus

from weft.errors import WeftError
from weft.gateway.front.fd_passing import AS_FRAMES, AS_HTTP, AS_LINK
from weft.transports.http.exchange import JSON, error_body, status_of
from weft.transports.refusal_log import RefusalLog
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

_log = logging.getLogger(__name__)

# Peeked bytes are discarded up to this size: closing with unread bytes would reset the connection,
# and the peer would not receive the error.
_DISCARD_BYTES = 64 << 10


class Rejections:
    """Refuses connections and counts them by error."""

    def __init__(self, gateway: str) -> None:
        self.counts: Counter[str] = Counter()
        self._gateway = gateway
        self._refusal_log = RefusalLog(_log)

    def refuse(
        self, sock: socket.socket, error: WeftError, peer: str, way: int = AS_FRAMES
    ) -> None:
        """Count, send the error in the peer's protocol without blocking, and close."""
        self.count(error, peer)
        answer = error_page(error) if way == AS_HTTP else error_frame(error, way)
        try:
            _discard(sock)
            sock.send(answer, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            sock.shutdown(socket.SHUT_WR)
        except OSError as failure:
            _log.debug("error not sent: %s", failure, extra=self._about(peer))
        finally:
            sock.close()

    def count(self, error: WeftError, peer: str) -> None:
        """Count a refusal that is answered elsewhere."""
        self.counts[type(error).__name__] += 1
        self._refusal_log.add(error, self._about(peer))

    def left(self, sock: socket.socket) -> None:
        """Count and close a connection that its peer closed before it was classified."""
        self.counts["left"] += 1
        sock.close()

    def _about(self, peer: str) -> dict[str, str]:
        return {"gateway": self._gateway, "peer": peer}


def error_frame(error: WeftError, way: int = AS_FRAMES) -> bytes:
    """Return the frame that reports why a connection was refused."""
    # The same as from a service: another gateway must not learn which services run here.
    kind = 0 if way == AS_LINK else int(Kind.CONNECT)
    body = Message(number=error.number, name=type(error).__name__, text=str(error), kind=kind)
    return encode(Kind.ERROR, body=body.encode())


def error_page(error: WeftError) -> bytes:
    """Return the HTTP response that reports why a request was refused."""
    status = status_of(error)
    body = error_body(error)
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {JSON}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _discard(sock: socket.socket) -> None:
    left = _DISCARD_BYTES
    try:
        while left > 0:
            data = sock.recv(left, socket.MSG_DONTWAIT)
            if not data:
                return
            left -= len(data)
    except BlockingIOError:
        return
