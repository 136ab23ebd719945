"""Key that Spark presents to gateways, read on each machine so that no query plan contains it."""

import logging

from weft.client.key_file import key_in

_log = logging.getLogger(__name__)


def key_at(key_file: str | None) -> str:
    """Return the key in a file of this machine; empty without one.

    Raises:
        BadOption: Unreadable file, or one without a key.
    """
    return "" if key_file is None else key_in(key_file, _log.warning)
