"""Rows as messages, without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from weft.errors import BadOption
from weft.spark.row_encoder import BadRow, Rows
from weft.wire.frames import BODY_LIMIT_MAX_BYTES, Flag, Run
from weft.wire.message.message import Message


def row(**columns: Any) -> dict[str, pa.Array]:
    return {"subject": pa.array(["a.b"]), **{name: pa.array([v]) for name, v in columns.items()}}


def test_a_column_named_flags_is_a_field_as_any_other() -> None:
    batch = pa.RecordBatch.from_pydict(row(flags="red", n=1))
    (frame,) = Rows(batch.schema, None).frames(batch)
    assert Message(flags="red", n=1).encode() in frame


def test_flags_beside_a_payload_say_whether_it_is_a_message() -> None:
    body = Message(n=1).encode()
    for flags, is_bare in ((0, 0), (int(Flag.BARE), Flag.BARE)):
        batch = pa.RecordBatch.from_pydict(row(payload=body, flags=flags))
        (frame,) = Rows(batch.schema, None).frames(batch)
        assert body in frame
        run = Run(BODY_LIMIT_MAX_BYTES)
        assert run.read(frame, 0, len(frame))
        assert run.flags & Flag.BARE == is_bare


def test_flags_beside_a_payload_are_integers_and_there() -> None:
    batch = pa.RecordBatch.from_pydict(row(payload=b"x", flags="red"))
    with pytest.raises(BadOption, match="column 'flags' beside 'payload' is string"):
        Rows(batch.schema, None)
    columns = {**row(payload=b"x"), "flags": pa.array([None], pa.int32())}
    batch = pa.RecordBatch.from_pydict(columns)
    with pytest.raises(BadRow, match=r"row 0 .* its flags are null"):
        list(Rows(batch.schema, None).frames(batch))


def test_large_rows_are_taken_in_parts_and_in_order() -> None:
    bodies = [b"x" * (3 << 20) for _ in range(5)]
    columns = {"subject": [f"a.{n}" for n in range(5)], "payload": bodies}
    batch = pa.RecordBatch.from_pydict(columns)
    frames = [bytes(frame) for frame in Rows(batch.schema, None).frames(batch)]
    assert [frame[32:35] for frame in frames] == [b"a.%d" % n for n in range(5)]
    wrong = pa.RecordBatch.from_pydict(columns | {"payload": [*bodies[:4], None]})
    with pytest.raises(BadRow, match=r"row 4 .* its payload is null"):
        list(Rows(wrong.schema, None).frames(wrong))


def test_no_rows_are_no_messages() -> None:
    batch = pa.RecordBatch.from_pydict(row(payload=b"x")).slice(0, 0)
    assert list(Rows(batch.schema, None).frames(batch)) == []
