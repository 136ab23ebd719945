import asyncio
import json

import pytest
from tests.transports.web import Browser, open_house

import weft


async def test_what_is_posted_is_published_and_answered_with_its_identity() -> None:
    async with open_house() as house:
        subscription = house.client.subscribe("a.b")
        await house.client.flush()
        answer = await house.browser.ask("POST", "/default/publish/a/b", b'{"x": 1}')
        message = await anext(subscription)
        assert message.to_dict() == {"x": 1}
        assert answer.status == 200
        assert json.loads(answer.body) == {"id": f"{message.origin}.{message.sequence}"}


async def test_a_connection_is_one_peer_for_all_its_requests() -> None:
    async with open_house() as house:
        publishers = set()
        subscription = house.client.subscribe("a")
        await house.client.flush()
        for _ in range(3):
            await house.browser.ask("POST", "/default/publish/a", b"x")
            publishers.add((await anext(subscription)).publisher)
        assert len(publishers) == 1


async def test_a_request_is_answered_with_what_its_service_answers() -> None:
    async with open_house() as house:
        subscription = house.client.subscribe("quotes.get")
        await house.client.flush()
        asked = asyncio.create_task(
            house.browser.ask("POST", "/default/request/quotes/get?timeout=20", b'{"of": "VOD"}')
        )
        request = await anext(subscription)
        assert request["of"] == "VOD"
        await request.respond(weft.Message(price=3))
        answer = await asked
        assert (answer.status, answer.body) == (200, b'{"price":3}')
        assert answer.headers["content-type"] == "application/json"


async def test_a_request_that_nobody_serves_is_not_found() -> None:
    async with open_house() as house:
        answer = await house.browser.ask("GET", "/default/request/nobody")
        assert (answer.status, answer.error) == (404, "NotKnown")


async def test_a_request_that_nobody_answers_in_time_is_given_up() -> None:
    async with open_house() as house:
        house.client.subscribe("slow")
        await house.client.flush()
        answer = await house.browser.ask("POST", "/default/request/slow?timeout=0.01")
        assert (answer.status, answer.error) == (504, "TimedOut")


async def test_a_late_answer_is_not_that_to_the_next_request() -> None:
    async with open_house() as house:
        subscription = house.client.subscribe("slow")
        await house.client.flush()
        await house.browser.ask("POST", "/default/request/slow?timeout=0.01", b"first")
        asked = asyncio.create_task(
            house.browser.ask("POST", "/default/request/slow?timeout=20", b"second")
        )
        first, second = await anext(subscription), await anext(subscription)
        await first.respond("late")
        await second.respond("in time")
        assert (await asked).body == b"in time"


async def test_a_responder_that_leaves_is_told_at_once() -> None:
    async with open_house() as house, weft.connect(house.address) as other:
        subscription = other.subscribe("work")
        await other.flush()
        asked = asyncio.create_task(house.browser.ask("POST", "/default/request/work?timeout=60"))
        await anext(subscription)
        await other.close()
        answer = await asked
        assert (answer.status, answer.error) == (502, "ResponderGone")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("publish/a..b", "BadSubject"),
        ("publish/", "BadSubject"),
        ("publish/a/*", "BadSubject"),
        ("publish/_WEFT/x", "Reserved"),
        ("request/a?timeout=0", "BadOption"),
        ("request/a?timeout=nan", "BadOption"),
        ("request/a?timeout=soon", "BadOption"),
    ],
)
async def test_what_cannot_be_is_refused_by_name_and_the_connection_goes_on(
    path: str, error: str
) -> None:
    async with open_house() as house:
        answer = await house.browser.ask("POST", f"/default/{path}", b"x")
        assert (answer.status, answer.error) == (400, error)
        assert (await house.browser.ask("POST", "/default/publish/a", b"x")).status == 200


async def test_other_methods_are_named() -> None:
    async with open_house() as house:
        answer = await house.browser.ask("DELETE", "/default/publish/a")
        assert (answer.status, answer.headers["allow"]) == (405, "POST, PUT")


async def test_a_peer_leaves_with_its_connection() -> None:
    async with open_house() as house:
        events = house.client.subscribe("_WEFT.event.disconnected")
        await house.client.flush()
        browser = Browser(house.address)
        await browser.ask("POST", "/default/publish/a", b"x")
        browser.close()
        assert (await anext(events))["reason"] == "left"
