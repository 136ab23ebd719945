from prometheus_client.parser import text_string_to_metric_families

from weft.gateway.http.mesh_status import MeshStatus
from weft.gateway.http.metrics import metrics
from weft.gateway.http.report import FrontReport, GatewayReport, ServiceReport
from weft.gateway.http.service_status import JournalStatus, ServiceStatus

STATUS = ServiceStatus(
    service="weather",
    connections=1,
    subscriptions=2,
    messages_in=3,
    bytes_in=4,
    deliveries=5,
    bytes_out=6,
    message_rate=7.0,
    byte_rate=8.0,
    dropped={"slow": 9},
    refused={"BadFrame": 10},
    ended={"left": 11},
    slow_readers=12,
    backlog_bytes=13,
    arena_bytes=14,
    channels_here=40,
    channels=41,
    lanes=42,
    routes_direct=43,
    promotions=44,
    demotions={"rate": 45},
    uptime_s=15.0,
    journal=JournalStatus(position=16, safe=17, missed=18, problem="full"),
    mesh=MeshStatus(
        key="ab",
        address="127.0.0.1:7411",
        nodes=30,
        links=31,
        sent=32,
        received=33,
        passed_on=34,
        resent=35,
        shed=36,
        lost=37,
        gaps=38,
        refused={"Loop": 39},
        not_linked={"NotAdmitted": 46},
    ),
)
REPORT = GatewayReport(
    gateway="london",
    address="127.0.0.1:7411",
    version="1",
    uptime_s=100.0,
    state="ready",
    connections=1,
    connections_max=100,
    keys=3,
    keys_problem="gone",
    front=FrontReport(
        accepted=20,
        pending=1,
        pending_max=100,
        pauses=2,
        http=3,
        encrypted=4,
        refused={"TooSlow": 5},
    ),
    services={
        "weather": ServiceReport(
            state="up", pid=1, restarts=2, handed_over=3, status=STATUS, hangs=6
        ),
        "orders": ServiceReport(state="starting", pid=None, restarts=1, handed_over=0, status=None),
    },
)


def test_every_number_is_told_with_its_labels() -> None:
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics(REPORT).decode())
        for sample in family.samples
    }
    assert samples == {
        ("weft_connections", "weather"): 1,
        ("weft_subscriptions", "weather"): 2,
        ("weft_messages_in_total", "weather"): 3,
        ("weft_bytes_in_total", "weather"): 4,
        ("weft_lanes", "weather"): 42,
        ("weft_routes_direct", "weather"): 43,
        ("weft_promotions_total", "weather"): 44,
        ("weft_demotions_total", "rate", "weather"): 45,
        ("weft_journal_position_total", "weather"): 16,
        ("weft_journal_safe_total", "weather"): 17,
        ("weft_journal_missed_total", "weather"): 18,
        ("weft_journal_failing", "weather"): 1,
        ("weft_deliveries_total", "weather"): 5,
        ("weft_bytes_out_total", "weather"): 6,
        ("weft_dropped_total", "slow", "weather"): 9,
        ("weft_refused_total", "BadFrame", "weather"): 10,
        ("weft_ended_total", "left", "weather"): 11,
        ("weft_slow_readers", "weather"): 12,
        ("weft_backlog_bytes", "weather"): 13,
        ("weft_arena_bytes", "weather"): 14,
        ("weft_channels_here", "weather"): 40,
        ("weft_channels", "weather"): 41,
        ("weft_service_uptime_seconds", "weather"): 15,
        ("weft_mesh_nodes", "weather"): 30,
        ("weft_mesh_links", "weather"): 31,
        ("weft_mesh_sent_total", "weather"): 32,
        ("weft_mesh_received_total", "weather"): 33,
        ("weft_mesh_passed_on_total", "weather"): 34,
        ("weft_mesh_resent_total", "weather"): 35,
        ("weft_mesh_shed_total", "weather"): 36,
        ("weft_mesh_lost_total", "weather"): 37,
        ("weft_mesh_gaps_total", "weather"): 38,
        ("weft_mesh_refused_total", "Loop", "weather"): 39,
        ("weft_mesh_not_linked_total", "NotAdmitted", "weather"): 46,
        ("weft_worker_up", "weather"): 1,
        ("weft_worker_up", "orders"): 0,
        ("weft_worker_restarts_total", "weather"): 2,
        ("weft_worker_restarts_total", "orders"): 1,
        ("weft_worker_hangs_total", "weather"): 6,
        ("weft_worker_hangs_total", "orders"): 0,
        ("weft_handed_over_total", "weather"): 3,
        ("weft_handed_over_total", "orders"): 0,
        ("weft_front_accepted_total",): 20,
        ("weft_front_pending",): 1,
        ("weft_front_pauses_total",): 2,
        ("weft_front_http_total",): 3,
        ("weft_front_encrypted",): 4,
        ("weft_front_refused_total", "TooSlow"): 5,
        ("weft_keys",): 3,
        ("weft_keys_failing",): 1,
        ("weft_uptime_seconds",): 100,
    }


def test_labels_are_only_services_and_reasons() -> None:
    families = text_string_to_metric_families(metrics(REPORT).decode())
    labels = {name for family in families for each in family.samples for name in each.labels}
    assert labels == {"service", "reason"}
