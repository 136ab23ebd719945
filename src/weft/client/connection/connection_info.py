"""Properties of a connection that the asyncio and the blocking API share."""

from weft.client.connection.engine import Engine
from weft.client.status import Statistics


class Face:
    """Base class of the connections of both APIs."""

    _engine: Engine

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._engine}>"

    @property
    def name(self) -> str:
        """The name of this connection at the gateway."""
        return self._engine.session.name

    @property
    def gateway(self) -> str:
        """The name of the current gateway, or of the last one."""
        return self._engine.session.gateway

    @property
    def address(self) -> str:
        """The address of that gateway; empty before the first attempt."""
        return self._engine.address

    @property
    def why(self) -> str:
        """The reason why that gateway was selected: given, or the closest of several."""
        return self._engine.why

    @property
    def is_connected(self) -> bool:
        """Whether the connection is currently established."""
        return self._engine.session.is_open

    @property
    def statistics(self) -> Statistics:
        """Counters of the connection since it was opened."""
        return self._engine.counted()
