"""A message published with `acknowledge`, from the call until its frame is sent."""

from weft.client.requests.waiters import Single
from weft.wire.frames import parse


class Pending:
    """The frame of an acknowledged message, and who awaits its OK or ERROR.

    The answer can only come once the frame is sent, so the question joins the connection's line of
    questions then: frames that leave in one order are answered in the same.
    """

    def __init__(self, frame: bytes, waiter: Single) -> None:
        parts = parse(frame)
        self.frame = frame
        self.subject = parts.subject
        self.reply = parts.reply
        self.waiter = waiter
        # Where its frame ends, counted in all bytes that were ever put into the buffer.
        self.end = 0
        # Timed out or cancelled: not worth sending over a connection that is yet to come.
        self.is_given_up = False
