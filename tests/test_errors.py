import inspect
import re
from pathlib import Path

import pytest

from weft import errors
from weft.errors import WeftError

EVERY = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, WeftError)
]
PROTOCOL = Path(__file__).parent.parent / "docs" / "protocol.md"


@pytest.mark.parametrize("error", EVERY)
def test_every_error_is_drawn_in_the_tree(error: type[WeftError]) -> None:
    assert re.search(rf"\b{error.__name__}\b", errors.__doc__ or "")


def test_no_two_errors_share_a_number() -> None:
    numbers = [error.number for error in EVERY]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("error", EVERY)
def test_the_thousands_say_who_must_act(error: type[WeftError]) -> None:
    is_usage = errors.UsageError in error.__mro__
    is_protocol = errors.ProtocolError in error.__mro__
    assert (is_usage, is_protocol) == (error.number // 1000 == 1, error.number // 1000 == 2)


def test_the_protocol_page_lists_every_number_and_name() -> None:
    page = PROTOCOL.read_text()
    listed = dict(re.findall(r"^\| (\d{4}) \| `(\w+)` \|", page, re.MULTILINE))
    assert listed == {str(error.number): error.__name__ for error in EVERY if error.number}


def test_a_missing_field_reads_as_a_sentence() -> None:
    assert str(errors.NoSuchField("no field 'x'")) == "no field 'x'"
