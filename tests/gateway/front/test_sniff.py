import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadFrame, BadGreeting, FrameTooBig, ProtocolError
from weft.gateway.front.sniff import GREETING, HANDSHAKE, LINK, MORE, REQUEST, Classification
from weft.gateway.front.sniff import look as look_at
from weft.wire.frames import Kind, encode

LIMIT = 4096
CONNECT = encode(Kind.CONNECT, b"weather", b"body", b"me.1")


def look(data: bytes, limit_bytes: int) -> Classification:
    """What is said of these bytes at the start of a buffer, whatever lies behind them."""
    return look_at(bytearray(data + b"\xff" * 8), len(data), limit_bytes)


def needed(data: bytes) -> int:
    verdict = look(data, LIMIT)
    assert verdict.want == MORE
    return verdict.needed


def service(data: bytes, limit_bytes: int = LIMIT) -> str:
    verdict = look(data, limit_bytes)
    assert verdict.want == GREETING
    return verdict.service


@pytest.mark.parametrize("count", range(4))
def test_four_bytes_are_needed_to_say_anything(count: int) -> None:
    assert needed(CONNECT[:count]) == 4


@pytest.mark.parametrize("count", range(4, len(CONNECT)))
def test_a_greeting_is_waited_for_until_it_is_whole(count: int) -> None:
    assert needed(CONNECT[:count]) == len(CONNECT)


def test_a_whole_greeting_names_its_service() -> None:
    assert service(CONNECT) == "weather"


@pytest.mark.req("MM-12")
def test_a_link_is_told_from_a_client() -> None:
    verdict = look(encode(Kind.LINK, b"weather", b"hello"), LIMIT)
    assert (verdict.want, verdict.service) == (LINK, "weather")


def test_no_more_is_looked_at_than_there_is() -> None:
    with pytest.raises(ValueError, match="5 bytes are not in a buffer of 4"):
        look_at(bytearray(4), 5, LIMIT)


def test_what_follows_a_greeting_does_not_matter() -> None:
    assert service(CONNECT + b"\xff" * 100) == "weather"


@pytest.mark.parametrize("size", [0, 3, 4, 31])
def test_a_size_under_the_header_s_is_refused(size: int) -> None:
    with pytest.raises(BadFrame, match=f"size of {size} bytes"):
        look(size.to_bytes(4, "little"), LIMIT)


@pytest.mark.parametrize("size", [LIMIT + 1, 1 << 20, (1 << 32) - 1])
def test_a_size_over_the_limit_is_refused_on_four_bytes(size: int) -> None:
    with pytest.raises(FrameTooBig, match=f"{size} bytes is over the limit of {LIMIT}"):
        look(size.to_bytes(4, "little"), LIMIT)


def test_a_greeting_may_be_as_large_as_the_limit() -> None:
    greeting = encode(Kind.CONNECT, b"weather", b"b" * (LIMIT - 32 - 7))
    assert len(greeting) == LIMIT
    assert service(greeting) == "weather"


@pytest.mark.parametrize("kind", sorted({*range(16)} - {Kind.CONNECT, Kind.LINK}))
def test_a_first_frame_of_another_kind_is_refused(kind: int) -> None:
    with pytest.raises(BadGreeting, match=f"of kind {kind}"):
        look(encode(kind, b"weather"), LIMIT)


def test_names_that_are_longer_than_the_frame_are_refused() -> None:
    frame = bytearray(encode(Kind.CONNECT, b"weather"))
    frame[7] = 1
    with pytest.raises(BadFrame, match="subject and reply of 8 bytes exceed"):
        look(bytes(frame), LIMIT)


@pytest.mark.parametrize("name", [b"", b"_WEFT", b"a.b", b"a b", b"\xff", b"x" * 64, b"a\n"])
def test_a_service_that_cannot_be_is_refused_without_repeating_it(name: bytes) -> None:
    with pytest.raises(BadGreeting) as caught:
        look(encode(Kind.CONNECT, name), LIMIT)
    assert f"these {len(name)} bytes" in str(caught.value)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_http_is_known_by_its_method(method: str) -> None:
    assert look(f"{method} / HTTP/1.1\r\n".encode(), LIMIT).want == REQUEST


def test_tls_is_known_by_its_first_record() -> None:
    assert look(b"\x16\x03\x01\x02\x00\x01\x00", LIMIT).want == HANDSHAKE


def test_a_greeting_is_no_handshake_whatever_its_size() -> None:
    # The first bytes of this size are those of a handshake.
    body = bytes(790 - len(encode(Kind.CONNECT, b"default")))
    greeting = encode(Kind.CONNECT, b"default", body)
    assert greeting.startswith(b"\x16\x03")
    assert service(greeting, 1024) == "default"


@pytest.mark.parametrize("text", [b"SSH-2.0-x\r\n", b"EHLO x\r\n", b"get / HTTP/1.1\r\n"])
def test_another_protocol_is_refused(text: bytes) -> None:
    with pytest.raises(FrameTooBig):
        look(text, LIMIT)


@given(st.binary(max_size=200))
def test_any_bytes_get_a_verdict_or_a_named_error(data: bytes) -> None:
    try:
        verdict = look(data, LIMIT)
    except ProtocolError:
        return
    if verdict.want == MORE:
        assert len(data) < verdict.needed <= LIMIT


@given(st.binary(max_size=64), st.integers(min_value=0))
def test_a_refusal_does_not_depend_on_how_much_came(tail: bytes, cut: int) -> None:
    data = CONNECT[:6] + tail
    whole = _outcome(data)
    early = _outcome(data[: cut % (len(data) + 1)])
    assert early in {whole, MORE}


def _outcome(data: bytes) -> int | type:
    try:
        return look(data, LIMIT).want
    except ProtocolError as error:
        return type(error)
