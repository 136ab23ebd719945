"""Counters of the traffic between gateways."""


class TrafficCounts:
    """Frame counters of one gateway's mesh traffic."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self.passed_on = 0
        # Retransmitted after a negative acknowledgement; buffered behind a sequence gap.
        self.resent = 0
        self.held = 0
        # Not sent because the backlog of a link was full; retransmitted when requested.
        self.shed = 0
        # Received twice; without a receiver; not forwarded for want of a path.
        self.doubled = 0
        self.unserved = 0
        self.dropped = 0
        # Reported as lost, and number of reports; a loss of unknown size adds no frames.
        self.lost = 0
        self.gaps = 0
        # Rejected, by reason.
        self.refused: dict[str, int] = {}

    def refuse(self, name: str, frames: int) -> None:
        """Count rejected frames."""
        self.refused[name] = self.refused.get(name, 0) + frames
