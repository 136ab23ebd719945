import asyncio
import os
import signal
import ssl
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
import pytest
import uvloop

from weft.errors import BadOption, NotOpen, UsageError
from weft.gateway.config.settings import Settings, Tls
from weft.gateway.gateway import Gateway
from weft.wire.frames import Decoder, Kind, encode
from weft.wire.message.message import Message

HERE = "127.0.0.1:0"
SUBJECT = b"sensors.london.temp"
Workers = Literal["process", "inline"]
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


class Client:
    """Just enough of a client to see frames come and go."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._decoder = Decoder()

    @classmethod
    async def join(
        cls, gateway: Gateway, service: str, context: ssl.SSLContext | None = None
    ) -> "Client":
        host, _, port = gateway.address.rpartition(":")
        name = None if context is None else "localhost"
        streams = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=name)
        client = cls(*streams)
        client.send(Kind.CONNECT, service.encode())
        assert (await client.frame())[4] == Kind.WELCOME
        return client

    def send(self, kind: Kind, subject: bytes, body: bytes = b"", flags: int = 0) -> None:
        self.writer.write(encode(kind, subject, body, flags=flags))

    async def frame(self) -> bytes:
        while (frame := self._decoder.next_frame()) is None:
            data = await self.reader.read(65536)
            assert data, "the connection ended"
            self._decoder.feed(data)
        return frame

    async def subscribe(self, subject: bytes) -> None:
        self.send(Kind.SUBSCRIBE, subject, flags=1)
        assert (await self.frame())[4] == Kind.OK

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def run(main: Callable[[], Awaitable[None]], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await main()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(limited())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("workers", ["process", "inline"])
@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.req("MM-11", "MM-13")
def test_services_are_apart_on_every_kind_of_loop_worker_and_line(
    loop: Callable[[], asyncio.AbstractEventLoop], workers: Workers, is_encrypted: bool, tls: Tls
) -> None:
    async def main() -> None:
        settings = Settings(listen=HERE, tls=tls if is_encrypted else Tls())
        context = ssl.create_default_context(cafile=tls.cert) if is_encrypted else None
        async with Gateway(settings=settings, workers=workers) as gateway:
            one, same, other = [
                await Client.join(gateway, service, context)
                for service in ("weather", "weather", "orders")
            ]
            for client in (same, other):
                await client.subscribe(SUBJECT)
            one.send(Kind.MESSAGE, SUBJECT, Message(value=1).encode())
            assert Message.from_frame(await same.frame())["value"] == 1
            other.send(Kind.MESSAGE, SUBJECT, Message(value=2).encode())
            # Of its own service, and not of the other one that came first.
            assert Message.from_frame(await other.frame())["value"] == 2
            for client in (one, same, other):
                await client.close()

    run(main, loop)


async def test_large_messages_pass_through_tls_unharmed(tls: Tls) -> None:
    settings = Settings(listen=HERE, tls=tls)
    context = ssl.create_default_context(cafile=tls.cert)
    body = os.urandom(1 << 20)
    async with Gateway(settings=settings, workers="inline") as gateway:
        client = await Client.join(gateway, "weather", context)
        await client.subscribe(SUBJECT)
        for _ in range(8):
            client.send(Kind.MESSAGE, SUBJECT, body, flags=8)
        for _ in range(8):
            assert (await client.frame()).endswith(body)
        assert (await gateway.status())["front"]["encrypted"] == 1
        await client.close()


async def test_pages_are_read_through_tls_too(tls: Tls) -> None:
    async with Gateway(settings=Settings(listen=HERE, tls=tls), workers="inline") as gateway:
        host, _, port = gateway.address.rpartition(":")
        context = ssl.create_default_context(cafile=tls.cert)
        reader, writer = await asyncio.open_connection(
            host, int(port), ssl=context, server_hostname="localhost"
        )
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\nok\n")
        writer.close()
        await writer.wait_closed()


async def test_one_connection_asks_for_pages_and_services_in_turn() -> None:
    async with Gateway(settings=Settings(listen=HERE)) as gateway:
        host, _, port = gateway.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        publish = b"POST /default/publish/a/b HTTP/1.1\r\nHost: localhost\r\n"
        requests = (
            b"GET /weft.js HTTP/1.1\r\nHost: localhost\r\n\r\n",
            publish + b"Content-Length: 2\r\n\r\n{}",
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /weft.d.ts HTTP/1.1\r\nHost: localhost\r\n\r\n",
        )
        for request in requests:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 20"), (request, head)
            length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
        status = await gateway.status()
        assert (status["front"]["accepted"], status["front"]["http"]) == (1, 3)
        writer.close()
        await writer.wait_closed()


@pytest.mark.req("MM-14")
async def test_a_killed_worker_comes_back_and_the_status_tells() -> None:
    settings = Settings(listen=HERE, services=("weather", "orders"))
    async with Gateway(settings=settings) as gateway:
        spared, hit = [await Client.join(gateway, name) for name in ("orders", "weather")]
        pid = (await gateway.status())["services"]["weather"]["pid"]
        os.kill(pid, signal.SIGKILL)
        assert await hit.reader.read() == b""
        again = await Client.join(gateway, "weather")
        weather = (await gateway.status())["services"]["weather"]
        assert weather["restarts"] == 1
        assert weather["pid"] != pid
        spared.send(Kind.PING, b"")
        assert (await spared.frame())[4] == Kind.PONG
        for client in (spared, hit, again):
            await client.close()


async def test_many_who_come_at_once_are_all_served() -> None:
    async with Gateway(HERE, settings=Settings(services=("weather",))) as gateway:
        joining = [Client.join(gateway, "weather") for _ in range(500)]
        clients = await asyncio.gather(*joining)
        assert (await gateway.status())["connections"] == 500
        for client in clients:
            await client.close()


async def test_clients_are_told_to_move_when_it_drains() -> None:
    async with Gateway(HERE, workers="inline") as gateway:
        client = await Client.join(gateway, "weather")
        draining = asyncio.create_task(gateway.drain())
        assert (await client.frame())[4] == Kind.GOODBYE
        await client.close()
        await draining


async def test_a_client_that_does_not_move_is_cut_off_when_the_time_is_over() -> None:
    settings = Settings(listen=HERE, drain_s=0.01)
    async with Gateway(settings=settings) as gateway:
        client = await Client.join(gateway, "weather")
    assert (await client.frame())[4] == Kind.GOODBYE
    assert await client.reader.read() == b""
    await client.close()


async def test_serving_for_ever_ends_with_closing() -> None:
    gateway = Gateway(HERE, workers="inline")
    await gateway.start()
    serving = asyncio.create_task(gateway.serve_forever())
    await gateway.close()
    await serving
    await gateway.close()


async def test_an_error_in_the_program_ends_it_at_once() -> None:
    class Mistake(Exception):
        pass

    clients: list[Client] = []

    async def main() -> None:
        async with Gateway(HERE, workers="inline") as gateway:
            clients.append(await Client.join(gateway, "weather"))
            raise Mistake

    with pytest.raises(Mistake):
        await main()
    assert await clients[0].reader.read() == b""
    await clients[0].close()


async def test_new_settings_are_gone_by() -> None:
    settings = Settings(listen=HERE)
    async with Gateway(settings=settings, workers="inline") as gateway:
        changed = msgspec.structs.replace(settings, name="other", services=("weather",))
        assert gateway.change(changed) == ["name"]
        assert set((await gateway.status())["services"]) == {"weather"}


async def test_what_was_not_started_says_so() -> None:
    gateway = Gateway(HERE)
    with pytest.raises(NotOpen):
        _ = gateway.address
    with pytest.raises(NotOpen):
        await gateway.status()
    await gateway.close()


async def test_it_starts_only_once() -> None:
    async with Gateway(HERE, workers="inline") as gateway:
        with pytest.raises(NotOpen, match="only once"):
            await gateway.start()


async def test_an_address_in_use_is_named() -> None:
    async with Gateway(HERE, workers="inline") as gateway:
        with pytest.raises(UsageError, match=gateway.address):
            await Gateway(gateway.address, workers="inline").start()


def test_a_setting_that_cannot_be_is_refused_when_it_is_made() -> None:
    with pytest.raises(BadOption, match="loopback"):
        Gateway("0.0.0.0:7411")
    with pytest.raises(BadOption, match="workers is 'threads'"):
        Gateway(workers="threads")  # type: ignore[arg-type]  # that is the point


async def test_a_gateway_shows_where_it_listens_and_whether_it_still_does() -> None:
    gateway = Gateway(HERE, settings=Settings(name="london"), workers="inline")
    shown = [repr(gateway)]
    async with gateway:
        address = gateway.address
        shown.append(repr(gateway))
    shown.append(repr(gateway))
    assert shown == [
        f"<Gateway london for {HERE}, not started>",
        f"<Gateway london on {address}, open>",
        f"<Gateway london on {address}, closed>",
    ]
