"""What was carried for the mesh, in numbers."""


class TrafficCounts:
    """Frames: sent to other gateways, received from them, passed on for others, and what failed."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self.passed_on = 0
        # Asked for again and sent again; held back until what came before them was there.
        self.resent = 0
        self.held = 0
        # Not sent because a link had too much to send already; it will be asked for again.
        self.shed = 0
        # Came twice; came for nobody any more; could not be passed on.
        self.doubled = 0
        self.unserved = 0
        self.dropped = 0
        # Announced as lost, and how often something was; a loss of unknown size counts as none.
        self.lost = 0
        self.gaps = 0
        # Refused, by the name of what was wrong.
        self.refused: dict[str, int] = {}

    def refuse(self, name: str, frames: int) -> None:
        """Count frames that were refused."""
        self.refused[name] = self.refused.get(name, 0) + frames
