"""Settings of lanes: thresholds of hot routes, and limits."""

from typing import Literal, NamedTuple

import msgspec

from weft.errors import BadOption, BadSubject
from weft.wire.subjects import checked_pattern, covers

# With more receivers a publisher would send each message too often.
RECEIVERS_MAX = 8


class LaneRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that differ for the subjects of a pattern, in one service or in all."""

    pattern: str = ">"
    # Empty: all services.
    service: str = ""
    enabled: bool | None = None
    messages_s: float | None = None
    bytes_s: float | None = None
    hold_s: float | None = None


class Threshold(NamedTuple):
    """When routes of one subject are hot."""

    enabled: bool
    messages_s: float
    bytes_s: float
    hold_s: float


class LaneSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which routes may leave the gateway for lanes; docs/operations.md explains every key."""

    enabled: bool = True
    # A route is hot above either rate for hold_s.
    messages_s: float = 1000.0
    bytes_s: float = 1_000_000.0
    hold_s: float = 2.0
    # It is no longer hot below this fraction of both rates for idle_s.
    low: float = 0.5
    idle_s: float = 10.0
    receivers: int = RECEIVERS_MAX
    # Pause after a failure or the end of lanes; doubled after each further failure, up to 600 s.
    retry_s: float = 30.0
    encrypt: Literal["auto", "always"] = "auto"
    # Whether publishers may request lanes, whatever their rate.
    ask: bool = True
    rules: tuple[LaneRule, ...] = ()

    def of(self, service: str) -> "LaneSettings":
        """The settings that apply to one service."""
        rules = tuple(rule for rule in self.rules if rule.service in ("", service))
        return msgspec.structs.replace(self, rules=rules)

    def threshold(self, subject: bytes) -> Threshold:
        """The thresholds for a valid subject: those of the first rule that matches it."""
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
    """Check the constraints that the types do not express.

    Raises:
        BadOption: invalid value; the text names the key.
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
            # The comparison is also false for NaN.
            if value is not None and not value > 0:
                raise BadOption(f"lanes.rules: {name} is {value}; it must be more than 0")


def _either(own: float | None, general: float) -> float:
    return general if own is None else own
