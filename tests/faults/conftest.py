"""Gateways in processes of their own, which tests stop, kill and starve."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., GatewayProcess]]:
    """Start a gateway with these settings: `serve({"drain_s": 1.0})`; ended after the test."""
    with ExitStack() as stack:

        def start(
            settings: dict[str, object] | None = None, descriptors_max: int | None = None
        ) -> GatewayProcess:
            return stack.enter_context(GatewayProcess(tmp_path, settings, descriptors_max))

        yield start
