import msgspec
import pytest

from weft.errors import NoSuchService, Overloaded
from weft.gateway.http.pages import GatewayPages
from weft.gateway.http.report import FrontReport, GatewayReport
from weft.gateway.http.static_files import versioned_path
from weft.mesh.candidates import Candidate, lone

REPORT = GatewayReport(
    gateway="london",
    address="127.0.0.1:7411",
    version="1",
    uptime_s=100.0,
    state="ready",
    connections=1,
    connections_max=100,
    front=FrontReport(
        accepted=20, pending=1, pending_max=100, pauses=2, http=3, encrypted=4, refused={}
    ),
    services={},
)


class Shown:
    def __init__(self, unready: str = "") -> None:
        self.unready = unready

    @property
    def name(self) -> str:
        return "london"

    @property
    def running(self) -> list[str]:
        return ["default", "weather"]

    async def nodes(self, service: str) -> tuple[Candidate, ...]:
        if service == "silent":
            raise Overloaded("it does not answer")
        if service not in self.running:
            raise NoSuchService(f"no {service}")
        here = lone(service, "london")
        return here, msgspec.structs.replace(here, name="paris", state="linked", region="eu")

    async def report(self) -> GatewayReport:
        return REPORT


async def test_the_index_names_every_page() -> None:
    pages = GatewayPages(Shown())
    index = await pages.page("/")
    assert index is not None
    named = [line.split()[0] for line in index.body.splitlines() if line.startswith("/")]
    # The journal is lent by another process.
    assert named == [
        *("/healthz", "/readyz", "/status", "/metrics", "/nodes", "/closest"),
        *("/journal/SERVICE", "/weft.js", versioned_path()),
    ]
    for path in named:
        assert path == "/journal/SERVICE" or await pages.page(path) is not None


@pytest.mark.parametrize("path", ["/none", "/status/", "", "//"])
async def test_there_are_no_other_pages(path: str) -> None:
    assert await GatewayPages(Shown()).page(path) is None


async def test_health_is_ok_whatever_happens() -> None:
    page = await GatewayPages(Shown("draining")).page("/healthz")
    assert page is not None
    assert (page.status, page.body) == (200, "ok\n")


@pytest.mark.parametrize(
    ("unready", "status", "body"),
    [("", 200, "ready\n"), ("not up: weather", 503, "not up: weather\n")],
)
async def test_readiness_says_why_not(unready: str, status: int, body: str) -> None:
    page = await GatewayPages(Shown(unready)).page("/readyz")
    assert page is not None
    assert (page.status, page.body) == (status, body)


async def test_the_status_is_the_report_as_json() -> None:
    page = await GatewayPages(Shown()).page("/status")
    assert page is not None
    assert page.kind == "application/json"
    assert msgspec.json.decode(page.body, type=GatewayReport) == REPORT


@pytest.mark.parametrize(
    ("query", "status", "named"),
    [
        ("", 200, ["london", "paris"]),
        ("service=weather&region=eu", 200, ["paris", "london"]),
        ("region=eu&limit=1", 200, ["paris"]),
        ("service=none", 404, []),
        ("service=silent", 503, []),
        ("limit=0", 400, []),
    ],
)
async def test_whoever_looks_for_a_gateway_is_told_of_candidates(
    query: str, status: int, named: list[str]
) -> None:
    page = await GatewayPages(Shown()).page("/closest", query)
    assert page is not None
    assert page.status == status
    if named:
        found = msgspec.json.decode(page.body)
        assert page.kind == "application/json"
        assert [each["name"] for each in found["candidates"]] == named
        assert found["gateway"] == "london"


async def test_the_nodes_are_told_by_service() -> None:
    page = await GatewayPages(Shown()).page("/nodes")
    assert page is not None
    services = msgspec.json.decode(page.body)["services"]
    assert {name: len(found) for name, found in services.items()} == {"default": 2, "weather": 2}


async def test_metrics_say_what_form_they_have() -> None:
    page = await GatewayPages(Shown()).page("/metrics")
    assert page is not None
    assert page.kind.startswith("text/plain; version=")
    assert "weft_front_accepted_total 20.0" in page.body


async def test_the_client_for_browsers_is_served() -> None:
    pages = GatewayPages(Shown())
    for path in ("/weft.js", versioned_path(), "/weft-errors.js"):
        page = await pages.page(path)
        assert page is not None, path
        assert page.kind == "text/javascript; charset=utf-8"
        assert page.tag


async def test_the_types_of_the_client_are_served() -> None:
    page = await GatewayPages(Shown()).page("/weft.d.ts")
    assert page is not None
    assert page.kind == "application/typescript; charset=utf-8"
