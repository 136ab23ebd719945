"""Bayeux sessions of a service: bounded in number, found by unguessable ids."""

import hashlib
import secrets

from weft.broker.auth.key_connections import holder_of
from weft.broker.auth.key_quota import KeyQuota
from weft.errors import BadKey, Overloaded, TooMany
from weft.transports.bayeux.protocol import HandshakeCredentials
from weft.transports.bayeux.session import BayeuxSession
from weft.transports.http.exchange import Request
from weft.transports.http.server import HttpServer, bearer
from weft.transports.replay_memory import Account
from weft.wire.frame_splitting import greeting

_ID_BYTES = 24


class Sessions:
    """Sessions between handshake and disconnect, by id."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house
        self._known: dict[str, BayeuxSession] = {}
        self._shares = KeyQuota("Bayeux sessions")

    def __len__(self) -> int:
        return len(self._known)

    def open(self, shown: HandshakeCredentials, request: Request) -> BayeuxSession:
        """Authenticate a client by its key or ticket; return its session.

        Raises:
            Overloaded: the limit of sessions is reached.
            TooMany: the limit of sessions of its key is reached.
            WeftError: the client was refused.
        """
        limit = self._house.rules.bayeux_sessions
        if len(self._known) >= limit:
            raise Overloaded(f"{limit} sessions are open, which is the limit")
        ticket = shown.ticket or request.query.get("ticket", "")
        key = shown.key or ("" if ticket else bearer(request))
        session = BayeuxSession(
            self._house, secrets.token_urlsafe(_ID_BYTES), wants_acks=shown.wants_acks
        )
        session.reads_binary = shown.reads_binary
        session.proof = _proof(key)
        seat = session.seat
        seat.say(greeting(self._house.service.name, "bayeux", key=key, ticket=ticket))
        if not seat.peer.is_greeted:
            error = seat.peer.error or BadKey("authentication failed")
            seat.end(error)
            raise error
        holder = holder_of(seat.peer, request.connection)
        try:
            self._shares.check(holder, limit, self._house.limits)
        except TooMany as error:
            seat.end(error)
            raise
        self._shares.add(holder)
        session.account = Account(self._house.kept, holder)
        self._known[session.known_by] = session
        session.on_over = self._forget
        return session

    def find(self, known_by: object, request: Request) -> BayeuxSession | None:
        """Return the session with an id; None if unknown, or the request has a different key."""
        session = self._known.get(known_by) if isinstance(known_by, str) else None
        key = bearer(request)
        if session is not None and key and _proof(key) != session.proof:
            return None
        return session

    def sweep(self, now_ns: int) -> None:
        """Do periodic work of every session."""
        for session in list(self._known.values()):
            session.sweep(now_ns)

    def _forget(self, session: BayeuxSession) -> None:
        self._known.pop(session.known_by, None)
        self._shares.add(session.account.holder, -1)


def _proof(key: str) -> bytes:
    """Return the digest of a key, for comparison without storing the key."""
    return hashlib.sha256(key.encode(errors="replace")).digest() if key else b""
