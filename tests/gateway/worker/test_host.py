import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.broker.talk import ANSWER, REQUEST, message, subscribe
from tests.transports.loops import (
    CONNECT,
    Client,
    error_name,
    on_both_loops,
    small_buffers,
    tcp_pair,
    unix_pair,
    until,
)

from weft.broker.limits import Limits
from weft.gateway.front.fd_passing import AS_FRAMES
from weft.gateway.worker.host import ServiceHost
from weft.wire.frames import Frame, Kind, encode
from weft.wire.message.message import Message


@asynccontextmanager
async def hosting(limits: Limits | None = None) -> AsyncIterator[ServiceHost]:
    """A service called weather, ended at the end."""
    host = ServiceHost("weather", "london-1", limits or Limits())
    try:
        yield host
    finally:
        await host.close()


def newcomer(host: ServiceHost, is_tcp: bool = False, is_small: bool = False) -> Client:
    """Someone who connects and has yet to say a word."""
    client, theirs = tcp_pair() if is_tcp else unix_pair()
    if is_small:
        small_buffers(client, theirs)
    host.adopt([(theirs.detach(), AS_FRAMES)])
    return client


async def greeted(
    host: ServiceHost, *patterns: bytes, is_tcp: bool = False, is_small: bool = False
) -> Client:
    client = newcomer(host, is_tcp, is_small)
    await client.say(CONNECT, *(subscribe(pattern) for pattern in patterns))
    assert len(await client.hear(1 + len(patterns))) == 1 + len(patterns)
    return client


def bodies(frames: list[Frame]) -> list[bytes]:
    return [frame.body for frame in frames if frame.kind == Kind.MESSAGE]


async def test_every_host_has_a_secret_of_its_own() -> None:
    async with hosting() as one, hosting() as other:
        secrets = {each._service.secret for each in (one, other)}
        assert [len(secret) for secret in secrets] == [32, 32]


@pytest.mark.req("MM-16", "HUB-6")
@on_both_loops
async def test_a_socket_that_is_taken_over_can_publish_and_subscribe() -> None:
    async with hosting() as host:
        one, other = await greeted(host, b"a.*"), await greeted(host, b"a.>", is_tcp=True)
        await one.say(message(b"a.b", b"news"))
        assert bodies(await one.hear()) == bodies(await other.hear()) == [b"news"]
        assert host.connections == 2
        one.close()
        other.close()
        await until(lambda: host.connections == 0)


@on_both_loops
async def test_nothing_that_was_sent_before_the_take_over_is_lost() -> None:
    async with hosting() as host:
        client, theirs = unix_pair()
        await client.say(CONNECT, subscribe(b"a"), message(b"a", b"early"))
        host.adopt([(theirs.detach(), AS_FRAMES)])
        kinds = [frame.kind for frame in await client.hear(3)]
        assert kinds == [Kind.WELCOME, Kind.OK, Kind.MESSAGE]
        client.close()


@on_both_loops
async def test_a_socket_that_is_gone_already_is_gone_at_once() -> None:
    async with hosting() as host:
        client, theirs = tcp_pair()
        client.reset()
        host.adopt([(theirs.detach(), AS_FRAMES)])
        await until(lambda: host.connections == 0)
        assert host.status().ended == {"left": 1}


@on_both_loops
async def test_two_hosts_have_numbers_of_their_own() -> None:
    async with hosting() as one, hosting() as other:
        clients = [newcomer(one), newcomer(other)]
        origins = set()
        for client in clients:
            await client.say(CONNECT)
            origins |= {frame.origin for frame in await client.hear()}
            client.close()
        assert len(origins) == 2
        assert 0 not in origins


@on_both_loops
async def test_the_status_is_the_service_in_numbers() -> None:
    async with hosting() as host:
        client = await greeted(host, b"a")
        await client.say(message(b"a"), message(b"a..b"))
        await client.hear(2)
        status = host.status()
        assert (status.service, status.connections, status.subscriptions) == ("weather", 1, 1)
        assert (status.messages_in, status.deliveries, status.refused) == (1, 1, {"BadSubject": 1})
        assert status.bytes_out > 0
        assert status.uptime_s >= 0
        client.close()


