"""Columns of message fields in Arrow's layout, read from consecutive bodies.

Bodies are untrusted. Each is scanned from start to end and checked against all limits of the codec,
without an object per message; the row of an invalid one is returned. A column takes the types that
it can represent exactly. A value of any other type makes it odd: then its values are meaningless,
and the caller must decode message by message.
"""

from enum import IntEnum

from weft.wire.buffer import Writer
from weft.wire.byteops import (
    f64_at,
    i32_at,
    i64_at,
    put_bytes,
    put_f64,
    put_i32,
    put_i64,
    same_bytes,
    u32_at,
)
from weft.wire.frames import Flag
from weft.wire.message.flat_codec import after_text, after_value
from weft.wire.message.types import DEPTH_MAX, FIELDS_MAX, VALUES_MAX, FieldType

_STRING = int(FieldType.STRING)
_INT32 = int(FieldType.INT32)
_UINT32 = int(FieldType.UINT32)
_INT64 = int(FieldType.INT64)
_UINT64 = int(FieldType.UINT64)
_DOUBLE = int(FieldType.DOUBLE)
_MESSAGE = int(FieldType.MESSAGE)
_BOOL = int(FieldType.BOOL)
_BLOB = int(FieldType.BLOB)
_LIST = int(FieldType.LIST)
_NULL = int(FieldType.NULL)
_TIMESTAMP = int(FieldType.TIMESTAMP)
_BARE = int(Flag.BARE)

_FIELDS_MAX = FIELDS_MAX
_DEPTH_MAX = DEPTH_MAX
_VALUES_MAX = VALUES_MAX
# A field has at least an empty name and a type byte; a list item has at least a type byte.
_FIELD_MIN_BYTES = 5


class Form(IntEnum):
    """Representation of a column: 64-bit words, bits, or bytes with offsets."""

    INTEGER = 1
    DOUBLE = 2
    BOOL = 3
    TEXT = 4
    BINARY = 5
    MOMENT = 6


_AS_INTEGER = int(Form.INTEGER)
_AS_DOUBLE = int(Form.DOUBLE)
_AS_BOOL = int(Form.BOOL)
_AS_TEXT = int(Form.TEXT)
_AS_BINARY = int(Form.BINARY)
_AS_MOMENT = int(Form.MOMENT)


