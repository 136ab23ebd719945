import pydoc
import subprocess
import sys

import pytest

import weft
from weft.distribution import installed_version


@pytest.mark.parametrize("name", weft.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(weft, name) is not None


def test_every_public_name_is_listed() -> None:
    assert set(weft.__all__) <= set(dir(weft))
    assert "class Connection(" in pydoc.plain(pydoc.render_doc(weft))


def test_it_says_its_version() -> None:
    assert weft.__version__ == installed_version()


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'weft' has no attribute 'Nothing'"):
        _ = weft.Nothing


def test_a_gateway_does_not_import_the_client() -> None:
    program = (
        "import sys, weft.gateway.worker.process; "
        "print(any('weft.client' in m for m in sys.modules))"
    )
    run = subprocess.run(  # noqa: S603  # our own program and interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
