"""What one process of a measurement is told, and what is said between it and whoever started it.

The publisher is started first and says when it can be reached, then the receivers say when they
listen. Only then the publisher is told to go, and by whom processor time is used.
"""

import json
import sys
from typing import Any

import msgspec

SUBJECT = "load.0"
QUESTION, ANSWER = b"ping", b"pong"

Figures = dict[str, float]


class Part(msgspec.Struct, frozen=True):
    """The part of one process: where to meet the others, and what is measured."""

    way: str
    case: str
    # An address, in the words of the library.
    at: str
    receivers: int
    size: int
    seconds: float
    # Ends of pipes: a receiver tells of what it has heard, the publisher is told.
    pipes: list[int]


class Spenders(msgspec.Struct, frozen=True):
    """The processes whose time counts."""

    clients: list[int]
    gateway: list[int]


def say(words: Any) -> None:
    """Tell whoever started this process."""
    print(json.dumps(words), flush=True)


def wait_to_go() -> Spenders:
    """Wait until everybody is there; who that is."""
    return msgspec.json.decode(sys.stdin.readline(), type=Spenders)


def wait_until_over() -> None:
    """Wait until whoever started this process closes its standard input."""
    sys.stdin.read()
