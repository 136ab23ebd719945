import sys
from pathlib import Path

import pytest

from weft.errors import BadOption
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings, SocketAddress, Tls
from weft.gateway.mesh.authentication import admission_of
from weft.gateway.mesh.membership import MeshMembership, located, membership_of
from weft.mesh.links.signing import Signer


def secret_in(folder: Path, text: str = "a secret of all gateways\n") -> str:
    path = folder / "mesh.secret"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def made(settings: Settings) -> MeshMembership:
    membership = membership_of(settings)
    assert membership is not None
    return membership


def test_with_a_data_folder_a_gateway_stays_who_it_is(tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path))
    assert made(settings).seed == made(settings).seed


def test_without_one_it_is_another_each_time() -> None:
    assert made(Settings()).seed != made(Settings()).seed


def test_the_secret_is_read_without_the_end_of_its_line(tmp_path: Path) -> None:
    settings = Settings(mesh=MeshSettings(secret_file=secret_in(tmp_path)))
    assert made(settings).secret == b"a secret of all gateways"


def test_a_secret_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = Settings(mesh=MeshSettings(secret_file=str(tmp_path / "none")))
    with pytest.raises(BadOption, match=r"mesh\.secret_file .*none does not exist"):
        membership_of(settings)


def test_a_secret_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    file = secret_in(tmp_path)
    Path(file).chmod(0o640)
    with pytest.raises(BadOption, match=r"mesh\.secret_file .* mode is 0640"):
        membership_of(Settings(mesh=MeshSettings(secret_file=file)))


def test_a_secret_that_can_be_guessed_is_not_used(tmp_path: Path) -> None:
    settings = Settings(mesh=MeshSettings(secret_file=secret_in(tmp_path, "fifteen bytes !\n\n")))
    with pytest.raises(BadOption, match=r"has 15 bytes, the minimum is 16: .*openssl rand"):
        membership_of(settings)


def test_certificates_that_cannot_be_read_are_named_at_the_start() -> None:
    with pytest.raises(BadOption, match=r"mesh\.tls_ca '/nowhere'"):
        membership_of(Settings(mesh=MeshSettings(tls_ca="/nowhere")))


@pytest.mark.parametrize("mesh", [MeshSettings(join=("a:1",)), MeshSettings(registry=("a:1",))])
def test_where_a_package_is_missing_it_is_named_if_a_mesh_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, mesh: MeshSettings
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(
        BadOption, match=r'a mesh needs cryptography: pip install "weft-mesh\[mesh\]"'
    ):
        membership_of(Settings(mesh=mesh))
    assert membership_of(Settings()) is None


def test_others_dial_where_it_listens() -> None:
    settings = Settings(listen="127.0.0.1:0")
    found = located(made(settings), settings, SocketAddress("127.0.0.1", 4711))
    assert found.address == "127.0.0.1:4711"


def test_others_dial_what_they_are_told_to() -> None:
    settings = Settings(mesh=MeshSettings(address="london.example:7500"))
    found = located(made(settings), settings, SocketAddress("127.0.0.1", 4711))
    assert found.address == "london.example:7500"


def test_whoever_speaks_tls_is_dialled_by_it(tls: Tls) -> None:
    settings = Settings(tls=tls)
    found = located(made(settings), settings, SocketAddress("::1", 4711))
    assert found.address == "tls://[::1]:4711"


def test_nothing_of_it_shows_in_a_log(tmp_path: Path) -> None:
    found = made(Settings(mesh=MeshSettings(secret_file=secret_in(tmp_path))))
    assert "secret" not in repr(found)
    assert found.seed.hex() not in repr(found)


def test_a_roster_lets_in_those_that_it_names() -> None:
    key = Signer(b"a" * 32).key
    admission = admission_of(made(Settings(mesh=MeshSettings(roster=(key.hex().upper(),)))))
    assert admission.roster == frozenset({key})
    assert admission_of(made(Settings())).roster is None
