import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField
from weft.transports.bayeux.z85 import decode, encode

DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", b""),
        # The vector of the specification, ZeroMQ RFC 32.
        (bytes.fromhex("864FD26FB559F75B"), b"HelloWorld"),
        (bytes(4), b"00000"),
        (b"\xff\xff\xff\xff", b"%nSc0"),
    ],
)
def test_bytes_are_text(data: bytes, text: bytes) -> None:
    assert encode(data) == text
    assert decode(text) == data


@given(st.binary(max_size=40))
def test_bytes_of_any_length_come_back(data: bytes) -> None:
    text = encode(data)
    assert decode(text) == data
    assert len(text) == len(data) // 4 * 5 + (len(data) % 4 + 1 if len(data) % 4 else 0)
    assert set(text) <= set(DIGITS)


@given(st.binary(max_size=40) | st.text(DIGITS.decode(), max_size=40).map(str.encode))
def test_any_text_is_bytes_or_refused(text: bytes) -> None:
    try:
        data = decode(text)
    except BadField:
        return
    # Of a last group that is not whole, several texts are the same bytes.
    assert len(data) == len(text) // 5 * 4 + max(0, len(text) % 5 - 1)
    assert set(text) <= set(DIGITS)


@pytest.mark.parametrize(
    "text", [b"0", b"000000", b"a b c", b"ab;", b"\n\n", b"#####", b"##", b"1234\n", b"\xff" * 5]
)
def test_what_is_no_z85_is_refused(text: bytes) -> None:
    with pytest.raises(BadField, match="Z85"):
        decode(text)
