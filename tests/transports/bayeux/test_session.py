import asyncio
from pathlib import Path

import pytest
from tests.transports.bayeux.conversation import Hall, Polling, hall, published
from tests.transports.loops import until

import weft
from weft.broker.limits import Limits
from weft.broker.replies import told
from weft.gateway.config.settings import JournalSettings, Settings
from weft.transports.bayeux.session import LINES_MAX
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

pytestmark = pytest.mark.req("TUN-24")


NOW = {"timeout": 0}


def channels(said: list[dict[str, object]]) -> list[object]:
    return [each["channel"] for each in said]


async def test_the_first_connect_is_answered_at_once_with_advice() -> None:
    async with hall(bayeux_timeout_s=20.0, bayeux_interval_s=0.25, bayeux_lost_s=5.0) as made:
        client = await made.http()
        await client.shake_hands()
        [answer] = await client.ask(client.connect())
        assert answer["successful"]
        assert answer["clientId"] == client.client_id
        assert answer["advice"] == {
            "reconnect": "retry",
            "interval": 250,
            "timeout": 20_000,
            "maxInterval": 5_000,
        }


async def test_a_connect_waits_for_messages() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        # On the other connection everything goes on meanwhile.
        [answer] = await client.ask(client.said("/a", data=7))
        assert answer["successful"]
        said = (await waiting.hear()).said
        assert channels(said) == ["/a", "/meta/connect"]
        assert said[0]["data"] == 7


async def test_a_connect_is_answered_without_messages_after_its_time() -> None:
    async with hall(bayeux_timeout_s=20.0) as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        made.sweep(19.0)
        assert made.session(client).is_waiting
        made.sweep(20.5)
        assert channels((await waiting.hear()).said) == ["/meta/connect"]


async def test_a_client_may_ask_for_less_time_but_not_for_more() -> None:
    async with hall(bayeux_timeout_s=20.0) as made:
        client = await made.polling("/a")
        [answer] = await client.ask(client.connect(advice=NOW))
        assert answer["successful"]
        client.say(client.connect(advice={"timeout": 3_000_000}))
        await until(lambda: made.session(client).is_waiting)
        made.sweep(20.5)
        assert (await client.hear()).said[0]["successful"]


async def test_a_connect_beside_other_messages_is_not_held() -> None:
    async with hall() as made:
        client = await made.polling("/b")
        said = await client.ask(
            client.said("/a", data=1),
            client.connect(),
            client.said("/meta/subscribe", subscription="/a"),
        )
        assert channels(said) == ["/a", "/meta/connect", "/meta/subscribe"]
        assert all(each["successful"] for each in said)


async def test_of_two_connects_the_newest_counts() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        first = await made.hold(client)
        second = await made.beside(client)
        second.say(second.connect())
        [overtaken] = (await first.hear()).said
        assert not overtaken["successful"]
        assert overtaken["error"].startswith("503:")
        assert overtaken["advice"]["reconnect"] == "retry"
        await client.ask(client.said("/a", data=1))
        assert channels((await second.hear()).said) == ["/a", "/meta/connect"]


async def test_a_flood_of_connects_of_one_client_is_one_that_waits() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        others = [await made.beside(client) for _ in range(30)]
        for other in others:
            other.say(other.connect())
        for other in others[:-1]:
            assert not (await other.hear()).said[0]["successful"]
        await client.ask(client.said("/a", data=1))
        assert channels((await others[-1].hear()).said) == ["/a", "/meta/connect"]
        assert made.sessions == 1


async def test_what_comes_between_two_connects_is_kept() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        for number in range(5):
            await client.ask(client.said("/a", data=number))
        said = await client.ask(client.connect())
        assert [each["data"] for each in said[:-1]] == [0, 1, 2, 3, 4]


async def test_a_client_that_does_not_connect_again_is_given_up() -> None:
    async with hall(bayeux_lost_s=5.0, bayeux_interval_s=2.0) as made:
        client = await made.polling("/a")
        made.sweep(6.5)
        assert made.sessions == 1
        made.sweep(7.5)
        assert made.sessions == 0
        assert made.service.ended == {"Silent": 1}
        [answer] = await client.ask(client.connect())
        assert answer["error"].startswith("402:")
        assert answer["advice"]["reconnect"] == "handshake"


