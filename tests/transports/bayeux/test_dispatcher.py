import pytest
from tests.transports.bayeux.conversation import HANDSHAKE, hall

pytestmark = pytest.mark.req("TUN-24")


async def test_a_handshake_says_what_is_spoken() -> None:
    async with hall() as made:
        client = await made.http()
        answer = await client.shake_hands()
        assert answer["successful"]
        assert answer["version"] == "1.0"
        assert answer["id"] == "h"
        assert answer["supportedConnectionTypes"] == ["websocket", "long-polling"]
        assert answer["advice"]["reconnect"] == "retry"
        assert "ext" not in answer


@pytest.mark.parametrize(
    "odd", [{"version": "2.0"}, {"supportedConnectionTypes": ["flash"]}, {"version": 1}]
)
async def test_whoever_speaks_otherwise_is_told_not_to_come_back(odd: dict[str, object]) -> None:
    async with hall() as made:
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE | odd)
        assert not answer["successful"]
        assert answer["error"].startswith("400:")
        assert answer["advice"]["reconnect"] == "none"
        assert answer["supportedConnectionTypes"] == ["websocket", "long-polling"]
        assert made.sessions == 0


@pytest.mark.parametrize(
    "known_by", ["", "x", None, 7, [], {}, "A" * 32, "A" * 10_000, "../../etc/passwd"]
)
@pytest.mark.parametrize(
    "channel",
    ["/meta/connect", "/meta/subscribe", "/meta/unsubscribe", "/meta/disconnect", "/a"],
)
async def test_an_unknown_client_is_asked_to_shake_hands(channel: str, known_by: object) -> None:
    async with hall() as made:
        client = await made.http()
        message = {"channel": channel, "clientId": known_by, "id": "1", "subscription": "/a"}
        [answer] = await client.ask(message)
        assert not answer["successful"]
        assert answer["id"] == "1"
        assert answer["error"].startswith("402:")
        assert answer["advice"]["reconnect"] == "handshake"
        assert made.service.refused == {"NotOpen": 1}


async def test_a_client_does_not_choose_what_it_is_known_by() -> None:
    async with hall() as made:
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE | {"clientId": "mine"})
        assert answer["clientId"] != "mine"
        [answer] = await client.ask({"channel": "/meta/connect", "clientId": "mine"})
        assert answer["error"].startswith("402:")


async def test_a_text_speaks_for_one_client() -> None:
    async with hall() as made:
        one = await made.polling("/a")
        other = await made.polling("/a")
        said = await one.ask(one.said("/b", data=1), other.said("/b", data=1))
        assert [each["successful"] for each in said] == [True, False]
        assert said[1]["error"].startswith("403:")
        assert "advice" not in said[1]


async def test_a_text_has_one_handshake_and_that_is_first() -> None:
    async with hall() as made:
        client = await made.polling()
        said = await client.ask(*[HANDSHAKE] * 100)
        assert [each["successful"] for each in said] == [True] + [False] * 99
        said = await client.ask(client.said("/a", data=1), HANDSHAKE)
        assert [each["successful"] for each in said] == [True, False]
        assert made.sessions == 2


async def test_what_is_wrong_with_one_message_leaves_the_others() -> None:
    async with hall() as made:
        client = await made.polling()
        said = await client.ask(
            client.said("/a", data=1),
            client.said("no channel", data=1),
            client.said("/meta/unheard/of", data=1),
            client.said("/b", data=1),
            client.said("/meta/subscribe"),
        )
        assert [each["successful"] for each in said] == [True, False, False, True, False]
        assert [each["error"][:3] for each in said if "error" in each] == ["405", "403", "405"]


async def test_subscribing_may_come_before_the_first_connect_or_beside_it() -> None:
    async with hall() as made:
        client = await made.http()
        await client.shake_hands()
        [answer] = await client.ask(client.said("/meta/subscribe", subscription="/a"))
        assert answer["successful"]
        said = await client.ask(client.said("/meta/subscribe", subscription="/b"), client.connect())
        assert [each["successful"] for each in said] == [True, True]
        await client.ask(client.said("/a", data=1), client.said("/b", data=1))
        said = await client.ask(client.connect())
        assert [each["channel"] for each in said] == ["/a", "/b", "/meta/connect"]
