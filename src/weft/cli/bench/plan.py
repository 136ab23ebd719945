"""What a benchmark measures with: the gateway, the size of messages, the subjects it uses."""

import secrets

import msgspec

from weft.cli.options.target import Target

# Of all that is on its way at once; well within what a gateway and a client hold for a reader.
WINDOW_BYTES = 1 << 20
# How often in a window a reader says how far it is, so that the publisher never has to stop.
STEPS_IN_WINDOW = 4


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark; every process that takes part in it has the same."""

    gateway: str
    service: str
    tls_ca: str | None
    key_file: str | None = None
    size: int
    seconds: float
    # At most so many messages are on their way to the slowest reader.
    window: int
    # Nobody else uses the subjects of this one.
    run: str = msgspec.field(default_factory=lambda: secrets.token_hex(4))

    @property
    def step(self) -> int:
        """After so many messages a reader says how far it is."""
        return max(1, self.window // STEPS_IN_WINDOW)

    def target(self) -> Target:
        """The gateway and service to measure with."""
        return Target(
            gateway=self.gateway,
            service=self.service,
            name="",
            tls_ca=self.tls_ca,
            is_json=False,
            key_file=self.key_file,
        )

    def subject(self, what: str) -> str:
        """A subject of this benchmark; it never leaves its gateway."""
        return f"_LOCAL.bench.{self.run}.{what}"


def window_for(size: int) -> int:
    """How many messages of a size may be on their way."""
    # The header and the subject travel with each.
    return max(STEPS_IN_WINDOW, WINDOW_BYTES // (size + 80))
