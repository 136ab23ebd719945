import asyncio
import json

import pytest
from tests.transports.bayeux.conversation import HANDSHAKE, Hall, Socket, hall, published
from tests.transports.loops import until
from websockets.exceptions import ConnectionClosed

from weft.broker.limits import Limits
from weft.broker.replies import told
from weft.transports.bayeux.websocket import STRANGERS_MAX
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

pytestmark = pytest.mark.req("TUN-24")


def channels(said: list[dict[str, object]]) -> list[object]:
    return [each["channel"] for each in said]


async def until_waiting(made: Hall, client: Socket) -> None:
    await until(lambda: made.session(client).is_waiting)


async def test_a_connect_that_waits_holds_up_nothing() -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a")
        await client.say(client.connect())
        await until_waiting(made, client)
        [answer] = await client.ask(client.said("/b", data=1))
        assert answer["channel"] == "/b"
        assert made.session(client).is_waiting


async def test_messages_come_without_the_connect() -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a")
        await client.say(client.connect())
        await until_waiting(made, client)
        native = await made.native()
        await native.say(published(b"a", x=1))
        assert channels(await client.hear()) == ["/a"]
        await native.say(published(b"a", x=2))
        [told] = await client.hear()
        assert told["data"] == {"x": 2}
        assert made.session(client).is_waiting
        made.sweep(60.0)
        assert channels(await client.hear()) == ["/meta/connect"]


async def test_with_acknowledgements_messages_come_with_the_connect() -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a", ack=True)
        await client.say(client.connect(ext={"ack": 0}))
        await until_waiting(made, client)
        await client.say(client.said("/a", data=1))
        heard = [*await client.hear(), *await client.hear()]
        connects = [each for each in heard if each["channel"] == "/meta/connect"]
        assert connects[0]["ext"] == {"ack": 1}
        assert [each["data"] for each in heard if "data" in each] == [1]


async def test_what_was_lost_with_a_websocket_comes_by_the_next() -> None:
    async with hall() as made:
        async with made.socket() as client:
            await client.open("/a", ack=True)
            await client.say(client.connect(ext={"ack": 0}))
            await until_waiting(made, client)
            sender = await made.polling()
            await sender.ask(sender.said("/a", data=1))
            # It is on its way, and never acknowledged.
            assert channels(await client.hear()) == ["/a", "/meta/connect"]
        await sender.ask(sender.said("/a", data=2))
        async with made.socket() as again:
            again.client_id = client.client_id
            said = await again.ask(again.connect(ext={"ack": 0}))
            assert [each.get("data") for each in said] == [1, 2, None]


async def test_without_a_websocket_messages_wait_for_the_next() -> None:
    async with hall() as made:
        async with made.socket() as client:
            await client.open("/a")
        await until(lambda: made.session(client)._line is None)
        sender = await made.polling()
        await sender.ask(sender.said("/a", data=1))
        async with made.socket() as again:
            again.client_id = client.client_id
            assert channels(await again.ask(again.connect())) == ["/a", "/meta/connect"]
        made.sweep(60.0)
        assert made.sessions == 0


async def test_a_connect_in_a_batch_is_answered_apart() -> None:
    async with hall() as made, made.socket() as client:
        await client.open()
        await client.say(client.connect(), client.said("/b", data=1))
        assert channels(await client.hear()) == ["/b"]
        assert made.session(client).is_waiting


async def test_the_handshake_may_have_gone_another_way() -> None:
    async with hall() as made, made.socket() as client:
        other = await made.http()
        await other.shake_hands()
        client.client_id = other.client_id
        [answer] = await client.ask(client.said("/meta/subscribe", subscription="/a"))
        assert answer["successful"]
        [answer] = await client.ask(client.connect())
        assert answer["successful"]


async def test_after_a_new_handshake_elsewhere_the_same_websocket_goes_on() -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a")
        other = await made.http()
        await other.shake_hands()
        client.client_id = other.client_id
        await client.ask(client.said("/meta/subscribe", subscription="/b"))
        await client.ask(client.connect())
        await other.ask(other.said("/b", data=1), other.said("/a", data=1))
        assert channels(await client.hear()) == ["/b"]


async def test_disconnect_leaves_the_websocket_to_the_next() -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a")
        await client.say(client.connect())
        await until_waiting(made, client)
        await client.say(client.said("/meta/disconnect"))
        heard = [*await client.hear(), *await client.hear()]
        assert sorted(map(str, channels(heard))) == ["/meta/connect", "/meta/disconnect"]
        assert made.sessions == 0
        await client.open("/b")
        assert made.sessions == 1


async def test_another_clients_id_cannot_be_guessed_on_ones_own_websocket() -> None:
    async with hall() as made, made.socket() as client:
        await client.open()
        for number in range(10):
            guess = {"channel": "/a", "data": 1, "clientId": f"{client.client_id[:-2]}{number:02}"}
            [answer] = await client.ask(guess)
            assert answer["error"].startswith("402:")
        assert made.service.refused == {"NotOpen": 10}


