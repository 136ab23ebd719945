"""What time brings to a tunnel, who may open one, and who must wait: with time that is told."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.broker.locksmith import key_of, record
from tests.transports.houses import housing
from tests.transports.pages import Line

from weft.broker.auth.keys import Keyring
from weft.broker.limits import Limits
from weft.transports.adapter_peer import AdapterPeer
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.tunnel.formats import FormatSettings

S = 1_000_000_000


class Rooms:
    """A house whose time a test tells."""

    def __init__(self, house: HttpServer) -> None:
        self.house = house
        self.service = house.service
        self.lines: list[Line] = []

    async def line(self) -> Line:
        """A connection that speaks HTTP."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.house.adopt(theirs.detach())
        line = Line(*await asyncio.open_connection(sock=ours))
        self.lines.append(line)
        return line

    async def ask(self, target: str, body: bytes | None = None, key: str = "") -> Line:
        """An answer whose head was read."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return await (await self.line()).ask(f"/weather/{target}", body, headers)

    async def tunnel(self, form: str, key: str = "") -> tuple[Line, str]:
        """A new tunnel of JSON lines, and its id."""
        line = await self.ask(f"tunnel?new=1&format={form}", None, key)
        said = await line.more()
        if form == "sse":
            said = said.partition(b"data: ")[2]
        header: Any = json.loads(said)
        return line, (header[0] if form == "poll" else header)["tunnel"]

    async def say(self, known_by: str, **datagram: Any) -> int:
        """Say something for a tunnel; the status of the answer."""
        body = json.dumps(datagram).encode()
        line = await self.ask(f"events?tunnel={known_by}", body)
        await line.rest()
        return line.status

    def sweep_after(self, seconds: float) -> None:
        """Do what is due so long after now."""
        for sweeper in self.house.sweepers:
            sweeper(self.service.now_ns + int(seconds * S))

    async def is_left(self) -> None:
        """Wait until nobody is attached to any tunnel."""
        while self.house.attached:
            await asyncio.sleep(0)


@asynccontextmanager
async def rooms(**rules: Any) -> AsyncIterator[Rooms]:
    """A house for as long as a test takes."""
    async with housing(rules=WebRules(**rules)) as house:
        made = Rooms(house)
        try:
            yield made
        finally:
            for line in made.lines:
                line.close()


@pytest.mark.req("TUN-10")
@pytest.mark.parametrize("key", ["", key_of("stranger"), "nonsense"])
@pytest.mark.parametrize("query", ["new=1", "tunnel=gone"])
async def test_without_a_key_that_counts_there_is_no_id_and_no_byte_of_a_tunnel(
    key: str, query: str
) -> None:
    async with rooms() as house:
        house.service.set_keys(Keyring((record("mine"),)))
        line = await house.ask(f"tunnel?{query}&format=ndjson", None, key)
        assert line.status == 401
        assert line.headers["www-authenticate"] == "Bearer"
        assert b"tunnel" not in await line.rest()
        assert house.service.peers == {}
        line, known_by = await house.tunnel("ndjson", key_of("mine"))
        assert await house.say(known_by, ping="x") == 202
        assert (await line.json())["pong"] == "x"


@pytest.mark.req("TUN-20", "TUN-23")
async def test_a_tunnel_belongs_to_the_key_that_opened_it() -> None:
    async with rooms() as house:
        house.service.set_keys(Keyring((record("mine"), record("other"))))
        _, known_by = await house.tunnel("ndjson", key_of("mine"))
        target = f"tunnel?tunnel={known_by}&format=ndjson"
        assert (await house.ask(target, None, key_of("other"))).status == 403
        body = json.dumps({"ping": ""}).encode()
        events = f"events?tunnel={known_by}"
        assert (await house.ask(events, body, key_of("other"))).status == 403
        assert (await house.ask(events, body, key_of("mine"))).status == 202
        # Who knows the id has the right: an EventSource cannot show a key.
        line = await house.ask(target)
        assert (await line.json())["tunnel"] == known_by


@pytest.mark.req("TUN-20", "TUN-23")
async def test_a_tunnel_that_a_ticket_opened_belongs_to_the_key_of_the_ticket() -> None:
    async with rooms() as house:
        house.service.set_keys(Keyring((record("mine"), record("other"))))
        given = await house.ask("ticket", b"", key_of("mine"))
        ticket = json.loads(await given.rest())["ticket"]
        line = await house.ask(f"tunnel?new=1&format=ndjson&ticket={ticket}")
        events = f"events?tunnel={(await line.json())['tunnel']}"
        body = json.dumps({"ping": ""}).encode()
        assert (await house.ask(events, body, key_of("other"))).status == 403
        assert (await house.ask(events, body, "nonsense")).status == 403
        assert (await house.ask(events, body, key_of("mine"))).status == 202


async def test_where_everyone_is_trusted_a_tunnel_that_a_ticket_opened_has_no_key() -> None:
    async with rooms() as house:
        line = await house.ask("tunnel?new=1&format=ndjson&ticket=any")
        known_by = (await line.json())["tunnel"]
        body = json.dumps({"ping": ""}).encode()
        assert (await house.ask(f"events?tunnel={known_by}", body, key_of("mine"))).status == 202


async def test_whoever_loses_its_key_loses_its_tunnel() -> None:
    async with rooms() as house:
        house.service.set_keys(Keyring((record("mine"),)))
        line, known_by = await house.tunnel("ndjson", key_of("mine"))
        house.service.set_keys(Keyring((record("other"),)))
        house.house.turn.flush()
        assert await house.say(known_by, ping="") == 403
        said = [json.loads(each) for each in (await line.rest()).splitlines()]
        assert said[-1]["close"]["reason"] == "BadKey"


async def test_what_a_key_does_not_allow_is_refused_on_the_tunnel() -> None:
    async with rooms() as house:
        guest = record("guest", "client", publish=["open.>"])
        house.service.set_keys(Keyring((guest,)))
        line, known_by = await house.tunnel("ndjson", key_of("guest"))
        assert await house.say(known_by, path="/closed", data=1, ack=1) == 202
        told = await line.json()
        assert (told["ack"], told["error"]["name"]) == (1, "NotAllowed")


async def test_a_client_may_end_its_tunnel() -> None:
    async with rooms() as house:
        line, known_by = await house.tunnel("ndjson")
        assert await house.say(known_by, goodbye="done") == 202
        assert await line.json() == {"close": {"reason": "left"}}
        assert await house.say(known_by, ping="") == 403


@pytest.mark.req("TUN-18")
async def test_a_keepalive_comes_when_nothing_was_said_for_its_interval() -> None:
    async with rooms() as house:
        line, known_by = await house.tunnel("sse")
        house.sweep_after(14)
        house.sweep_after(15)
        assert await line.more() == b":\n"
        await house.say(known_by, ping="x")
        assert (await line.event())["id"] == "t.1"


async def test_a_poll_is_held_for_its_interval_and_then_answered_with_nothing() -> None:
    async with rooms() as house:
        line, known_by = await house.tunnel("poll")
        line.send(f"/weather/tunnel?tunnel={known_by}&format=poll")
        while not house.house.attached:
            await asyncio.sleep(0)
        house.sweep_after(24)
        assert house.house.attached == 1
        house.sweep_after(25)
        await line.answered()
        assert await line.rest() == b"[]\n"
        assert house.house.attached == 0


async def test_a_client_that_polls_is_asked_between_two_polls_but_not_long_after_one() -> None:
    async with rooms() as house:
        line, known_by = await house.tunnel("poll")
        assert await house.say(known_by, interest="/q") == 202
        await house.is_left()
        assert (await house.ask("request/q?timeout=0.01", b"1")).status == 504
        house.sweep_after(4)
        assert (await house.ask("request/q?timeout=0.01", b"1")).status == 504
        house.sweep_after(6)
        assert (await house.ask("request/q", b"1")).status == 404
        line.send(f"/weather/tunnel?tunnel={known_by}&format=poll")
        await line.answered()
        assert len(json.loads(await line.rest())) == 2
        assert (await house.ask("request/q?timeout=0.01", b"1")).status == 504


@pytest.mark.req("TUN-23")
@pytest.mark.parametrize("form", ["ndjson", "poll"])
async def test_a_tunnel_is_culled_after_the_time_that_was_set(form: str) -> None:
    async with rooms(cull_s=100.0) as house:
        line, known_by = await house.tunnel(form)
        line.close()
        await house.is_left()
        house.sweep_after(99)
        assert await house.say(known_by, ping="") == 202
        house.sweep_after(101)
        assert await house.say(known_by, ping="") == 403
        assert house.service.ended == {"Silent": 1}
        assert house.service.peers == {}


async def test_what_waits_longer_than_was_set_is_lost_and_that_is_told() -> None:
    async with rooms(ring_s=10.0, cull_s=1000.0) as house:
        line, known_by = await house.tunnel("ndjson")
        line.close()
        await house.is_left()
        await house.say(known_by, ping="lost")
        house.sweep_after(9)
        house.sweep_after(11)
        await house.say(known_by, ping="kept")
        line = await house.ask(f"tunnel?tunnel={known_by}&format=ndjson")
        assert "tunnel" in await line.json()
        assert (await line.json())["gap"] == {"reason": "old", "count": 1}
        assert (await line.json())["pong"] == "kept"


@pytest.mark.parametrize("form", ["ndjson", "quick"])
async def test_whoever_reads_nothing_is_parted_from_its_connection_and_may_come_back(
    form: str,
) -> None:
    quick = FormatSettings(keepalive_s=1.0)
    async with rooms(ring_bytes=4 << 20, formats={"quick": quick}) as house:
        line, known_by = await house.tunnel(form)
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]  # one that reads
        await house.say(known_by, interest="/a")
        count = 0
        while all(stream.unsent < 64 << 10 for stream in house.house._streams):
            assert await house.say(known_by, path="/a", data="x" * 50_000) == 202
            count += 1
        house.sweep_after(9)
        assert house.house.attached == 1
        house.sweep_after(11)
        assert house.house.attached == 0
        assert house.service.refused == {"SlowReader": 1}
        line = await house.ask(f"tunnel?tunnel={known_by}&format=ndjson")
        assert (await line.json())["tunnel"] == known_by
        assert [(await line.json())["path"] for _ in range(count)] == ["/a"] * count


async def test_while_only_readers_are_behind_events_are_taken() -> None:
    async with rooms() as house:
        _, known_by = await house.tunnel("ndjson")
        [peer] = house.service.peers.values()
        seat = peer.door
        assert isinstance(seat, AdapterPeer)
        peer.is_paused = True
        seat._speaker.rest()
        assert await house.say(known_by, ping="") == 202


async def test_while_the_journal_is_written_nothing_is_taken() -> None:
    async with rooms() as house:
        _, known_by = await house.tunnel("ndjson")
        [peer] = house.service.peers.values()
        seat = peer.door
        assert isinstance(seat, AdapterPeer)
        peer.is_held = True
        seat._speaker.rest()
        assert await house.say(known_by, ping="") == 503
        seat.resume()
        assert await house.say(known_by, ping="") == 202
        assert house.service.refused == {"Overloaded": 1}


async def test_a_client_that_goes_before_it_is_welcome_leaves_nothing_behind() -> None:
    async with rooms() as house:
        line = await house.line()
        line.send("/weather/tunnel?new=1&format=ndjson")
        line.close()
        while not house.service.peers:
            await asyncio.sleep(0)
        await house.is_left()
        house.sweep_after(181)
        assert house.service.peers == {}
        assert house.house.connections == 0


async def test_to_come_back_costs_as_much_as_it_brings() -> None:
    async with rooms() as house:
        _, known_by = await house.tunnel("ndjson")
        house.service.set_limits(Limits(control_burst=10, control_per_s=1))
        target = f"tunnel?tunnel={known_by}&format=ndjson"
        header: dict[str, Any] = {}
        lines: list[Line] = []
        while "renewed" not in header:
            lines.append(await house.ask(target))
            header = await lines[-1].json()
        *_, last, _ = lines
        assert (await last.json())["error"]["name"] == "ControlFlood"
        assert await last.json() == {"close": {"reason": "ControlFlood"}}
        assert len(lines) <= 12
