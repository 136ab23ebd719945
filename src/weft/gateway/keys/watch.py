"""Keys of a gateway, read again when their file changes.

An unusable or missing file, and a file that has lost all its keys, leaves the keys unchanged: a
mistake must not grant access. Each state of the file is logged once.
"""

import logging
from pathlib import Path

from weft.broker.auth.keys import Keyring
from weft.errors import BadOption
from weft.gateway.keys.key_file import Records, path_of, read_keys

_log = logging.getLogger(__name__)

LOOK_S = 1.0

# Modification time, inode, size and mode of a file.
State = tuple[int, int, int, int]


class KeyWatch:
    """Keys in one data folder; without a folder there are none.

    Raises:
        BadOption: The file exists and is unusable.
    """

    def __init__(self, data: str, gateway: str) -> None:
        self._path = path_of(Path(data)) if data else None
        self._about = {"gateway": gateway}
        self._state = self._look()
        # None: there are no keys, and every client is trusted.
        self.records: Records | None = None
        self.keyring: Keyring | None = None
        # Current problem of the file; empty if there is none.
        self.problem = ""
        if self._path is not None:
            self._take(read_keys(self._path))

    def look(self) -> bool:
        """Read the file again if it has changed; return whether the keys have changed."""
        state = self._look()
        if self._path is None or state == self._state:
            return False
        self._state = state
        before = self.records
        try:
            records = read_keys(self._path)
        except BadOption as error:
            self._complain(str(error))
            return False
        if not records and before:
            what = "does not exist any more" if state is None else "has no keys any more"
            self._complain(f"keys in {self._path} cannot be used: the file {what}")
            return False
        self.problem = ""
        if (records or None) == before:
            return False
        self._take(records)
        keys = f"{len(records)} key{'s' if len(records) != 1 else ''}"
        _log.info("read %s from %s", keys, self._path, extra=self._about)
        return True

    def _complain(self, problem: str) -> None:
        self.problem = problem
        _log.error("%s; the keys stay as they were", problem, extra=self._about)

    def _take(self, records: Records) -> None:
        if records:
            self.records = records
            self.keyring = Keyring(records)

    def _look(self) -> State | None:
        if self._path is None:
            return None
        try:
            facts = self._path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_ino, facts.st_size, facts.st_mode
