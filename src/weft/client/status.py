"""What a connection tells its owner: how it fares, what was lost, what was refused."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from weft.errors import WeftError


class Logger(Protocol):
    """What the client logs to; `logging.Logger` and its adapters are such."""

    def info(self, message: str, /, *args: object) -> None:
        """Note what an operator may want to read."""

    def warning(self, message: str, /, *args: object) -> None:
        """Note what an operator should know."""

    def exception(self, message: str, /, *args: object) -> None:
        """Note what somebody must mend, and the exception that is being handled."""

    def error(self, message: str, /, *args: object, exc_info: BaseException | None = None) -> None:
        """Note what somebody must mend."""


class What(StrEnum):
    """What happened to a connection."""

    CHOSEN = "chosen"  # the closest gateway was looked for, and what came of it
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"  # it was lost, and will be sought again
    RECONNECTING = "reconnecting"  # the next attempt, and after how long it is made
    FAILED = "failed"  # an attempt that reached no gateway
    REFUSED = "refused"  # the gateway will not have it: the connection, or one frame
    LANE = "lane"  # a subject goes direct, or through the gateway again, and why
    GAP = "gap"  # messages were missed, or may have been
    DROPPED = "dropped"  # the publish buffer is full and what does not fit is thrown away
    HANDLER = "handler"  # a callback raised
    CLOSED = "closed"  # by its owner; nothing follows


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages that did not come.

    The reasons of a gateway are in docs/protocol.md. This side adds `reconnected` (what was said
    meanwhile was missed) and `full` (the reader's own queue could hold no more).
    """

    reason: str
    count: int | None = None  # None: nobody knows
    origin: int = 0  # 0: of any
    # Why the connection was lost, of a gap `reconnected`.
    error: WeftError | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Status:
    """One thing that happened, for the status callback."""

    what: What
    detail: str
    error: BaseException | None = None
    gap: Gap | None = None


@dataclass(slots=True)
class Statistics:
    """What a connection has done so far."""

    connects: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    dropped: int = (
        0  # published but thrown away, as `when_full="drop"` asks, or with a lost channel
    )
    unwanted: int = 0  # received for a subscription that was closed meanwhile
    repeated: int = 0  # received again after a reconnection, and dropped
    late: int = 0  # answers that came after their request had ended
    overflowed: int = 0  # received but thrown away, announced as a gap `full`
    lane_refusals: int = 0  # strangers, and what others may not send or answer by a lane


StatusCallback = Callable[[Status], object]

_LOUD = {What.REFUSED, What.FAILED, What.DISCONNECTED, What.GAP, What.DROPPED}


@dataclass(slots=True)
class Reporter:
    """Takes each status to the log and then to whoever asked for it."""

    logger: Logger
    label: str
    tell: StatusCallback | None = None
    statistics: Statistics = field(default_factory=Statistics)

    def report(self, status: Status, *, is_raised: bool = False) -> None:
        """Log a status and pass it on; a callback that raises is logged and heard no less.

        What is raised, too, is no warning: whoever catches it decides.
        """
        self._log(status, is_raised)
        if self.tell is None:
            return
        try:
            self.tell(status)
        except Exception:
            self.logger.exception("%s: the status callback raised", self.label)

    def handler_failed(self, subject: str, error: BaseException) -> None:
        """Say that a callback raised, which ends neither the connection nor the subscription."""
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
