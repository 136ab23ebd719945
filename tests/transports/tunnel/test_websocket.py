"""WebSockets that are one more way to be told by a tunnel: opened, cut, come back to, ended."""

import asyncio
import json
import random

import pytest
from tests.transports.houses import HOST, UPGRADE, Guest, Page, framed, get, housing, text
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

from weft.transports.http.origins import WebRules


@pytest.mark.req("TUN-7", "RLY-1")
@on_both_loops
async def test_the_first_datagram_names_the_tunnel_and_all_others_have_ids() -> None:
    async with housing() as house:
        tab = Tab(house)
        header = await tab.enter("new=1&name=tab.1")
        assert len(header["tunnel"]) == 32
        assert header["path"] == header["welcome"]["inbox"]
        assert (header["welcome"]["service"], header["welcome"]["name"]) == ("weather", "tab.1")
        await tab.tell(INTEREST, {"path": "/a", "data": 1, "ack": 2}, {"ping": "x"}, {"ping": 1})
        told = [await tab.told() for _ in range(5)]
        assert len({each["id"] for each in told}) == 5
        assert {each["path"] for each in told} == {"/a", header["path"]}
        (message,) = [each for each in told if "data" in each]
        (ok,) = [each for each in told if each.get("ok") == 2]
        assert ok["published"] == message["id"]
        (error,) = [each["error"] for each in told if "error" in each]
        assert error["name"] == "BadOption"
        tab.close()


@on_both_loops
async def test_without_its_parameters_a_websocket_is_what_it_was() -> None:
    async with housing() as house:
        page = Page(house)
        await page.open(target=b"/weather/ws?last=7.1&name=n")
        assert list(await page.told()) == ["welcome"]
        await page.tell(INTEREST)
        assert await page.told() == {"ok": "interest"}
        page.close()
        await until(lambda: not house.service.peers)


@pytest.mark.req("TUN-14", "TUN-21")
@on_both_loops
async def test_after_a_cut_what_was_not_received_comes_once_and_then_what_is_new() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        page = await publishing(house)
        await publish(page, 1, 2, 3)
        first, second, third = [await tab.told() for _ in range(3)]
        await lost(house, tab)
        await publish(page, 4)
        again = Tab(house)
        await again.come_back(known_by, first["id"])
        assert [await again.told(), await again.told()] == [second, third]
        assert (await again.told())["data"] == 4
        await publish(page, 5)
        assert (await again.told())["data"] == 5
        assert await again.settle() == []
        again.close()
        page.close()


@pytest.mark.req("TUN-21")
async def test_whoever_does_not_say_what_was_received_is_told_all_of_it_again() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        page = await publishing(house)
        await publish(page, 1, 2)
        heard = [await tab.told(), await tab.told()]
        again = Tab(house)
        await again.come_back(known_by)
        assert [each for each in await again.settle() if "data" in each] == heard
        for each in (tab, page, again):
            each.close()


@pytest.mark.req("TUN-2", "TUN-14", "TUN-21")
async def test_thousands_of_messages_survive_hundreds_of_cuts_once_each() -> None:
    chance = random.Random(1)
    async with housing() as house:
        tab, known_by = await listening(house)
        page = await publishing(house)
        heard: list[int] = []
        last, sent, cuts = "", 0, 0
        while len(heard) < 3000:
            count = min(chance.randrange(40), 3000 - sent)
            await publish(page, *range(sent, sent + count))
            sent += count
            for _ in range(chance.randrange(sent - len(heard) + 1)):
                told = await tab.told()
                heard.append(told["data"])
                last = told["id"]
            # Some is on its way, some is not sent yet, and some the gateway thinks it can send.
            tab.reset()
            cuts += 1
            tab = Tab(house)
            await tab.come_back(known_by, last)
        assert heard == list(range(3000))
        assert cuts > 150
        assert house.service.refused == {}
        tab.close()
        page.close()


@pytest.mark.req("TUN-21")
@pytest.mark.parametrize("last", ["7.42", "t.99", "x", "%00", "1" * 500, "../..", "%0d%0aX:y"])
async def test_a_false_last_leads_to_a_reset_and_to_nothing_new(last: str) -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        page = await publishing(house)
        await publish(page, 1)
        first = await tab.told()
        again = Tab(house)
        await again.come_back(known_by, last)
        told = await again.settle()
        assert told[0]["gap"] == {"reason": "reset", "count": 0}
        assert told[-1] == first
        for each in (tab, page, again):
            each.close()


@pytest.mark.req("TUN-21")
async def test_beyond_the_ring_the_loss_is_told() -> None:
    async with housing(rules=WebRules(ring_bytes=2000)) as house:
        tab, known_by = await listening(house)
        page = await publishing(house)
        heard = []
        for number in range(50):
            await publish(page, number)
            heard.append(await tab.told())
        await lost(house, tab)
        again = Tab(house)
        await again.come_back(known_by, heard[4]["id"])
        gap = (await again.told())["gap"]
        first = await again.told()
        assert gap == {"reason": "reset", "count": first["data"] - 5}
        assert first == heard[first["data"]]
        await lost(house, again)
        await publish(page, *range(50, 100))
        again = Tab(house)
        await again.come_back(known_by, heard[-1]["id"])
        told = await again.settle()
        assert told[-1]["gap"] == {"reason": "slow", "count": 50 - len(told) + 1}
        again.close()
        page.close()


