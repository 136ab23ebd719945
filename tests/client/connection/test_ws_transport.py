import asyncio

import pytest

import weft
from weft.errors import Unreachable
from weft.wire.address import Address

WAIT_S = 20


async def answer_with(text: bytes) -> tuple[asyncio.Server, str]:
    """Whoever answers every request with this, and where."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_frames_travel_through_a_websocket_both_ways() -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway:
        address = str(gateway.address)
        async with weft.connect(f"ws://{address}") as web, weft.connect(address) as plain:
            heard, hears = web.subscribe("a"), plain.subscribe("b")
            await web.flush()
            await plain.flush()
            await plain.publish("a", weft.Message(x=1))
            await web.publish("b", weft.Message(y=2))
            assert (await anext(heard))["x"] == 1
            assert (await anext(hears))["y"] == 2


async def test_a_message_may_be_larger_than_what_is_written_at_once() -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway:
        address = str(gateway.address)
        async with weft.connect(f"ws://{address}") as web:
            subscription = web.subscribe("large")
            await web.flush()
            await web.publish("large", b"x" * 900_000)
            assert (await anext(subscription)).to_dict() == {"": b"x" * 900_000}


async def test_many_small_messages_keep_their_order() -> None:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        weft.connect(f"ws://{gateway.address}") as web,
    ):
        subscription = web.subscribe("a")
        await web.flush()
        for number in range(2000):
            await web.publish("a", weft.Message(n=number))
        assert [(await anext(subscription))["n"] for _ in range(2000)] == list(range(2000))


async def test_a_blocking_connection_speaks_websocket_as_well() -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway:
        address = f"ws://{gateway.address}"

        def ask() -> object:
            with weft.Connection(address) as connection:
                connection.subscribe("echo", lambda request: request.respond(request.message))
                return connection.send_request("echo", weft.Message(x=1), timeout=WAIT_S)["x"]

        assert await asyncio.to_thread(ask) == 1


async def test_a_client_comes_back_after_its_websocket_was_cut() -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway:
        address = str(gateway.address)
        async with weft.connect(f"ws://{address}", backoff_first_s=0.01) as web:
            subscription = web.subscribe("a")
            await web.flush()
            connections = await web.send_request("_WEFT.ask.connections", weft.Message())
            assert [each["name"] for each in connections["connections"]]
            line = web._engine.line  # as a network does it
            assert line is not None
            line.abort()
            async with asyncio.timeout(WAIT_S), weft.connect(address) as plain:
                while True:
                    await plain.publish("a", "back")
                    try:
                        message = await asyncio.wait_for(anext(subscription), 0.05)
                    except TimeoutError:
                        continue
                    assert message.to_dict() == {"": "back"}
                    return


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnope\n", "404 Not Found: nope"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 OK"),
    ],
)
async def test_whoever_gives_no_websocket_is_unreachable(answer: bytes, said: str) -> None:
    server, address = await answer_with(answer)
    async with server:
        with pytest.raises(Unreachable, match=said):
            await weft.connect(address)


async def test_whoever_hangs_up_instead_is_unreachable() -> None:
    server, address = await answer_with(b"")
    async with server:
        with pytest.raises(Unreachable):
            await weft.connect(address)


def test_addresses_of_websockets_are_written_as_such() -> None:
    assert str(Address("::1", 80, False, True)) == "ws://[::1]:80"
    assert str(Address("a.example", 443, True, True)) == "wss://a.example:443"
