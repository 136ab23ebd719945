"""Field types, and the raw form of a message between its bytes and Python values.

Raw values: string `str`, integers `int`, double `float`, bool `bool`, blob `bytes`, null `None`,
timestamp `int` (ns since the epoch), message and list `Fields`.
"""

from enum import IntEnum
from typing import Any

from weft.errors import BadField

FIELDS_MAX = 4_096
DEPTH_MAX = 16
VALUES_MAX = 65_536

_FIELDS_MAX = FIELDS_MAX
_DEPTH_MAX = DEPTH_MAX
_VALUES_MAX = VALUES_MAX
_INDEXED_FROM = 9


class FieldType(IntEnum):
    """The type of a field, by its number on the wire."""

    STRING = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    DOUBLE = 6
    MESSAGE = 7
    BOOL = 8
    BLOB = 9
    LIST = 16
    NULL = 17
    TIMESTAMP = 18

    def __str__(self) -> str:
        return self.name.lower()


class Fields:
    """The fields of a message in order, or the items of a list, which have no names."""

    def __init__(self, is_list: bool) -> None:
        self.is_list = is_list
        self.names: list[str] = []
        self.kinds = bytearray()
        self.values: list[Any] = []
        # Levels of nesting including this one, and values including every nested one.
        self.depth = 1
        self.total = 0
        self._index: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def add(self, name: str, kind: int, raw: Any) -> None:
        """Append a field, or an item if this is a list.

        Raises:
            BadField: over a limit of messages.
        """
        if not self.is_list:
            if len(self.values) >= _FIELDS_MAX:
                raise BadField(f"over the limit of {_FIELDS_MAX} fields in a message")
            self.names.append(name)
        self.kinds.append(kind)
        self.values.append(raw)
        self.total += 1
        self._index = None
        if isinstance(raw, Fields):
            self.adopt(raw)
        if self.total > _VALUES_MAX:
            raise BadField(
                f"{self.total} values, nested ones counted, are over the limit of {_VALUES_MAX}"
            )
        if self.depth > _DEPTH_MAX:
            raise BadField(f"nesting {self.depth} deep is over the limit of {_DEPTH_MAX}")

    def adopt(self, child: "Fields") -> None:
        """Add the totals of a nested message or list."""
        self.total += child.total
        self.depth = max(self.depth, child.depth + 1)

    def find(self, name: str) -> int:
        """The position of the first field of this name, or -1."""
        if len(self.names) >= _INDEXED_FROM:
            return self._find_indexed(name)
        for position in range(len(self.names)):
            if self.names[position] == name:
                return position
        return -1

    def _find_indexed(self, name: str) -> int:
        if self._index is None:
            index: dict[str, int] = {}
            for position in range(len(self.names)):
                index.setdefault(self.names[position], position)
            self._index = index
        return self._index.get(name, -1)
