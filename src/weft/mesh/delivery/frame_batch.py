"""Batch of consecutive frames of one subject behind a forwarding header."""

from weft.wire.byteops import u32_at


class Load:
    """Position and number of the frames in the arena; `number` is that of the first."""

    def __init__(self) -> None:
        self.origin = 0
        self.flags = 0
        self.group = b""
        # Interest mark that the frames were sent by; 0: none.
        self.mark = 0
        self.number = 0
        self.start = 0
        self.end = 0
        self.count = 0

    def skip(self, data: bytearray, until: int) -> int:
        """Skip the frames below a number; return how many."""
        skipped = 0
        while self.count > 0 and self.number < until:
            self.start += u32_at(data, self.start)
            self.number += 1
            self.count -= 1
            skipped += 1
        return skipped
