"""The example as people see it: two tabs that chat, and a service in Python that they ask."""

import asyncio

from examples.chat.__main__ import page_server
from examples.chat.quotes import serve_quotes
from tests.browser.chromium import browsing, needs_chromium

import weft
from weft.gateway.config.settings import Settings
from weft.transports.http.origins import WebSettings

pytestmark = needs_chromium


async def test_two_tabs_chat_and_ask_a_service() -> None:
    with page_server(0) as origin:
        settings = Settings(web=WebSettings(origins=(origin,)))
        async with (
            weft.Gateway(listen="127.0.0.1:0", settings=settings, workers="inline") as gateway,
            browsing() as context,
        ):
            is_ready = asyncio.Event()
            quotes = asyncio.ensure_future(serve_quotes(gateway.address, is_ready))
            await is_ready.wait()
            tabs = [await context.new_page() for _ in range(2)]
            for tab in tabs:
                await tab.goto(f"{origin}/?gateway=http://{gateway.address}")
                await tab.get_by_text("connected · websocket").wait_for()
            await tabs[0].fill("#text", "hello <b>there</b>")
            await tabs[0].click("#say button")
            for tab in tabs:
                await tab.get_by_text("hello <b>there</b>").wait_for()
            await tabs[1].fill("#symbol", "BP")
            await tabs[1].click("#ask button")
            await tabs[1].get_by_text("BP: 412.85").wait_for()
            quotes.cancel()
            await asyncio.wait([quotes])
