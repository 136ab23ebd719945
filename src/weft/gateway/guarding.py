"""Which pages need a key, and whose: `Authorization: Bearer KEY`.

A key is never taken from a URL: those are logged, and kept by browsers. Probes need none. As soon
as there are keys, one is asked of everybody, on this machine too: who else runs here is not known.
"""

import time
from typing import Protocol
from urllib.parse import unquote

from weft.core.keys import Key, Keyring
from weft.core.rights import REPLAY
from weft.errors import BadKey, NotAllowed
from weft.gateway.finding import CLOSEST, NODES, service_in

# What is lent by another process.
LENT = "/journal/"
_GUARDED = {"/status", "/metrics", NODES}
_BEARER = "bearer "


class Keys(Protocol):
    """Whoever knows the keys of a gateway."""

    @property
    def keyring(self) -> Keyring | None:
        """All of them, as they are now; None if there are none."""


def check_page(keys: Keys, path: str, authorization: str, query: str = "") -> None:
    """See that whoever sent this header may see the page at a path, with what is asked of it.

    Raises:
        BadKey: it sent no key, or one that is not accepted.
        NotAllowed: its key is not for this page.
    """
    is_lent = path.startswith(LENT)
    if keys.keyring is None or not (is_lent or path in _GUARDED or path == CLOSEST):
        return
    key = _key(keys.keyring, authorization)
    if path == CLOSEST:
        # For clients, too: whoever may come in may look for where.
        if not key.record.is_for(service_in(query)):
            raise NotAllowed("this key is not for that service")
        return
    if key.is_client:
        raise NotAllowed("this page is for keys of services and admins")
    if is_lent:
        service = unquote(path.split("/")[2])
        if not key.record.is_for(service) or not _may_borrow(key):
            raise NotAllowed(f"this key may not read the journal of {service[:63]!r}")


def _key(keyring: Keyring, authorization: str) -> Key:
    if not authorization:
        raise BadKey("a key is needed: Authorization: Bearer KEY")
    text = authorization[len(_BEARER) :].strip()
    is_bearer = authorization.lower().startswith(_BEARER)
    key = keyring.match(text if is_bearer else "", time.time_ns())
    if key is None:
        raise BadKey("the key is not accepted")
    return key


def _may_borrow(key: Key) -> bool:
    """Say if a key may read a journal that is lent as it is: all of it, and nothing denied."""
    rule = key.rules[REPLAY]
    return not rule.deny and rule.grants(b">")
