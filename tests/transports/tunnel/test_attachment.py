"""Answers that are held: long polls of tunnels, as JSON and as scripts."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.transports.pages import Browser, Line, gateway

from weft.transports.http.origins import WebSettings

JSONP = WebSettings(jsonp=True)


async def opened(browser: Browser) -> dict[str, Any]:
    """A tunnel that is polled; what its first answer says."""
    answer = await browser.get("tunnel?new=1&format=poll")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    [header] = answer.json
    await browser.interest(header["tunnel"], "/a")
    return dict(header)


async def poll(browser: Browser, known_by: str, last: str = "") -> list[dict[str, Any]]:
    answer = await browser.get(f"tunnel?tunnel={known_by}&format=poll&last={last}")
    datagrams: list[dict[str, Any]] = answer.json
    return datagrams


@asynccontextmanager
async def polling(browser: Browser, known_by: str) -> AsyncIterator[Line]:
    """A poll that is held: nothing was answered yet."""
    line = await browser.line()
    line.send(f"/default/tunnel?tunnel={known_by}&format=poll")
    # What was sent first is read first: after this answer the poll is there.
    await browser.say(known_by, {"interest": "/nothing"})
    yield line
    line.close()


@pytest.mark.req("TUN-7")
async def test_the_first_poll_is_answered_at_once_with_the_header() -> None:
    async with gateway() as browser:
        header = await opened(browser)
        assert header["welcome"]["service"] == "default"
        assert header["path"] == header["welcome"]["inbox"]


@pytest.mark.req("TUN-13")
async def test_a_poll_is_answered_as_soon_as_there_is_something() -> None:
    async with gateway() as browser:
        header = await opened(browser)
        async with polling(browser, header["tunnel"]) as line:
            await browser.publish("/a", "x")
            await line.answered()
            [datagram] = json.loads(await line.rest())
            assert datagram["data"] == "x"


@pytest.mark.req("TUN-21", "TUN-14")
async def test_what_came_between_two_polls_is_in_the_next() -> None:
    async with gateway() as browser:
        header = await opened(browser)
        await browser.publish("/a", 1, 2, 3)
        first = await poll(browser, header["tunnel"])
        assert [each["data"] for each in first] == [1, 2, 3]
        # One that says what it has got last gets exactly the rest.
        assert await poll(browser, header["tunnel"], first[0]["id"]) == first[1:]
        await browser.publish("/a", 4)
        # And one that says nothing is taken to have got the answer to its last poll.
        [fourth] = await poll(browser, header["tunnel"])
        assert fourth["data"] == 4


@pytest.mark.req("TUN-22")
async def test_the_newest_poll_wins_and_the_other_is_answered_that_it_ends() -> None:
    async with gateway() as browser:
        header = await opened(browser)
        known_by = header["tunnel"]
        async with polling(browser, known_by) as first, polling(browser, known_by) as second:
            await first.answered()
            assert json.loads(await first.rest()) == [{"close": {"reason": "replaced"}}]
            await browser.publish("/a", "x")
            await second.answered()
            assert json.loads(await second.rest())[0]["data"] == "x"


@pytest.mark.req("TUN-21")
async def test_a_poller_that_hangs_up_loses_nothing() -> None:
    async with gateway() as browser:
        header = await opened(browser)
        line = await browser.line()
        line.send(f"/default/tunnel?tunnel={header['tunnel']}&format=poll")
        line.writer.write_eof()
        assert await line.reader.read() == b""
        await browser.publish("/a", "x")
        [datagram] = await poll(browser, header["tunnel"])
        assert datagram["data"] == "x"


async def test_what_follows_a_poll_on_its_connection_is_dealt_with_after_it() -> None:
    async with gateway() as browser:
        header = await opened(browser)
        known_by = header["tunnel"]
        line = await browser.line()
        line.send(f"/default/tunnel?tunnel={known_by}&format=poll")
        # Answered while its turn is flushed, when nothing may be said for anybody.
        for number in range(3):
            said = json.dumps({"path": "/a", "data": number}).encode()
            line.send(f"/default/events?tunnel={known_by}", said)
        await browser.publish("/a", "first")
        await line.answered()
        assert [each["data"] for each in json.loads(await line.rest())] == ["first"]
        for _ in range(3):
            await line.answered()
            assert json.loads(await line.rest()) == {"ok": 1}
        heard: list[Any] = []
        last = ""
        while len(heard) < 3:
            datagrams = await poll(browser, known_by, last)
            heard += [each["data"] for each in datagrams]
            last = datagrams[-1]["id"]
        assert heard == [0, 1, 2]


@pytest.mark.req("TUN-21")
async def test_a_poll_after_a_lost_stream_gets_what_the_stream_may_have_lost() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        await browser.publish("/a", 1, 2)
        heard = [await line.json(), await line.json()]
        line.close()
        assert await poll(browser, known_by) == heard
        await browser.publish("/a", 3)
        assert [each["data"] for each in await poll(browser, known_by)] == [3]


@pytest.mark.req("TUN-23")
async def test_a_tunnel_that_is_not_polled_any_more_is_culled() -> None:
    async with gateway(web=WebSettings(cull_s=0.5)) as browser:
        header = await opened(browser)
        while (await browser.say(header["tunnel"], {"ping": ""})).status == 202:
            await asyncio.sleep(0.02)
        [renewed] = await poll(browser, header["tunnel"])
        assert renewed["renewed"] is True
        assert renewed["tunnel"] != header["tunnel"]


async def test_jsonp_is_a_call_of_the_function_that_was_named() -> None:
    async with gateway(web=JSONP) as browser:
        answer = await browser.get("tunnel?new=1&format=jsonp&callback=page.got")
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        begin, _, rest = answer.body.partition(b"(")
        assert begin == b"/**/page.got"
        [header] = json.loads(rest.removesuffix(b");\n"))
        known_by = header["tunnel"]
        await browser.interest(known_by, "/a")
        await browser.publish("/a", "</script>\u2028")
        answer = await browser.get(f"tunnel?tunnel={known_by}&format=jsonp&callback=f")
        assert b"</script>" not in answer.body
        assert "\u2028".encode() not in answer.body
        [datagram] = json.loads(answer.body.removeprefix(b"/**/f(").removesuffix(b");\n"))
        assert datagram["data"] == "</script>\u2028"


@pytest.mark.parametrize("callback", ["", "alert(1)", "f%0d%0aX-Y:z", "%3Cscript%3E", "f%00"])
async def test_nothing_but_a_name_is_called(callback: str) -> None:
    async with gateway(web=JSONP) as browser:
        answer = await browser.get(f"tunnel?new=1&format=jsonp&callback={callback}")
        assert (answer.status, answer.error) == (400, "BadOption")
        assert callback.encode() not in answer.body or not callback
