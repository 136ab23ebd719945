"""Who may do what in Bayeux: keys, tickets and rights."""

import json

import pytest
from tests.broker.locksmith import key_of, record
from tests.transports.bayeux.conversation import HANDSHAKE, Hall, Polling, hall
from tests.transports.loops import until

pytestmark = pytest.mark.req("TUN-24")

SERVICE = record("service")
GUEST = record("guest", "client", publish=["open.>"], subscribe=["open.>", "-open.secret"])


def shown(**proof: str) -> dict[str, object]:
    return HANDSHAKE | {"ext": {"authentication": proof}}


async def guest(made: Hall) -> Polling:
    made.lock(SERVICE, GUEST)
    client = await made.http()
    [answer] = await client.ask(shown(key=key_of("guest")))
    assert answer["successful"]
    client.client_id = answer["clientId"]
    await client.ask(client.connect())
    return client


async def test_a_key_in_the_header_lets_in() -> None:
    async with hall() as made:
        made.lock(SERVICE)
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE, Authorization=f"Bearer {key_of('service')}")
        assert answer["successful"]


@pytest.mark.parametrize("proof", [{}, {"key": "wrong"}, {"ticket": "wrong"}])
async def test_who_has_no_key_is_told_not_to_come_back(proof: dict[str, str]) -> None:
    async with hall() as made:
        made.lock(SERVICE)
        client = await made.http()
        [answer] = await client.ask(shown(**proof))
        assert not answer["successful"]
        assert answer["error"].startswith("403:/meta/handshake:")
        assert answer["ext"]["error"]["name"] == "BadKey"
        assert answer["advice"]["reconnect"] == "none"
        assert "clientId" not in answer
        assert made.sessions == 0
        assert not made.service.peers


async def test_a_ticket_lets_in_once() -> None:
    async with hall() as made:
        made.lock(SERVICE)
        ticket = "a-text-that-nobody-else-knows"
        made.service.tickets.add(ticket, SERVICE.id, made.house.now_ns, made.service.limits)
        client = await made.http()
        [answer] = await client.ask(shown(ticket=ticket))
        assert answer["successful"]
        [answer] = await client.ask(shown(ticket=ticket))
        assert answer["ext"]["error"]["name"] == "BadKey"


async def test_what_a_key_does_not_allow_is_refused_and_the_session_goes_on() -> None:
    async with hall() as made:
        client = await guest(made)
        said = await client.ask(
            client.said("/meta/subscribe", subscription="/open/a"),
            client.said("/meta/subscribe", subscription="/open/secret"),
            client.said("/meta/subscribe", subscription="/**"),
            client.said("/open/a", data=1),
            client.said("/closed/a", data=1),
        )
        assert [each["successful"] for each in said] == [True, False, False, True, False]
        for each in said:
            if not each["successful"]:
                assert each["error"].startswith("403:")
                assert each["ext"]["error"]["name"] == "NotAllowed"
                assert "advice" not in each
        said = await client.ask(client.connect())
        assert [each["channel"] for each in said] == ["/open/a", "/meta/connect"]


async def test_a_key_that_is_revoked_ends_its_sessions_for_good() -> None:
    async with hall() as made:
        client = await guest(made)
        waiting = await made.hold(client)
        made.lock(SERVICE)
        [answer] = (await waiting.hear()).said
        assert not answer["successful"]
        assert answer["advice"]["reconnect"] == "none"
        await until(lambda: made.sessions == 0)


async def test_no_answer_repeats_a_key() -> None:
    async with hall() as made:
        made.lock(SERVICE)
        client = await made.http()
        for key in (key_of("guest"), key_of("service")):
            said = await client.ask(shown(key=key))
            assert key not in json.dumps(said)
