"""The browser that tests drive: Debian's Chromium, by Playwright."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

CHROMIUM = shutil.which("chromium")
# Whatever a browser does by itself would only be noise, and there may be nobody to let it out.
ARGUMENTS = (
    *("--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="needs Chromium and Playwright: `make browser` installs both",
)


@asynccontextmanager
async def browsing() -> AsyncIterator["BrowserContext"]:
    """A browser without a past."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  # it is not always there

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(ARGUMENTS), headless=False
        )
        try:
            yield await browser.new_context()
        finally:
            await browser.close()


async def page_at(context: "BrowserContext", address: str) -> "Page":
    """A page of the gateway's own origin, which knows `weft.js` as `connect`."""
    page = await context.new_page()
    await page.goto(f"http://{address}/healthz")
    await page.evaluate(
        """async () => {
            window.connect = (await import("/weft.js")).connect;
            window.until = async (holds) => {
                while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
            };
        }"""
    )
    return page
