"""A gateway as a program holds it: `async with Gateway() as gateway: ...`."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from weft.errors import BadOption, NotOpen
from weft.gateway.config.settings import Settings
from weft.gateway.runtime import Node


class Gateway:
    """One running node: a front that accepts, and the services behind it.

    Args:
        listen: where to listen, instead of what the settings say; port 0 takes a free one.
        settings: everything else; the defaults if left out.
        workers: "process" for a process for each service, "inline" for all on the running loop.

    Raises:
        BadOption: a setting that cannot be.
    """

    def __init__(
        self,
        listen: str | None = None,
        *,
        settings: Settings | None = None,
        workers: Literal["process", "inline"] = "process",
    ) -> None:
        settings = Settings() if settings is None else settings
        if listen is not None:
            settings = msgspec.structs.replace(settings, listen=listen)
        if workers not in {"process", "inline"}:
            raise BadOption(f"workers is {workers!r}; it must be 'process' or 'inline'")
        self._settings = settings
        self._is_inline = workers == "inline"
        self._node: Node | None = None
        self._is_closed = asyncio.Event()
        # Does what administrators want of the whole gateway: drain, reload, log. A program that
        # holds a gateway decides itself what of that is done; without this, nothing is.
        self.fulfil: Callable[[str, str], str] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await self.drain()
        finally:
            await self.close()

    def __repr__(self) -> str:
        if self._node is None:
            return f"<Gateway {self._settings.name} for {self._settings.listen}, not started>"
        state = "closed" if self._is_closed.is_set() else "open"
        return f"<Gateway {self._settings.name} on {self.address}, {state}>"

    @property
    def address(self) -> str:
        """Where it really listens, as HOST:PORT.

        Raises:
            NotOpen: it was not started.
        """
        return str(self._open.address)

    async def start(self) -> None:
        """Listen, and start the services that the settings name.

        Raises:
            BadOption: the certificate or its key cannot be used.
            UsageError: the address cannot be listened on.
        """
        if self._node is not None:
            raise NotOpen("a gateway can be started only once")
        self._node = Node(self._settings, is_inline=self._is_inline)
        try:
            self._node.fulfil = self.fulfil
            await self._node.start()
        except BaseException:
            await self.close()
            raise

    async def serve_forever(self) -> None:
        """Wait until it is closed."""
        await self._is_closed.wait()

    async def status(self) -> dict[str, Any]:
        """The gateway and its services in numbers; docs/operations.md says what they mean.

        Raises:
            NotOpen: it was not started.
        """
        report: dict[str, Any] = msgspec.to_builtins(await self._open.report())
        return report

    def change(self, settings: Settings) -> list[str]:
        """Go by other settings from now on; the keys that wait for a restart.

        Raises:
            BadOption: the certificate or its key cannot be used; nothing is changed.
            NotOpen: it was not started.
        """
        waiting = self._open.change(settings)
        self._settings = settings
        return waiting

    async def drain(self) -> None:
        """Let nobody in, ask everyone to go elsewhere, and send what they are owed.

        It takes at most `drain_s` of the settings; close() then ends what is left.

        Raises:
            NotOpen: it was not started.
        """
        await self._open.drain(self._settings.drain_s)

    async def close(self) -> None:
        """End everything that is left, at once."""
        if self._node is not None and not self._is_closed.is_set():
            await self._node.close()
        self._is_closed.set()

    @property
    def _open(self) -> Node:
        if self._node is None:
            raise NotOpen("the gateway was not started")
        return self._node
