"""The key that Spark shows to gateways: read where it is used, so that no plan carries it."""

import logging

from weft.client.key_file import key_in

_log = logging.getLogger(__name__)


def key_at(key_file: str | None) -> str:
    """The key in a file of this machine; empty without one.

    Raises:
        BadOption: the file cannot be read, or holds no key.
    """
    return "" if key_file is None else key_in(key_file, _log.warning)
