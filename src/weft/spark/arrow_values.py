"""Conversion of message fields to the values that an Arrow type takes.

Nothing is truncated or coerced: a value of another kind is refused, at any depth. Dates and
decimals are strings in messages, as the sink writes them.
"""

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from weft.errors import WrongType
from weft.wire.message.message import Message

# Maximum number of digits of an Arrow decimal.
_DIGITS_MAX = 76
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DECIMAL = re.compile(
    rf"[+-]?\d{{1,{_DIGITS_MAX}}}(\.\d{{0,{_DIGITS_MAX}}})?(E[+-]?\d{{1,2}})?", re.ASCII
)

Fit = Callable[[Any], Any]


# Accepted types of a field, by the type of its column.
_KINDS: dict[pa.DataType, tuple[type, ...]] = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), (int,)),
    **dict.fromkeys((pa.float32(), pa.float64()), (int, float)),
    **dict.fromkeys((pa.timestamp("us", "UTC"), pa.timestamp("us")), (datetime,)),
    pa.bool_(): (bool,),
    pa.string(): (str,),
    # Strings are accepted as bytes.
    pa.binary(): (bytes, str),
}


def plain(value: Any) -> Any:
    """Return a value with dicts in place of messages, also within lists."""
    if isinstance(value, Message):
        return value.to_dict()
    return [plain(each) for each in value] if isinstance(value, list) else value


def fit_for(kind: pa.DataType) -> Fit:
    """Return a function that converts values to a type.

    It passes None through and raises WrongType for a value of another kind. Numbers out of range
    are left to Arrow, which refuses them.
    """
    fit = _fit_for(kind)
    return lambda value: None if value is None else fit(value)


def _fit_for(kind: pa.DataType) -> Fit:
    if pa.types.is_list(kind):
        item = fit_for(kind.value_type)
        return lambda value: [item(each) for each in _checked(value, (list,))]
    if pa.types.is_map(kind):
        key, item = fit_for(kind.key_type), fit_for(kind.item_type)
        return lambda value: [
            (key(name), item(each)) for name, each in _checked(value, (dict,)).items()
        ]
    if pa.types.is_struct(kind):
        inner = {each.name: fit_for(each.type) for each in kind}
        return lambda value: _struct(_checked(value, (dict,)), inner)
    if pa.types.is_date32(kind):
        return _date
    if pa.types.is_decimal(kind):
        return _decimal
    kinds = _KINDS.get(kind)
    return _same if kinds is None else lambda value: _checked(value, kinds)


def _same(value: Any) -> Any:
    return value


def _checked(value: Any, kinds: tuple[type, ...]) -> Any:
    # isinstance() would accept a bool as an int.
    if type(value) not in kinds:
        raise WrongType(f"a value of type {type(value).__name__} does not fit")
    return value


def _struct(value: dict[str, Any], inner: dict[str, Fit]) -> dict[str, Any]:
    return {name: fit(value.get(name)) for name, fit in inner.items()}


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    text = _checked(value, (str,))
    if _DATE.fullmatch(text) is not None:
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise WrongType(f"{text} is not a date") from error
    raise WrongType("a date is a timestamp, or a text such as 2026-11-18")


def _decimal(value: Any) -> Decimal:
    # The exponent has a bound: pyarrow crashes on decimals such as 1E-99999999.
    text = _checked(value, (int, str))
    if isinstance(text, str) and _DECIMAL.fullmatch(text) is None:
        raise WrongType(f"a decimal is an integer, or a text of at most {_DIGITS_MAX} digits")
    return Decimal(text)