async def test_a_handshake_that_nothing_follows_is_given_up() -> None:
    async with hall(bayeux_lost_s=5.0) as made:
        client = await made.http()
        await client.shake_hands()
        made.sweep(5.5)
        assert made.sessions == 0
        await until(lambda: not made.service.peers)


async def test_a_client_whose_connect_waits_is_not_given_up() -> None:
    async with hall(bayeux_lost_s=5.0, bayeux_timeout_s=100.0) as made:
        client = await made.polling()
        await made.hold(client)
        made.sweep(60.0)
        assert made.sessions == 1


async def test_a_silent_session_is_not_pinged_away() -> None:
    async with hall(Limits(ping_s=0.001)) as made:
        client = await made.polling("/a")
        session = made.session(client)
        session.seat.peer.heard_ns = 0
        made.sweep()
        assert session.seat.peer.heard_ns > 0


async def test_disconnect_ends_the_session_and_the_connect_that_waits() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        said = await client.ask(client.said("/a", data=1), client.said("/meta/disconnect"))
        assert channels(said) == ["/a", "/meta/disconnect"]
        assert all(each["successful"] for each in said)
        last = (await waiting.hear()).said[-1]
        assert last["successful"]
        assert last["channel"] == "/meta/connect"
        assert made.sessions == 0
        assert not made.service.peers


async def test_whatever_follows_a_disconnect_is_of_nobody() -> None:
    async with hall() as made:
        client = await made.polling()
        said = await client.ask(
            client.said("/meta/disconnect"), client.said("/a", data=1), client.said("/b", data=1)
        )
        assert [each["successful"] for each in said] == [True, False, False]
        assert said[1]["error"].startswith("402:")
        assert said[1]["advice"]["reconnect"] == "handshake"


@pytest.mark.parametrize("channel", ["/meta/**", "/meta/x", "/_WEFT/**", "/_INBOX/**", "/a/*/b"])
async def test_what_cannot_be_subscribed_to_is_refused_and_the_session_goes_on(
    channel: str,
) -> None:
    async with hall() as made:
        client = await made.polling()
        [answer] = await client.ask(client.said("/meta/subscribe", subscription=channel))
        assert not answer["successful"]
        assert answer["subscription"] == channel
        assert "advice" not in answer
        assert sum(made.service.refused.values()) == 1
        [answer] = await client.ask(client.said("/meta/subscribe", subscription="/a"))
        assert answer["successful"]


async def test_what_the_core_refuses_is_told_as_it_is() -> None:
    async with hall(Limits(subscriptions=2)) as made:
        client = await made.polling("/a", "/b")
        [answer] = await client.ask(client.said("/meta/subscribe", subscription=["/c", "/d"]))
        assert not answer["successful"]
        assert answer["error"].startswith("403:/c,/d:")
        assert answer["ext"]["error"]["name"] == "TooMany"
        [answer] = await client.ask(client.said("/_WEFT/x", data=1))
        assert answer["ext"]["error"]["name"] == "Reserved"


async def test_after_unsubscribing_nothing_comes() -> None:
    async with hall() as made:
        client = await made.polling("/a", "/b")
        [answer] = await client.ask(client.said("/meta/unsubscribe", subscription="/a"))
        assert answer["successful"]
        await client.ask(client.said("/a", data=1), client.said("/b", data=2))
        said = await client.ask(client.connect())
        assert channels(said) == ["/b", "/meta/connect"]


async def test_nothing_that_looks_like_the_protocol_reaches_a_client() -> None:
    async with hall() as made:
        client = await made.polling("/**")
        native = await made.native(b">")
        await native.say(published(b"meta.connect", successful=True), published(b"a", x=1))
        await native.hear(2)
        said = await client.ask(client.connect())
        assert channels(said) == ["/a", "/meta/connect"]
        assert made.service.refused == {"Reserved": 1}


