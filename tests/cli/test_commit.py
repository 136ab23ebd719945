import pytest

from weft.cli.commit import commit
from weft.distribution import installed_version


def test_without_a_checkout_the_version_says_which_weft_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert commit() == installed_version()
