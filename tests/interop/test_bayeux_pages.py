"""CometD and Faye in a page of another origin, as they are published, in Chromium."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import browsing, needs_chromium
from tests.interop.stock import PLACE, is_installed

import weft
from weft.gateway.config.settings import Settings
from weft.transports.http.origins import WebSettings

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not is_installed(), reason="make interop installs the clients"),
]

PAGE = """<!doctype html><title>Elsewhere</title>
<script src="/node_modules/faye/client/faye-browser-min.js"></script>
<script type="module">
import { CometD } from "/node_modules/cometd/cometd.js";
window.CometD = CometD;
</script>
"""
FAYE = """async ([url, disabled]) => {
    const client = new Faye.Client(url, { timeout: 60, retry: 0.3 });
    for (const each of disabled) client.disable(each);
    let way;
    client.addExtension({ outgoing(message, go) {
        if (message.channel === "/meta/connect") way = message.connectionType;
        go(message);
    } });
    const heard = new Promise((resolve) => (window.heard = resolve));
    await client.subscribe("/faye/a", (data) => window.heard(data));
    await client.publish("/faye/a", { text: "größe" });
    const data = await heard;
    await client.disconnect();
    return [way, data];
}"""
COMETD = """async ([url, disabled]) => {
    const client = new CometD();
    for (const each of disabled) client.unregisterTransport(each);
    client.configure({ url, logLevel: "warn", backoffIncrement: 100, maxBackoff: 300 });
    await new Promise((done) => client.handshake({}, (reply) => reply.successful && done()));
    const heard = new Promise((resolve) => (window.heard = resolve));
    await new Promise((done) => client.subscribe("/cometd/a", (m) => window.heard(m.data), done));
    client.publish("/cometd/a", { text: "größe" });
    const data = await heard;
    const way = client.getTransport().type;
    await new Promise((done) => client.disconnect(done));
    return [way, data];
}"""
WAYS = {
    "faye": ("websocket", "cross-origin-long-polling", "callback-polling"),
    "cometd": ("websocket", "long-polling", "callback-polling"),
}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The origin of a site with a page that has both libraries."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "page.html").write_text(PAGE)
    (folder / "node_modules").symlink_to(Path(PLACE) / "node_modules")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        # For browsers it is another site than the gateway, which goes by its address.
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("library", list(WAYS))
@pytest.mark.parametrize("rank", range(3), ids=["first", "second", "third"])
async def test_a_page_of_a_trusted_origin_connects_by_every_transport(
    library: str, rank: int, elsewhere: str
) -> None:
    ways = WAYS[library]
    web = WebSettings(origins=(elsewhere,), jsonp=True)
    settings = Settings(listen="127.0.0.1:0", web=web)
    async with weft.Gateway(settings=settings, workers="inline") as gateway, browsing() as context:
        page: Any = await context.new_page()
        await page.goto(f"{elsewhere}/page.html")
        await page.wait_for_function("Boolean(window.Faye && window.CometD)")
        url = f"http://{gateway.address}/default/bayeux"
        program = FAYE if library == "faye" else COMETD
        found = await page.evaluate(program, [url, list(ways[:rank])])
        assert found == [ways[rank], {"text": "größe"}]
