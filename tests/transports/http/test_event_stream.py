import json

from tests.transports.web import event, line, open_house


async def test_what_is_published_comes_as_events_with_ids() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a")
        assert await line(response) == b"retry: 2000\n"
        await house.client.publish("a", "hello")
        told = await event(response)
        datagram = json.loads(told["data"])
        assert datagram == {"id": told["id"], "path": "/a", "data": "hello"}


async def test_below_a_path_is_heard_only_if_asked_for() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a?subpaths=1")
        await line(response)
        await house.client.publish("a.b", "below")
        await house.client.publish("a", "itself")
        assert [json.loads((await event(response))["data"])["path"] for _ in "12"] == ["/a/b", "/a"]


async def test_without_it_only_the_path_itself_is() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a")
        await line(response)
        await house.client.publish("a.b", "below")
        await house.client.publish("a", "itself")
        assert json.loads((await event(response))["data"])["path"] == "/a"


async def test_line_breaks_in_data_end_no_event() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a")
        await line(response)
        await house.client.publish("a", "one\n\ndata: two\r\n\r\nid: 3")
        assert (
            json.loads((await event(response))["data"])["data"] == "one\n\ndata: two\r\n\r\nid: 3"
        )


async def test_what_cannot_be_heard_is_refused_before_the_stream_begins() -> None:
    async with open_house() as house:
        answer = await house.browser.ask("GET", "/default/stream/_INBOX/1/2")
        assert (answer.status, answer.error) == (403, "NotYours")
        answer = await house.browser.ask("GET", "/default/stream/a?subpaths=maybe")
        assert (answer.status, answer.error) == (400, "BadOption")


async def test_a_listener_that_hangs_up_leaves() -> None:
    async with open_house() as house:
        events = house.client.subscribe("_WEFT.event.disconnected")
        await house.client.flush()
        response = await house.browser.listen("/default/stream/a")
        await line(response)
        house.browser.close()
        response.close()
        assert (await anext(events))["reason"] == "left"


async def test_whoever_comes_back_is_told_that_messages_may_be_missing() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a", Last_Event_ID="7.42")
        told = await event(response)
        assert told["event"] == "gap"
        assert "id" not in told
        assert json.loads(told["data"]) == {"gap": {"reason": "reconnected", "count": None}}
        await house.client.publish("a", "next")
        assert json.loads((await event(response))["data"])["data"] == "next"


async def test_a_client_without_headers_says_in_the_query_that_it_comes_back() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a?last=7.42")
        assert (await event(response))["event"] == "gap"


async def test_nothing_but_an_event_ends_with_an_empty_line() -> None:
    async with open_house() as house:
        response = await house.browser.listen("/default/stream/a")
        lines = [await line(response), await line(response)]
        await house.client.publish("a", "hello")
        while (said := await line(response)) != b"\n":
            lines.append(said)
        assert lines[:2] == [b"retry: 2000\n", b":\n"]
        assert [text.partition(b":")[0] for text in lines[2:]] == [b"id", b"data"]
