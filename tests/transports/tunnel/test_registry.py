"""Tunnels as browsers use them: opened, told, lost, come back to, ended."""

import asyncio
import base64
import json
from typing import Any

import pytest
from tests.transports.pages import Browser, Line, gateway, parts_of

from weft.gateway.config.settings import Settings
from weft.transports.http.origins import WebSettings
from weft.transports.tunnel.formats import FormatSettings

FORMATS = ("ndjson", "sse", "script", "multipart")
SHORT = WebSettings(cull_s=0.5)
NASTY = "a\n\nb\r\n--weft-x--</script><!--\u2028\u2029'\"\\&"


def script_said(body: bytes) -> list[Any]:
    lines = body.decode().split("<script>parent.weft(")[1:]
    return [json.loads(f"[{line.partition(')</script>')[0]}]") for line in lines]


async def opened(browser: Browser, form: str) -> tuple[Line, dict[str, Any]]:
    """A tunnel in a format that is built in, and what its header says."""
    line = await browser.tunnel(f"new=1&format={form}")
    assert line.status == 200
    header: dict[str, Any]
    if form == "sse":
        event = await line.event()
        assert event["event"] == "open"
        assert event["retry"]
        header = json.loads(event["data"])
    elif form == "script":
        [[kind, header]] = script_said(await line.more())
        assert kind == "open"
    elif form == "multipart":
        [header] = [json.loads(part) for part in parts_of(await line.more(), boundary(line))]
    else:
        header = await line.json()
    return line, header


async def told(line: Line, form: str) -> dict[str, Any]:
    """The next datagram, which comes alone."""
    datagram: dict[str, Any]
    if form == "sse":
        event = await line.event()
        datagram = json.loads(event["data"])
        assert event["id"] == datagram["id"]
    elif form == "script":
        [[kind, datagram]] = script_said(await line.more())
        assert kind == "datagram"
    elif form == "multipart":
        [datagram] = [json.loads(part) for part in parts_of(await line.more(), boundary(line))]
    else:
        datagram = await line.json()
    return datagram


def boundary(line: Line) -> str:
    return line.headers["content-type"]


async def gone(browser: Browser, known_by: str) -> None:
    """Wait until a tunnel is no more."""
    while (await browser.say(known_by, {"ping": ""})).status == 202:
        await asyncio.sleep(0.02)


@pytest.mark.req("TUN-3", "TUN-4", "TUN-7", "TUN-11", "TUN-12", "TUN-13", "TUN-15")
@pytest.mark.parametrize("form", FORMATS)
async def test_everything_is_told_on_the_tunnel_in_the_format_that_was_chosen(form: str) -> None:
    async with gateway() as browser:
        line, header = await opened(browser, form)
        assert line.headers["x-accel-buffering"] == "no"
        assert line.headers["cache-control"] == "no-store"
        answer = await browser.say(header["tunnel"], {"interest": "/a", "ack": "x"})
        assert (answer.status, answer.json) == (202, {"ok": 1})
        ok = await told(line, form)
        assert ok == {"id": "t.1", "path": header["welcome"]["inbox"], "ok": "x"}
        for data in ("text", NASTY, {"a": 1, "b": [NASTY, None, True]}, 7, [1, 2], "{}"):
            await browser.publish("/a", data)
            message = await told(line, form)
            assert (message["path"], message["data"]) == ("/a", data)


@pytest.mark.req("TUN-7", "TUN-2")
async def test_every_tunnel_has_an_id_of_its_own_that_nobody_can_guess() -> None:
    async with gateway() as browser:
        known = {(await browser.open())[0] for _ in range(20)}
        assert len(known) == 20
        assert all(len(base64.urlsafe_b64decode(each)) >= 16 for each in known)


@pytest.mark.req("TUN-4")
async def test_an_unknown_format_is_refused_with_the_names_that_there_are() -> None:
    async with gateway() as browser:
        for query in ("new=1&format=xml", "new=1", "new=1&format=%25(data)s", "new=1&format=jsonp"):
            answer = await browser.get(f"tunnel?{query}")
            assert (answer.status, answer.error) == (400, "BadOption")
            names = "multipart, ndjson, poll, script, sse"
            assert answer.json["error"]["text"].endswith(f": the formats are {names}")


@pytest.mark.req("TUN-9")
@pytest.mark.parametrize("query", ["", "new=1&tunnel=x", "new=0", "new=", "tunnel=", "new=yes"])
async def test_a_request_says_if_it_wants_a_new_tunnel_or_which(query: str) -> None:
    async with gateway() as browser:
        answer = await browser.get(f"tunnel?format=ndjson&{query}")
        assert (answer.status, answer.error) == (400, "BadOption")
        assert "new" in answer.json["error"]["text"]


