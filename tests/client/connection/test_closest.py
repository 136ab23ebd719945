"""Which gateway is taken by whoever looks for the closest."""

import asyncio
import json
import math
import socket
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import key_of, record
from tests.client.connection.test_reconnect import QUICK, Scripted, Statuses
from tests.client.servers import HttpServer, answered, http_server

from weft.client.asyncio.connection import connect
from weft.client.connection import closest
from weft.client.connection.closest import (
    Choice,
    DiscoveryQuery,
    RankedCandidate,
    Seeker,
    ask,
    measure,
)
from weft.client.options import Options
from weft.client.status import Status, What
from weft.errors import BadKey, BadOption, NotAllowed, Unreachable, WeftError
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings, Tls
from weft.gateway.gateway import Gateway
from weft.gateway.keys.key_file import change_keys
from weft.wire.address import Address, addresses_from
from weft.wire.frames import Kind
from weft.wire.message.message import Message

SOUGHT = DiscoveryQuery("default", "eu", "", None)
FAR_S = 0.3


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def naming(*addresses: Address | str, **facts: object) -> bytes:
    """The page that names gateways."""
    rows = [
        {"name": f"n{place}", "address": str(each), **facts} for place, each in enumerate(addresses)
    ]
    return answered(json.dumps({"candidates": rows}))


def seeker(*given: Address, **options: Any) -> Seeker:
    return Seeker(Options(closest=True, **options), given)


async def test_what_is_asked_for_is_said() -> None:
    async with http_server(lambda _: naming("a:1", "tls://b:2", region="eu", load=3)) as master:
        found = await ask(master.address, SOUGHT._replace(key="secret"), 2)
    assert found == [
        RankedCandidate("n0", Address("a", 1, is_tls=False), "eu", 3),
        RankedCandidate("n1", Address("b", 2, is_tls=True), "eu", 3),
    ]
    [head] = master.heads
    assert head.startswith("GET /closest?service=default&limit=2&region=eu ")
    assert "Bearer secret" in head


async def test_whoever_does_not_know_where_it_is_is_where_it_was_asked() -> None:
    async with http_server(lambda _: naming("", "no address", "0.0.0.0:0")) as master:
        [own] = await ask(master.address, SOUGHT, 3)
    assert own.address == master.address


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answered("nonsense"), Unreachable),
        (answered('{"candidates": 7}'), Unreachable),
        (answered("[" * 1000), Unreachable),
        (answered("", "500 Oh"), Unreachable),
        (b"\x15\x03\x01", Unreachable),
        (answered("a key is needed", "401 No"), NotAllowed),
        (answered("not for that service", "403 No"), NotAllowed),
    ],
)
async def test_nonsense_and_refusals_name_nobody(answer: bytes, error: type[WeftError]) -> None:
    async with http_server(lambda _: answer) as master:
        with pytest.raises(error):
            await ask(master.address, SOUGHT, 3)
        choice = await seeker(master.address).seek()
        assert isinstance(choice.problem, error)
        assert choice.addresses([master.address]) == (master.address,)


async def test_a_master_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closest, "ASK_S", 0.05)
    async with http_server(lambda _: b"", 60.0) as master:
        choice = await seeker(master.address).seek()
    assert "did not answer within 0.05 s" in str(choice.problem)


@pytest.mark.req("RLY-17")
async def test_the_one_that_answers_first_is_taken_whatever_was_guessed() -> None:
    async with AsyncExitStack() as stack:
        servers: list[HttpServer] = [
            await stack.enter_async_context(http_server(lambda _: answered(), delay_s))
            for delay_s in (FAR_S, 0.0, FAR_S)
        ]
        found = [RankedCandidate(f"n{place}", each.address) for place, each in enumerate(servers)]
        measured = await measure(found, None)
    assert measured[0].name == "n1"


async def test_those_as_close_as_the_closest_are_taken_as_they_were_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # However busy this machine is.
    monkeypatch.setattr(closest, "NEAR_S", 60.0)
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(http_server(lambda _: answered(), delay_s))
            for delay_s in (0.05, 0.0, 0.02)
        ]
        found = [RankedCandidate(f"n{place}", each.address) for place, each in enumerate(servers)]
        assert [each.name for each in await measure(found, None)] == ["n0", "n1", "n2"]


async def test_those_that_do_not_answer_in_time_are_left_out() -> None:
    async with AsyncExitStack() as stack:
        slow = await stack.enter_async_context(http_server(lambda _: answered(), 60.0))
        odd = await stack.enter_async_context(http_server(lambda _: answered("", "500 Oh")))
        well = await stack.enter_async_context(http_server(lambda _: answered()))
        addresses = (slow.address, odd.address, well.address)
        master = await stack.enter_async_context(http_server(lambda _: naming(*addresses)))
        choice = await seeker(master.address).seek()
        assert [each.address for each in choice.found] == [well.address]
        assert choice.addresses([master.address]) == (well.address, master.address)
        none = await seeker(master.address).among([str(slow.address)], master.address)
        assert "none of 1 gateways" in str(none.problem)


async def test_no_more_are_measured_than_a_few() -> None:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(http_server(lambda _: answered())) for _ in range(5)
        ]
        every = [each.address for each in servers]
        master = await stack.enter_async_context(http_server(lambda _: naming(*every)))
        assert len((await seeker(master.address).seek()).found) == closest.MEASURED_MAX
        await seeker(master.address).among(list(map(str, every)), master.address)
    assert [bool(each.heads) for each in servers] == [True, True, True, False, False]


async def test_who_speaks_tls_is_not_led_to_a_gateway_without() -> None:
    tls = Address("127.0.0.1", 1, is_tls=True)
    choice = await seeker(tls).among(["127.0.0.1:2", "ws://127.0.0.1:2"], tls)
    assert "no usable gateway" in str(choice.problem)
    assert choice.addresses([tls]) == (tls,)


def test_who_speaks_tls_asks_by_tls() -> None:
    given = addresses_from("tls://a:1")
    with pytest.raises(BadOption, match="without TLS"):
        Seeker(Options(closest="b:1"), given)
    Seeker(Options(closest="tls://b:1"), given)


async def test_who_needs_websockets_is_led_to_websockets() -> None:
    async with http_server(lambda _: answered()) as server:
        [web] = addresses_from(f"ws://127.0.0.1:{server.address.port}")
        choice = await seeker(web).among([str(server.address)], server.address)
    assert [each.address for each in choice.found] == [web]


def test_a_choice_says_why() -> None:
    here, there, given = (Address(host, 1, is_tls=False) for host in "abc")
    choice = Choice(
        (RankedCandidate("n", here, rtt_s=0.001), RankedCandidate("m", there, rtt_s=0.2)),
        "named by x",
    )
    assert choice.why(here) == "the closest of 2 that answered, in 1.0 ms; named by x"
    assert choice.why(there) == "number 2 of 2 that answered, in 200.0 ms; named by x"
    assert choice.why(given) == "given"
    assert Choice(problem=Unreachable("nobody")).why(given) == "given, as nobody"
    assert math.isinf(RankedCandidate("n", here).rtt_s)


@pytest.mark.req("RLY-16")
async def test_a_real_gateway_names_itself_and_is_taken() -> None:
    async with Gateway("127.0.0.1:0", workers="inline") as gateway:
        statuses: list[Status] = []
        async with connect(gateway.address, closest=True, on_status=statuses.append) as connection:
            assert connection.address == f"tcp://{gateway.address}"
            assert connection.why.startswith("the closest of 1 that answered, in ")
        assert [each.what for each in statuses[:2]] == [What.CHOSEN, What.CONNECTED]


@pytest.mark.req("RLY-16")
async def test_with_the_master_down_the_given_one_still_works() -> None:
    async with http_server(lambda _: b"") as gone:
        master = str(gone.address)
    async with Gateway("127.0.0.1:0", workers="inline") as gateway:
        async with connect(gateway.address, closest=master) as connection:
            assert connection.address == f"tcp://{gateway.address}"
            assert connection.why.startswith("given, as ")
            assert master in connection.why
        async with connect(gateway.address) as connection:
            assert connection.why == "given"


@pytest.mark.req("RLY-16")
async def test_by_tls_all_of_it_goes_by_tls(certificates: Path, tls: Tls) -> None:
    trusting = ssl.create_default_context(cafile=certificates / "first.pem")
    mesh = MeshSettings(address="tls://localhost:1")
    settings = Settings(name="vault", tls=tls)
    async with Gateway("127.0.0.1:0", settings=settings, workers="inline") as gateway:
        given = f"tls://{gateway.address}"
        async with connect(given, closest=True, tls=trusting) as connection:
            assert connection.address == given
            assert connection.why.startswith("the closest of 1 ")
    # One that is not reached where it says that it is is reached where it was given.
    settings = Settings(name="vault", tls=tls, mesh=mesh)
    async with Gateway("127.0.0.1:0", settings=settings, workers="inline") as gateway:
        given = f"tls://{gateway.address}"
        async with connect(given, closest=True, tls=trusting) as connection:
            assert connection.why.startswith("given, as none of 1 gateways named by tls://")


@pytest.mark.req("RLY-16")
async def test_a_client_may_look_with_its_key_and_without_is_told_why_not(tmp_path: Path) -> None:
    change_keys(tmp_path, lambda _: (record("guest", "client", subscribe=[">"]),))
    settings = Settings(name="vault", data=str(tmp_path), services=("weather",))
    async with Gateway("127.0.0.1:0", settings=settings, workers="inline") as gateway:
        options: dict[str, Any] = {"closest": True, "service": "weather"}
        async with connect(gateway.address, key=key_of("guest"), **options) as connection:
            assert connection.why.startswith("the closest of 1 ")
        [address] = addresses_from(gateway.address)
        choice = await seeker(address, service="weather").seek()
        assert "401 a key is needed" in str(choice.problem)
        choice = await seeker(address, service="orders", key=key_of("guest")).seek()
        assert "403 this key is not for that service" in str(choice.problem)
        with pytest.raises(BadKey):
            await connect(gateway.address, **options)


def goodbye(*elsewhere: str) -> Message:
    return Message(reason="draining", text="", elsewhere=list(elsewhere))


@pytest.mark.req("RLY-16")
async def test_who_looks_for_the_closest_follows_the_advice_of_a_gateway_that_drains(
    scripted: Scripted, running: Any, nobody: str
) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(
            # Nobody names candidates, so the given one is taken.
            connect(gateway.address, closest=nobody, on_status=statuses.put, **QUICK)
        )
        peer = await gateway.peer()
        connection = await connecting
        peer.send(Kind.GOODBYE, body=goodbye(nobody, running.address))
        await peer.frame(Kind.GOODBYE)
        peer.close()
        await statuses.wait_for(What.DISCONNECTED)
        assert running.address in (await statuses.wait_for(What.CONNECTED)).detail
        assert connection.why.endswith(f"advised by tcp://{gateway.address}")
        await connection.close()


@pytest.mark.req("RLY-16")
async def test_who_was_given_one_address_stays_with_it(scripted: Scripted, running: Any) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address, **QUICK))
        peer = await gateway.peer()
        connection = await connecting
        peer.send(Kind.GOODBYE, body=goodbye(running.address))
        await peer.frame(Kind.GOODBYE)
        peer.close()
        await gateway.peer()
        assert connection.why == "given"
        await gateway.part(connection)


@pytest.mark.parametrize(
    "options", [{"closest": "nowhere:0"}, {"region": "a b"}, {"region": "x" * 64}]
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadOption):
        Options(**options)
