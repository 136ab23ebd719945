"""Display of a route: whether it is relayed by the gateway or direct by a lane, and why."""

from examples.demo.ticker import TICKS

import weft

# First sequence number of messages by lane, which their publisher numbers.
_BY_LANE = 1 << 63


class LaneView:
    """Route of the ticker, by its gateway's answers and by the messages received."""

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._counts = [0, 0]
        self._rates = (0, 0)
        self._state, self._reason = "relayed", "nothing yet"

    @property
    def is_direct(self) -> bool:
        """Whether all recent messages arrived by lane."""
        relayed, by_lane = self._rates
        return self._state == "direct" and relayed == 0 and by_lane > 0

    def heard(self, message: weft.Received) -> None:
        """Count a message."""
        self._counts[message.sequence >= _BY_LANE] += 1

    def told(self, answer: weft.Received) -> None:
        """Update the state by an answer about routes."""
        for row in answer["routes"]:
            self._state, self._reason = row["state"], row["reason"]

    def tick(self) -> None:
        """Compute the rates of the last second."""
        relayed, by_lane = self._counts
        self._rates = (relayed, by_lane)
        self._counts = [0, 0]

    def line(self) -> str:
        """Return the state of the route, and its messages relayed and direct in the last second."""
        relayed, by_lane = self._rates
        return (
            f"{TICKS} at {self._gateway}: {self._state} ({self._reason}),"
            f" {relayed:,}/s relayed, {by_lane:,}/s direct"
        )
