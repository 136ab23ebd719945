"""Rows of Spark as a table or as JSON."""

import base64
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weft.cli.output import streams
from weft.cli.output.message_text import printable, to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# Most rows in a table; JSON has all.
SHOWN_MAX = 1000
_TEXT_MAX = 100
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


def first_of(result: "DataFrame") -> "list[Row]":
    """Return the rows for a table, and one more if there are more."""
    return result.limit(SHOWN_MAX + 1).collect()


def show(title: str, kinds: Sequence[tuple[str, str]], rows: "Sequence[Row]") -> int:
    """Print the rows of first_of() as a table; return their number."""
    show_rows(title, kinds, rows[:SHOWN_MAX])
    if len(rows) > SHOWN_MAX:
        streams.news(f"there are more than {SHOWN_MAX:,} rows: --json or --out gives all")
    return len(rows)


def show_rows(title: str, kinds: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows as a table; `kinds` are the names of the columns and their types in Spark."""
    columns = [f"{name} " if kind.startswith(_NUMBERS) else name for name, kind in kinds]
    streams.show(streams.table(title, columns, ([_text(value) for value in row] for row in rows)))


def print_json(rows: "Iterable[Row]") -> int:
    """Print rows as JSON, one object per line; return their number."""
    count = 0
    for row in rows:
        streams.json_result(to_json(plain(row.asDict(recursive=True))))
        count += 1
    return count


def plain(value: Any) -> Any:
    """Return a value of a row for JSON: times in UTC, bytes in base64."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        # Spark returns times without a zone in local time.
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | str):
        text = str(value)
    elif isinstance(value, int):
        text = f"{value:,}"
    elif isinstance(value, float):
        text = f"{value:,.6g}"
    elif isinstance(value, bytes | bytearray):
        text = bytes(value).decode(errors="backslashreplace")
    elif isinstance(value, list | tuple | dict):
        text = to_json(plain(value))
    else:
        text = str(plain(value))
    shown = printable(text)
    return shown if len(shown) <= _TEXT_MAX else f"{shown[:_TEXT_MAX]}…"
