"""One key that takes all that it can get: others still get theirs."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.attacks.gateway_process import WAIT_S, GatewayProcess

import weft
from weft.client.asyncio.connection import Connecting
from weft.errors import TooMany
from weft.gateway.keys.manage import make_key, new_record

SETTINGS = {
    "web.tunnels": 60,
    "web.bayeux_sessions": 60,
    "limits.requests_total": 60,
    "journal.patterns": ["kept.>"],
}
SHARE = 30
HISTORY = "_WEFT.ask.history"
HANDSHAKE = [
    {
        "channel": "/meta/handshake",
        "version": "1.0",
        "supportedConnectionTypes": ["long-polling"],
        "id": "h",
    }
]


class Besieged:
    """A gateway with a greedy key and an honest one."""

    def __init__(self, gateway: GatewayProcess, greedy: str, honest: str) -> None:
        self.gateway = gateway
        self.greedy = greedy
        self.honest = honest

    def ask(self, key: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Ask on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=WAIT_S)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        connection.request(method, f"/default/{path}", text, headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, said

    def connect(self, key: str) -> Connecting:
        return weft.connect(self.gateway.address, key=key, timeout_s=WAIT_S)


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Besieged]:
    folder = tmp_path_factory.mktemp("besieged")
    data = folder / "data"
    keys = [make_key(data, new_record(name, "service", "default")).text for name in ("a", "b")]
    with GatewayProcess(folder, {**SETTINGS, "data": str(data)}) as gateway:
        yield Besieged(gateway, *keys)


def test_tunnels(besieged: Besieged) -> None:
    target = "tunnel?new=1&format=poll"
    answers = [besieged.ask(besieged.greedy, "GET", target) for _ in range(SHARE + 10)]
    assert [status for status, _ in answers] == [200] * SHARE + [429] * 10
    told = "this key has 30 tunnels, which is its share of 60: see limits.share"
    assert answers[-1][1]["error"]["text"] == told
    assert besieged.ask(besieged.honest, "GET", target)[0] == 200


def test_bayeux_clients(besieged: Besieged) -> None:
    def shakes_hands(key: str) -> bool:
        [said] = besieged.ask(key, "POST", "bayeux", HANDSHAKE)[1]
        return bool(said["successful"])

    answers = [shakes_hands(besieged.greedy) for _ in range(SHARE + 10)]
    # Some may have been given up meanwhile, where a machine is slow.
    assert not all(answers)
    assert answers.count(True) >= SHARE
    assert shakes_hands(besieged.honest)


async def test_requests(besieged: Besieged) -> None:
    async with (
        besieged.connect(besieged.honest) as server,
        besieged.connect(besieged.greedy) as first,
        besieged.connect(besieged.greedy) as second,
        besieged.connect(besieged.honest) as honest,
        server.subscribe("never") as never,
        server.subscribe("soon", handler=lambda asked: asked.respond("here")) as soon,
    ):
        await never.ready()
        await soon.ready()
        wishes = [
            asyncio.create_task(each.send_request("never", "?", WAIT_S))
            for _ in range(SHARE)
            for each in (first, second)
        ]
        done, waiting = await asyncio.wait(wishes, return_when=asyncio.FIRST_EXCEPTION)
        assert done
        assert all(isinstance(each.exception(), TooMany) for each in done)
        assert (await honest.send_request("soon", "?", WAIT_S)).text == "here"
        for each in waiting:
            each.cancel()
        await asyncio.wait(wishes)


async def test_history(besieged: Besieged) -> None:
    async with (
        besieged.connect(besieged.greedy) as greedy,
        besieged.connect(besieged.honest) as honest,
    ):
        await honest.publish("kept.a", {"n": 1}, acknowledge=True)
        patterns = [f"kept.x{number}" for number in range(60_000)]
        with pytest.raises(TooMany, match="60000 patterns in one request are over 256"):
            await greedy.send_request(HISTORY, {"patterns": patterns, "position": 0})
        question = {"patterns": ["kept.>"], "position": 0}
        many = [
            asyncio.create_task(greedy.send_request(HISTORY, question, WAIT_S)) for _ in range(600)
        ]
        page = await honest.send_request(HISTORY, question, WAIT_S)
        assert page.get_int64("next") == 1
        answers = await asyncio.gather(*many, return_exceptions=True)
        assert all(isinstance(each, weft.Received | TooMany) for each in answers)
