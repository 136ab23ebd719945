"""Knows the keys of a gateway, and notices when their file changes.

A file that cannot be used, that is gone, or that has no key left where there were some, leaves the
keys as they were: a mistake must open nothing. It is said once for each state of the file.
"""

import logging
from pathlib import Path

from weft.broker.auth.keys import Keyring
from weft.errors import BadOption
from weft.gateway.keys.key_file import Records, path_of, read_keys

_log = logging.getLogger(__name__)

LOOK_S = 1.0

# Of a file: when it was written, which it is, how large, and who may get at it.
State = tuple[int, int, int, int]


class KeyWatch:
    """The keys in one data folder; a gateway without one has none.

    Raises:
        BadOption: the file is there and cannot be used.
    """

    def __init__(self, data: str, gateway: str) -> None:
        self._path = path_of(Path(data)) if data else None
        self._about = {"gateway": gateway}
        self._state = self._look()
        # None: there are no keys, and everyone is trusted.
        self.records: Records | None = None
        self.keyring: Keyring | None = None
        # What is wrong with the file; empty if nothing is.
        self.problem = ""
        if self._path is not None:
            self._take(read_keys(self._path))

    def look(self) -> bool:
        """Read the file again if it has changed; say if there are other keys now."""
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
            what = "is gone" if state is None else "has no keys any more"
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
