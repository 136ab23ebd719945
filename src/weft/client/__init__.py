"""The Python client: one engine with an asyncio API (`asyncio`) and a blocking API (`sync`)."""
