"""Slow-consumer policies, and the bounds of outboxes."""

from enum import IntEnum

from weft.broker.delivery.chunk import KEPT_COST_BYTES
from weft.broker.delivery.memory_budget import Budget

OUTBOX_LIMIT_BYTES = 64 << 20
OUTBOX_LIMIT_AGE_NS = 10_000_000_000
OUTBOX_LIMIT_MIN_BYTES = 8 << 10
# Space reserved for GAP frames, so that every loss can be reported within the bound.
GAP_MAX_BYTES = 96
GAPS_MAX = 16
# A hole counts losses by this many origins, and those of all others together.
HOLE_ORIGINS_MAX = 3
HOLE_COST_BYTES = KEPT_COST_BYTES + GAP_MAX_BYTES * (HOLE_ORIGINS_MAX + 1)

_HOLES_MAX = 1024
UNBOUNDED = 1 << 62


class Policy(IntEnum):
    """Handling of a subscription's messages when its reader falls behind.

    If several subscriptions of one connection match a message, the highest number applies: the one
    that keeps most.
    """

    LATEST = 0  # keep only the newest of each subject
    DROP_OLD = 1  # drop the oldest
    DROP_NEW = 2  # drop the newest
    CUT = 3  # drop nothing, disconnect


class Reason(IntEnum):
    """Why messages were dropped; the lower-case name is in GAP frames."""

    SLOW = 1  # over the bound in bytes
    OLD = 2  # over the bound in age
    CONFLATED = 3  # replaced by a newer message of the same subject


class Bounds:
    """Bounds of outboxes, shared by all with the same.

    The bound in bytes counts memory, not only bytes to send; the shared budget of all backlogs may
    leave less. The age bound applies to each message that may be dropped, and to the reader: one
    that takes nothing for this long is disconnected, whatever its policies, and so is one that
    takes less than `pace_bytes` for this long while frames are queued that must not be dropped.
    Messages that may be dropped fill at most seven eighths, so that space is left for frames that
    must not be: answers, pings, and subscriptions with the policy CUT.

    A backlog is crowded from `high_bytes` of frames that must not be dropped until it is down to
    `low_bytes`.
    """

    def __init__(
        self,
        limit_bytes: int = OUTBOX_LIMIT_BYTES,
        limit_age_ns: int = OUTBOX_LIMIT_AGE_NS,
        dropped: list[int] | None = None,
        budget: Budget | None = None,
    ) -> None:
        if limit_bytes < OUTBOX_LIMIT_MIN_BYTES:
            raise ValueError(
                f"an outbox bound of {limit_bytes} bytes is under {OUTBOX_LIMIT_MIN_BYTES}"
            )
        if limit_age_ns <= 0:
            raise ValueError(f"an outbox bound of {limit_age_ns} ns of age is not positive")
        self.limit_bytes = limit_bytes
        self.limit_age_ns = limit_age_ns
        self.keep_bytes = limit_bytes - GAP_MAX_BYTES * GAPS_MAX
        self.drop_bytes = self.keep_bytes - self.keep_bytes // 8
        # Messages are dropped in pieces of whole frames: small compared to the bound, but not many.
        self.piece_bytes = min(limit_bytes // 16, 64 << 10)
        # Holes may take half of the space that is reserved for frames that must not be dropped;
        # under the smallest bounds one hole is allowed nevertheless.
        self.holes_max = max(1, min(_HOLES_MAX, self.keep_bytes // 16 // HOLE_COST_BYTES))
        self.pace_bytes = self.piece_bytes
        self.high_bytes = self.keep_bytes // 4
        self.low_bytes = self.keep_bytes // 8
        self.budget = Budget(UNBOUNDED) if budget is None else budget
        # Messages dropped under these bounds, by the number of the reason.
        self.dropped = [0] * (len(Reason) + 1) if dropped is None else dropped

    def described(self) -> str:
        """The current bound in bytes, as text."""
        budget = self.budget
        if budget.allowance() < self.keep_bytes:
            used = f"{budget.used_bytes} of {budget.limit_bytes} bytes for all (backlogs_bytes)"
            return f"the remaining budget: all backlogs take {used}"
        return f"the limit of {self.limit_bytes} (outbox_bytes)"