async def test_whoever_speaks_for_nobody_is_let_go() -> None:
    async with hall() as made, made.socket() as client:
        for _ in range(STRANGERS_MAX + 1):
            await client.ask({"channel": "/meta/connect", "clientId": "x"})
        with pytest.raises(ConnectionClosed) as closed:
            await client.hear()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code >= 4500


async def test_a_websocket_on_which_nobody_speaks_is_closed() -> None:
    async with hall() as made, made.socket() as client:
        made.sweep(4.0)
        made.sweep(6.0)
        with pytest.raises(ConnectionClosed):
            await client.hear()
        assert made.service.refused == {"TooSlow": 1}


async def test_a_websocket_whose_client_is_given_up_is_closed_unless_another_speaks() -> None:
    async with hall() as made, made.socket() as client, made.socket() as other:
        await client.open("/a")
        await other.open("/a")
        for each in (client, other):
            made.session(each).end(None)
        assert made.sessions == 0
        await other.open("/a")
        made.sweep(6.0)
        with pytest.raises(ConnectionClosed):
            await client.hear()
        await other.ask(other.said("/b", data=1))
        assert made.service.refused == {"TooSlow": 1}


@pytest.mark.parametrize("text", ["", "x", "[]", "[7]", "[" * 10_000, '{"channel":7}'])
async def test_what_is_no_text_of_messages_closes_the_websocket(text: str) -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a")
        await client.socket.send(text)
        with pytest.raises(ConnectionClosed) as closed:
            await client.hear()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code >= 4500
        assert sum(made.service.refused.values()) == 1
        # Only the line is cut: the client may come back.
        assert made.sessions == 1


async def test_bytes_close_the_websocket() -> None:
    async with hall() as made, made.socket() as client:
        await client.socket.send(json.dumps([HANDSHAKE]).encode())
        with pytest.raises(ConnectionClosed):
            await client.hear()
        assert made.sessions == 0


async def test_a_flood_of_pings_ends_the_session() -> None:
    async with hall(Limits(control_burst=30, control_per_s=1)) as made, made.socket() as client:
        await client.open("/a")
        for _ in range(60):
            await client.socket.ping()
        await until(lambda: made.sessions == 0)
        assert made.service.ended == {"ControlFlood": 1}


async def test_a_flood_of_pings_before_a_handshake_closes_the_websocket() -> None:
    async with hall() as made, made.socket() as client:
        for _ in range(STRANGERS_MAX + 2):
            await client.socket.ping()
        with pytest.raises(ConnectionClosed):
            await client.hear()
        assert made.service.refused == {"TooMany": 1}


async def test_whoever_does_not_read_its_answers_is_not_listened_to() -> None:
    async with hall() as made, made.socket(max_queue=1) as client:
        await client.open()
        unread = [client.said("/a.b", data=1, id="x" * 100) for _ in range(200)]
        text = json.dumps(unread)

        async def shout() -> None:
            for _ in range(500):
                await client.socket.send(text)

        shouting = asyncio.create_task(shout())
        [stream] = made.house._streams
        await until(lambda: stream.unsent > 64 << 10 or shouting.done())
        # What waits for it is about what one text is answered, not five hundred.
        assert stream.unsent < 4 * len(text)
        shouting.cancel()
        client.socket.transport.abort()
        with pytest.raises((asyncio.CancelledError, ConnectionClosed)):
            await shouting


async def test_a_slow_reader_of_a_websocket_is_owed_within_bounds_and_told_of_gaps() -> None:
    limits = Limits(outbox_bytes=200_000)
    async with hall(limits) as made, made.socket(max_queue=1) as client:
        await client.open("/a")
        client.socket.transport.pause_reading()
        sender = await made.native()
        for number in range(1000):
            await sender.say(published(b"a", number=number, text="x" * 20_000))
        await sender.say(encode(Kind.PING))
        await sender.hear()
        client.socket.transport.resume_reading()
        numbers: list[int] = []
        lost = 0
        while not numbers or numbers[-1] < 999:
            for each in await client.hear():
                if each["channel"] == "/meta/gap":
                    lost += each["data"]["count"]
                else:
                    numbers.append(each["data"]["number"])
        assert lost > 0
        assert len(numbers) + lost == 1000
        assert numbers == sorted(numbers)


async def test_a_page_from_elsewhere_opens_no_websocket() -> None:
    async with hall() as made:
        client = await made.http()
        client.send(
            b"",
            method="GET",
            Origin="https://evil.example",
            Upgrade="websocket",
            Connection="Upgrade",
        )
        assert (await client.hear()).status == 403


async def test_a_gateway_that_closes_down_answers_and_closes_the_websocket() -> None:
    async with hall() as made, made.socket() as client:
        await client.open("/a")
        await client.say(client.connect())
        await until_waiting(made, client)
        peer = made.session(client).seat.peer
        peer.owe(told(peer, Kind.GOODBYE, b"", b"", Message(reason="draining")))
        made.turn.wake()
        [answer] = await client.hear()
        assert not answer["successful"]
        assert answer["advice"]["reconnect"] == "handshake"
        with pytest.raises(ConnectionClosed) as closed:
            await client.hear()
        assert closed.value.rcvd is not None
        assert 4000 <= closed.value.rcvd.code < 4500
