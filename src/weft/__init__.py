"""Weft: a messaging mesh for Python shops."""

import weft.interpreted  # noqa: F401, I001  # must run before any compiled module is imported

from typing import TYPE_CHECKING

from weft import errors
from weft.client.aio import AsyncConnection, AsyncSubscription, connect
from weft.client.received import Received
from weft.client.status import Status
from weft.client.sync import Connection
from weft.client.sync_subscription import Subscription
from weft.core.fields import FieldType
from weft.core.messages import Field, Message
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.gateway.gateway import Gateway

__all__ = [
    "AsyncConnection",
    "AsyncSubscription",
    "Connection",
    "Field",
    "FieldType",
    "Gateway",
    "Message",
    "Received",
    "Status",
    "Subscription",
    "WeftError",
    "connect",
    "errors",
]


def __getattr__(name: str) -> object:
    # Most programs are clients: what only a gateway needs is imported when one is asked for.
    if name == "Gateway":
        from weft.gateway.gateway import Gateway  # noqa: PLC0415

        return Gateway
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
