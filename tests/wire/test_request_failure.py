import pytest

from weft.errors import BadField, RequestFailed
from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Message
from weft.wire.request_failure import TEXT_MAX, failure_in, failure_message, is_failure


def answer(body: bytes, flags: int = Flag.FAILED) -> bytes:
    return encode(Kind.MESSAGE, b"_INBOX.1", body, flags=flags)


def test_the_text_of_a_responder_arrives_as_an_error() -> None:
    frame = answer(failure_message("no such symbol").encode())
    error = failure_in(frame)
    assert isinstance(error, RequestFailed)
    assert str(error) == "no such symbol"


def test_only_a_message_with_the_flag_is_a_failure() -> None:
    body = failure_message("x").encode()
    assert is_failure(answer(body))
    assert not is_failure(answer(body, Flag.NONE))
    assert not is_failure(encode(Kind.OK, b"_INBOX.1", flags=Flag.FAILED))


def test_a_text_is_bounded_on_both_sides() -> None:
    assert len(failure_message("x" * 5000)["text"]) == TEXT_MAX
    assert len(str(failure_in(answer(Message(text="x" * 5000).encode())))) == TEXT_MAX


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(BadField):
        failure_message(7)  # type: ignore[arg-type]  # what a caller may get wrong


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xff", Message().encode(), Message(text=7).encode(), Message(text="").encode()],
)
def test_a_failure_is_one_whatever_its_body_is(body: bytes) -> None:
    assert str(failure_in(answer(body))) == "the responder gave no reason"


def test_a_responder_cannot_speak_as_the_gateway() -> None:
    body = Message(number=4006, name="BadKey", text="gone").encode()
    assert type(failure_in(answer(body))) is RequestFailed
