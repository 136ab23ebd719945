"""What clients of tunnels say, and what is wrong with it."""

import json
from typing import Any

import pytest
from tests.transports.pages import encoded, gateway

from weft.broker.limits import Limits


@pytest.mark.req("TUN-19", "TUN-3")
async def test_datagrams_are_said_by_post_and_by_get() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        own = {"path": "/a", "data": "own", "tunnel": known_by}
        one = {"path": "/a", "data": "one"}
        for answer in (
            await browser.post("events", json.dumps(own).encode()),
            await browser.post("events", json.dumps([own]).encode()),
            await browser.post(f"events?tunnel={known_by}", json.dumps(one).encode()),
            await browser.post("events", json.dumps(one).encode(), Weft_Tunnel=known_by),
            await browser.post("events", json.dumps(own).encode(), Weft_Tunnel=known_by),
            await browser.get(f"events?datagram={encoded(own)}"),
            await browser.get(f"events?datagram={encoded(one)}&tunnel={known_by}"),
            await browser.get(f"events?datagram={encoded([one])}", Weft_Tunnel=known_by),
        ):
            assert (answer.status, answer.json) == (202, {"ok": 1})
            assert (await line.json())["path"] == "/a"


@pytest.mark.req("TUN-19")
@pytest.mark.parametrize("wrong", [{}, {"tunnel": ""}, {"tunnel": 7}, {"tunnel": None}])
async def test_without_the_id_of_a_tunnel_nothing_is_taken(wrong: dict[str, Any]) -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        datagram = {"path": "/a", "data": "x"} | wrong
        for answer in (
            await browser.post("events", json.dumps(datagram).encode()),
            await browser.get(f"events?datagram={encoded(datagram)}"),
        ):
            assert (answer.status, answer.error) == (400, "BadOption")
            assert (answer.json["ok"], answer.json["at"]) == (0, 0)
        await browser.say(known_by, {"ping": "end"})
        assert (await line.json())["pong"] == "end"


@pytest.mark.req("TUN-20")
async def test_nobody_says_anything_for_a_tunnel_whose_id_is_not_theirs() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        for wrong in (known_by[:-1], known_by + "A", known_by.swapcase(), "x" * 32, "__class__"):
            answer = await browser.say(wrong, {"path": "/a", "data": "forged"})
            assert (answer.status, answer.error) == (403, "NotYours")
        for headers in ({"Weft_Tunnel": "other"}, {"Weft_Tunnel": known_by + ", other"}):
            answer = await browser.post(f"events?tunnel={known_by}", b'{"ping":""}', **headers)
            assert (answer.status, answer.error) == (400, "BadOption")
        other = {"ping": "", "tunnel": "other"}
        answer = await browser.say(known_by, other)
        assert (answer.status, answer.error) == (400, "BadOption")
        await browser.say(known_by, {"ping": "end"})
        assert (await line.json())["pong"] == "end"
        status = await browser.running.status()
        assert status["services"]["default"]["status"]["refused"]["NotYours"] == 5


@pytest.mark.req("TUN-20")
async def test_whoever_shows_a_key_shows_that_of_the_tunnel() -> None:
    async with gateway() as browser:
        line = await browser.tunnel(Authorization="Bearer mine")
        known_by = (await line.json())["tunnel"]
        for key, status in (("mine", 202), ("other", 403), ("", 202)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            answer = await browser.post(f"events?tunnel={known_by}", b'{"ping":""}', **headers)
            assert answer.status == status
        query = f"tunnel?tunnel={known_by}&format=poll"
        answer = await browser.get(query, Authorization="Bearer other")
        assert (answer.status, answer.error) == (403, "NotYours")
        without, other = await browser.open()
        answer = await browser.post(
            f"events?tunnel={without}", b'{"ping":""}', Authorization="Bearer any"
        )
        assert answer.status == 403
        other.close()


async def test_what_is_wrong_with_one_is_told_and_the_others_count() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        await browser.interest(known_by, "/a")
        answer = await browser.say(
            known_by,
            {"path": "/a", "data": 1},
            {"path": "a", "data": 2, "ack": "second"},
            {"pth": "/a"},
            {"path": "/a", "data": 3},
        )
        assert (answer.status, answer.error) == (400, "BadSubject")
        assert (answer.json["at"], answer.json["ok"]) == (1, 2)
        heard = [await line.json() for _ in range(3)]
        assert [each["data"] for each in heard if "data" in each] == [1, 3]
        [error] = [each for each in heard if "error" in each]
        assert (error["ack"], error["error"]["name"]) == ("second", "BadSubject")


@pytest.mark.req("TUN-3")
async def test_answers_come_down_the_tunnel() -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        answer = await browser.say(known_by, {"path": "/_WEFT/x", "data": 1, "ack": 9})
        assert answer.json == {"ok": 1}
        refused = await line.json()
        assert (refused["ack"], refused["error"]["name"]) == (9, "Reserved")


async def test_a_request_is_answered_on_the_tunnel_that_made_it() -> None:
    async with gateway() as browser:
        asks, asking = await browser.open()
        line = await browser.tunnel()
        serves = (await line.json())["tunnel"]
        await browser.interest(serves, "/serve")
        back = await browser.tunnel(f"tunnel={asks}&format=ndjson")
        inbox = (await back.json())["welcome"]["inbox"]
        await browser.say(
            asks, {"path": "/serve", "data": "?", "request": True, "reply": f"{inbox}/1"}
        )
        request = await line.json()
        assert request["request"] is True
        await browser.say(serves, {"path": request["reply"], "data": "!"})
        answer = await back.json()
        assert (answer["path"], answer["data"]) == (f"{inbox}/1", "!")
        asking.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b'"text"',
        b"7",
        b"[1]",
        b"[[{}]]",
        b"\xff",
        b'{"ping":"a","ping":"b"}',
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b"[" + b"{}," * 2000 + b"{}]",
        b'{"path":"/a","data":' + b"9" * 100_000 + b"}",
        b"NaN",
    ],
)
async def test_what_is_no_datagrams_is_refused_as_a_whole(body: bytes) -> None:
    async with gateway() as browser:
        known_by, line = await browser.open()
        answer = await browser.post(f"events?tunnel={known_by}", body)
        assert answer.status == 400
        assert answer.error in {"BadField", "BadOption"}
        await browser.say(known_by, {"ping": "end"})
        assert (await line.json())["pong"] == "end"


async def test_a_datagram_too_deep_for_a_message_is_refused() -> None:
    async with gateway() as browser:
        known_by, _ = await browser.open()
        deep: Any = 1
        for _ in range(30):
            deep = [deep]
        answer = await browser.say(known_by, {"path": "/a", "data": deep})
        assert (answer.status, answer.error) == (400, "BadField")


async def test_a_get_has_its_datagrams_in_a_parameter() -> None:
    async with gateway() as browser:
        known_by, _ = await browser.open()
        answer = await browser.get(f"events?tunnel={known_by}")
        assert (answer.status, answer.error) == (400, "BadOption")


async def test_whoever_is_wrong_without_end_is_cut_off() -> None:
    async with gateway(limits=Limits(control_burst=50, control_per_s=1)) as browser:
        known_by, line = await browser.open()
        await browser.say(known_by, *[{"no": 1}] * 100)
        heard = [json.loads(each) for each in (await line.rest()).splitlines()]
        assert heard[-2]["error"]["name"] == "ControlFlood"
        assert heard[-1] == {"close": {"reason": "ControlFlood"}}
        answer = await browser.say(known_by, {"ping": ""})
        assert (answer.status, answer.error) == (403, "NotYours")
