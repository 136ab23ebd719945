"""A message published with `acknowledge`, until it is acknowledged."""

from weft.client.requests.waiters import Single
from weft.wire.frames import parse


class Pending:
    """Frame of an acknowledged message, and the waiter of its OK or ERROR.

    The answer can only arrive after the frame was sent, so the waiter is registered then: frames
    are answered in the order in which they are sent.
    """

    def __init__(self, frame: bytes, waiter: Single) -> None:
        parts = parse(frame)
        self.frame = frame
        self.subject = parts.subject
        self.reply = parts.reply
        self.waiter = waiter
        # Position of the end of its frame in all bytes ever put into the buffer.
        self.end = 0
        # Timed out or cancelled: not to be sent over a later connection.
        self.is_given_up = False