@pytest.mark.req("TUN-9")
async def test_two_requests_for_a_new_tunnel_get_two() -> None:
    async with gateway() as browser:
        assert (await browser.open())[0] != (await browser.open())[0]


async def test_a_tunnel_is_opened_by_a_get() -> None:
    async with gateway() as browser:
        answer = await browser.post("tunnel?new=1&format=ndjson", b"")
        assert (answer.status, answer.headers["allow"]) == (405, "GET")


@pytest.mark.req("TUN-10")
async def test_whoever_is_not_let_in_gets_no_id_and_no_header_of_a_tunnel() -> None:
    async with gateway() as browser:
        # What the greeting refuses stands for a key that is refused: it is the same way.
        answer = await browser.get("tunnel?new=1&format=ndjson&name=_WEFT")
        assert (answer.status, answer.error) == (400, "BadGreeting")
        assert b"tunnel" not in answer.body
        assert answer.headers["content-type"] == "application/json"
        status = await browser.running.status()
        assert status["services"]["default"]["status"]["connections"] == 0


@pytest.mark.req("TUN-5", "TUN-18")
async def test_an_operator_s_own_format_is_emitted_each_part_at_its_moment() -> None:
    own = FormatSettings(
        header="HEAD %(tunnel)s %(path)s\n",
        envelope="DATAGRAM %(id)s %(path)s %(data)s\n",
        keepalive="KEEP 100%% %(tunnel)s\n",
        footer="FOOT %(tunnel)s %(data)s\n",
        content_type="text/x-own; tunnel=%(tunnel)s",
        encoding="base64",
        keepalive_s=1.0,
    )
    async with gateway(formats={"own": own}) as browser:
        line = await browser.tunnel("new=1&format=own")
        head, known_by, path = (await line.until(b"\n")).decode().split(" ")
        assert head == "HEAD"
        assert line.headers["content-type"] == f"text/x-own; tunnel={known_by}"
        await browser.interest(known_by, "/a/b")
        await browser.publish("/a/b", "x")
        _, number, where, data = (await line.until(b"\n")).decode().split(" ")
        datagram = json.loads(base64.b64decode(data))
        assert datagram == {"id": number, "path": "/a/b", "data": "x"}
        assert base64.b64decode(where) == b"/a/b"
        for _ in range(2):
            assert await line.until(b"\n") == f"KEEP 100% {known_by}".encode()
        await browser.tunnel(f"tunnel={known_by}&format=ndjson")
        foot, end = (await line.until(b"\n")).rsplit(b" ", 1)
        assert foot == f"FOOT {known_by}".encode()
        assert json.loads(base64.b64decode(end)) == {"close": {"reason": "replaced"}}
        assert await line.rest() == b""
        assert path.startswith("/_INBOX/")


@pytest.mark.req("TUN-18")
async def test_the_interval_of_a_keepalive_belongs_to_its_format() -> None:
    quick = FormatSettings(keepalive="quick\n", keepalive_s=1.0)
    slow = FormatSettings(keepalive="slow\n", keepalive_s=3600.0)
    async with gateway(formats={"quick": quick, "slow": slow}) as browser:
        lines = {name: await browser.tunnel(f"new=1&format={name}") for name in ("quick", "slow")}
        for line in lines.values():
            await line.until(b"\n")
        assert await lines["quick"].until(b"\n") == b"quick"
        assert await lines["quick"].until(b"\n") == b"quick"
        await browser.running.drain()
        assert b"slow" not in await lines["slow"].rest()


@pytest.mark.req("TUN-8", "TUN-15")
async def test_what_is_published_to_its_own_path_reaches_that_tunnel_only() -> None:
    async with gateway() as browser:
        line, header = await opened(browser, "ndjson")
        other, _ = await opened(browser, "ndjson")
        assert header["path"] == header["welcome"]["inbox"]
        await browser.publish(header["path"], "mine")
        await browser.publish(header["path"] + "/below", "mine too")
        mine, too = await line.json(), await line.json()
        assert (mine["path"], mine["data"]) == (header["path"], "mine")
        assert (too["path"], too["data"]) == (header["path"] + "/below", "mine too")
        await browser.running.drain()
        assert b"mine" not in await other.rest()


