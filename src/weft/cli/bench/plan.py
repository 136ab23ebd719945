"""Plan of a benchmark: gateway, message size and subjects."""

import secrets

import msgspec

from weft.cli.options.target import CommandTarget

# In flight in total; well below the buffers of a gateway and a client for one subscriber.
WINDOW_BYTES = 1 << 20
# Reports of a subscriber per window: enough for the publisher never to wait.
STEPS_IN_WINDOW = 4


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark; every process that takes part in it has the same."""

    gateway: str
    service: str
    tls_ca: str | None
    key_file: str | None = None
    size: int
    seconds: float
    # Most messages in flight to the slowest subscriber.
    window: int
    # Part of the subjects, which no other run uses.
    run: str = msgspec.field(default_factory=lambda: secrets.token_hex(4))

    @property
    def step(self) -> int:
        """Number of messages between two reports of a subscriber."""
        return max(1, self.window // STEPS_IN_WINDOW)

    def target(self) -> CommandTarget:
        """Return the gateway and service to measure."""
        return CommandTarget(
            gateway=self.gateway,
            service=self.service,
            name="",
            tls_ca=self.tls_ca,
            is_json=False,
            key_file=self.key_file,
        )

    def subject(self, what: str) -> str:
        """Return a subject of this benchmark, local to its gateway."""
        return f"_LOCAL.bench.{self.run}.{what}"


def window_for(size: int) -> int:
    """Return the number of messages of a size that may be in flight."""
    # Including the header and the subject of each.
    return max(STEPS_IN_WINDOW, WINDOW_BYTES // (size + 80))
