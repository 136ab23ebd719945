"""Awaiting in a context of variables of its own, within the same task."""

import types
from collections.abc import Awaitable, Coroutine, Generator
from contextvars import Context
from typing import Any


def in_context(context: Context, awaitable: Awaitable[object]) -> Awaitable[object]:
    """What to await so that every step of a coroutine runs in a context; others have their own."""
    if isinstance(awaitable, types.CoroutineType):
        return _Stepped(context, awaitable)
    return awaitable


class _Stepped:
    """A coroutine whose steps run in a context, whichever that of the task is."""

    def __init__(self, context: Context, coroutine: Coroutine[Any, Any, object]) -> None:
        self._context = context
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, object]:
        run = self._context.run
        send, throw = self._coroutine.send, self._coroutine.throw
        try:
            awaited = run(send, None)
            while True:
                try:
                    given = yield awaited
                except GeneratorExit:
                    run(self._coroutine.close)
                    raise
                except BaseException as error:
                    awaited = run(throw, error)
                else:
                    awaited = run(send, given)
        except StopIteration as ended:
            return ended.value
