"""WebSockets of tunnels that say what is wrong, say nothing, do not read, or stay to the end."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.transports.houses import HOST, UPGRADE, framed, get, housing, text
from tests.transports.loops import on_both_loops, until
from tests.transports.tabs import (
    INTEREST,
    Tab,
    closing,
    listening,
    lost,
    publish,
    publishing,
    sweep_after,
)
from websockets.frames import Opcode

from weft.broker.limits import Limits
from weft.gateway.config.settings import JournalSettings
from weft.gateway.worker.host import ServiceHost
from weft.transports.adapter_peer import AdapterPeer
from weft.transports.http.origins import WebRules

BAD_TEXTS = ["", "{", "[]x", "1", '[{"path":"/a"},1]', '{"nothing":1}', '{"ping":"x","tunnel":"y"}']


@pytest.mark.parametrize("said", BAD_TEXTS)
async def test_what_is_wrong_with_a_text_is_told_and_costs_nothing_else(said: str) -> None:
    async with housing() as house:
        tab, _ = await listening(house)
        await tab.say(text(said))
        (told,) = await tab.settle()
        assert told["error"]["number"] < 2000
        assert told["id"] == "t.2"
        assert sum(house.service.refused.values()) == 1
        tab.close()


async def test_one_wrong_datagram_of_many_is_told_with_its_ack_and_the_others_count() -> None:
    async with housing() as house:
        tab, _ = await listening(house)
        wrong = {"path": "a/b", "ack": "wrong"}
        await tab.tell([{"path": "/a", "data": 1}, wrong, {"path": "/a", "data": 2}])
        told = await tab.settle()
        assert [each["data"] for each in told if "data" in each] == [1, 2]
        assert [each["ack"] for each in told if "error" in each] == ["wrong"]
        tab.close()


GUILTY = {
    "bytes": (framed(Opcode.BINARY, b"x"), 1003, "UnexpectedFrame"),
    "no UTF-8": (framed(Opcode.TEXT, b"\xff"), 1007, "BadMessage"),
    "a reserved bit": (b"\xc1\x80\0\0\0\0", 1002, "BadFrame"),
    "no mask": (b"\x81\x00", 1002, "BadFrame"),
}


@pytest.mark.parametrize(("sent", "code", "error"), GUILTY.values(), ids=GUILTY)
async def test_what_is_no_datagram_costs_the_connection_and_not_the_tunnel(
    sent: bytes, code: int, error: str
) -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        await tab.say(sent)
        assert (await tab.hear_close())[0] == code
        assert house.service.refused == {error: 1}
        again, page = Tab(house), await publishing(house)
        await again.come_back(known_by)
        await publish(page, 1)
        assert [each["data"] for each in await again.settle() if "data" in each] == [1]
        for each in (tab, page, again):
            each.close()


@pytest.mark.parametrize(
    "sign", [framed(Opcode.PING), text('{"ping":"there"}')], ids=["a ping", "a word"]
)
async def test_whoever_answers_no_ping_is_cut_off_and_may_come_back(sign: bytes) -> None:
    async with housing(Limits(ping_s=10.0)) as house:
        tab, known_by = await listening(house)
        sweep_after(house, 10)
        assert (await tab.frame()).opcode is Opcode.PING
        await tab.say(sign)
        assert (await tab.frame()).opcode in (Opcode.PONG, Opcode.TEXT)
        sweep_after(house, 21)
        assert (await tab.frame()).opcode is Opcode.PING
        sweep_after(house, 32)
        assert await tab.read() == b""
        assert house.service.refused == {"Silent": 1}
        again = Tab(house)
        await again.come_back(known_by)
        tab.close()
        again.close()


async def test_whoever_reads_nothing_is_cut_off_and_may_come_back() -> None:
    async with housing(rules=WebRules(ring_bytes=8 << 20)) as house:
        tab = Tab(house, is_small=True)
        known_by = (await tab.enter())["tunnel"]
        await tab.tell(INTEREST)
        await tab.settle()
        page = await publishing(house)
        count = 0
        while all(stream.unsent < 64 << 10 for stream in house._streams):
            await publish(page, "x" * 50_000)
            count += 1
        streams = len(house._streams)
        sweep_after(house, 9)
        assert len(house._streams) == streams
        sweep_after(house, 11)
        assert len(house._streams) == streams - 1
        assert house.service.refused == {"SlowReader": 1}
        again = Tab(house)
        await again.come_back(known_by)
        told = await again.settle()
        assert len([each for each in told if "data" in each]) == count
        for each in (tab, page, again):
            each.close()


async def test_pings_cost_and_so_does_coming_back() -> None:
    limits = Limits(control_burst=50, control_per_s=1)
    async with housing(limits) as house:
        tab, _ = await listening(house)
        await tab.say(framed(Opcode.PING) * 60)
        assert (await tab.hear_close())[0] == 4608
        assert house.service.peers == {}
        other, known_by = await listening(house)
        tabs = [other]
        header: dict[str, Any] = {"tunnel": known_by}
        while header["tunnel"] == known_by:
            tabs.append(Tab(house))
            header = await tabs[-1].enter(f"tunnel={known_by}")
        assert header["renewed"] is True
        assert len(tabs) < 50
        assert house.service.ended == {"ControlFlood": 2}
        for each in (tab, *tabs):
            each.close()


@pytest.mark.parametrize(
    "query", ["new=1&tunnel=x", "new=0", "new=", "tunnel=", "new=yes", "new=0&tunnel="]
)
async def test_a_request_says_if_it_wants_a_new_tunnel_or_which(query: str) -> None:
    async with housing() as house:
        tab = Tab(house)
        status, body = await tab.refusal(query)
        assert (status, json.loads(body)["error"]["name"]) == (400, "BadOption")
        assert house.service.peers == {}
        tab.close()


async def test_frames_have_no_tunnel() -> None:
    async with housing() as house:
        tab = Tab(house)
        status, body = await tab.refusal("new=1", b"Sec-WebSocket-Protocol: weft.binary")
        assert (status, json.loads(body)["error"]["name"]) == (400, "BadOption")
        assert house.service.peers == {}
        tab.close()


async def test_there_are_so_many_tunnels_and_no_more() -> None:
    async with housing(rules=WebRules(tunnels=2)) as house:
        (one, known_by), (two, _) = await listening(house), await listening(house)
        tab = Tab(house)
        assert (await tab.refusal("new=1"))[0] == 429
        again, plain = Tab(house), await publishing(house)
        await again.come_back(known_by)
        for each in (one, two, tab, again, plain):
            each.close()


async def test_a_tunnel_on_a_websocket_counts_as_one_connection() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        assert (house.connections, len(house.service.peers)) == (0, 1)
        again = Tab(house)
        await again.come_back(known_by)
        assert (house.connections, len(house.service.peers)) == (0, 1)
        tab.close()
        again.close()


async def test_one_that_is_gone_before_it_was_answered_is_not_kept() -> None:
    async with housing() as house:
        tab = Tab(house)
        await tab.say(get(b"/weather/ws?new=1", HOST, *UPGRADE))
        tab.close()
        await until(lambda: not house._streams)
        assert house.service.peers == {}
        assert house.service.ended == {"left": 1}


async def test_one_that_is_gone_before_it_is_back_does_not_disturb_who_is_there() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        again = Tab(house)
        await again.say(get(f"/weather/ws?tunnel={known_by}".encode(), HOST, *UPGRADE))
        again.close()
        await until(lambda: len(house._streams) == 1)
        assert await tab.settle() == []
        tab.close()


async def test_whoever_reads_late_is_told_everything() -> None:
    async with housing() as house:
        tab = Tab(house, is_small=True)
        await tab.enter()
        await tab.tell(INTEREST)
        await tab.settle()
        page = await publishing(house)
        count = 0
        while all(stream.unsent < 64 << 10 for stream in house._streams):
            await publish(page, "x" * 50_000)
            count += 1
        await publish(page, *["y" * 50_000] * 3)
        heard = [(await tab.told())["data"][0] for _ in range(count + 3)]
        assert heard == ["x"] * count + ["y"] * 3
        tab.close()
        page.close()


async def test_one_that_publishes_faster_than_the_journal_is_paused_and_nothing_is_refused(
    tmp_path: Path,
) -> None:
    host = ServiceHost("weather", "london-1", Limits())
    try:
        host.keep(tmp_path, JournalSettings(patterns=(">",)))
        tab = Tab(host._house)
        await tab.enter()
        (peer,) = host._service.peers.values()
        for number in range(3):
            # As the core says when more waits for the journal than should.
            peer.is_held = True
            await tab.tell({"path": "/a", "data": number, "ack": number})
            assert (await tab.told())["ok"] == number
            await until(lambda: not peer.is_held)
        assert host._service.refused == {}
        tab.close()
    finally:
        await host.close()


async def test_who_comes_back_while_the_journal_is_written_is_paused_too() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        (peer,) = house.service.peers.values()
        seat = peer.door
        assert isinstance(seat, AdapterPeer)
        peer.is_held = True
        seat._speaker.rest()
        again = Tab(house)
        await again.come_back(known_by)
        await again.tell({"ping": "x"})
        page = await publishing(house)
        await publish(page, 1)
        assert [(await again.told()).get("data") for _ in range(2)][-1] == 1
        seat.resume()
        assert (await again.told())["pong"] == "x"
        for each in (tab, page, again):
            each.close()


@on_both_loops
async def test_draining_says_goodbye_and_closes_with_a_code_to_come_back() -> None:
    host = ServiceHost("weather", "london-1", Limits())
    tabs = [Tab(host._house) for _ in range(2)]
    for tab in tabs:
        await tab.enter()
    await lost(host._house, tabs.pop())
    draining = asyncio.create_task(host.drain(10))
    assert (await tabs[0].told())["goodbye"]["reason"] == "draining"
    assert await tabs[0].hear_close() == (4204, "this gateway is closing down")
    tabs[0].close()
    await draining
    await host.close()


@on_both_loops
async def test_a_request_in_flight_is_answered_while_draining() -> None:
    host = ServiceHost("weather", "london-1", Limits())
    asker, answerer = Tab(host._house), Tab(host._house)
    inbox = (await asker.enter())["welcome"]["inbox"]
    await answerer.enter()
    await answerer.tell({"interest": "/q", "ack": 1})
    await answerer.told()
    await asker.tell({"path": "/q", "request": True, "reply": f"{inbox}/1"})
    asked = await answerer.told()
    draining = asyncio.create_task(host.drain(10))
    for tab in (asker, answerer):
        assert "goodbye" in await tab.told()
    await answerer.tell({"path": asked["reply"], "data": "in time"})
    assert (await asker.told())["data"] == "in time"
    # Who is cut off now need not come back here.
    answerer.reset()
    await asker.say(framed(Opcode.CLOSE, closing(4000)))
    await asker.hear_close()
    asker.close()
    await draining
    assert host._service.peers == {}
    await host.close()
