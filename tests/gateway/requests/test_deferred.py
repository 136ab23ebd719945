"""Answers that come later: what is too long for one is said instead."""

from weft.gateway.requests.deferred import too_long
from weft.wire.message.message import Message


def test_an_answer_over_the_limit_is_told_with_its_size() -> None:
    message = Message(text="x" * 100)
    size = len(message.encode())
    assert too_long(message, size) is None
    problem = too_long(message, size - 1)
    assert (
        str(problem) == f"an answer of {size} bytes is over the limit of {size - 1}: ask for less"
    )
