from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import record

from weft.broker.limits import Limits
from weft.errors import BadOption
from weft.gateway.config import load as config
from weft.gateway.config.mesh_settings import MeshSettings, address_of, target_of
from weft.gateway.config.settings import Settings
from weft.gateway.keys.key_file import change_keys
from weft.transports.link_dialer import LinkTarget

KEY = "ab" * 32


@pytest.fixture
def keyed(tmp_path: Path) -> str:
    """A data folder with a key in it."""
    change_keys(tmp_path, lambda _: (record("boss", "admin"),))
    return str(tmp_path)


@pytest.mark.req("MM-20")
def test_a_few_gateways_or_registries_are_named(tmp_path: Path) -> None:
    path = tmp_path / "weft.toml"
    path.write_text('[mesh]\njoin = ["london:7411"]\nregistry = ["tls://[::1]:7411"]\n')
    mesh = config.load(path).mesh
    assert (mesh.join, mesh.registry) == (("london:7411",), ("tls://[::1]:7411",))


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("127.0.0.1:7411", LinkTarget("127.0.0.1", 7411)),
        ("tls://london.example:7500", LinkTarget("london.example", 7500, is_tls=True)),
        ("[::1]:7411", LinkTarget("::1", 7411)),
    ],
)
def test_an_address_is_read_and_written_the_same(text: str, target: LinkTarget) -> None:
    assert target_of(text) == target
    assert address_of(target) == text


def test_several_ways_to_write_an_address_are_one() -> None:
    assert address_of(target_of("tcp://london:7411")) == address_of(target_of("london"))


@pytest.mark.parametrize("text", ["", ":7411", "a:0", "a:99999", "ws://a:1", "http://a", "a b:1"])
@pytest.mark.parametrize("key", ["join", "registry", "address"])
def test_what_is_no_address_is_named_with_its_key(key: str, text: str) -> None:
    if key == "address" and not text:
        return
    values: dict[str, Any] = {key: text if key == "address" else (text,)}
    with pytest.raises(BadOption, match=f"^mesh.{key}: address"):
        MeshSettings(**values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"max_links": 0}, r"mesh\.max_links is 0; it must be 1 … 1024"),
        ({"max_links": 1025}, r"mesh\.max_links is 1025"),
        ({"outbox_bytes": 4096}, r"mesh\.outbox_bytes is 4096; it must be 2097152 … 2147483647"),
        ({"region": "a b"}, r"mesh\.region 'a b' is not up to 63"),
        ({"roster": ("abc",)}, r"mesh\.roster: 'abc' is not a key of 64 hex digits"),
        ({"admins": ("abc",)}, r"mesh\.admins: 'abc' is not a key of 64 hex digits"),
        (
            {"address": "0.0.0.0:1"},
            r"mesh\.address '0.0.0.0:1' is not an address that others can dial",
        ),
    ],
)
def test_what_cannot_be_is_named_with_its_limit(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        MeshSettings(**values)


def test_a_time_that_cannot_be_is_named() -> None:
    with pytest.raises(BadOption, match=r"mesh\.forget_s is 0"):
        Settings(mesh=MeshSettings(forget_s=0.0))


def test_without_keys_on_loopback_everyone_may_be_joined() -> None:
    assert Settings(mesh=MeshSettings(join=("127.0.0.1:7411",))).mesh.join


@pytest.mark.parametrize("key", ["join", "registry"])
def test_with_keys_a_secret_or_a_roster_is_needed_to_join(keyed: str, key: str) -> None:
    joining: dict[str, Any] = {key: ("127.0.0.1:7411",)}
    with pytest.raises(
        BadOption, match=f"mesh.{key} is set, but neither .* has keys, in .*openssl"
    ):
        Settings(data=keyed, mesh=MeshSettings(**joining))
    Settings(data=keyed, mesh=MeshSettings(**joining, secret_file="a file"))  # noqa: S106
    Settings(data=keyed, mesh=MeshSettings(**joining, roster=(KEY,)))


def test_where_strangers_are_a_secret_or_a_roster_is_needed_to_join(keyed: str) -> None:
    mesh = MeshSettings(join=("127.0.0.1:7411",))
    with pytest.raises(BadOption, match=r"listens on 192\.0\.2\.1:7411, which is not loopback"):
        Settings(listen="192.0.2.1:7411", data=keyed, mesh=mesh)


@pytest.mark.parametrize("listen", ["0.0.0.0:7411", "[::]:7411"])
def test_a_wildcard_is_no_address_to_dial(keyed: str, listen: str) -> None:
    with pytest.raises(BadOption, match=r"set mesh\.address"):
        Settings(listen=listen, data=keyed, mesh=MeshSettings(roster=(KEY,)))
    mesh = MeshSettings(roster=(KEY,), address="london.example:7411")
    assert Settings(listen=listen, data=keyed, mesh=mesh).mesh.address
    # Who is in no mesh need not be dialled.
    assert not Settings(listen=listen, data=keyed).mesh.is_asked_for


def test_greetings_of_gateways_must_be_allowed_to_be_large_enough() -> None:
    mesh = MeshSettings(join=("127.0.0.1:7411",))
    with pytest.raises(BadOption, match=r"greeting_bytes is 1000; in a mesh it must be at least"):
        Settings(mesh=mesh, limits=Limits(greeting_bytes=1000))