async def test_a_body_that_is_no_message_is_passed_over() -> None:
    async with hall() as made:
        client = await made.polling("/**")
        native = await made.native(b">")
        await native.say(encode(Kind.MESSAGE, b"a", b"\xff"), published(b"b", x=1))
        await native.hear(2)
        said = await client.ask(client.connect())
        assert channels(said) == ["/b", "/meta/connect"]
        assert made.service.refused == {"BadMessage": 1}


async def test_with_acknowledgements_what_was_lost_is_said_again() -> None:
    async with hall() as made:
        client = await made.http()
        answer = await client.shake_hands(ack=True)
        assert answer["ext"] == {"ack": True}
        [answer] = await client.ask(client.connect(ext={"ack": 0}))
        assert answer["ext"] == {"ack": 0}
        await client.ask(client.said("/meta/subscribe", subscription="/a"))
        await client.ask(client.said("/a", data=1))
        first = await client.ask(client.connect(ext={"ack": 0}))
        assert [each.get("data") for each in first] == [1, None]
        assert first[-1]["ext"] == {"ack": 1}
        # As if that answer had never come: the same again, with what is new.
        await client.ask(client.said("/a", data=2))
        again = await client.ask(client.connect(ext={"ack": 0}))
        assert [each.get("data") for each in again] == [1, 2, None]
        assert again[0]["id"] == first[0]["id"]
        await client.ask(client.said("/a", data=3))
        last = await client.ask(client.connect(ext={"ack": again[-1]["ext"]["ack"]}))
        assert [each.get("data") for each in last] == [3, None]


async def test_an_acknowledged_connect_waits() -> None:
    async with hall() as made:
        client = await made.polling("/a", ack=True)
        await client.ask(client.said("/a", data=1))
        said = await client.ask(client.connect(ext={"ack": 0}))
        client.say(client.connect(ext={"ack": said[-1]["ext"]["ack"]}))
        await until(lambda: made.session(client).is_waiting)
        made.sweep(60.0)
        assert channels((await client.hear()).said) == ["/meta/connect"]


async def fill(made: Hall, size: int, count: int) -> None:
    """Publish so many messages of a size, and wait until they are dealt with."""
    sender = await made.native()
    for number in range(count):
        await sender.say(published(b"a", number=number, text="x" * size))
    await sender.say(encode(Kind.PING))
    await sender.hear()


async def test_a_client_that_is_owed_too_much_loses_the_oldest_and_is_told() -> None:
    limits = Limits(outbox_bytes=100_000)
    async with hall(limits, bayeux_queue_bytes=50_000) as made:
        client = await made.polling("/a")
        await fill(made, 10_000, 40)
        session = made.session(client)
        assert session._delivery.size < 70_000
        said = await client.ask(client.connect())
        said += await client.ask(client.connect())
        said += await client.ask(client.connect(advice=NOW))
        gaps = [each["data"] for each in said if each["channel"] == "/meta/gap"]
        numbers = [each["data"]["number"] for each in said if each["channel"] == "/a"]
        assert numbers == sorted(numbers)
        assert numbers[-1] == 39
        assert len(numbers) + sum(gap["count"] for gap in gaps) == 40
        assert {gap["reason"] for gap in gaps} == {"slow"}


async def test_what_is_acknowledged_makes_room_for_more_at_once() -> None:
    async with hall(Limits(outbox_bytes=100_000), bayeux_queue_bytes=10_000) as made:
        client = await made.polling("/a", ack=True)
        await fill(made, 10_000, 3)
        numbers = []
        acked = 0
        for _ in range(3):
            said = await client.ask(client.connect(ext={"ack": acked}))
            numbers += [each["data"]["number"] for each in said[:-1]]
            acked = said[-1]["ext"]["ack"]
        assert numbers == [0, 1, 2]


async def test_answers_to_a_client_that_takes_nothing_come_when_it_connects() -> None:
    async with hall(Limits(outbox_bytes=100_000), bayeux_queue_bytes=10_000) as made:
        client = await made.polling("/a")
        await fill(made, 10_000, 3)
        client.say(client.said("/b", data=1))
        other = await made.beside(client)
        said = [each for _ in range(4) for each in await other.ask(other.connect(advice=NOW))]
        assert channels(said).count("/a") == 3
        assert (await client.hear()).said[0]["successful"]


