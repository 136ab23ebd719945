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
    branches: list[type[WeftError]] = [
        errors.UsageError,
        errors.ProtocolError,
        errors.ConnectionLost,
        errors.Refused,
    ]
    thousands = [number for number, branch in enumerate(branches, 1) if branch in error.__mro__]
    assert thousands == ([error.number // 1000] if error.number else [])


@pytest.mark.parametrize("error", EVERY)
def test_a_number_on_the_wire_becomes_its_error(error: type[WeftError]) -> None:
    made = errors.error_from_wire(error.number, "why")
    assert (type(made), str(made)) == (error, "why")


def test_an_unknown_number_becomes_the_error_of_its_thousand() -> None:
    assert type(errors.error_from_wire(4999, "")) is errors.Refused
    assert type(errors.error_from_wire(9999, "")) is WeftError


def test_the_protocol_page_lists_every_number_and_name() -> None:
    page = PROTOCOL.read_text()
    listed = dict(re.findall(r"^\| (\d{4}) \| `(\w+)` \|", page, re.MULTILINE))
    assert listed == {str(error.number): error.__name__ for error in EVERY if error.number}


def test_a_missing_field_reads_as_a_sentence() -> None:
    assert str(errors.NoSuchField("no field 'x'")) == "no field 'x'"