@pytest.mark.req("TUN-22")
@on_both_loops
async def test_the_newest_has_the_tunnel_and_the_other_is_closed_with_a_code() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        again, page = Tab(house), await publishing(house)
        await again.come_back(known_by)
        assert await tab.hear_close() == (4200, "replaced by another connection")
        # Whatever the other still says is not heard.
        await tab.tell({"path": "/a", "data": "late"})
        await publish(page, 1)
        assert [each["data"] for each in await again.settle() if "data" in each] == [1]
        assert len(house.service.peers) == 2
        for each in (tab, page, again):
            each.close()


@pytest.mark.req("TUN-22")
async def test_of_many_who_come_back_at_once_one_has_the_tunnel() -> None:
    async with housing() as house:
        first, known_by = await listening(house)
        tabs = [Tab(house) for _ in range(20)]
        await asyncio.gather(*[tab.come_back(known_by) for tab in tabs])
        closed = [await each.hear_close() for each in (first, *tabs[:-1])]
        assert {code for code, _ in closed} == {4200}
        page = await publishing(house)
        await publish(page, 1)
        assert [each["data"] for each in await tabs[-1].settle() if "data" in each] == [1]
        for each in (first, page, *tabs):
            each.close()


@pytest.mark.req("TUN-21", "TUN-22")
async def test_one_tunnel_goes_on_by_whatever_is_there() -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        page = await publishing(house)
        await publish(page, 1)
        last = (await tab.told())["id"]
        guest = Guest(house)
        target = f"/weather/tunnel?tunnel={known_by}&format=poll&last={last}".encode()
        await guest.say(get(target))
        assert (await tab.hear_close())[0] == 4200
        await publish(page, 2)
        _, _, body = await guest.answer()
        [second] = json.loads(body)
        assert second["data"] == 2
        again = Tab(house)
        await again.come_back(known_by, second["id"])
        said = b'{"path":"/a","data":3}'
        head = get(
            f"/weather/events?tunnel={known_by}".encode(),
            *(HOST, f"Content-Length: {len(said)}".encode()),
            method=b"POST",
        )
        assert await guest.ask(head + said) == 202
        assert (await again.told())["data"] == 3
        for each in (tab, page, again, guest):
            each.close()


@pytest.mark.req("TUN-23")
async def test_a_tunnel_that_nobody_comes_back_to_is_culled_and_its_id_leads_to_a_new_one() -> None:
    async with housing(rules=WebRules(cull_s=100.0)) as house:
        tab, known_by = await listening(house)
        sweep_after(house, 101)
        assert len(house.service.peers) == 1
        await lost(house, tab)
        sweep_after(house, 99)
        assert len(house.service.peers) == 1
        sweep_after(house, 101)
        assert house.service.peers == {}
        again = Tab(house)
        header = await again.enter(f"tunnel={known_by}&last=7.1")
        assert header["renewed"] is True
        assert header["tunnel"] != known_by
        again.close()


@pytest.mark.parametrize("code", [1000, 1001])
async def test_whoever_closes_properly_leaves(code: int) -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        await tab.say(framed(Opcode.CLOSE, closing(code)))
        assert (await tab.hear_close())[0] == code
        await until(lambda: not house.service.peers)
        again = Tab(house)
        assert (await again.enter(f"tunnel={known_by}"))["renewed"] is True
        assert house.service.ended == {"left": 1}
        tab.close()
        again.close()


@pytest.mark.parametrize("payload", [b"", closing(1011), closing(4000)])
async def test_whoever_closes_otherwise_may_come_back(payload: bytes) -> None:
    async with housing() as house:
        tab, known_by = await listening(house)
        await tab.say(framed(Opcode.CLOSE, payload))
        await tab.hear_close()
        again = Tab(house)
        await again.come_back(known_by)
        tab.close()
        again.close()


async def test_a_goodbye_ends_the_tunnel() -> None:
    async with housing() as house:
        tab, _ = await listening(house)
        await tab.tell({"goodbye": "done"}, {"ping": "too late"})
        assert await tab.hear_close() == (1000, "left")
        assert house.service.peers == {}
        tab.close()


async def test_what_comes_right_behind_the_handshake_is_heard_after_the_welcome() -> None:
    async with housing() as house:
        tab = Tab(house)
        head = get(b"/weather/ws?new=1", HOST, *UPGRADE)
        await tab.say(head + text('{"no":"datagram"}') + text('{"ping":"first"}'))
        await tab.answer()
        rest = tab.unread
        while b'"pong":"first"' not in rest:
            rest += await tab.read()
        assert rest.index(b'"welcome"') < rest.index(b'"error"')
        tab.close()
