from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess
from tests.cli.options.test_spark import asked
from tests.pipeline.desk import Said, write_journals

import weft
from weft.cli.running_services import check_there, services_at
from weft.errors import NotKnown, Unreachable


def test_a_folder_has_the_services_that_are_kept(tmp_path: Path) -> None:
    write_journals(tmp_path / "journal", [Said(), Said(service="orders")])
    assert services_at(asked(path=tmp_path)) == ["orders", "weather"]
    check_there(asked(path=tmp_path, service="orders"))
    with pytest.raises(NotKnown, match=r"no service 'wether' at .*, only orders, weather"):
        check_there(asked(path=tmp_path, service="wether"))


def test_a_gateway_tells_which_it_runs(gateway: str) -> None:
    with weft.Connection(gateway, service="weather"):
        assert "weather" in services_at(asked(gateway=gateway))
        assert "weather" in services_at(asked(gateways=f"{gateway}, {gateway}"))
    check_there(asked(gateway=gateway))
    with pytest.raises(NotKnown, match="no service 'whatever'"):
        check_there(asked(gateway=gateway, service="whatever"))
    with pytest.raises(Unreachable):
        services_at(asked(gateway="127.0.0.1:1"))


def test_a_gateway_tells_which_services_it_keeps_though_they_do_not_run(tmp_path: Path) -> None:
    write_journals(tmp_path / "data" / "journal", [Said()])
    with GatewayProcess(tmp_path, {"data": str(tmp_path / "data"), "services": []}) as gateway:
        assert services_at(asked(gateway=gateway.address)) == ["weather"]
        check_there(asked(gateway=gateway.address, service="weather"))