@on_both_loops
async def test_an_event_of_the_gateway_reaches_who_listens() -> None:
    async with hosting() as host:
        client = await greeted(host, b"_WEFT.event.*")
        host.announce("worker_restarted", Message(restarts=2))
        (event,) = await client.hear()
        assert event.subject == b"_WEFT.event.worker_restarted"
        assert Message.from_body(event.body)["restarts"] == 2
        client.close()


@on_both_loops
async def test_other_limits_hold_from_now_on() -> None:
    async with hosting() as host:
        client = await greeted(host)
        host.set_limits(Limits(subscriptions=1))
        await client.say(subscribe(b"a"), subscribe(b"b"))
        ok, error = await client.hear(2)
        assert (ok.kind, error_name(error)) == (Kind.OK, "TooMany")
        client.close()


@on_both_loops
async def test_who_says_nothing_is_ended_in_time() -> None:
    async with hosting(Limits(greeting_s=0.05)) as host:
        silent, slow = newcomer(host), newcomer(host, is_tcp=True)
        await slow.say(CONNECT[:10])
        for client in (silent, slow):
            (error,) = await client.hear_all()
            assert error_name(error) == "TooSlow"
            client.close()
        await until(lambda: host.connections == 0)
        assert host.status().ended == {"TooSlow": 2}


@on_both_loops
async def test_who_answers_no_ping_is_ended_and_who_does_is_not() -> None:
    async with hosting(Limits(ping_s=0.05)) as host:
        lively, dull = await greeted(host), await greeted(host)
        answering = asyncio.create_task(answer_pings(lively))
        heard = await dull.hear_all()
        assert [frame.kind for frame in heard] == [Kind.PING, Kind.ERROR]
        assert error_name(heard[-1]) == "Silent"
        assert host.connections >= 1
        assert not answering.done()
        answering.cancel()
        await asyncio.wait([answering])
        lively.close()
        dull.close()


async def answer_pings(client: Client) -> None:
    while await client.hear():
        await client.say(encode(Kind.PONG))


@on_both_loops
async def test_who_lingers_after_its_end_is_closed_in_time() -> None:
    async with hosting() as host:
        client = await greeted(host, is_tcp=True)
        await client.say(b"\0\0\0\0")
        await client.hear_all()
        assert host.connections == 1
        await until(lambda: host.connections == 0)
        client.close()


@on_both_loops
async def test_one_that_is_stopped_in_reading_is_cut_and_its_neighbours_do_not_notice() -> None:
    async with hosting(Limits(outbox_age_s=0.1)) as host:
        watcher = await greeted(host, b"_WEFT.event.disconnected")
        stopped = await greeted(host, b"a", is_small=True)
        sender = await greeted(host, b"a")
        await sender.say(*[message(b"a", bytes(1000))] * 200)
        assert len(await sender.hear(200)) == 200
        (event,) = await watcher.hear()
        assert Message.from_body(event.body)["reason"] == "SlowReader"
        assert host.status().ended == {"SlowReader": 1}
        for client in (watcher, stopped, sender):
            client.close()


@pytest.mark.req("HUB-20")
@on_both_loops
async def test_whoever_vanishes_is_removed_everywhere() -> None:
    async with hosting() as host:
        server, asker = await greeted(host, b"a", is_tcp=True), newcomer(host)
        await asker.say(CONNECT)
        (welcome,) = await asker.hear()
        inbox = Message.from_body(welcome.body).get_string("inbox").encode()
        await asker.say(message(b"a", b"?", inbox + b".1", REQUEST))
        await server.hear()
        server.reset()
        (gone,) = await asker.hear()
        assert (error_name(gone), gone.reply) == ("ResponderGone", inbox + b".1")
        await asker.say(message(b"a", b"?", inbox + b".2", REQUEST))
        (unknown,) = await asker.hear()
        assert error_name(unknown) == "NotKnown"
        assert (host.connections, host.status().subscriptions) == (1, 0)
        asker.close()


