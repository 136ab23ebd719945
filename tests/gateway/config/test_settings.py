import socket
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import MADE, record

from weft.broker.limits import Limits
from weft.broker.service import BODY_MAX_BYTES, Service
from weft.errors import BadOption
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import (
    JournalSettings,
    Settings,
    SocketAddress,
    Tls,
    host_name,
    is_service,
    parse_address,
    web_of,
)
from weft.gateway.keys.key_file import change_keys, path_of
from weft.lanes.settings import LaneRule, LaneSettings
from weft.transports.http.origins import WebSettings


def test_without_a_word_a_gateway_listens_on_loopback() -> None:
    settings = Settings()
    assert settings.listen == "127.0.0.1:7411"
    assert settings.address == SocketAddress("127.0.0.1", 7411)
    assert not settings.tls.is_on


def test_pages_may_call_it_by_its_addresses() -> None:
    mesh = MeshSettings(address="tls://gw.example:7411")
    settings = Settings(mesh=mesh, web=WebSettings(hosts=("a.example",)))
    assert web_of(settings).hosts == ("a.example", "127.0.0.1", "gw.example")
    assert web_of(Settings()).hosts == ("127.0.0.1",)


def test_the_name_is_the_host_s() -> None:
    assert Settings().name == host_name(socket.gethostname())


@pytest.mark.parametrize(
    ("host", "name"),
    [("london-1.example", "london-1.example"), ("Łódź host", "--d--host"), ("", "gateway")],
)
def test_a_host_s_name_becomes_a_legal_one(host: str, name: str) -> None:
    assert host_name(host) == name
    assert Settings(name=name).name == name


def test_a_long_host_s_name_is_cut() -> None:
    assert host_name("h" * 64) == "h" * 63


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", SocketAddress("127.0.0.1", 0)),
        ("localhost:7411", SocketAddress("127.0.0.1", 7411)),
        ("[::1]:65535", SocketAddress("::1", 65535)),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, address: SocketAddress) -> None:
    assert parse_address(text) == address


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(parse_address("127.0.0.1:80")) == "127.0.0.1:80"
    assert str(parse_address("[::1]:80")) == "[::1]:80"


def test_an_address_knows_its_family() -> None:
    assert parse_address("127.0.0.1:80").family == socket.AF_INET
    assert parse_address("[::1]:80").family == socket.AF_INET6


@pytest.mark.parametrize(
    "text",
    [
        *("", "7411", "127.0.0.1", "127.0.0.1:", ":7411", "127.0.0.1:65536", "127.0.0.1:-1"),
        *("::1:80", "[127.0.0.1]:80", "example.com:80", "127.0.0.1:٣", "127.0.0.1:8 0"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match="listen"):
        parse_address(text)


@pytest.mark.parametrize("listen", ["0.0.0.0:7411", "192.0.2.1:7411", "[::]:7411"])
def test_without_keys_any_address_but_loopback_is_refused(listen: str) -> None:
    with pytest.raises(BadOption, match="loopback only"):
        Settings(listen=listen)


@pytest.mark.parametrize("name", ["a", "a_b-C9", "-", "9", "x" * 63])
def test_a_service_has_letters_digits_and_two_signs(name: str) -> None:
    assert is_service(name)


@pytest.mark.parametrize("name", ["", "_a", "a.b", "a b", "ä", "x" * 64, "a\n", "\ud800"])
def test_nothing_else_names_a_service(name: str) -> None:
    assert not is_service(name)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": ""}, "name ''"),
        ({"name": "a b"}, "name 'a b'"),
        ({"services": ("_a",)}, "services: '_a'"),
        ({"services": ("a", "b"), "services_max": 1}, "services has 2 names"),
        ({"tls": Tls(cert="a.pem")}, "tls.cert and tls.key"),
        ({"tls": Tls(key="a.key")}, "tls.cert and tls.key"),
        ({"drain_s": 0.0}, "drain_s is 0.0"),
        ({"drain_s": float("nan")}, "drain_s is nan"),
        ({"drain_s": float("inf")}, "drain_s is inf"),
        ({"connections": -1}, "connections is -1"),
        ({"limits": Limits(ping_s=-1.0)}, "limits.ping_s is -1.0"),
        ({"limits": Limits(body_bytes=1 << 31)}, "limits.body_bytes is 2147483648"),
        ({"limits": Limits(body_bytes=BODY_MAX_BYTES + 1)}, "limits.body_bytes is 268434"),
        ({"limits": Limits(outbox_bytes=8191)}, "limits.outbox_bytes is 8191"),
        ({"limits": Limits(outbox_age_s=0.0009)}, "limits.outbox_age_s is 0.0009"),
        ({"limits": Limits(greeting_bytes=541)}, "limits.greeting_bytes is 541"),
        ({"limits": Limits(greeting_bytes=32_769)}, "limits.greeting_bytes is 32769"),
        ({"web": WebSettings(bayeux_sessions=0)}, "web.bayeux_sessions is 0"),
        ({"web": WebSettings(bayeux_interval_s=-1.0)}, "web.bayeux_interval_s is -1.0"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_key(values: dict[str, Any], said: str) -> None:
    with pytest.raises(BadOption) as caught:
        Settings(**values)
    assert said in str(caught.value)


@pytest.mark.parametrize("limits", [Limits(outbox_bytes=8192), Limits(outbox_age_s=0.001)])
def test_a_service_can_be_made_with_every_limit_that_is_allowed(limits: Limits) -> None:
    assert Service("weather", "g", 1, Settings(limits=limits).limits).limits == limits


@pytest.mark.parametrize("listen", ["0.0.0.0:7411", "[::]:7411"])
def test_with_keys_any_address_will_do(listen: str, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=f"no keys in {tmp_path}/keys.json.*weft keys new"):
        Settings(listen=listen, data=str(tmp_path))
    # Even one that is revoked: there was a time when keys were asked for.
    change_keys(tmp_path, lambda _: (record("one", revoked=MADE),))
    assert Settings(listen=listen, data=str(tmp_path)).listen == listen


def test_keys_that_cannot_be_used_are_no_keys(tmp_path: Path) -> None:
    change_keys(tmp_path, lambda _: (record("one"),))
    path_of(tmp_path).chmod(0o644)
    with pytest.raises(BadOption, match="its mode is 0644"):
        Settings(listen="0.0.0.0:7411", data=str(tmp_path))


def test_a_rule_for_lanes_names_a_service_that_can_be() -> None:
    with pytest.raises(BadOption, match=r"lanes\.rules: 'a b' is not a valid service name"):
        Settings(lanes=LaneSettings(rules=(LaneRule(service="a b"),)))


@pytest.mark.parametrize("pattern", ["_CHANNEL.>", "_CHANNEL.*.moves", f"_CHANNEL.{'0' * 32}.a"])
def test_what_is_said_in_channels_cannot_be_kept(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="channel messages are not journaled"):
        Settings(data=str(tmp_path), journal=JournalSettings(patterns=("a.>", pattern)))
