"""What a reader may be owed, and what is done with the rest."""

from enum import IntEnum

OUTBOX_LIMIT_BYTES = 8 << 20
OUTBOX_LIMIT_AGE_NS = 10_000_000_000
OUTBOX_LIMIT_MIN_BYTES = 8 << 10
# Room that is never given to messages, so that every loss can be announced within the bound.
GAP_MAX_BYTES = 96
GAPS_MAX = 16
# What it takes to keep a piece beside its bytes, about: counted against the bound, so that many
# tiny pieces cannot cost many times what they hold.
KEPT_COST_BYTES = 256


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

    The bound in bytes counts memory, not only what will be sent. The bound in age holds for each
    message that waits, and for the reader: one that takes nothing for so long is cut, whatever its
    policies. Messages that may be dropped fill seven eighths at most, so that their reader still
    has room for what must not be: answers, pings, and subscriptions that cut.
    """

    def __init__(
        self,
        limit_bytes: int = OUTBOX_LIMIT_BYTES,
        limit_age_ns: int = OUTBOX_LIMIT_AGE_NS,
        dropped: list[int] | None = None,
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
        # How many messages were dropped under these bounds, by the number of the reason.
        self.dropped = [0] * (len(Reason) + 1) if dropped is None else dropped
