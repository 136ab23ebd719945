"""One gateway for every journey that leaves it whole, a subject for each, and both clients."""

import itertools
from collections.abc import Iterator

import pytest
from tests.journeys.clients import Connect
from tests.journeys.running import RunningGateway, running

# A loaded machine must not make anybody late who is not meant to be.
SETTINGS = """
name = "london"
services_max = 64

[limits]
greeting_s = 60.0
"""

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """The gateway that all journeys share."""
    with running(tmp_path_factory.mktemp("gateway"), SETTINGS) as gateway:
        yield gateway


@pytest.fixture
def subject() -> str:
    """A subject, and all below it, that no other journey uses."""
    return f"journey{next(_numbers)}"


@pytest.fixture
def service() -> str:
    """A service that no other journey uses."""
    return f"service{next(_numbers)}"


@pytest.fixture(params=["asyncio", "blocking"])
def face(request: pytest.FixtureRequest) -> str:
    """Which of the two clients makes the journey."""
    return str(request.param)


@pytest.fixture
def connect(face: str, gateway: RunningGateway) -> Connect:
    """Connects clients to the shared gateway: `async with connect(name="me.1") as client`."""
    return Connect(face, gateway.address)
