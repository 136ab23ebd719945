"""A gateway and a bystander for each file of attacks, and a siege for each test."""

from collections.abc import Iterator

import pytest
from tests.attacks.bystander import Bystander
from tests.attacks.gateway_process import GatewayProcess
from tests.attacks.siege import Siege


@pytest.fixture(scope="module")
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """A gateway with the SETTINGS of the file, if it has any."""
    settings = getattr(request.module, "SETTINGS", {})
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def bystander(gateway: GatewayProcess) -> Iterator[Bystander]:
    """Somebody whose conversation must go on during every attack of the file."""
    with Bystander(gateway) as talking:
        yield talking


@pytest.fixture
def siege(gateway: GatewayProcess, bystander: Bystander) -> Iterator[Siege]:
    """An attack that the gateway must survive unchanged."""
    with Siege(gateway, bystander) as going_on:
        yield going_on
