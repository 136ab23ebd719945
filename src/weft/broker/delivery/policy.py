"""What a reader may be owed, and what is done with the rest."""

from enum import IntEnum

from weft.broker.delivery.chunk import KEPT_COST_BYTES
from weft.broker.delivery.memory_budget import Budget

OUTBOX_LIMIT_BYTES = 64 << 20
OUTBOX_LIMIT_AGE_NS = 10_000_000_000
OUTBOX_LIMIT_MIN_BYTES = 8 << 10
# Room that is never given to messages, so that every loss can be announced within the bound.
GAP_MAX_BYTES = 96
GAPS_MAX = 16
# A hole announces the losses of so many origins, and of all others together.
HOLE_ORIGINS_MAX = 3
HOLE_COST_BYTES = KEPT_COST_BYTES + GAP_MAX_BYTES * (HOLE_ORIGINS_MAX + 1)

_HOLES_MAX = 1024
UNBOUNDED = 1 << 62


class Policy(IntEnum):
    """What happens to a subscription's messages when its reader falls behind.

    Where several subscriptions of one connection match a message, the highest number applies: the
    one that keeps most.
    """

    LATEST = 0  # only the newest of each subject waits
    DROP_OLD = 1  # the oldest give way
    DROP_NEW = 2  # the newest are not taken in
    CUT = 3  # nothing is dropped: the connection is ended


class Reason(IntEnum):
    """Why messages were dropped; its lower-case name is what a GAP says."""

    SLOW = 1  # the bound in bytes was reached
    OLD = 2  # the bound in age was reached
    CONFLATED = 3  # a newer message of the same subject took its place


class Bounds:
    """The limits of an outbox, shared by all that have the same.

    The bound in bytes counts memory, not only what will be sent; the budget that all backlogs share
    may leave less. The bound in age holds for each message that may be dropped, and for the reader:
    one that takes nothing for so long is cut, whatever its policies, and so is one that takes less
    than `pace_bytes` for so long while it is owed what must not be dropped. Messages that may be
    dropped fill seven eighths at most, so that their reader still has room for what must not be:
    answers, pings, and subscriptions that cut.

    With more than `high_bytes` of what must not be dropped a backlog is crowded, until that is down
    to `low_bytes`.
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
        # What is dropped goes in pieces of whole frames: small against the bound, few to handle.
        self.piece_bytes = min(limit_bytes // 16, 64 << 10)
        # Places in the order where losses are announced: half of the room that messages that may be
        # dropped are not given is enough for them, but for the smallest bounds.
        self.holes_max = max(1, min(_HOLES_MAX, self.keep_bytes // 16 // HOLE_COST_BYTES))
        self.pace_bytes = self.piece_bytes
        self.high_bytes = self.keep_bytes // 4
        self.low_bytes = self.keep_bytes // 8
        self.budget = Budget(UNBOUNDED) if budget is None else budget
        # How many messages were dropped under these bounds, by the number of the reason.
        self.dropped = [0] * (len(Reason) + 1) if dropped is None else dropped

    def described(self) -> str:
        """The bound in bytes as it is at the moment, for people."""
        budget = self.budget
        if budget.allowance() < self.keep_bytes:
            used = f"{budget.used_bytes} of {budget.limit_bytes} bytes for all (backlogs_bytes)"
            return f"what was left: others take {used}"
        return f"the limit of {self.limit_bytes} (outbox_bytes)"
