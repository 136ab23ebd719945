"""Permissions of the files of a journal: messages are not for every user of the machine."""

import os

# The group may read a journal, so that Spark can run as another user.
JOURNAL = 0o640
# Staged rows are the gateway's own until they are published.
STAGED = 0o600
STAGED_FOLDER = 0o700


def journal_opener(path: str, flags: int) -> int:
    """Open a file of a journal; an `opener` of open()."""
    return os.open(path, flags, JOURNAL)


def staged_opener(path: str, flags: int) -> int:
    """Open a file of staged rows; an `opener` of open()."""
    return os.open(path, flags, STAGED)
