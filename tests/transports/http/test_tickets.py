import json

from tests.transports.web import open_house


async def test_a_gateway_without_keys_gives_tickets_to_anyone() -> None:
    async with open_house() as house:
        answer = await house.browser.ask("POST", "/default/ticket")
        ticket = json.loads(answer.body)["ticket"]
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        asked = await house.browser.ask("POST", f"/default/publish/a?ticket={ticket}", b"x")
        assert asked.status == 200


async def test_no_two_tickets_are_alike() -> None:
    async with open_house() as house:
        answers = [await house.browser.ask("POST", "/default/ticket") for _ in range(10)]
        assert len({json.loads(answer.body)["ticket"] for answer in answers}) == 10


async def test_a_ticket_is_not_got_by_a_link() -> None:
    async with open_house() as house:
        answer = await house.browser.ask("GET", "/default/ticket")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
