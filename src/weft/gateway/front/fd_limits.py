"""Number of connections that the limit on open files allows.

In the front a connection costs no descriptor once a worker process has it, one if its service is
inline, and two more with TLS.
"""

import resource
from typing import NamedTuple

from weft.gateway.config.settings import Settings

# For descriptors other than connections: listening socket, logs, HTTP requests, libraries.
RESERVE = 128
# Descriptors per worker in the front: both ends of fd passing, the control channel, the process.
PER_SERVICE = 4
# Assumed if the limit is "unlimited"; far more than one process serves.
_UNLIMITED = 1 << 20


class ConnectionLimits(NamedTuple):
    """Limits of connections, and of connections before their handshake."""

    connections: int
    pending: int


def raise_limit() -> int:
    """Raise the limit on open files to its maximum; return the new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _plain(hard)


def limit_here() -> int:
    """Return the current limit of this process."""
    return _plain(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def limit_of_worker() -> int:
    """Return the limit of a worker process, which raises it to its maximum."""
    return _plain(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def room(settings: Settings, here: int, worker: int | None) -> ConnectionLimits:
    """Return the configured numbers of connections, lowered to what the limits allow.

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
    return ConnectionLimits(connections, pending)


def _plain(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit
