"""What gateways answer about their mesh, over real sockets."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import key_of, record
from tests.gateway.meshes import LIMIT_S, SERVICE, gateway, linked, until, wanted

import weft
from weft.errors import BadOption, BadSubject, NotAllowed, Reserved
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.gateway import Gateway
from weft.gateway.keys.key_file import change_keys

# Nobody listens there, so whoever says that it can be dialled there cannot be.
NOWHERE, ELSEWHERE = "127.0.0.1:1", "127.0.0.1:2"
QUESTIONS = ("mesh", "listeners", "trace")

Facts = dict[str, Any]


@asynccontextmanager
async def connected(made: Gateway, name: str = "", key: str = "") -> AsyncIterator[Any]:
    """Someone at a gateway."""
    async with weft.connect(
        made.address, service=SERVICE, name=name, timeout_s=LIMIT_S, key=key
    ) as client:
        yield client


async def asked(client: weft.AsyncConnection, question: str, **about: Any) -> Facts:
    """What a gateway answers."""
    message = weft.Message.from_dict(about)
    answer = await client.send_request(f"_WEFT.ask.{question}", message, LIMIT_S)
    return answer.to_dict()


@asynccontextmanager
async def line() -> AsyncIterator[tuple[Gateway, Gateway, Gateway]]:
    """Three gateways of which the first and the last are only linked with the one between them."""
    async with (
        gateway("paris") as paris,
        gateway("london", MeshSettings(join=(paris.address,), address=NOWHERE)) as london,
        gateway("rome", MeshSettings(join=(paris.address,), address=ELSEWHERE)) as rome,
    ):
        await until(lambda mesh: mesh["nodes"] == 2, london, paris, rome)
        yield london, paris, rome


async def test_nodes_links_and_what_cannot_be_reached_are_told() -> None:
    async with line() as (london, paris, _), connected(london) as client:
        while not (answer := await asked(client, "mesh"))["targets"]:
            await asyncio.sleep(0.01)
    assert answer["gateway"] == "london"
    assert [node["name"] for node in answer["nodes"]] == ["london", "paris", "rome"]
    here, linked_with, reached = answer["nodes"]
    assert [each["state"] for each in answer["nodes"]] == ["here", "linked", "reached"]
    assert (linked_with["hops"], linked_with["address"]) == (1, paris.address)
    assert (reached["hops"], reached["through"], reached["by"]) == (2, "paris", "paris")
    assert (here["links"], sorted(linked_with["links"])) == (["paris"], ["london", "rome"])
    [link] = answer["links"]
    assert (link["name"], link["state"], link["is_dialled"]) == ("paris", "ready", True)
    [target] = answer["targets"]
    assert target["address"] == ELSEWHERE
    assert target["problem"]
    assert not target["is_configured"]


async def test_who_listens_is_told_with_the_pattern_that_matches() -> None:
    async with (
        line() as (london, _, rome),
        connected(london, "here") as here,
        connected(rome, "there") as there,
    ):
        here.subscribe("a.*", group="g")
        there.subscribe("a.>")
        there.subscribe("b")
        await wanted(here, "a.b", "rome")
        answer = await asked(here, "listeners", subject="a.b")
        interest = await asked(here, "mesh", interest=True)
    [listener] = answer["listeners"]
    assert (listener["name"], listener["pattern"], listener["group"]) == ("here", "a.*", "g")
    [wanting] = answer["gateways"]
    assert (wanting["name"], wanting["pattern"], wanting["hops"]) == ("rome", "a.>", 2)
    assert {(each["gateway"], each["pattern"]) for each in interest["interest"]} == {
        ("london", "a.*"),
        ("rome", "a.>"),
        ("rome", "b"),
    }


async def test_a_trace_meets_every_gateway_on_its_way() -> None:
    async with (
        line() as (london, _, rome),
        connected(london) as here,
        connected(rome, "there") as there,
    ):
        heard = there.subscribe("a.>")
        await wanted(here, "a.b", "rome")
        answer = await asked(here, "trace", subject="a.b")
        await here.publish("a.b", b"after")
        assert (await heard.next(LIMIT_S)).payload == b"after"
    assert [place["state"] for place in answer["gateways"]] == ["here", "answered", "answered"]
    assert [place["name"] for place in answer["gateways"]] == ["london", "paris", "rome"]
    [subscription] = answer["gateways"][2]["subscriptions"]
    assert (subscription["name"], subscription["pattern"]) == ("there", "a.>")
    assert answer["gateways"][1]["onward"][0]["name"] == "rome"
    assert answer["responder"] == {"gateway": "rome", "name": "there"}


async def test_gateways_of_one_name_are_told_apart() -> None:
    async with (
        gateway("twin") as first,
        gateway("twin", MeshSettings(join=(first.address,))) as second,
    ):
        await linked(first, second)
        async with connected(first) as client:
            nodes = (await asked(client, "mesh"))["nodes"]
    assert [node["name"] for node in nodes] == [f"twin {node['number']:08x}" for node in nodes]
    assert len({node["name"] for node in nodes}) == 2


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_client_may_not_ask_and_a_service_may(tmp_path: Path, question: str) -> None:
    change_keys(tmp_path, lambda _: (record("web", "client"), record("quotes")))
    async with gateway("london", data=str(tmp_path)) as london:
        async with connected(london, key=key_of("quotes")) as service:
            assert (await asked(service, question, subject="a"))["gateway"] == "london"
        async with connected(london, key=key_of("web")) as client:
            with pytest.raises(NotAllowed, match=f"a client may not ask for {question}"):
                await asked(client, question, subject="a")


async def test_lists_are_bounded_and_the_rest_is_counted() -> None:
    async with gateway("london") as london, connected(london) as client:
        for number in range(5):
            client.subscribe(f"a.{number}")
        client.subscribe("a.*")
        await client.flush()
        answer = await asked(client, "mesh", interest=True, limit=2)
        while len(answer["interest"]) + answer["more_interest"] < 6:
            answer = await asked(client, "mesh", interest=True, limit=2)
        assert (len(answer["interest"]), answer["more_interest"]) == (2, 4)
        answer = await asked(client, "listeners", subject="a.1", limit=1)
        assert (len(answer["listeners"]), answer["more"]) == (1, 1)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("limit", [0, 1001, -1])
async def test_a_limit_that_cannot_be_is_refused(question: str, limit: int) -> None:
    async with gateway("london") as london, connected(london) as client:
        with pytest.raises(BadOption, match=f"limit {limit} is not in"):
            await asked(client, question, subject="a", limit=limit)


@pytest.mark.parametrize("question", ["listeners", "trace"])
async def test_what_is_no_subject_is_refused(question: str) -> None:
    async with gateway("london") as london, connected(london) as client:
        with pytest.raises(BadSubject):
            await asked(client, question, subject="a.*")
        with pytest.raises(Reserved):
            await asked(client, question, subject="_INBOX.a")


async def test_without_a_mesh_a_gateway_is_the_only_one_of_it(tmp_path: Path) -> None:
    change_keys(tmp_path, lambda _: (record("boss", "admin"),))
    async with (
        gateway("london", data=str(tmp_path)) as london,
        connected(london, "boss", key_of("boss")) as client,
    ):
        client.subscribe("a.*", group="g")
        await client.flush()
        mesh = await asked(client, "mesh", interest=True)
        listeners = await asked(client, "listeners", subject="a.b")
        trace = await asked(client, "trace", subject="a.b")
    assert not mesh["is_mesh"]
    assert [(node["name"], node["state"]) for node in mesh["nodes"]] == [("london", "here")]
    assert [each["pattern"] for each in mesh["interest"]] == ["a.*"]
    assert [each["name"] for each in listeners["listeners"]] == ["boss"]
    [place] = trace["gateways"]
    assert (place["state"], place["subscriptions"][0]["pattern"]) == ("here", "a.*")
    assert trace["groups"] == [{"group": "g", "gateway": "london", "name": "boss"}]


def test_where_no_mesh_is_possible_questions_are_answered_all_the_same() -> None:
    program = "import sys; sys.modules['cryptography'] = None; import weft.gateway.requests.mesh"
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
