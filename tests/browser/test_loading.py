"""What a page loads to have weft.js: how many requests, connections and bytes."""

from typing import Any

import msgspec
from tests.browser.chromium import browsing, needs_chromium

import weft
from weft.gateway.http.static_files import static_files, versioned_path

pytestmark = needs_chromium

LOAD = """async (path) => {
    performance.clearResourceTimings();
    const { connect } = await import(path);
    return [typeof connect === "function", performance.getEntriesByType("resource").map((each) => ({
        path: new URL(each.name).pathname,
        bytes: each.transferSize,
    })).filter((each) => each.path !== "/favicon.ico")];
}"""


class Loaded(msgspec.Struct):
    """One file, as a browser says it loaded it."""

    path: str
    bytes: int


async def load(page: Any, path: str) -> list[Loaded]:
    has_connect, loaded = await page.evaluate(LOAD, path)
    assert has_connect
    return msgspec.convert(loaded, list[Loaded])


async def test_a_page_loads_the_client_by_one_request_and_keeps_its_connection() -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway, browsing() as here:
        page = await here.new_page()
        await page.goto(f"http://{gateway.address}/healthz")
        found = await load(page, "/weft.js")
        gzipped = len(static_files()["/weft.js"].gzipped)
        assert [each.path for each in found] == ["/weft.js"]
        assert gzipped < found[0].bytes < gzipped + 1024
        # One for the page, and perhaps one for the picture that Chromium looks for meanwhile.
        accepted = (await gateway.status())["front"]["accepted"]
        assert accepted <= 2
        assert [each.path for each in await load(page, versioned_path())] == [versioned_path()]
        assert (await gateway.status())["front"]["accepted"] == accepted


async def test_a_page_that_was_there_before_loads_no_file_twice() -> None:
    async with weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway, browsing() as here:
        loaded = []
        for _ in range(2):
            page = await here.new_page()
            await page.goto(f"http://{gateway.address}/healthz")
            loaded += [await load(page, path) for path in ("/weft.js", versioned_path())]
            await page.close()
        (asked,), (kept,) = loaded[2:]
        # It asks if /weft.js is still the same, but not for what its path names.
        assert 0 < asked.bytes < 1024
        assert kept.bytes == 0


async def test_the_path_of_another_version_loads_this_one_in_pages_of_any_origin() -> None:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as other,
        browsing() as here,
    ):
        page = await here.new_page()
        await page.goto(f"http://{gateway.address}/healthz")
        for path in ("/weft.0123456789abcdef.js", versioned_path()):
            loaded = await load(page, f"http://{other.address}{path}")
            assert loaded, path
