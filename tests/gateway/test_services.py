import pytest

from weft.errors import NoSuchService
from weft.gateway.services import admit
from weft.gateway.settings import Settings


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
