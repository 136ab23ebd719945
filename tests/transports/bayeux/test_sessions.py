import pytest
from tests.transports.bayeux.conversation import HANDSHAKE, hall

from weft.broker.limits import Limits

pytestmark = pytest.mark.req("TUN-24")


async def test_no_two_clients_are_known_by_the_same_and_nobody_can_guess() -> None:
    async with hall() as made:
        client = await made.http()
        known = {(await client.shake_hands())["clientId"] for _ in range(100)}
        assert len(known) == 100
        # 192 bits, in URL-safe base64.
        assert {len(each) for each in known} == {32}


async def test_there_are_only_so_many_sessions() -> None:
    async with hall(Limits(share=1.0), bayeux_sessions=20) as made:
        client = await made.http()
        for _ in range(20):
            assert (await client.shake_hands())["successful"]
        answer = await client.shake_hands()
        assert not answer["successful"]
        assert answer["error"].startswith("503:")
        assert answer["advice"]["reconnect"] == "handshake"
        assert answer["advice"]["interval"] == 10_000
        assert made.service.refused == {"Overloaded": 1}
        made.sweep(60.0)
        assert made.sessions == 0
        assert (await client.shake_hands())["successful"]


async def test_one_connection_has_its_share_of_them_and_others_theirs() -> None:
    async with hall(bayeux_sessions=20) as made:
        client, other = await made.http(), await made.http()
        for _ in range(10):
            assert (await client.shake_hands())["successful"]
        answer = await client.shake_hands()
        assert "this connection has 10 Bayeux sessions" in answer["error"]
        assert "its share of 20 see limits.share" in answer["error"]
        assert answer["advice"]["reconnect"] == "handshake"
        assert made.service.refused == {"TooMany": 1}
        assert made.sessions == 10
        assert (await other.shake_hands())["successful"]
        made.sweep(60.0)
        assert (await client.shake_hands())["successful"]


async def test_thousands_of_connects_may_wait() -> None:
    async with hall() as made:
        client = await made.http()
        clients = []
        for _ in range(300):
            await client.shake_hands()
            await client.ask(client.connect())
            await client.ask(client.said("/meta/subscribe", subscription="/a"))
            clients.append(await made.hold(client))
        await client.ask(client.said("/a", data=1))
        for each in clients:
            said = (await each.hear()).said
            assert [one["channel"] for one in said] == ["/a", "/meta/connect"]


async def test_whoever_shows_another_key_is_somebody_else() -> None:
    async with hall() as made:
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE, Authorization="Bearer one")
        client.client_id = answer["clientId"]
        [answer] = await client.ask(client.connect(), Authorization="Bearer one")
        assert answer["successful"]
        [answer] = await client.ask(client.said("/a", data=1), Authorization="Bearer two")
        assert answer["error"].startswith("402:")
        [answer] = await client.ask(client.said("/a", data=1))
        assert answer["successful"]


async def test_a_key_in_the_handshake_is_the_same_as_in_the_header() -> None:
    async with hall() as made:
        client = await made.http()
        shown = HANDSHAKE | {"ext": {"authentication": {"key": "one"}}}
        [answer] = await client.ask(shown)
        client.client_id = answer["clientId"]
        [answer] = await client.ask(client.connect(), Authorization="Bearer one")
        assert answer["successful"]


async def test_a_greeting_that_the_core_refuses_is_final() -> None:
    async with hall() as made:
        client = await made.http()
        shown = HANDSHAKE | {"ext": {"authentication": {"key": "x" * 5000}}}
        [answer] = await client.ask(shown)
        assert not answer["successful"]
        assert "clientId" not in answer
        assert made.sessions == 0
        assert not made.service.peers
