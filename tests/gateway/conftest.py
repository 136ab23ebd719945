"""What the gateway's tests share: certificates that were made for them and are worth nothing."""

from pathlib import Path

import pytest

from weft.gateway.settings import Tls

_FOLDER = Path(__file__).parent / "certificates"


@pytest.fixture
def tls() -> Tls:
    """A certificate for localhost that has signed itself."""
    return Tls(cert=str(_FOLDER / "first.pem"), key=str(_FOLDER / "first.key"))


@pytest.fixture
def other_tls() -> Tls:
    """Another one."""
    return Tls(cert=str(_FOLDER / "second.pem"), key=str(_FOLDER / "second.key"))
