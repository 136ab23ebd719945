"""The Python client: one engine, an asyncio face (`aio`) and a blocking one (`sync`)."""
