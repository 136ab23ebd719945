"""Status reports of a connection: state changes, losses and refusals."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from weft.errors import WeftError


class Logger(Protocol):
    """Interface of the logger; satisfied by `logging.Logger` and its adapters."""

    def info(self, message: str, /, *args: object) -> None:
        """Log a message of level INFO."""

    def warning(self, message: str, /, *args: object) -> None:
        """Log a message of level WARNING."""

    def exception(self, message: str, /, *args: object) -> None:
        """Log a message of level ERROR with the exception that is being handled."""

    def error(self, message: str, /, *args: object, exc_info: BaseException | None = None) -> None:
        """Log a message of level ERROR."""


class What(StrEnum):
    """Kind of a status report."""

    CHOSEN = "chosen"  # the search for the closest gateway ended: its result
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"  # the connection was lost; the client reconnects
    RECONNECTING = "reconnecting"  # the next attempt and its delay
    FAILED = "failed"  # an attempt reached no gateway
    REFUSED = "refused"  # the gateway refused the connection, or one frame
    LANE = "lane"  # a subject switched to a lane or back to the gateway, and the reason
    GAP = "gap"  # messages were missed, or may have been
    DROPPED = "dropped"  # the publish buffer is full: new messages are dropped
    HANDLER = "handler"  # a callback raised
    CLOSED = "closed"  # by the application; the last status


@dataclass(frozen=True, slots=True)
class Gap:
    """Report that messages of a subscription were lost.

    The reasons of a gateway are in docs/protocol.md. The client adds `reconnected` (messages
    published while it was disconnected were missed) and `full` (its own queue had no space).
    """

    reason: str
    count: int | None = None  # None: unknown
    origin: int = 0  # gateway number; 0: any
    # Cause of the disconnection, for reason `reconnected`.
    error: WeftError | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Status:
    """Event of a connection, passed to the status callback."""

    what: What
    detail: str
    error: BaseException | None = None
    gap: Gap | None = None


@dataclass(slots=True)
class Statistics:
    """Counters of a connection since it was opened."""

    connects: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    dropped: int = (
        0  # published but dropped: by `when_full="drop"`, or because their channel was lost
    )
    unwanted: int = 0  # received for a subscription that was closed meanwhile
    repeated: int = 0  # duplicates received after a reconnection, dropped
    late: int = 0  # answers received after their request had ended
    overflowed: int = 0  # received but dropped for lack of space, reported as gap `full`
    lane_refusals: int = 0  # unauthenticated lane connections, and lane frames without permission


StatusCallback = Callable[[Status], object]

_LOUD = {What.REFUSED, What.FAILED, What.DISCONNECTED, What.GAP, What.DROPPED}


@dataclass(slots=True)
class Reporter:
    """Logs each status and passes it to the status callback."""

    logger: Logger
    label: str
    tell: StatusCallback | None = None
    statistics: Statistics = field(default_factory=Statistics)

    def report(self, status: Status, *, is_raised: bool = False) -> None:
        """Log a status and pass it to the callback; an exception of the callback is logged.

        With `is_raised` the caller also raises the error: it is logged as info, not as a warning.
        """
        self._log(status, is_raised)
        if self.tell is None:
            return
        try:
            self.tell(status)
        except Exception:
            self.logger.exception("%s: the status callback raised", self.label)

    def handler_failed(self, subject: str, error: BaseException) -> None:
        """Report an exception of a handler; connection and subscription stay open."""
        self.report(Status(What.HANDLER, f"the handler of {subject} raised {error!r}", error))

    def _log(self, status: Status, is_raised: bool) -> None:
        if status.what is What.HANDLER:
            self.logger.error("%s: %s", self.label, status.detail, exc_info=status.error)
        elif not is_raised and (status.what in _LOUD or _is_bad_end(status)):
            self.logger.warning("%s: %s", self.label, _sentence(status))
        else:
            self.logger.info("%s: %s", self.label, _sentence(status))


def _is_bad_end(status: Status) -> bool:
    return status.what is What.CLOSED and status.error is not None


def _sentence(status: Status) -> str:
    if isinstance(status.error, WeftError):
        return f"{status.detail}: {status.error}"
    return status.detail
