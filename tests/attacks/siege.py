"""A gateway under attack: who came, what it counted, and the bystander who must not notice."""

import contextlib
from collections import Counter
from types import TracebackType
from typing import Self

from tests.attacks.bystander import Bystander
from tests.attacks.gateway_process import GatewayProcess, eventually
from tests.attacks.stranger import CONNECT, Stranger

# The connections of the bystander.
AT_HOME = 2


class Siege:
    """One test's attack on a gateway; when it is over, the gateway must be as it was."""

    def __init__(self, gateway: GatewayProcess, bystander: Bystander) -> None:
        self.gateway = gateway
        self.bystander = bystander
        self.port = gateway.port
        self._strangers = contextlib.ExitStack()
        self._await_calm()
        self.worker = gateway.worker()
        self._before = gateway.counts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._strangers.close()
        if kind is None:
            self._await_calm()
            self.bystander.talk()
            self.bystander.check()
            service = self.gateway.service()
            assert (service["pid"], service["restarts"]) == (self.worker, 0), self.gateway.log
            assert "Traceback" not in self.gateway.log, self.gateway.log

    def stranger(self, greeting: bytes = CONNECT) -> Stranger:
        """A new connection, closed when the attack is over."""
        return self._strangers.enter_context(Stranger(self.port, greeting))

    def counted(self) -> "Counter[str]":
        """What was counted since the attack began."""
        return self.gateway.counts() - self._before

    def await_counts(self, **expected: int) -> None:
        """Wait until exactly this was counted: `ended_BadFrame=1`; who just left is left out."""

        def counted() -> dict[str, int]:
            counts = self.counted()
            del counts["ended left"]
            return {why.replace(" ", "_"): number for why, number in counts.items()}

        eventually(lambda: counted() == expected, lambda: f"{counted()}, not {expected}")

    def _await_calm(self) -> None:
        gateway = self.gateway
        eventually(
            lambda: gateway.connections() == AT_HOME and gateway.status()["front"]["pending"] == 0,
            lambda: f"strangers are still there: {gateway.status()}",
        )
