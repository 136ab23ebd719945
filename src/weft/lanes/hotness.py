"""Hotness of a route: compares its rate with thresholds, and states the reason."""

from typing import NamedTuple

from weft.broker.metering import PublisherTraffic
from weft.lanes.hot_subjects import Finding
from weft.lanes.settings import Threshold

# A flow without messages for this long counts as unused.
LATELY_NS = 2_000_000_000


class Heat(NamedTuple):
    """Whether a route is hot, and why; `is_certain`: without a waiting period."""

    is_hot: bool
    reason: str
    is_certain: bool = False


def heat_of(
    flow: PublisherTraffic | None, threshold: Threshold, finding: Finding | None, now_ns: int
) -> Heat:
    """The hotness of a flow, if there is one."""
    messages_s = 0.0 if flow is None else flow.message_rate(now_ns)
    bytes_s = 0.0 if flow is None else flow.byte_rate(now_ns)
    is_used = flow is not None and now_ns - flow.last_ns <= LATELY_NS
    if not threshold.enabled:
        return Heat(False, "lanes are off for this subject")
    if finding is not None and is_used:
        text = f"hot_routes: {finding.messages_s:,.0f} messages/s across the mesh"
        return Heat(True, text, is_certain=True)
    if messages_s >= threshold.messages_s:
        return Heat(True, f"{messages_s:,.0f} messages/s, over {threshold.messages_s:,.10g}")
    if bytes_s >= threshold.bytes_s:
        return Heat(True, f"{bytes_s:,.0f} bytes/s, over {threshold.bytes_s:,.10g}")
    return Heat(False, _below(messages_s, bytes_s, threshold))


def is_cold(flow: PublisherTraffic | None, threshold: Threshold, low: float, now_ns: int) -> bool:
    """Return whether a flow is below the fraction `low` of both thresholds."""
    return flow is None or (
        flow.message_rate(now_ns) < low * threshold.messages_s
        and flow.byte_rate(now_ns) < low * threshold.bytes_s
    )


def _below(messages_s: float, bytes_s: float, threshold: Threshold) -> str:
    """The reason text for a flow below both thresholds, with the closer one."""
    if bytes_s / threshold.bytes_s > messages_s / threshold.messages_s:
        return f"below threshold: {bytes_s:,.0f} of {threshold.bytes_s:,.10g} bytes/s"
    return f"below threshold: {messages_s:,.0f} of {threshold.messages_s:,.10g} messages/s"