@pytest.mark.req("TUN-16")
async def test_interest_is_in_a_path_and_in_those_below_it_if_that_is_asked_for() -> None:
    async with gateway() as browser:
        (alone, first), (with_all, second) = await browser.open(), await browser.open()
        await browser.interest(alone, "/a")
        await browser.interest(with_all, "/a", subpaths=True)
        for path in ("/a/b", "/a", "/a/b/c", "/b"):
            await browser.publish(path, path)
        assert (await first.json())["path"] == "/a"
        assert [(await second.json())["path"] for _ in range(3)] == ["/a/b", "/a", "/a/b/c"]
        await browser.say(alone, {"ping": "end"})
        assert (await first.json())["pong"] == "end"


@pytest.mark.req("TUN-17")
async def test_interest_before_the_tunnel_is_open_is_refused() -> None:
    async with gateway() as browser:
        answer = await browser.say("not-open-yet", {"interest": "/a"})
        assert (answer.status, answer.error) == (403, "NotYours")
        line = await browser.line()
        # All but the last byte of what opens it.
        line.writer.write(
            b"GET /default/tunnel?new=1&format=ndjson HTTP/1.1\r\nHost: localhost\r\n\r"
        )
        assert (await browser.say("not-open-yet", {"interest": "/a"})).status == 403
        line.writer.write(b"\n")
        await line.answered()
        known_by = (await line.json())["tunnel"]
        assert (await browser.say(known_by, {"interest": "/a"})).status == 202


@pytest.mark.req("TUN-14", "TUN-2")
async def test_every_datagram_has_an_id_and_no_two_have_the_same() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        said: list[dict[str, Any]] = [
            {"path": "/a", "data": 1, "ack": 1},
            {"ping": "x"},
            {"interest": "/b", "ack": 2},
            {"path": "/a", "data": 2},
            {"path": "/nobody", "request": True, "reply": "/no", "ack": 3},
        ]
        assert (await browser.say(known_by, *said)).status == 202
        heard = [await line.json() for _ in range(6)]
        assert len({each["id"] for each in heard}) == 6
        assert all("path" in each for each in heard)
        published = {each["published"] for each in heard if "published" in each}
        assert published <= {each["id"] for each in heard if "data" in each}
        assert len(published) == 1


@pytest.mark.req("TUN-14", "TUN-21")
@pytest.mark.parametrize("by_header", [True, False])
async def test_after_a_loss_what_was_not_received_is_told_again_with_its_id(
    by_header: bool,
) -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        await browser.publish("/a", 1, 2, 3)
        first, second, third = [await line.json() for _ in range(3)]
        line.close()
        await browser.publish("/a", 4)
        if by_header:
            again = await browser.tunnel(
                f"tunnel={known_by}&format=ndjson", Last_Event_ID=first["id"]
            )
            assert (await again.json())["tunnel"] == known_by
        else:
            again = await browser.back(known_by, first["id"])
        assert [await again.json(), await again.json()] == [second, third]
        fourth = await again.json()
        assert fourth["data"] == 4
        await browser.publish("/a", 5)
        assert (await again.json())["data"] == 5


@pytest.mark.req("TUN-21")
async def test_whoever_does_not_say_what_was_received_is_told_all_of_it_again() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        await browser.publish("/a", 1, 2)
        heard = [await line.json(), await line.json()]
        line.close()
        again = await browser.back(known_by)
        assert [await again.json(), await again.json()] == heard


@pytest.mark.req("TUN-21")
async def test_one_may_come_back_in_another_format() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        await browser.publish("/a", NASTY)
        first = await line.json()
        line.close()
        again = await browser.tunnel(f"tunnel={known_by}&format=sse")
        assert json.loads((await again.event())["data"])["tunnel"] == known_by
        assert json.loads((await again.event())["data"]) == first
        await browser.publish("/a", "x")
        assert (await told(again, "sse"))["data"] == "x"


@pytest.mark.req("TUN-21")
async def test_a_false_last_leads_to_a_reset_and_to_nothing_new() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        await browser.publish("/a", 1)
        first = await line.json()
        line.close()
        for last in ("7.42", "t.99", "x", "%00", "1" * 500, "../..", "%0d%0aX:y"):
            again = await browser.back(known_by, last)
            reset = await again.json()
            assert reset["gap"] == {"reason": "reset", "count": 0}
            assert await again.json() == first
            again.close()


@pytest.mark.req("TUN-21")
async def test_beyond_the_ring_the_newest_are_lost_and_that_is_told() -> None:
    async with gateway(web=WebSettings(ring_bytes=2000)) as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        line.close()
        await asyncio.sleep(0)
        while (await browser.running.status())["services"]["default"]["status"]["connections"] > 1:
            await asyncio.sleep(0.01)
        await browser.publish("/a", *range(100))
        again = await browser.back(known_by)
        heard = []
        while "gap" not in (each := await again.json()):
            heard.append(each["data"])
        assert heard == list(range(len(heard)))
        assert each["gap"] == {"reason": "slow", "count": 100 - len(heard)}
        await browser.publish("/a", "on")
        assert (await again.json())["data"] == "on"


