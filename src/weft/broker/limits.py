"""Limits of a connection and of a service."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All limits of a service; sizes in bytes, times in seconds."""

    body_bytes: int = 1 << 20
    greeting_bytes: int = 4096
    greeting_s: float = 5.0
    # Limit on the time from the first byte of a frame to its last.
    frame_s: float = 30.0
    # A peer is pinged after this silence, and disconnected after twice as long.
    ping_s: float = 30.0
    # Limit on queued bytes: of one connection, and of all in a service together.
    outbox_bytes: int = 64 << 20
    backlogs_bytes: int = 512 << 20
    outbox_age_s: float = 10.0
    # Per connection; a pattern with wildcards counts once for each element.
    subscriptions: int = 65_536
    # Per connection: permissions that a service grants to clients while it runs.
    enabled: int = 1024
    # Per connection: pending requests, and their lifetime; the same limits hold for reply aliases.
    requests: int = 65_536
    request_s: float = 300.0
    # Of all connections together, including links to other gateways.
    requests_total: int = 262_144
    # Fraction of each limit of a service that the connections with one key may use.
    share: float = 0.5
    # Frames other than messages that a connection may send: in a burst, and per second.
    control_burst: int = 131_072
    control_per_s: int = 20_000
    # Subjects that are metered separately: per connection, and in the service.
    flows_per_connection: int = 1024
    flows: int = 262_144

    def share_of(self, total: int) -> int:
        """Return the part of a service's limit that one key may use, at least 1."""
        return max(1, int(total * self.share))
