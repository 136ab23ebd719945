"""Web pages that chat, and a Python service: `python -m examples.chat`, then open two tabs.

Starts a gateway, the service, and a server for the page. The page has another origin than the
gateway, which must therefore trust it; your own server would serve a page of your own.
"""

import argparse
import asyncio
import contextlib
import functools
import http.server
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from examples.chat.quotes import serve_quotes

import weft
from weft.gateway.config.settings import Settings
from weft.transports.http.origins import WebSettings

PAGE = Path(__file__).parent


class PageServer(http.server.SimpleHTTPRequestHandler):
    """HTTP server of the page, without a log."""

    def log_message(self, *_arguments: object) -> None:
        """Log no requests."""


@contextlib.contextmanager
def page_server(port: int) -> Iterator[str]:
    """Serve the page from a thread; yield its origin."""
    handler = functools.partial(PageServer, directory=PAGE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


async def chat(listen: str, page_port: int) -> None:
    """Run the gateway, the service and the page server until interrupted."""
    with page_server(page_port) as origin:
        settings = Settings(listen=listen, web=WebSettings(origins=(origin,)))
        async with (
            weft.Gateway(settings=settings, workers="inline") as gateway,
            asyncio.TaskGroup() as group,
        ):
            is_ready = asyncio.Event()
            group.create_task(serve_quotes(gateway.address, is_ready))
            await is_ready.wait()
            print(f"open {origin}/?gateway=http://{gateway.address} in two tabs", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="chat", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--listen", default="127.0.0.1:7411", help="listen address of the gateway")
    parser.add_argument("--page-port", type=int, default=8000, help="port of the page server")
    options = parser.parse_args(arguments)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(chat(options.listen, options.page_port))


if __name__ == "__main__":
    main(sys.argv[1:])
