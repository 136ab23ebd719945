"""A Python service that answers web pages: `python examples/chat/quotes.py 127.0.0.1:7411`."""

import asyncio
import sys

import weft

PRICES = {"VOD": 71.3, "BP": 412.85, "AZN": 11_204.0}


async def serve_quotes(address: str, is_ready: asyncio.Event) -> None:
    """Answer requests to `quotes.get`, `/quotes/get` in a page, until cancelled."""
    async with weft.connect(address, service="chat", name="quotes") as connection:
        requests = connection.subscribe("quotes.get", group="quotes")
        await requests.ready()
        is_ready.set()
        async for request in requests:
            symbol = request.get("symbol", "")
            price = PRICES.get(symbol)
            await request.respond({"symbol": symbol, "price": price, "is_known": price is not None})


if __name__ == "__main__":
    gateway = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7411"
    asyncio.run(serve_quotes(gateway, asyncio.Event()))
