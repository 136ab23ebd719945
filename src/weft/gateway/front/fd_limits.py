"""How many connections the limit on open files allows.

A connection costs its front nothing once a worker process has it, one descriptor if its service is
inline, and two more with TLS.
"""

import resource
from typing import NamedTuple

from weft.gateway.config.settings import Settings

# For everything that is no connection: listening, logs, HTTP requests, libraries.
RESERVE = 128
# What the front holds of each worker: both ends of the hand-over, the control channel, the process.
PER_SERVICE = 4
# What to plan with where the limit is "unlimited"; far more than one process serves.
_UNLIMITED = 1 << 20


class Room(NamedTuple):
    """How many connections may be there, and how many may wait to be greeted."""

    connections: int
    pending: int


def raise_limit() -> int:
    """Raise the limit on open files as far as it goes; the new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _plain(hard)


def limit_here() -> int:
    """The limit of this process as it is now."""
    return _plain(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def limit_of_worker() -> int:
    """The limit of a worker process, which raises it as far as it goes."""
    return _plain(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def room(settings: Settings, here: int, worker: int | None) -> Room:
    """What the settings ask for, lowered to what the limits allow.

    `here` is the limit of the front, `worker` that of a worker; None if services are inline.
    """
    usable = max(here - RESERVE - PER_SERVICE * settings.services_max, 8)
    # With TLS: the peer's socket, and both ends of the pair until one is passed on.
    per_pending = 3 if settings.tls.is_on else 1
    pending = max(min(settings.pending, usable // 4 // per_pending), 1)
    connections = settings.connections
    per_connection = 2 if settings.tls.is_on else 0
    if worker is None:
        per_connection += 1
    else:
        connections = min(connections, max(worker - RESERVE, 1))
    if per_connection:
        connections = min(connections, (usable - pending * per_pending) // per_connection)
    return Room(connections, pending)


def _plain(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit
