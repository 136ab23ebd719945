import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.transports.houses import Page, get, housing
from tests.transports.loops import on_both_loops, until

from weft.broker.limits import Limits
from weft.gateway.config.settings import JournalSettings
from weft.gateway.worker.host import ServiceHost
from weft.transports.adapter_peer import AdapterPeer
from weft.transports.websocket.json_messages import DatagramSocket


@asynccontextmanager
async def hosting(limits: Limits | None = None) -> AsyncIterator[ServiceHost]:
    """A service called weather, ended at the end."""
    host = ServiceHost("weather", "london-1", limits or Limits())
    try:
        yield host
    finally:
        await host.close()


def page_of(host: ServiceHost) -> Page:
    return Page(host._house)


@pytest.mark.req("RLY-1")
@on_both_loops
async def test_pages_hear_each_other() -> None:
    async with housing() as house:
        one, other = Page(house), Page(house)
        for page in (one, other):
            await page.greet()
            await page.tell({"interest": "/a", "ack": 1})
            assert await page.told() == {"ok": 1}
        await one.tell({"path": "/a", "data": {"x": 1}, "not_back": True, "ack": "mine"})
        told = await other.told()
        assert (told["path"], told["data"]) == ("/a", {"x": 1})
        assert await one.told() == {"ok": "mine", "id": told["id"]}
        one.close()
        other.close()


@on_both_loops
async def test_a_page_asks_and_another_answers() -> None:
    async with housing() as house:
        asker, answerer = Page(house), Page(house)
        inbox = (await asker.greet())["inbox"]
        await answerer.greet()
        await answerer.tell({"interest": "/q", "ack": 1})
        await answerer.told()
        await asker.tell({"path": "/q", "data": "?", "request": True, "reply": f"{inbox}/1"})
        asked = await answerer.told()
        assert asked["request"] is True
        await answerer.tell({"path": asked["reply"], "data": "!"})
        assert (await asker.told())["data"] == "!"
        await asker.tell({"path": "/nobody", "request": True, "reply": f"{inbox}/2"})
        refused = await asker.told()
        assert (refused["error"]["name"], refused["reply"]) == ("NotKnown", f"{inbox}/2")
        asker.close()
        answerer.close()


@on_both_loops
async def test_draining_says_goodbye_and_closes_with_a_code_to_come_back() -> None:
    async with hosting() as host:
        page = page_of(host)
        await page.greet()
        draining = asyncio.create_task(host.drain(10))
        assert (await page.told())["goodbye"]["reason"] == "draining"
        code, reason = await page.hear_close()
        assert (code, reason) == (4204, "this gateway is closing down")
        page.close()
        await draining


@on_both_loops
async def test_a_request_in_flight_is_answered_while_draining() -> None:
    async with hosting() as host:
        asker, answerer = page_of(host), page_of(host)
        inbox = (await asker.greet())["inbox"]
        await answerer.greet()
        await answerer.tell({"interest": "/q", "ack": 1})
        await answerer.told()
        await asker.tell({"path": "/q", "request": True, "reply": f"{inbox}/1"})
        asked = await answerer.told()
        draining = asyncio.create_task(host.drain(1))
        for page in (asker, answerer):
            assert "goodbye" in await page.told()
        await answerer.tell({"path": asked["reply"], "data": "in time"})
        assert (await asker.told())["data"] == "in time"
        await draining
        await host.close()
        for page in (asker, answerer):
            assert (await page.hear_close())[0] == 4204
            page.close()


async def test_one_that_publishes_faster_than_the_journal_rests_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    for step in ("rest", "go_on"):
        act = getattr(DatagramSocket, step)

        def noted(self: DatagramSocket, step: str = step, act: Any = act) -> None:
            steps.append(step)
            act(self)

        monkeypatch.setattr(DatagramSocket, step, noted)
    async with hosting() as host:
        host.keep(tmp_path, JournalSettings(patterns=(">",)))
        page = page_of(host)
        await page.greet()
        (peer,) = host._service.peers.values()
        for number in range(3):
            # As the core says when more waits for the journal than should.
            peer.is_held = True
            await page.tell({"path": "/a", "data": number, "ack": number})
            assert (await page.told())["ok"] == number
            await until(lambda: not peer.is_held)
        page.close()
    assert steps == ["rest", "go_on"] * 3


async def test_a_fault_in_a_translation_ends_its_peer_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with housing() as house:
        one, other = Page(house), Page(house)
        for page in (one, other):
            await page.greet()
            await page.tell({"interest": "/a", "ack": 1})
            await page.told()
        faults = iter([RuntimeError("a fault of ours")])
        tell = DatagramSocket.tell

        def fail_once(self: DatagramSocket, frames: bytes) -> None:
            for fault in faults:
                raise fault
            tell(self, frames)

        monkeypatch.setattr(DatagramSocket, "tell", fail_once)
        await other.tell({"path": "/a", "data": 1})
        told = [asyncio.create_task(page.frame()) for page in (one, other)]
        done = [await each for each in told]
        assert sorted(frame.opcode.name for frame in done) == ["CLOSE", "TEXT"]
        assert len(house.service.peers) == 1
        assert house.service.ended == {"InternalError": 1}
        one.close()
        other.close()


async def test_one_that_is_gone_before_it_was_answered_is_not_kept() -> None:
    async with housing() as house:
        page = Page(house, is_tcp=True)
        await page.say(get(b"/weather/ws"))
        page.reset()
        await until(lambda: house.connections == 0 and not house.service.peers)
        assert not house._streams


async def test_nothing_is_said_for_a_peer_that_has_left() -> None:
    async with housing() as house:
        page = Page(house)
        await page.greet()
        (peer,) = house.service.peers.values()
        seat = peer.door
        assert isinstance(seat, AdapterPeer)
        page.close()
        await until(lambda: not house.service.peers)
        seat.say(b"anything at all")
        seat.end()
        seat.resume()
        seat.pour()