async def test_a_flood_of_connects_ends_the_session() -> None:
    async with hall(Limits(control_burst=20, control_per_s=1)) as made:
        client = await made.polling()
        for _ in range(40):
            [answer] = await client.ask(client.connect(advice=NOW))
            if not answer["successful"]:
                break
        assert answer["error"].startswith(("402:", "400:"))
        assert made.service.ended == {"ControlFlood": 1}


async def test_what_is_refused_costs_as_much_as_a_frame() -> None:
    async with hall(Limits(control_burst=50, control_per_s=1)) as made:
        client = await made.polling()
        said = await client.ask(*[client.said("/a.b", data=1)] * 100)
        assert not any(each["successful"] for each in said)
        await until(lambda: made.sessions == 0)


async def test_a_gateway_that_closes_down_asks_to_shake_hands_anew() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        peer = made.session(client).seat.peer
        peer.owe(told(peer, Kind.GOODBYE, b"", b"", Message(reason="draining")))
        made.turn.wake()
        [answer] = (await waiting.hear()).said
        assert not answer["successful"]
        assert answer["advice"]["reconnect"] == "handshake"
        assert made.sessions == 0


async def test_while_the_journal_is_written_what_is_said_waits() -> None:
    async with hall(Limits(body_bytes=1000)) as made:
        client = await made.polling("/a")
        session = made.session(client)
        session.rest()
        client.say(client.said("/a", data="x" * 600))
        other = await made.beside(client)
        other.say(other.said("/a", data="x" * 600))
        await until(lambda: len(session._conversation) == 2)
        third = await made.beside(client)
        [answer] = await third.ask(third.said("/a", data=1))
        assert answer["error"].startswith("503:")
        session.go_on()
        assert (await client.hear()).said[0]["successful"]
        assert (await other.hear()).said[0]["successful"]


async def test_the_next_request_of_a_connection_is_dealt_with_after_the_turn() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        # Behind the connect that waits: read as soon as that is answered.
        for number in range(20):
            waiting.say(waiting.said("/b", data=number))
        await client.ask(client.said("/a", data=1))
        assert channels((await waiting.hear()).said) == ["/a", "/meta/connect"]
        for _ in range(20):
            assert channels((await waiting.hear()).said) == ["/b"]


async def test_a_client_speaks_on_a_few_websockets_at_most() -> None:
    async with hall() as made, made.socket() as first:
        await first.open("/a")
        lines = made.session(first)._lines
        others = [made.socket() for _ in range(LINES_MAX + 2)]
        opened = [await each.__aenter__() for each in others]
        for other in opened:
            other.client_id = first.client_id
            await other.ask(other.said("/b", data=1))
        assert len(lines) <= LINES_MAX
        # The one that its connect came by is not let go.
        await first.ask(first.said("/a", data=1))
        for each in others:
            await each.__aexit__(None, None, None)


async def test_everyone_who_waits_when_a_session_ends_is_answered() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        session = made.session(client)
        session.rest()
        client.say(client.said("/a", data=1))
        await until(lambda: len(session._conversation) == 1)
        session.end(None)
        [answer] = (await client.hear()).said
        assert answer["error"].startswith("402:")
        [answer] = (await waiting.hear()).said
        assert answer["advice"]["reconnect"] == "handshake"
        await asyncio.sleep(0)
        assert made.sessions == 0


async def test_what_the_journal_keeps_is_answered_when_it_is_safe(tmp_path: Path) -> None:
    journal = JournalSettings(patterns=("kept.>",))
    settings = Settings(data=str(tmp_path), journal=journal, services=("weather",))
    async with weft.Gateway("127.0.0.1:0", settings=settings, workers="inline") as gateway:
        host, _, port = gateway.address.partition(":")
        client = Polling(*await asyncio.open_connection(host, int(port)))
        await client.shake_hands()
        # All of them are said before the first is written, and the last thing is to leave.
        kept = [client.said("/kept/a", data=number) for number in range(200)]
        said = await client.ask(*kept, client.said("/meta/disconnect"))
        assert all(each["successful"] for each in said)
        client.writer.close()
        status = (await gateway.status())["services"]["weather"]["status"]
        assert status["journal"]["safe"] == status["journal"]["position"] > 0
