"""Metrics of a gateway in the text format of Prometheus.

The labels are services and reasons, both few: subjects and peer names are never labels.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from weft.gateway.http.report import FrontReport, GatewayReport, ServiceReport

# Name, whether it is a counter, help text, field of ServiceStatus.
_OF_SERVICE = (
    ("weft_connections", False, "Connections", "connections"),
    ("weft_subscriptions", False, "Subscriptions", "subscriptions"),
    ("weft_slow_readers", False, "Slow consumers", "slow_readers"),
    ("weft_backlog_bytes", False, "Bytes queued for slow consumers", "backlog_bytes"),
    ("weft_arena_bytes", False, "Bytes of receive arenas", "arena_bytes"),
    ("weft_channels_here", False, "Channels with members at this gateway", "channels_here"),
    ("weft_channels", False, "Channels with members anywhere in the mesh", "channels"),
    ("weft_lanes", False, "Lanes between clients", "lanes"),
    ("weft_routes_direct", False, "Routes that use lanes", "routes_direct"),
    ("weft_promotions", True, "Routes moved to lanes", "promotions"),
    ("weft_service_uptime_seconds", False, "Seconds since the worker started", "uptime_s"),
    ("weft_messages_in", True, "Messages published", "messages_in"),
    ("weft_bytes_in", True, "Bytes of the messages published", "bytes_in"),
    ("weft_deliveries", True, "Messages delivered to subscribers", "deliveries"),
    ("weft_bytes_out", True, "Bytes sent", "bytes_out"),
)
_BY_REASON = (
    ("weft_dropped", "Messages dropped", "dropped"),
    ("weft_refused", "Frames refused", "refused"),
    ("weft_ended", "Connections ended", "ended"),
    ("weft_demotions", "Routes moved back from lanes", "demotions"),
)
_OF_JOURNAL = (
    ("weft_journal_position", True, "Messages in the journal", "position"),
    ("weft_journal_safe", True, "Durable messages in the journal", "safe"),
    ("weft_journal_missed", True, "Messages that were not journaled", "missed"),
)
_OF_MESH = (
    ("weft_mesh_nodes", False, "Other gateways that can be reached", "nodes"),
    ("weft_mesh_links", False, "Links to other gateways", "links"),
    ("weft_mesh_sent", True, "Frames sent to other gateways", "sent"),
    ("weft_mesh_received", True, "Frames received from other gateways", "received"),
    ("weft_mesh_passed_on", True, "Frames forwarded for other gateways", "passed_on"),
    ("weft_mesh_resent", True, "Frames retransmitted", "resent"),
    ("weft_mesh_shed", True, "Frames not sent because a link was full", "shed"),
    ("weft_mesh_lost", True, "Frames reported as lost", "lost"),
    ("weft_mesh_gaps", True, "Gaps reported", "gaps"),
)
_OF_MESH_BY_REASON = (
    ("weft_mesh_refused", "Frames refused from links", "refused"),
    ("weft_mesh_not_linked", "Links refused", "not_linked"),
)
_OF_FRONT = (
    ("weft_front_accepted", True, "Connections accepted", "accepted"),
    ("weft_front_pauses", True, "Pauses because descriptors ran out", "pauses"),
    ("weft_front_http", True, "HTTP requests answered", "http"),
    ("weft_front_pending", False, "Connections before their handshake", "pending"),
    ("weft_front_encrypted", False, "TLS connections", "encrypted"),
)


def metrics(report: GatewayReport) -> bytes:
    """Return the report as Prometheus text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(report))
    return generate_latest(registry)


class _Once(Collector):
    """Prometheus collector of one report."""

    def __init__(self, report: GatewayReport) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield from _of_services(self._report.services)
        yield from _of_journals(self._report.services)
        yield from _of_mesh(self._report.services)
        yield from _of_workers(self._report.services)
        yield from _of_front(self._report.front)
        yield GaugeMetricFamily("weft_keys", "Keys", value=self._report.keys)
        yield GaugeMetricFamily(
            "weft_keys_failing",
            "Whether the key file is unusable",
            value=self._report.keys_problem != "",
        )
        yield GaugeMetricFamily(
            "weft_uptime_seconds", "Seconds since the gateway started", value=self._report.uptime_s
        )


def _of_services(services: dict[str, ServiceReport]) -> Iterator[Metric]:
    told = {name: each.status for name, each in services.items() if each.status is not None}
    for name, is_counter, text, field in _OF_SERVICE:
        family = _family(name, is_counter, text, ["service"])
        for service, status in told.items():
            family.add_metric([service], getattr(status, field))
        yield family
    for name, text, field in _BY_REASON:
        family = _family(name, True, text, ["service", "reason"])
        for service, status in told.items():
            for reason, count in getattr(status, field).items():
                family.add_metric([service, reason], count)
        yield family


def _of_journals(services: dict[str, ServiceReport]) -> Iterator[Metric]:
    told = {
        name: each.status.journal
        for name, each in services.items()
        if each.status is not None and each.status.journal is not None
    }
    for name, is_counter, text, field in _OF_JOURNAL:
        family = _family(name, is_counter, text, ["service"])
        for service, journal in told.items():
            family.add_metric([service], getattr(journal, field))
        yield family
    failing = _family("weft_journal_failing", False, "Whether the journal fails", ["service"])
    for service, journal in told.items():
        failing.add_metric([service], journal.problem != "")
    yield failing


def _of_mesh(services: dict[str, ServiceReport]) -> Iterator[Metric]:
    told = {
        name: each.status.mesh
        for name, each in services.items()
        if each.status is not None and each.status.mesh is not None
    }
    for name, is_counter, text, field in _OF_MESH:
        family = _family(name, is_counter, text, ["service"])
        for service, mesh in told.items():
            family.add_metric([service], getattr(mesh, field))
        yield family
    for name, text, field in _OF_MESH_BY_REASON:
        family = _family(name, True, text, ["service", "reason"])
        for service, mesh in told.items():
            for reason, count in getattr(mesh, field).items():
                family.add_metric([service, reason], count)
        yield family


def _of_workers(services: dict[str, ServiceReport]) -> Iterator[Metric]:
    up = _family("weft_worker_up", False, "Whether the worker is up", ["service"])
    restarts = _family("weft_worker_restarts", True, "Restarts of the worker", ["service"])
    hangs = _family("weft_worker_hangs", True, "Hangs for which the worker was killed", ["service"])
    handed_over = _family("weft_handed_over", True, "Connections passed to the worker", ["service"])
    for service, report in services.items():
        up.add_metric([service], report.state == "up")
        restarts.add_metric([service], report.restarts)
        hangs.add_metric([service], report.hangs)
        handed_over.add_metric([service], report.handed_over)
    yield from (up, restarts, hangs, handed_over)


def _of_front(front: FrontReport) -> Iterator[Metric]:
    for name, is_counter, text, field in _OF_FRONT:
        family = _family(name, is_counter, text, [])
        family.add_metric([], getattr(front, field))
        yield family
    refused = _family("weft_front_refused", True, "Connections refused", ["reason"])
    for reason, count in front.refused.items():
        refused.add_metric([reason], count)
    yield refused


def _family(
    name: str, is_counter: bool, text: str, labels: list[str]
) -> CounterMetricFamily | GaugeMetricFamily:
    family = CounterMetricFamily if is_counter else GaugeMetricFamily
    return family(name, text, labels=labels)
