"""What somebody may ask who looks for a gateway."""

import pytest

from weft.errors import BadOption, NotAllowed
from weft.gateway.http.discovery import (
    LIMIT,
    LIMIT_MAX,
    DiscoveryRequest,
    service_in,
    shared_with,
    sought_in,
)


def test_what_is_left_out_has_a_default() -> None:
    assert sought_in("") == DiscoveryRequest("default", "", LIMIT)


def test_what_is_given_counts() -> None:
    assert sought_in("service=we-ather&region=eu.north&limit=7") == DiscoveryRequest(
        "we-ather", "eu.north", 7
    )
    assert sought_in("region=") == DiscoveryRequest()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("limit=0", f"limit '0' is not in 1 … {LIMIT_MAX}"),
        ("limit=101", f"limit '101' is not in 1 … {LIMIT_MAX}"),
        ("limit=x", f"limit 'x' is not in 1 … {LIMIT_MAX}"),
        ("limit=-1", f"limit '-1' is not in 1 … {LIMIT_MAX}"),
        ("limit=" + "9" * 400, "is not in 1"),
        ("service=", "service '' is not 1 to 63"),
        ("service=a/b", "service 'a/b' is not 1 to 63"),
        ("service=" + "a" * 64, "is not 1 to 63"),
        ("service=%ed%a0%80", "is not 1 to 63"),
        ("region=" + "a" * 64, "is not up to 63"),
        ("region=a b", "is not up to 63"),
        ("region=a%0a", "is not up to 63"),
        ("regoin=eu", "there is no parameter 'regoin', only service, region, limit"),
        ("region=a&region=b", "more than once"),
        ("&".join(f"{each}=1" for each in range(9)), "at most 8 parameters"),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_and_the_limit(query: str, text: str) -> None:
    with pytest.raises(BadOption) as refused:
        sought_in(query)
    assert text in str(refused.value)


def test_the_service_is_found_whatever_else_is_wrong() -> None:
    assert service_in("") == "default"
    assert service_in("limit=x&service=weather") == "weather"


def test_only_those_who_look_for_gateways_are_shared_with() -> None:
    page = {"origin": "https://a.example", "host": "gw:1"}
    assert shared_with("/status", page, ()) == ()
    assert shared_with("/closest", {"host": "gw:1"}, ()) == ()
    with pytest.raises(NotAllowed):
        shared_with("/closest", page, ())
    with pytest.raises(NotAllowed):
        shared_with("/nodes", {"sec-fetch-site": "cross-site"}, ())
    assert dict(shared_with("/nodes", page, ("https://a.example",)))["Vary"] == "Origin"
