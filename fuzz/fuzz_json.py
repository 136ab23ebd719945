"""Fuzzes Message.from_json: JSON becomes BadField, or a message that survives the way back."""

import sys
from collections.abc import Iterator

from fuzz.targets import Broken, Target, said
from weft.errors import BadField
from weft.wire.message.message import Message


def outcome(data: bytes) -> str:
    """Read an input as bytes, then as text, and say both messages or refusals."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        said_of_both = _read(data)
    else:
        said_of_both = f"{_read(data)}\n{_read(text)}"
    # json counts nesting on top of the stack it is called from, which is shorter in the compiled
    # core: near Python's limit the cores may refuse the same input for different reasons.
    is_deep = data.count(b"[") + data.count(b"{") > sys.getrecursionlimit() - 100
    return "too deep to compare" if is_deep else said_of_both


def _read(text: str | bytes) -> str:
    try:
        message = Message.from_json(text)
    except BadField as error:
        return said(error)
    written = message.to_json()
    again = Message.from_json(written)
    if again != message:
        raise Broken(f"{message!r} became {again!r} on the way through JSON")
    if again.to_json() != written:
        raise Broken(f"{written!r} became {again.to_json()!r} when written again")
    return f"{written} {message!r} {message.encode().hex()}"


def _seeds() -> Iterator[bytes]:
    texts = (
        "{}",
        '{"a":1,"b":-2.5e3,"c":"text","d":true,"e":false,"f":null}',
        '{"list":[1,[2,[]],{"a":{}}],"message":{"x":{"y":"z"}}}',
        '{"blob":{"$blob":"AP8="},"empty":{"$blob":""}}',
        '{"t":{"$timestamp":"2026-01-31T12:00:00.123456789Z"}}',
        '{"t":{"$timestamp":"1677-09-21T00:12:43.145224192-23:59"}}',
        '[{"$double":"NaN"},{"$double":"Infinity"},{"$double":"-Infinity"}]',
        '{"d":[{"$double":"NaN"},{"$double":"Infinity"},{"$double":"-Infinity"}]}',
        '{"kept":{"$$blob":"AP8="},"two":{"$$$timestamp":1},"$blob":"top"}',
        '{"big":[9223372036854775807,9223372036854775808,18446744073709551615]}',
        '{"over":18446744073709551616}',
        '{"over":-9223372036854775809}',
        '{"huge":1e400}',
        '{"nan":NaN}',
        '{"twice":1,"twice":2}',
        '{"half":"\\ud800"}',
        '{"whole":"\\ud83d\\udc4b Grüße"}',
        '{"t":{"$timestamp":"2026-02-30T00:00:00Z"}}',
        '{"b":{"$blob":"not base64"}}',
        '{"b":{"$blob":"é"}}',
        '{"deep":' + "[" * 15 + "]" * 15 + "}",
        '{"deep":' + "[" * 16 + "]" * 16 + "}",
        "[" * 2000,
    )
    for text in texts:
        yield text.encode()
    yield '{"wide":"text"}'.encode("utf-16")
    yield '{"marked":"text"}'.encode("utf-8-sig")


_WORDS = (
    *(b'"$' + name + b'":"' for name in (b"blob", b"timestamp", b"double")),
    *(b'"$$' + name + b'":' for name in (b"blob", b"timestamp", b"double")),
    *(b'"NaN"', b'"Infinity"', b'"-Infinity"', b"NaN", b"Infinity", b"-Infinity"),
    *(b"true", b"false", b"null", b"{", b"}", b"[", b"]", b":", b",", b'"', b'"":'),
    *(b"0", b"-0", b"-0.0", b"1e308", b"5e-324", b"9223372036854775808", b"-9223372036854775809"),
    *(b"2026-01-31T12:00:00.5Z", b"+23:59", b"-00:00", b"T24:00:00", b".000000001"),
    *(b"\\ud800", b"\\udc00", b"\\u0000", b"\xed\xa0\x80", b"\xc3\xa9", b"AP8=", b"=="),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\0"),
)

TARGET = Target(outcome, _seeds, _WORDS)
