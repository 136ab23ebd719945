"""Weft: a messaging mesh for Python shops."""

import weft.interpreted  # noqa: F401, I001  # must run before any compiled module is imported

import importlib
from typing import TYPE_CHECKING

from weft import errors
from weft.core.fields import FieldType
from weft.core.messages import Field, Message
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.client.aio import AsyncConnection, connect
    from weft.client.aio_channel import AsyncChannel
    from weft.client.aio_subscription import AsyncSubscription
    from weft.client.calls import Identity
    from weft.client.channel_facts import ChannelFacts, ChannelList
    from weft.client.received import AsyncReceived, BlockingReceived, Received
    from weft.client.status import Gap, Statistics, Status, What
    from weft.client.sync import Connection
    from weft.client.sync_channel import Channel
    from weft.client.sync_subscription import Subscription
    from weft.gateway.gateway import Gateway

# Which version is installed; looked up when it is first asked for.
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

# A gateway needs no client and a client no gateway: each is imported when it is first asked for.
_HOMES = {
    "AsyncChannel": "weft.client.aio_channel",
    "AsyncConnection": "weft.client.aio",
    "AsyncReceived": "weft.client.received",
    "AsyncSubscription": "weft.client.aio_subscription",
    "BlockingReceived": "weft.client.received",
    "Channel": "weft.client.sync_channel",
    "ChannelFacts": "weft.client.channel_facts",
    "ChannelList": "weft.client.channel_facts",
    "Connection": "weft.client.sync",
    "Gap": "weft.client.status",
    "Gateway": "weft.gateway.gateway",
    "Identity": "weft.client.calls",
    "Received": "weft.client.received",
    "Statistics": "weft.client.status",
    "Status": "weft.client.status",
    "Subscription": "weft.client.sync_subscription",
    "What": "weft.client.status",
    "connect": "weft.client.aio",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("weft.distribution").installed_version()
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
