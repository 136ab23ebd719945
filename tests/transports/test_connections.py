"""One connection for all services of a gateway, as browsers and HTTP libraries use it."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess
from tests.transports.web import Browser, open_house

import weft
from weft.gateway.config.settings import Settings


async def go_around(address: str) -> list[tuple[int, bytes]]:
    """Ask two services and the gateway itself, in turn, on one connection."""
    browser = Browser(address)
    paths = ["/red/publish/a", "/blue/publish/a", "/healthz", "/red/publish/a", "/blue/publish/a"]
    answers = []
    for path in paths:
        method = "GET" if path == "/healthz" else "POST"
        answer = await browser.ask(method, path, b"x" if method == "POST" else None)
        answers.append((answer.status, answer.body))
    browser.close()
    return answers


async def test_a_connection_goes_from_service_to_service() -> None:
    async with open_house() as house:
        answers = await go_around(house.address)
        assert [status for status, _ in answers] == [200] * 5
        assert answers[2][1] == b"ok\n"
        origins = [
            json.loads(body)["id"].partition(".")[0] for _, body in answers if body[:1] == b"{"
        ]
        assert origins[0] == origins[2] != origins[1] == origins[3]


async def test_it_does_between_processes_too(tmp_path: Path) -> None:
    settings = {"services": ["default", "red", "blue"]}
    gateway = GatewayProcess(tmp_path, settings)
    with gateway:
        answers = await asyncio.to_thread(asyncio.run, go_around(f"127.0.0.1:{gateway.port}"))
        assert [status for status, _ in answers] == [200] * 5


async def test_a_service_that_cannot_be_had_is_refused_there() -> None:
    settings = Settings(listen="127.0.0.1:0", services=("red",))
    async with weft.Gateway(settings=settings, workers="inline") as gateway:
        browser = Browser(str(gateway.address))
        assert (await browser.ask("POST", "/red/publish/a", b"x")).status == 200
        answer = await browser.ask("POST", "/blue/publish/a", b"x")
        assert answer.status == 404
        browser.close()


@pytest.mark.parametrize("path", ["/red/nothing", "/red", "/"])
async def test_other_pages_are_answered_by_the_gateway(path: str) -> None:
    async with open_house() as house:
        assert (await house.browser.ask("POST", "/red/publish/a", b"x")).status == 200
        answer = await house.browser.ask("GET", path)
        assert answer.status == (200 if path == "/" else 404)
