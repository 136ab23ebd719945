"""Authorization of HTTP pages: `Authorization: Bearer KEY`.

A key is never taken from a URL: those are logged, and kept by browsers. Probes need no key. Once
there are keys, every client needs one, on this machine too: it may have other users.
"""

import time
from typing import Protocol
from urllib.parse import unquote

from weft.broker.auth.keys import Key, Keyring
from weft.broker.auth.permissions import REPLAY, RIGHTS, SUBSCRIBE
from weft.errors import BadKey, NotAllowed
from weft.gateway.http.discovery import CLOSEST, NODES, service_in
from weft.wire.subjects import is_reserved

# Served by another process.
LENT = "/journal/"
_GUARDED = {"/status", "/metrics", NODES}
_BEARER = "bearer "


class KeyProvider(Protocol):
    """Provider of the keys of a gateway."""

    @property
    def keyring(self) -> Keyring | None:
        """Current keys; None if there are none."""


def check_page(
    keys: KeyProvider, path: str, authorization: str, query: str = "", kept: tuple[bytes, ...] = ()
) -> Key | None:
    """Check that the sender of this header may read the page at a path.

    Args:
        keys: The keys of the gateway.
        path: The path of the page.
        authorization: The value of the header of this name; empty if there is none.
        query: The query of the page's URL.
        kept: The patterns of the journal that is served.

    Returns:
        The key in the header; None where none is needed.

    Raises:
        BadKey: Missing or invalid key.
        NotAllowed: The key does not permit this page.
    """
    is_lent = path.startswith(LENT)
    if keys.keyring is None or not (is_lent or path in _GUARDED or path == CLOSEST):
        return None
    key = _key(keys.keyring, authorization)
    if path == CLOSEST:
        # Open to clients: a key that may connect to a service may look up its gateways.
        if not key.record.is_for(service_in(query)):
            raise NotAllowed("this key is not for that service")
        return key
    if key.is_client:
        raise NotAllowed("this page needs a key of a service or an admin")
    if is_lent:
        service = unquote(path.split("/")[2])
        if not key.record.is_for(service):
            raise NotAllowed(f"this key may not read the journal of {service[:63]!r}")
        _check_reader(key, service, kept)
    return key


def _key(keyring: Keyring, authorization: str) -> Key:
    if not authorization:
        raise BadKey("a key is needed: Authorization: Bearer KEY")
    text = authorization[len(_BEARER) :].strip()
    is_bearer = authorization.lower().startswith(_BEARER)
    key = keyring.match(text if is_bearer else "", time.time_ns())
    if key is None:
        raise BadKey("the key is not accepted")
    return key


def _check_reader(key: Key, service: str, kept: tuple[bytes, ...]) -> None:
    """Refuse a key that may not subscribe to and replay every subject of a journal.

    Files are served whole, so a key without permission for one subject may not read any.
    """
    # '>' does not cover reserved subjects, such as _LOCAL.x, that a journal may keep as well.
    subjects = (b">", *(pattern for pattern in kept if is_reserved(pattern)))
    for right in (SUBSCRIBE, REPLAY):
        rule = key.rules[right]
        if any(rule.denies(each) or not rule.grants(each) for each in subjects):
            raise NotAllowed(
                f"this key may not read the journal of {service[:63]!r}: it is served whole, to"
                " keys that may subscribe to and replay every subject, and this one may not"
                f" {RIGHTS[right]} all; with since= its connections read all permitted subjects"
            )
