"""What both faces of the client tell of their connection."""

from weft.client.connection.engine import Engine
from weft.client.status import Statistics


class Face:
    """One connection, whichever way its user waits for it."""

    _engine: Engine

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._engine}>"

    @property
    def name(self) -> str:
        """The name that the gateway knows this connection by."""
        return self._engine.session.name

    @property
    def gateway(self) -> str:
        """The name of the gateway, the present one or the last."""
        return self._engine.session.gateway

    @property
    def address(self) -> str:
        """Where that gateway is; empty before the first was tried."""
        return self._engine.address

    @property
    def why(self) -> str:
        """Why that gateway was taken: it was given, or it is the closest of some."""
        return self._engine.why

    @property
    def is_connected(self) -> bool:
        """Say if there is a connection at the moment."""
        return self._engine.session.is_open

    @property
    def statistics(self) -> Statistics:
        """What the connection has done so far."""
        return self._engine.counted()
