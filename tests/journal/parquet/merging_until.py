"""Merges a day of a journal, and dies before its nth change of the files: `… ROOT DAY NTH`.

It dies as by `kill -9`: nothing is tidied up, and nothing more is written.
"""

import os
import sys
from pathlib import Path

from weft.journal.parquet.compact import merge_day
from weft.journal.segment.file_names import JournalFolder

left = int(sys.argv[3])


def die_in_time(event: str, arguments: tuple[object, ...]) -> None:
    """Count what changes files."""
    global left  # noqa: PLW0603  # a hook has no other memory
    is_change = event in ("os.rename", "os.remove") or (
        event == "open"
        and isinstance(arguments[2], int)
        and arguments[2] & (os.O_CREAT | os.O_RDWR)
    )
    if is_change:
        left -= 1
        if left < 0:
            os._exit(9)


sys.addaudithook(die_in_time)
list(merge_day(JournalFolder(Path(sys.argv[1]), "weather", "london"), sys.argv[2], 1 << 20))
