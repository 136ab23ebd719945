"""Gateway inside a program: `async with Gateway() as gateway: ...`."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from weft.errors import BadOption, NotOpen
from weft.gateway.config.settings import Settings
from weft.gateway.runtime import GatewayRuntime


class Gateway:
    """One running node: a front that accepts connections, and its services.

    Args:
        listen: The listen address, in place of the one in the settings; port 0 takes a free one.
        settings: All other settings; the defaults if left out.
        workers: "process" for a process per service, "inline" for all on the running loop.

    Raises:
        BadOption: Invalid setting.
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
        self._node: GatewayRuntime | None = None
        self._is_closed = asyncio.Event()
        # Executes admin commands that concern the whole gateway: drain, reload, log. The embedding
        # program decides which of them to support; without this, none is.
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
        """Return the actual listen address, as HOST:PORT.

        Raises:
            NotOpen: The gateway was not started.
        """
        return str(self._open.address)

    async def start(self) -> None:
        """Listen, and start the services named in the settings.

        Raises:
            BadOption: Unusable certificate or key.
            UsageError: Cannot listen on the address.
        """
        if self._node is not None:
            raise NotOpen("a gateway can be started only once")
        self._node = GatewayRuntime(self._settings, is_inline=self._is_inline)
        try:
            self._node.fulfil = self.fulfil
            await self._node.start()
        except BaseException:
            await self.close()
            raise

    async def serve_forever(self) -> None:
        """Wait until the gateway is closed."""
        await self._is_closed.wait()

    async def status(self) -> dict[str, Any]:
        """Return the status of the gateway and its services; see docs/operations.md.

        Raises:
            NotOpen: The gateway was not started.
        """
        report: dict[str, Any] = msgspec.to_builtins(await self._open.report())
        return report

    def change(self, settings: Settings) -> list[str]:
        """Apply new settings; return the keys that need a restart.

        Raises:
            BadOption: Unusable certificate or key; no setting is changed.
            NotOpen: The gateway was not started.
        """
        waiting = self._open.change(settings)
        self._settings = settings
        return waiting

    async def drain(self) -> None:
        """Stop accepting, ask clients to reconnect elsewhere, and flush.

        Takes at most `drain_s` of the settings; close() then ends the remaining connections.

        Raises:
            NotOpen: The gateway was not started.
        """
        await self._open.drain(self._settings.drain_s)

    async def close(self) -> None:
        """End all connections and services immediately."""
        if self._node is not None and not self._is_closed.is_set():
            await self._node.close()
        self._is_closed.set()

    @property
    def _open(self) -> GatewayRuntime:
        if self._node is None:
            raise NotOpen("the gateway was not started")
        return self._node
