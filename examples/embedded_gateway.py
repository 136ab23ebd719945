"""A gateway inside a program: `python examples/embedded_gateway.py`, without `weft serve`.

It listens on a free port, so other programs can connect; this one is its first client.
"""

import asyncio

import weft


async def main() -> None:
    """Run a gateway, publish and receive a message over it, and stop it."""
    async with weft.Gateway("127.0.0.1:0", workers="inline") as gateway:
        print(f"listening on {gateway.address}")
        async with weft.connect(str(gateway.address), name="first") as connection:
            news = connection.subscribe("news.>")
            await news.ready()
            await connection.publish("news.today", "it works")
            async for message in news:
                print(f"{message.subject}: {message.text}")
                break


if __name__ == "__main__":
    asyncio.run(main())
