import json
from urllib.parse import quote, urlencode

import pytest
from tests.transports.bayeux.conversation import HANDSHAKE, hall, published
from tests.transports.loops import until

from weft.broker.limits import Limits
from weft.transports.bayeux.handler import CALLBACK_MAX
from weft.transports.bayeux.protocol import MESSAGES_MAX

pytestmark = pytest.mark.req("TUN-24")


async def test_messages_go_between_bayeux_and_native_clients() -> None:
    async with hall() as made:
        client = await made.polling("/sensors/*")
        native = await made.native(b"sensors.>")
        [answer] = await client.ask(client.said("/sensors/paris", data={"temp": 21}))
        assert answer["successful"]
        assert [frame.subject for frame in await native.hear()] == [b"sensors.paris"]
        await native.say(published(b"sensors.london", temp=7))
        await native.hear()
        told = await client.ask(client.connect())
        assert [each["channel"] for each in told] == [
            "/sensors/paris",
            "/sensors/london",
            "/meta/connect",
        ]
        assert [each.get("data") for each in told] == [{"temp": 21}, {"temp": 7}, None]


@pytest.mark.parametrize(
    ("pattern", "heard"),
    [("/*", ["/a"]), ("/**", ["/a", "/a/b", "/a/b/c"]), ("/a/*", ["/a/b"]), ("/a", ["/a"])],
)
async def test_wildcards_are_heard_as_bayeux_has_them(pattern: str, heard: list[str]) -> None:
    async with hall() as made:
        client = await made.polling(pattern)
        sender = await made.polling()
        for channel in ("/a", "/a/b", "/a/b/c"):
            await sender.ask(sender.said(channel, data=1))
        told = await client.ask(client.connect())
        assert [each["channel"] for each in told[:-1]] == heard


@pytest.mark.parametrize("more", ["", "/", "/handshake", "/connect", "/disconnect"])
async def test_clients_may_name_the_message_in_the_path(more: str) -> None:
    async with hall() as made:
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE, more=more)
        assert answer["successful"]


@pytest.mark.parametrize("more", ["/x", "/connect/x", "/Connect"])
async def test_nothing_else_is_behind_the_door(more: str) -> None:
    async with hall() as made:
        client = await made.http()
        client.say(HANDSHAKE, more=more)
        assert (await client.hear()).status == 404


async def test_a_body_may_come_in_chunks() -> None:
    async with hall() as made:
        client = await made.http()
        body = json.dumps([HANDSHAKE]).encode()
        half = len(body) // 2
        chunks = [body[:half], body[half:], b""]
        wire = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        client.send(wire, Transfer_Encoding="chunked")
        assert (await client.hear()).said[0]["successful"]


@pytest.mark.parametrize(
    "kind",
    [
        *("application/json", "application/json;charset=UTF-8", "text/json", "TEXT/JSON"),
        *("text/plain;charset=UTF-8", "application/x-www-form-urlencoded"),
    ],
)
async def test_a_body_is_json_by_many_names(kind: str) -> None:
    async with hall() as made:
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE, Content_Type=kind)
        assert answer["successful"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain;charset=UTF-8"])
async def test_older_clients_send_a_form(kind: str) -> None:
    async with hall() as made:
        client = await made.polling()
        parts = [
            ("message", json.dumps(client.said("/ä+b", data="x & y"))),
            ("message", json.dumps([client.said("/c", data=1)])),
        ]
        client.send(urlencode(parts).encode(), Content_Type=kind)
        answers = (await client.hear()).said
        assert [each["channel"] for each in answers] == ["/ä+b", "/c"]
        assert all(each["successful"] for each in answers)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"7", "application/json"),
        (b"\xff", "application/json"),
        (b"[" * 50_000, "application/json"),
        (b'{"channel":"/a"}', "application/xml"),
        (b"message=%ff", "application/x-www-form-urlencoded"),
        (b"message=\xff", "application/x-www-form-urlencoded"),
        (b"message=[]&x", "application/x-www-form-urlencoded"),
        (b"message=[]&message=[]" * 100, "application/x-www-form-urlencoded"),
    ],
)
async def test_what_is_no_text_of_messages_is_refused(body: bytes, kind: str) -> None:
    async with hall() as made:
        client = await made.http()
        client.send(body, Content_Type=kind)
        answer = await client.hear()
        assert answer.status == 400
        assert json.loads(answer.body)["error"]["name"] in ("BadField", "BadOption")
        assert sum(made.service.refused.values()) == 1


async def test_a_flood_of_messages_in_one_body_is_refused() -> None:
    async with hall() as made:
        client = await made.http()
        texts = json.dumps([{"channel": "/a"}] * (MESSAGES_MAX // 2 + 1))
        client.send(urlencode([("message", texts)] * 2).encode(), Content_Type="text/plain")
        assert (await client.hear()).status == 400


async def test_a_body_over_the_limit_is_refused() -> None:
    async with hall(Limits(body_bytes=1000)) as made:
        client = await made.http()
        client.send(b" " * 1001)
        assert (await client.hear()).status == 413


async def test_other_methods_are_refused() -> None:
    async with hall() as made:
        client = await made.http()
        client.send(b"[]", method="PUT")
        assert (await client.hear()).status == 405


async def test_a_key_does_not_belong_in_a_url() -> None:
    async with hall(jsonp=True) as made:
        client = await made.http()
        client.say(HANDSHAKE, more="?key=secret")
        assert (await client.hear()).status == 400
        shown = HANDSHAKE | {"ext": {"authentication": {"key": "secret"}}}
        answer = await client.script("call", shown)
        assert b"a key in a URL is kept in logs" in answer.body
        assert made.sessions == 0


async def test_callback_polling_is_off_unless_it_is_on() -> None:
    async with hall() as made:
        client = await made.http()
        answer = await client.script("call", HANDSHAKE)
        assert answer.status == 400
        assert b"web.jsonp" in answer.body
        [told] = await client.ask(HANDSHAKE)
        assert told["supportedConnectionTypes"] == ["websocket", "long-polling"]


async def test_callback_polling_answers_with_a_call() -> None:
    async with hall(jsonp=True) as made:
        client = await made.http()
        answer = await client.script("_cometd.jsonp_1", HANDSHAKE)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.body.startswith(b"/**/_cometd.jsonp_1([")
        assert answer.body.endswith(b"]);")
        [told] = json.loads(answer.body[len("/**/_cometd.jsonp_1(") : -2])
        assert told["supportedConnectionTypes"] == ["websocket", "long-polling", "callback-polling"]
        client.client_id = told["clientId"]
        answer = await client.script("x", client.connect(), client.said("/a", data="\u2028"))
        assert answer.body.count(b'"successful":true') == 2


async def test_a_script_holds_no_ends_of_lines_that_json_allows() -> None:
    async with hall(jsonp=True) as made:
        client = await made.polling("/a")
        await client.ask(client.said("/a", data="\u2028\u2029"))
        answer = await client.script("x", client.connect())
        assert rb'"data":"\u2028\u2029"' in answer.body


@pytest.mark.parametrize(
    "callback",
    [
        *("", "1a", "a b", "a(", "alert(1)//", "a;b", "a.", ".a", "a..b", "a[0]", "<script>"),
        *("a\u2028", "ä", "a\r\nX-Y: z", "x" * (CALLBACK_MAX + 1), "a-b", "a\x00"),
    ],
)
async def test_a_callback_is_a_name_and_nothing_else(callback: str) -> None:
    async with hall(jsonp=True) as made:
        client = await made.http()
        answer = await client.script(callback, HANDSHAKE)
        assert answer.status == 400
        assert made.sessions == 0
        assert callback.encode() not in answer.body or callback in ("", "a b")


async def test_a_call_needs_messages() -> None:
    async with hall(jsonp=True) as made:
        client = await made.http()
        client.send(b"", method="GET", more="?jsonp=a")
        assert (await client.hear()).status == 400
        client.send(b"", method="GET", more=f"?jsonp=a&message={quote('[')}")
        assert (await client.hear()).status == 400


async def test_a_page_from_elsewhere_is_turned_away() -> None:
    async with hall(origins=("https://pages.example",)) as made:
        client = await made.http()
        client.say(HANDSHAKE, Origin="https://evil.example")
        assert (await client.hear()).status == 403
        client.say(HANDSHAKE, Origin="https://pages.example")
        answer = await client.hear()
        assert answer.said[0]["successful"]
        assert answer.headers["access-control-allow-origin"] == "https://pages.example"
        # CometD and Faye always send what a browser has for the site, though there is nothing.
        assert answer.headers["access-control-allow-credentials"] == "true"


async def test_whoever_hangs_up_is_not_sent_what_it_waited_for() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        waiting = await made.hold(client)
        waiting.writer.close()
        await until(lambda: not made.session(client).is_waiting)
        await client.ask(client.said("/a", data=1))
        told = await client.ask(client.connect())
        assert [each["channel"] for each in told] == ["/a", "/meta/connect"]
