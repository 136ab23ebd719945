"""The settings of lanes: when a route is hot, and how far it may go by itself then."""

from typing import Literal, NamedTuple

import msgspec

from weft.errors import BadOption, BadSubject
from weft.wire.subjects import checked_pattern, covers

# More lanes than this make one publisher send everything too often.
RECEIVERS_MAX = 8


class LaneRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different for the subjects of one pattern, in one service or in all of them."""

    pattern: str = ">"
    # Empty: whichever it is.
    service: str = ""
    enabled: bool | None = None
    messages_s: float | None = None
    bytes_s: float | None = None
    hold_s: float | None = None


class Threshold(NamedTuple):
    """When routes to one subject are hot."""

    enabled: bool
    messages_s: float
    bytes_s: float
    hold_s: float


class LaneSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which routes may leave the gateway for lanes; docs/operations.md explains every key."""

    enabled: bool = True
    # Hot is what is over either for so long.
    messages_s: float = 1000.0
    bytes_s: float = 1_000_000.0
    hold_s: float = 2.0
    # It is not hot any more below this share of both, for so long.
    low: float = 0.5
    idle_s: float = 10.0
    receivers: int = RECEIVERS_MAX
    # After it failed or was withdrawn; longer each time that it fails.
    retry_s: float = 30.0
    encrypt: Literal["auto", "always"] = "auto"
    # Whether publishers may ask for lanes, however little they send.
    ask: bool = True
    rules: tuple[LaneRule, ...] = ()

    def of(self, service: str) -> "LaneSettings":
        """What holds in one service."""
        rules = tuple(rule for rule in self.rules if rule.service in ("", service))
        return msgspec.structs.replace(self, rules=rules)

    def threshold(self, subject: bytes) -> Threshold:
        """What holds for a legal subject: that of the first rule that matches it."""
        for rule in self.rules:
            if covers(rule.pattern.encode(), subject):
                return Threshold(
                    self.enabled and rule.enabled is not False,
                    _either(rule.messages_s, self.messages_s),
                    _either(rule.bytes_s, self.bytes_s),
                    _either(rule.hold_s, self.hold_s),
                )
        return Threshold(self.enabled, self.messages_s, self.bytes_s, self.hold_s)


def check_lanes(lanes: LaneSettings) -> None:
    """Make sure of what the ranges of numbers do not tell.

    Raises:
        BadOption: something cannot be; the text names the key.
    """
    if lanes.low > 1:
        raise BadOption(f"lanes.low is {lanes.low}; it must be more than 0 and at most 1")
    if lanes.receivers > RECEIVERS_MAX:
        raise BadOption(f"lanes.receivers is {lanes.receivers}; it must be 1 … {RECEIVERS_MAX}")
    for rule in lanes.rules:
        try:
            checked_pattern(rule.pattern)
        except BadSubject as error:
            raise BadOption(f"lanes.rules: {error}") from error
        for name in ("messages_s", "bytes_s", "hold_s"):
            value = getattr(rule, name)
            # The comparison is false for what is no number, too.
            if value is not None and not value > 0:
                raise BadOption(f"lanes.rules: {name} is {value}; it must be more than 0")


def _either(own: float | None, general: float) -> float:
    return general if own is None else own
