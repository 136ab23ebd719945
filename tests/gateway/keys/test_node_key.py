import stat
from pathlib import Path

import pytest

from weft.errors import BadOption
from weft.gateway.keys.node_key import NAME, seed_in


def test_a_gateway_keeps_the_key_that_it_made_first(tmp_path: Path) -> None:
    data = tmp_path / "not" / "there"
    seed = seed_in(data)
    assert len(seed) == 32
    assert seed_in(data) == seed
    assert stat.S_IMODE((data / NAME).stat().st_mode) == 0o600


def test_no_two_gateways_make_the_same(tmp_path: Path) -> None:
    assert seed_in(tmp_path / "one") != seed_in(tmp_path / "other")


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    seed_in(tmp_path)
    (tmp_path / NAME).chmod(0o644)
    with pytest.raises(BadOption, match=r"the node key in .*node\.key cannot be used: its mode"):
        seed_in(tmp_path)


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, "\xff" * 64])
def test_what_is_no_key_is_not_used(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text, "latin-1")
    (tmp_path / NAME).chmod(0o600)
    with pytest.raises(BadOption, match="it is not 64 hex digits"):
        seed_in(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadOption, match=r"the node key in .*file/node\.key cannot be"):
        seed_in(tmp_path / "file")
