"""Weft: a messaging mesh for Python shops."""

import weft._pure  # noqa: F401, I001  # must run before any compiled module is imported

import importlib
from typing import TYPE_CHECKING

from weft import errors
from weft.wire.message.types import FieldType
from weft.wire.message.message import Field, Message
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.client.asyncio.channel import AsyncChannel
    from weft.client.asyncio.connection import AsyncConnection, connect
    from weft.client.asyncio.subscription import AsyncSubscription
    from weft.client.channels.channel_info import ChannelFacts, ChannelList
    from weft.client.received import AsyncReceived, BlockingReceived, Received
    from weft.client.requests.calls import Identity
    from weft.client.status import Gap, Statistics, Status, What
    from weft.client.sync.channel import Channel
    from weft.client.sync.connection import Connection
    from weft.client.sync.subscription import Subscription
    from weft.gateway.gateway import Gateway

# The installed version; read on first access.
__version__: str

__all__ = [
    "AsyncChannel",
    "AsyncConnection",
    "AsyncReceived",
    "AsyncSubscription",
    "BlockingReceived",
    "Channel",
    "ChannelFacts",
    "ChannelList",
    "Connection",
    "Field",
    "FieldType",
    "Gap",
    "Gateway",
    "Identity",
    "Message",
    "Received",
    "Statistics",
    "Status",
    "Subscription",
    "WeftError",
    "What",
    "connect",
    "errors",
]

# Imported on first access: a gateway needs no client and a client no gateway.
_HOMES = {
    "AsyncChannel": "weft.client.asyncio.channel",
    "AsyncConnection": "weft.client.asyncio.connection",
    "AsyncReceived": "weft.client.received",
    "AsyncSubscription": "weft.client.asyncio.subscription",
    "BlockingReceived": "weft.client.received",
    "Channel": "weft.client.sync.channel",
    "ChannelFacts": "weft.client.channels.channel_info",
    "ChannelList": "weft.client.channels.channel_info",
    "Connection": "weft.client.sync.connection",
    "Gap": "weft.client.status",
    "Gateway": "weft.gateway.gateway",
    "Identity": "weft.client.requests.calls",
    "Received": "weft.client.received",
    "Statistics": "weft.client.status",
    "Status": "weft.client.status",
    "Subscription": "weft.client.sync.subscription",
    "What": "weft.client.status",
    "connect": "weft.client.asyncio.connection",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("weft.distribution").installed_version()
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