@pytest.mark.req("TUN-21")
async def test_what_fell_out_of_the_ring_is_told_as_a_reset_with_its_count() -> None:
    async with gateway(web=WebSettings(ring_bytes=2000)) as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        for number in range(50):
            await browser.publish("/a", number)
        heard = [await line.json() for _ in range(50)]
        line.close()
        again = await browser.back(known_by, heard[4]["id"])
        gap = (await again.json())["gap"]
        first = await again.json()
        assert gap == {"reason": "reset", "count": first["data"] - 5}
        assert first == heard[first["data"]]


@pytest.mark.req("TUN-22")
@pytest.mark.parametrize("form", FORMATS)
async def test_the_newest_attachment_wins_and_the_other_ends_with_its_footer(form: str) -> None:
    async with gateway() as browser:
        line, header = await opened(browser, form)
        await browser.interest(header["tunnel"], "/a")
        newest = await browser.back(header["tunnel"])
        end = await line.rest()
        footers = {
            "ndjson": b'{"close":{"reason":"replaced"}}\n',
            "sse": b'event: close\ndata: {"close":{"reason":"replaced"}}\n\n',
            "script": b'<script>parent.weft("close",{"close":{"reason":"replaced"}})</script>\n',
            "multipart": b'{"close":{"reason":"replaced"}}\r\n--weft-%b--\r\n'
            % header["tunnel"].encode(),
        }
        assert end.endswith(footers[form])
        await browser.publish("/a", 1)
        assert (await newest.json())["data"] == 1


@pytest.mark.req("TUN-22")
async def test_many_who_come_back_at_once_leave_one_attachment() -> None:
    async with gateway() as browser:
        known_by, _ = await browser.open()
        await browser.interest(known_by, "/a")
        lines = await asyncio.gather(*[browser.back(known_by) for _ in range(30)])
        await browser.publish("/a", "x")
        heard = await asyncio.gather(*[line.until(b"\n") for line in lines])
        assert sum(b'"data":"x"' in each for each in heard) == 1
        assert sum(b"replaced" in each for each in heard) == 29


@pytest.mark.req("TUN-23")
async def test_a_tunnel_that_nobody_comes_back_to_is_culled_and_its_id_leads_to_a_new_one() -> None:
    async with gateway(web=SHORT) as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        line.close()
        await gone(browser, known_by)
        status = (await browser.running.status())["services"]["default"]["status"]
        assert status["ended"]["Silent"] == 1
        assert status["subscriptions"] == 0
        again = await browser.tunnel(f"tunnel={known_by}&format=ndjson")
        header = await again.json()
        assert header["renewed"] is True
        assert header["tunnel"] != known_by
        assert (await browser.say(known_by, {"ping": ""})).status == 403
        # Whoever comes back to it later is not told so again.
        line = await browser.tunnel(f"tunnel={header['tunnel']}&format=ndjson")
        assert "renewed" not in await line.json()


async def test_a_tunnel_that_nobody_is_attached_to_is_asked_nothing_until_somebody_is() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/q")
        line.close()
        while (refused := await browser.post("request/q?timeout=0.05", b"1")).status == 504:
            pass
        assert (refused.status, refused.error) == (404, "NotKnown")
        await browser.back(known_by)
        assert (await browser.post("request/q?timeout=0.05", b"1")).status == 504


async def test_of_two_responders_the_one_that_is_attached_is_asked() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/q")
        line.close()
        while (await browser.post("request/q?timeout=0.05", b"1")).status == 504:
            pass
        other, answering = await browser.open()
        await browser.interest(other, "/q")
        for number in range(4):
            asking = asyncio.create_task(browser.post("request/q", b"%d" % number))
            asked = await answering.json()
            await browser.say(other, {"path": asked["reply"], "data": asked["data"]})
            assert (await asking).json == number


@pytest.mark.req("TUN-23", "TUN-10")
async def test_a_renewed_tunnel_is_greeted_like_a_new_one() -> None:
    async with gateway() as browser:
        answer = await browser.get("tunnel?tunnel=gone&format=ndjson&name=_WEFT")
        assert (answer.status, answer.error) == (400, "BadGreeting")


