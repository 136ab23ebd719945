"""Whether the context of variables is still what it was: handlers must not leave theirs behind.

To run each message in a copy of the context would cost a fifth of its way through the client. So
messages share one copy until a handler has changed it, and then the next message gets a new copy.
"""

from contextvars import Context, copy_context


def is_changed(base: Context) -> bool:
    """Return whether a variable was set in the current context, which began as a copy of base."""
    return copy_context() != base
