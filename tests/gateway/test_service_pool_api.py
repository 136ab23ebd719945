import pytest
from tests.broker.locksmith import record

from weft.errors import NoSuchService
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings
from weft.gateway.service_pool_api import DEFAULT_SERVICE, admit, begun


def test_without_a_list_any_service_may_be_started() -> None:
    admit("weather", [], Settings())


def test_with_a_list_no_other_may_be_used() -> None:
    settings = Settings(services=("weather",))
    admit("weather", [], settings)
    with pytest.raises(NoSuchService, match="does not run a service 'orders'"):
        admit("orders", ["orders"], settings)


def test_no_more_are_started_than_allowed() -> None:
    settings = Settings(services_max=2)
    admit("b", ["a"], settings)
    admit("b", ["a", "b"], settings)
    with pytest.raises(NoSuchService, match="runs 2 services already and will not start 'c'"):
        admit("c", ["a", "b"], settings)


def test_those_that_are_named_are_started_whatever_still_runs() -> None:
    settings = Settings(services=("c", "d"), services_max=2)
    admit("c", ["a", "b"], settings)
    admit("d", ["a", "b", "c"], settings)


def test_places_are_kept_for_those_that_keys_name() -> None:
    keys = (record("one", service="orders"), record("two", service="*"), record("boss", "admin"))
    settings = Settings(services_max=2)
    admit("a", [], settings, keys)
    with pytest.raises(NoSuchService, match="reserves slots for 1 named in keys"):
        admit("b", ["a"], settings, keys)
    admit("orders", ["a"], settings, keys)
    admit("b", ["orders"], settings, keys)
    with pytest.raises(NoSuchService, match="runs 2 services already"):
        admit("orders", ["a", "b"], settings, keys)


def test_a_gateway_of_a_mesh_has_the_service_of_everybody_from_the_first() -> None:
    assert begun(Settings()) == ()
    mesh = MeshSettings(join=("127.0.0.1:1",))
    assert begun(Settings(mesh=mesh)) == (DEFAULT_SERVICE,)
    assert begun(Settings(mesh=mesh, services=("news",))) == ("news",)