@pytest.mark.req("TUN-23")
async def test_an_attached_tunnel_is_not_culled_however_silent_it_is() -> None:
    own = FormatSettings(keepalive="k\n", keepalive_s=1.0)
    settings: dict[str, Any] = {"web": SHORT, "formats": {"own": own}}
    async with gateway(**settings) as browser:
        line = await browser.tunnel("new=1&format=own")
        known_by = json.loads(await line.until(b"\n"))["tunnel"]
        for _ in range(3):
            assert await line.until(b"\n") == b"k"
        assert (await browser.say(known_by, {"ping": "x"})).status == 202


async def test_a_tunnel_answers_the_pings_of_the_gateway_for_its_client() -> None:
    own = FormatSettings(keepalive="k\n", keepalive_s=1.0)
    limits = Settings().limits
    brief = type(limits)(ping_s=0.4)
    async with gateway(limits=brief, formats={"own": own}) as browser:
        line = await browser.tunnel("new=1&format=own")
        await line.until(b"\n")
        for _ in range(4):
            assert await line.until(b"\n") == b"k"


async def test_a_drain_says_goodbye_and_ends_with_the_footer() -> None:
    async with gateway() as browser:
        line, _ = await opened(browser, "ndjson")
        poller = await browser.tunnel("new=1&format=poll")
        [header] = json.loads(await poller.rest())
        await poller.ask(f"/default/tunnel?tunnel={header['tunnel']}&format=ndjson")
        await poller.json()
        await browser.running.drain()
        for each in (line, poller):
            assert (await each.json())["goodbye"]["reason"] == "draining"
            assert await each.json() == {"close": {"reason": "Draining"}}
            assert await each.rest() == b""


async def test_a_gateway_that_closes_at_once_still_sends_the_footer() -> None:
    async with gateway() as browser:
        line, _ = await opened(browser, "ndjson")
        await browser.running.close()
        assert (await line.json()) == {"close": {"reason": "Draining"}}


async def test_padding_comes_first_for_those_who_ask_for_it() -> None:
    async with gateway() as browser:
        line = await browser.tunnel("new=1&format=sse&padding=1")
        body = await line.more()
        assert body.startswith(b": ")
        assert body.index(b"retry:") > 2048
        line = await browser.tunnel("new=1&format=script&padding=1")
        assert (await line.more()).startswith(b"<!--" + b" " * 2048)
        line = await browser.tunnel("new=1&format=ndjson&padding=1")
        assert (await line.more()).startswith(b"{")


async def test_there_are_so_many_tunnels_and_no_more() -> None:
    async with gateway(web=WebSettings(tunnels=3, cull_s=0.5)) as browser:
        held = [await browser.open() for _ in range(3)]
        answer = await browser.get("tunnel?new=1&format=ndjson")
        assert (answer.status, answer.error) == (429, "TooMany")
        assert (await browser.back(held[0][0])).status == 200
        known_by, line = held[1]
        line.close()
        await gone(browser, known_by)
        assert (await browser.open())[0]


async def test_a_tunnel_counts_as_one_connection() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.back(known_by)
        await line.rest()
        line.close()

        async def connections() -> int:
            status = await browser.running.status()
            return int(status["services"]["default"]["status"]["connections"])

        while await connections() != 1:
            await asyncio.sleep(0.01)


async def test_http_1_0_is_told_without_chunks_and_closed_at_the_end() -> None:
    async with gateway() as browser:
        line = await browser.line()
        line.send("/default/tunnel?new=1&format=ndjson", version="1.0")
        await line.answered()
        assert "transfer-encoding" not in line.headers
        known_by = (await line.json())["tunnel"]
        await browser.say(known_by, {"ping": "x"})
        assert (await line.json())["pong"] == "x"
        await browser.back(known_by)
        assert json.loads(await line.rest()) == {"close": {"reason": "replaced"}}


async def test_after_a_stream_its_connection_serves_the_next_request() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.back(known_by)
        await line.rest()
        await line.ask("/default/events?tunnel=x&datagram=%7B%7D")
        assert line.status == 403
        await line.rest()
        line.send("/default/events?tunnel=x&datagram=%7B%7D", None, {"Connection": "close"})
        await line.answered()
        assert line.headers["connection"] == "close"


async def test_other_settings_count_for_whoever_comes_next() -> None:
    async with gateway() as browser:
        own = FormatSettings(header="own\n")
        settings = Settings(listen="127.0.0.1:0", formats={"own": own})
        assert (await browser.tunnel("new=1&format=own")).status == 400
        browser.running.change(settings)
        line = await browser.tunnel("new=1&format=own")
        assert await line.until(b"\n") == b"own"
