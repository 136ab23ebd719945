"""Bayeux messages that came in one text, answered in one as soon as all their answers are there."""

from collections.abc import Callable

from weft.dialects.bayeux import Said, text_of


class Asked:
    """One message, and the answer to it once that is known."""

    __slots__ = ("answer", "batch", "message")

    def __init__(self, message: Said, batch: "Batch") -> None:
        self.message = message
        self.batch = batch
        self.answer: Said | None = None


class Batch:
    """The messages of one text; `delivered` goes out with their answers, and before them."""

    __slots__ = ("_send", "asked", "delivered")

    def __init__(self, messages: list[Said], send: Callable[[bytes], None]) -> None:
        self.asked = [Asked(message, self) for message in messages]
        self.delivered: list[bytes] = []
        self._send: Callable[[bytes], None] | None = send

    def settle(self) -> None:
        """Answer if everything is there; once."""
        send = self._send
        answers = [each.answer for each in self.asked if each.answer is not None]
        if send is not None and len(answers) == len(self.asked):
            self._send = None
            send(array_of([*self.delivered, *map(text_of, answers)]))


def array_of(pieces: list[bytes]) -> bytes:
    """A text of messages that are put into words already."""
    return b"[" + b",".join(pieces) + b"]"