class FieldColumn:
    """Values of the first field of one name in every message, or null.

    Args:
        name: as UTF-8.
        form: the representation of its values.
        bound: for DOUBLE, the largest integer that it takes; for MOMENT, the unit in ns.
    """

    def __init__(self, name: bytes, form: int, bound: int = 0) -> None:
        if form == _AS_MOMENT and bound <= 0:
            raise ValueError(f"a moment cannot be counted in units of {bound} ns")
        self.name = name
        self.values = bytearray()
        self.validity = bytearray()
        self.texts = Writer()
        self.nulls = 0
        self.is_odd = False
        self._name_bytes = len(name)
        self._rows = 0
        self._form = form
        self._bound = bound

    def is_named(self, data: bytes, start: int, length: int) -> bool:
        """Return whether a range of bytes is its name."""
        return length == self._name_bytes and same_bytes(data, start, self.name, 0, length)

    def wants(self, row: int) -> bool:
        """Return whether it has no value for a row yet."""
        return self._rows == row and not self.is_odd

    def clear(self, rows: int) -> None:
        """Remove all values, and allocate space for `rows` rows."""
        bits = (rows + 7) // 8
        if self._form in (_AS_TEXT, _AS_BINARY):
            self.values = bytearray(4 * (rows + 1))
        else:
            self.values = bytearray(bits if self._form == _AS_BOOL else 8 * rows)
        self.validity = bytearray(bits)
        self.texts = Writer()
        self.nulls = 0
        self.is_odd = False
        self._rows = 0

    def add(self, data: bytes, at: int, end: int) -> None:
        """Append the whole value whose type is at an offset; there must be space."""
        row = self._rows
        if data[at] == _NULL:
            self.add_null()
        elif self._put(data, at, end):
            self.validity[row >> 3] |= 1 << (row & 7)
            self._rows = row + 1
        else:
            self.is_odd = True

    def add_null(self) -> None:
        """Append null; there must be space."""
        self._rows += 1
        self.nulls += 1
        if self._form in (_AS_TEXT, _AS_BINARY):
            put_i32(self.values, 4 * self._rows, self.texts.size)

    def _put(self, data: bytes, at: int, end: int) -> bool:
        """Write a value to the next row; False if it does not have this form."""
        kind = data[at]
        if self._form in (_AS_TEXT, _AS_BINARY):
            if kind == _STRING or (kind == _BLOB and self._form == _AS_BINARY):
                self._put_text(data, at + 5, end)
                return True
            return False
        if self._form == _AS_BOOL:
            if kind == _BOOL and data[at + 1]:
                self.values[self._rows >> 3] |= 1 << (self._rows & 7)
            return kind == _BOOL
        return self._put_number(data, at, 8 * self._rows)

    def _put_text(self, data: bytes, start: int, end: int) -> None:
        at = self.texts.reserve(end - start)
        put_bytes(self.texts.data, at, data, start, end - start)
        put_i32(self.values, 4 * (self._rows + 1), self.texts.size)

    def _put_number(self, data: bytes, at: int, word: int) -> bool:
        """Write a 64-bit word at an offset; False if the value does not have this form."""
        kind = data[at]
        if self._form == _AS_DOUBLE and kind == _DOUBLE:
            put_f64(self.values, word, f64_at(data, at + 1))
            return True
        if self._form == _AS_MOMENT:
            if kind == _TIMESTAMP:
                put_i64(self.values, word, i64_at(data, at + 1) // self._bound)
            return kind == _TIMESTAMP
        if kind in (_INT64, _UINT64):
            whole = i64_at(data, at + 1)
            if kind == _UINT64 and whole < 0:
                return False
        elif kind == _INT32:
            whole = i32_at(data, at + 1)
        elif kind == _UINT32:
            whole = u32_at(data, at + 1)
        else:
            return False
        if self._form == _AS_INTEGER:
            put_i64(self.values, word, whole)
            return True
        if whole < -self._bound or whole > self._bound:
            return False
        put_f64(self.values, word, whole)
        return True


class FieldReader:
    """Reads some fields of many messages; can be reused."""

    def __init__(self, columns: list[FieldColumn]) -> None:
        self.columns = list(columns)
        self._total = 0

    def read(self, offsets: bytes, data: bytes, flags: bytes, rows: int) -> int:
        """Fill the columns from `rows` bodies.

        Returns the first row whose body is not a valid message, or -1.

        Args:
            offsets: 32-bit words, one more than rows: start of each body, and end of the last.
            data: the bodies, starting with the first.
            flags: 64-bit words, the flags of the frames; a bare body has no fields.
            rows: the number of bodies.

        Raises:
            ValueError: the offsets or flags do not fit.
        """
        if rows < 0 or len(offsets) < 4 * (rows + 1) or len(flags) < 8 * rows:
            raise ValueError(f"offsets or flags of {rows} rows are not all there")
        for column in self.columns:
            column.clear(rows)
        size = len(data)
        first = i32_at(offsets, 0)
        end = 0
        for row in range(rows):
            start = end
            end = i32_at(offsets, 4 * (row + 1)) - first
            if end < start or end > size:
                raise ValueError(f"row {row} is at {start} … {end}, outside of {size} bytes")
            if not flags[8 * row] & _BARE and not self._read_body(data, start, end, row):
                return row
            for column in self.columns:
                if column.wants(row):
                    column.add_null()
        return -1

    def _read_body(self, data: bytes, at: int, end: int, row: int) -> bool:
        """Add the values of one body to the columns; False if it is not a valid message."""
        self._total = 0
        left = self._count(data, at, end, False)
        at += 4
        while left > 0:
            name = at + 4
            kind = after_text(data, at, end)
            if kind < 0 or kind >= end:
                return False
            at = self._after(data, kind, end, 1)
            if at < 0:
                return False
            for column in self.columns:
                if column.is_named(data, name, kind - name):
                    if column.wants(row):
                        column.add(data, kind, at)
                    break
            left -= 1
        return left == 0 and at == end

    def _after(self, data: bytes, at: int, end: int, depth: int) -> int:
        """Return the end of the value whose type is at an offset; -1 if it is invalid.

        `depth` is its nesting. The offset must be before the end.
        """
        after = after_value(data, at, end)
        if after >= 0:
            return after
        kind = data[at]
        if kind in (_MESSAGE, _LIST) and depth < _DEPTH_MAX:
            return self._after_nested(data, at + 1, end, depth + 1, kind == _LIST)
        return -1

    def _after_nested(self, data: bytes, at: int, end: int, depth: int, is_list: bool) -> int:
        """Return the end of the message or list whose count is at an offset; -1 if invalid."""
        left = self._count(data, at, end, is_list)
        at += 4
        while left > 0:
            if not is_list:
                at = after_text(data, at, end)
            if at < 0 or at >= end:
                return -1
            at = self._after(data, at, end, depth)
            if at < 0:
                return -1
            left -= 1
        return at if left == 0 else -1

    def _count(self, data: bytes, at: int, end: int, is_list: bool) -> int:
        """Return the count at an offset; -1 if it is missing or invalid."""
        left = end - at - 4
        if left < 0:
            return -1
        count = i32_at(data, at)
        if count < 0 or count > (left if is_list else left // _FIELD_MIN_BYTES):
            return -1
        self._total += count
        if self._total > _VALUES_MAX or (count > _FIELDS_MAX and not is_list):
            return -1
        return count