@on_both_loops
async def test_one_who_sends_and_is_gone_at_once_does_not_linger() -> None:
    async with hosting() as host:
        client = await greeted(host, b"a", is_tcp=True)
        await client.say(message(b"b"))
        client.reset()
        await until(lambda: host.connections == 0)
        assert host.status().messages_in <= 1


@on_both_loops
async def test_a_drain_tells_everyone_and_ends_when_they_have_left() -> None:
    async with hosting() as host:
        client, stranger = await greeted(host), newcomer(host)
        draining = asyncio.create_task(host.drain(20))
        (goodbye,) = await client.hear()
        assert goodbye.kind == Kind.GOODBYE
        assert Message.from_body(goodbye.body)["reason"] == "draining"
        (error,) = await stranger.hear_all()
        assert error_name(error) == "Draining"
        client.close()
        stranger.close()
        await draining
        assert host.connections == 0


@on_both_loops
async def test_a_drain_of_an_empty_service_ends_at_once() -> None:
    async with hosting() as host:
        await host.drain(1000)


@on_both_loops
async def test_a_drain_is_bounded_in_time() -> None:
    async with hosting() as host:
        client = await greeted(host)
        await host.drain(0.01)
        assert host.connections == 1
        await host.close()
        assert [frame.kind for frame in await client.hear_all()] == [Kind.GOODBYE]
        client.close()


@on_both_loops
async def test_closing_sends_what_is_owed_and_ends_everyone() -> None:
    async with hosting() as host:
        clients = [await greeted(host, b"a") for _ in range(3)]
        # Dealt with in the turn that the end comes in.
        await clients[0].say(message(b"a", b"last", flags=ANSWER))
        await until(lambda: host.status().messages_in == 1)
        await host.close()
        await host.close()
        for client in clients:
            assert bodies(await client.hear_all()) == [b"last"]
            client.close()
        assert host.connections == 0


@on_both_loops
async def test_a_host_can_be_closed_with_every_kind_of_connection() -> None:
    async with hosting() as host:
        stranger, half = newcomer(host), newcomer(host)
        await half.say(CONNECT[:9])
        over = await greeted(host, is_tcp=True)
        await over.say(b"\0\0\0\0")
        slow = await greeted(host, b"a", is_small=True)
        sender = await greeted(host)
        await sender.say(
            *[message(b"a", bytes(1000))] * 100, message(b"a", bytes(500_000))[:90_000]
        )
        await until(lambda: host.status().slow_readers == 1)
        await host.close()
        assert host.connections == 0
        for client in (stranger, half, over, slow, sender):
            client.close()


@on_both_loops
async def test_many_come_and_go_and_nothing_of_them_is_left() -> None:
    async with hosting() as host:
        for _ in range(5):
            clients = [await greeted(host, b"a", is_tcp=number % 2 == 0) for number in range(20)]
            await clients[0].say(message(b"a"))
            for client in clients:
                assert len(await client.hear()) == 1
            for number, client in enumerate(clients):
                client.reset() if number % 3 else client.close()
            await until(lambda: host.connections == 0)
        assert host.status().subscriptions == 0
        assert sum(host.status().ended.values()) == 100


def test_a_host_needs_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        ServiceHost("weather", "london-1", Limits())


@on_both_loops
async def test_a_client_may_send_everything_a_byte_at_a_time() -> None:
    async with hosting() as host:
        client = newcomer(host, is_tcp=True)
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in CONNECT + subscribe(b"a") + message(b"a", b"slowly"):
            await client.say(bytes([byte]))
            await asyncio.sleep(0)
        assert bodies(await client.hear(3)) == [b"slowly"]
        client.close()
