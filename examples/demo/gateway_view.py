"""Display of a gateway: its links, and its traffic with other gateways."""

from time import monotonic

import weft


class GatewayView:
    """One gateway, updated by its answers to a system request."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        # Messages received by subscribers there.
        self.heard = 0
        self.received = 0
        self.links = "none yet"
        self.is_linked = False
        self._totals = (0, 0, 0)
        self._rates = (0.0, 0.0, 0.0)
        self._told_s = monotonic()

    def told(self, answer: weft.Received) -> None:
        """Update the view by an answer about the mesh."""
        facts = answer.to_dict()
        links = facts["links"]
        self.is_linked = bool(links)
        shown = (f"{link['name']} {link['rtt_ms']:.1f}" for link in links)
        self.links = ", ".join(shown) or "none yet"
        counts = facts["counts"]
        self.received = counts["received"]
        totals = (counts["sent"], counts["received"], self.heard)
        now_s = monotonic()
        passed_s = max(now_s - self._told_s, 0.001)
        sent, received, heard = (
            (now - before) / passed_s for now, before in zip(totals, self._totals, strict=True)
        )
        self._rates = (sent, received, heard)
        self._totals, self._told_s = totals, now_s

    def row(self) -> tuple[str, ...]:
        """Return name, address, links, and messages sent, received and delivered per second."""
        return (self.name, self.address, self.links, *(f"{rate:,.0f}" for rate in self._rates))
