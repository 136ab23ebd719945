"""What one connection, and one service, may have and may take."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every bound of a service; sizes in bytes, times in seconds."""

    body_bytes: int = 1 << 20
    greeting_bytes: int = 4096
    greeting_s: float = 5.0
    # An unfinished frame must be complete after this long.
    frame_s: float = 30.0
    # After so long without a word from a peer it is pinged; after twice as long it is cut.
    ping_s: float = 30.0
    # What may wait to be sent: to one connection, and to all of a service together.
    outbox_bytes: int = 64 << 20
    backlogs_bytes: int = 512 << 20
    outbox_age_s: float = 10.0
    # Per connection; a pattern with wildcards counts as often as it has elements.
    subscriptions: int = 65_536
    # Per connection: rights that a service enables for clients.
    enabled: int = 1024
    # Per connection: requests that wait for an answer, and how long they may; as many replies
    # may be masked, and for as long.
    requests: int = 65_536
    request_s: float = 300.0
    # Of all connections together, those of other gateways included.
    requests_total: int = 262_144
    # The part of each bound of the whole service that all connections with one key may take.
    share: float = 0.5
    # Frames other than messages that a connection may send: at once, and each second.
    control_burst: int = 131_072
    control_per_s: int = 20_000
    # How many subjects are metered by themselves: per connection, and in the service.
    flows_per_connection: int = 1024
    flows: int = 262_144

    def share_of(self, total: int) -> int:
        """Return how much of a bound of the service one key may take, 1 at least."""
        return max(1, int(total * self.share))
