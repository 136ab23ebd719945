"""Bayeux spoken badly, and by far too many: bounds hold, and only the guilty go."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.attacks.gateway_process import rss_bytes
from tests.attacks.siege import Siege
from tests.transports.bayeux.conversation import HANDSHAKE, Polling
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

pytestmark = pytest.mark.req("TUN-24")

SESSIONS = 400
SETTINGS = {
    "web.bayeux_sessions": SESSIONS,
    "web.bayeux_lost_s": 1.0,
    "web.bayeux_timeout_s": 60.0,
    "web.jsonp": True,
}
PIECES = (
    *('{"channel":', '"/meta/', "handshake", "connect", "subscribe", "disconnect", '"', "}", "]"),
    *('"/a"', ',"data":', ',"subscription":', ',"clientId":', ',"ext":', ',"advice":', ',"id":'),
    *("[", "{", "null", "1e999", "-1", "true", "\\ud800", "\u2028", "/**", "/_WEFT/**", "\0", " "),
    '{"channel":"/meta/connect"}',
    json.dumps(HANDSHAKE),
)


@asynccontextmanager
async def clients(siege: Siege, count: int) -> AsyncIterator[list[Polling]]:
    """So many connections on which nothing was said."""
    made: list[Polling] = []
    try:
        for _ in range(count):
            opened = await asyncio.open_connection("127.0.0.1", siege.port)
            made.append(Polling(*opened))
            made[-1].service = "default"
        yield made
    finally:
        for client in made:
            client.writer.close()


async def test_a_flood_of_handshakes_meets_a_bound_and_passes(siege: Siege) -> None:
    before = rss_bytes(siege.worker)
    async with clients(siege, 10) as flood:
        with siege.bystander.talking():
            answers = [
                (await client.shake_hands()) for _ in range(SESSIONS // 5) for client in flood
            ]
        refused = [each for each in answers if not each["successful"]]
        assert len(answers) - len(refused) >= SESSIONS
        assert all(each["error"].startswith("503:") for each in refused)
        assert siege.gateway.connections() <= SESSIONS + 2 + 10
        assert rss_bytes(siege.worker) - before < 50 << 20


async def test_hundreds_of_connects_that_wait_disturb_nobody(siege: Siege) -> None:
    async with clients(siege, SESSIONS - 10) as waiting, clients(siege, 1) as [sender]:
        with siege.bystander.talking():
            for client in waiting:
                await client.shake_hands()
                subscribe = client.said("/meta/subscribe", subscription="/a")
                await client.ask(subscribe, client.connect())
                client.say(client.connect())
            await sender.shake_hands()
            await sender.ask(sender.said("/a", data="news"))
            for client in waiting:
                said = (await client.hear()).said
                assert [each.get("data") for each in said] == ["news", None]


async def test_whatever_is_said_is_answered(siege: Siege) -> None:
    chance = random.Random(7)
    async with clients(siege, 1) as [client]:
        with siege.bystander.talking():
            for _ in range(500):
                text = "".join(chance.choices(PIECES, k=chance.randint(0, 12)))
                client.send(text.encode())
                assert (await client.hear()).status in (200, 400)


async def test_whatever_is_said_on_a_websocket_ends_no_other(siege: Siege) -> None:
    chance = random.Random(8)
    url = f"ws://127.0.0.1:{siege.port}/default/bayeux"
    async with connect(url, proxy=None) as bystander:
        await bystander.send(json.dumps([HANDSHAKE]))
        known_by = json.loads(await bystander.recv())[0]["clientId"]
        for _ in range(60):
            async with connect(url, proxy=None) as attacker:
                try:
                    for _ in range(10):
                        text = "".join(chance.choices(PIECES, k=chance.randint(0, 12)))
                        await attacker.send(text)
                except ConnectionClosed:
                    continue
            alive = {"channel": "/a", "clientId": known_by, "data": 1}
            now = {"channel": "/meta/connect", "clientId": known_by, "advice": {"timeout": 0}}
            await bystander.send(json.dumps([alive]))
            assert json.loads(await bystander.recv())[0]["successful"]
            await bystander.send(json.dumps([now]))
            assert json.loads(await bystander.recv())[0]["successful"]


async def test_ids_that_were_guessed_belong_to_nobody(siege: Siege) -> None:
    async with clients(siege, 2) as [victim, attacker]:
        known_by = (await victim.shake_hands())["clientId"]
        await victim.ask(victim.said("/meta/subscribe", subscription="/a"))
        for guess in (known_by[:-1], known_by.lower(), known_by + "=", " " + known_by, "*", ""):
            for channel in ("/meta/connect", "/meta/disconnect", "/a"):
                [answer] = await attacker.ask({"channel": channel, "clientId": guess, "data": 1})
                assert answer["error"].startswith("402:")
        [answer] = await victim.ask(victim.connect())
        assert answer["successful"]


@pytest.mark.parametrize("callback", ["alert(1)//", "</script><script>", "a\u2028b", "x" * 129])
async def test_nothing_is_injected_by_a_callback(siege: Siege, callback: str) -> None:
    async with clients(siege, 1) as [client]:
        answer = await client.script(callback, HANDSHAKE)
        assert answer.status == 400
        assert answer.headers["content-type"] == "application/json"
        assert callback.encode() not in answer.body
