import re
from pathlib import Path

import msgspec
import pytest

from weft.broker.limits import Limits

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


def test_a_limit_that_does_not_exist_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `body_byte`"):
        msgspec.convert({"body_byte": 1}, Limits)


def test_limits_do_not_change_once_made() -> None:
    with pytest.raises(AttributeError):
        Limits().body_bytes = 1  # type: ignore[misc]  # what must not work


def test_the_page_on_operations_names_every_limit_with_its_default() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", OPERATIONS.read_text(), re.MULTILINE))
    stated = {name: float(table[name]) for name in Limits.__struct_fields__}
    assert stated == msgspec.to_builtins(Limits())
