"""Frames of the arena that came in an envelope, all to one subject."""

from weft.wire.byteops import u32_at


class Load:
    """Where they lie, how many there are, whose they are; `number` is that of the first."""

    def __init__(self) -> None:
        self.origin = 0
        self.flags = 0
        self.group = b""
        # The mark of the interest that they were sent by; 0: not told.
        self.mark = 0
        self.number = 0
        self.start = 0
        self.end = 0
        self.count = 0

    def skip(self, data: bytearray, until: int) -> int:
        """Leave out those before a number; how many that are."""
        skipped = 0
        while self.count > 0 and self.number < until:
            self.start += u32_at(data, self.start)
            self.number += 1
            self.count -= 1
            skipped += 1
        return skipped
