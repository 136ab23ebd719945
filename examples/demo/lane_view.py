"""What one sees of a route: whether it goes through the gateway or past it, and why."""

from examples.demo.ticker import TICKS

import weft

# What comes past the gateway is numbered by its publisher, from here on.
_BY_LANE = 1 << 63


class LaneView:
    """The route of the ticker, as its gateway tells of it and as its receiver sees it."""

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._counts = [0, 0]
        self._rates = (0, 0)
        self._state, self._reason = "relayed", "nothing yet"

    @property
    def is_direct(self) -> bool:
        """Whether everything has come past the gateway lately."""
        relayed, by_lane = self._rates
        return self._state == "direct" and relayed == 0 and by_lane > 0

    def heard(self, message: weft.Received) -> None:
        """A price came."""
        self._counts[message.sequence >= _BY_LANE] += 1

    def told(self, answer: weft.Received) -> None:
        """The gateway said where the route goes."""
        for row in answer["routes"]:
            self._state, self._reason = row["state"], row["reason"]

    def tick(self) -> None:
        """A second has passed."""
        relayed, by_lane = self._counts
        self._rates = (relayed, by_lane)
        self._counts = [0, 0]

    def line(self) -> str:
        """The route, and how many came which way in the last second."""
        relayed, by_lane = self._rates
        return (
            f"{TICKS} at {self._gateway}: {self._state} ({self._reason}),"
            f" {relayed:,}/s relayed, {by_lane:,}/s direct"
        )
