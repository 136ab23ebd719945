"""What the gateway's tests share."""

from pathlib import Path

import pytest

from weft.gateway.settings import Tls


@pytest.fixture
def tls(certificates: Path) -> Tls:
    """A certificate for localhost."""
    return Tls(cert=str(certificates / "first.pem"), key=str(certificates / "first.key"))


@pytest.fixture
def other_tls(certificates: Path) -> Tls:
    """Another one."""
    return Tls(cert=str(certificates / "second.pem"), key=str(certificates / "second.key"))
