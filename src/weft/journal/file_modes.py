"""File permissions of a journal: other users of the machine must not read messages."""

import os

# Group-readable, so that Spark can run as another user.
JOURNAL = 0o640
# Staged rows belong to the gateway alone until they are published.
STAGED = 0o600
STAGED_FOLDER = 0o700


def journal_opener(path: str, flags: int) -> int:
    """Open a file of a journal; for use as the `opener` of open()."""
    return os.open(path, flags, JOURNAL)


def staged_opener(path: str, flags: int) -> int:
    """Open a file of staged rows; for use as the `opener` of open()."""
    return os.open(path, flags, STAGED)
