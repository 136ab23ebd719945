"""CometD's extensions `timesync` and `binary`.

With `timesync` a client learns the offset of its clock from the gateway's. With `binary` bytes are
Z85 text in a message's `data.data`, beside `last` and `meta`; in frames they are a blob.
"""

from dataclasses import dataclass
from typing import Any

from weft.errors import BadField
from weft.transports.bayeux import z85
from weft.wire.message.json_codec import data_from_fields, fields_from_data
from weft.wire.message.types import Fields, FieldType

TIMESYNC = "timesync"
BINARY = "binary"

Said = dict[str, Any]

_NUMBER_MAX = 1 << 53
_DATA_KEYS = {"data", "last", "meta"}


@dataclass(frozen=True, slots=True)
class TimeSync:
    """Clock values of a client and their time of arrival, all in milliseconds."""

    sent: float
    lag: float
    offset: float
    received: int

    def answer(self, now: int) -> Said:
        """Return the values for an answer that is sent now."""
        accuracy = self.sent + self.offset + self.lag - self.received
        held = max(0, now - self.received)
        return {"tc": self.sent, "ts": self.received, "p": held, "a": accuracy}


def time_sync_of(message: Said, received: int) -> TimeSync | None:
    """Return the clock values in a protocol message; None without them."""
    ext = message.get("ext")
    said = ext.get(TIMESYNC) if isinstance(ext, dict) else None
    if not isinstance(said, dict):
        return None
    sent, lag, offset = (said.get(name, 0) for name in ("tc", "l", "o"))
    if "tc" not in said or not all(map(_is_number, (sent, lag, offset))):
        return None
    return TimeSync(sent, lag, offset, received)


def is_binary(message: Said) -> bool:
    """Return whether the data of a message is binary, or its sender supports that."""
    ext = message.get("ext")
    said = ext.get(BINARY) if isinstance(ext, dict) else None
    return said is True or isinstance(said, dict)


def fields_from_binary(data: object) -> Fields:
    """Return the fields of binary data: one unnamed blob if there is nothing beside it.

    Raises:
        BadField: not binary data of the extension.
    """
    if not isinstance(data, dict) or not {"data"} <= data.keys() <= _DATA_KEYS:
        raise BadField("binary data is an object with data, last and meta")
    last, meta = data.get("last", True), data.get("meta")
    if not isinstance(last, bool) or not isinstance(meta, dict | None):
        raise BadField("in binary data, last is a boolean and meta an object")
    blob = _bytes_in(data["data"])
    fields = Fields(False)
    if last and not meta:
        fields.add("", FieldType.BLOB, blob)
        return fields
    fields.add("data", FieldType.BLOB, blob)
    fields.add("last", FieldType.BOOL, last)
    if meta:
        fields.add("meta", FieldType.MESSAGE, fields_from_data(meta))
    return fields


def binary_from_fields(fields: Fields) -> Said | None:
    """Return a message's fields as binary data; None if they have another form."""
    kinds = dict(zip(fields.names, fields.kinds, strict=True))
    values = dict(zip(fields.names, fields.values, strict=True))
    if len(kinds) < len(fields):
        return None
    if kinds == {"": FieldType.BLOB}:
        return {"data": z85.encode(values[""]).decode(), "last": True, "meta": {}}
    expected = {"data": FieldType.BLOB, "last": FieldType.BOOL, "meta": FieldType.MESSAGE}
    if not {"data", "last"} <= kinds.keys() or not kinds.items() <= expected.items():
        return None
    meta = data_from_fields(values["meta"]) if "meta" in values else {}
    return {"data": z85.encode(values["data"]).decode(), "last": values["last"], "meta": meta}


def _bytes_in(text: object) -> bytes:
    if not isinstance(text, str) or not text.isascii():
        raise BadField("binary data is text in Z85")
    return z85.decode(text.encode())


def _is_number(value: Any) -> bool:
    """Return whether a value is a valid number of milliseconds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < _NUMBER_MAX
