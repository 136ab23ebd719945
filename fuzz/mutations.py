"""Inputs made from others by a few random changes, without any guidance.

Lengths are what decoders trip over, so numbers at the edges of their range are put in often.
"""

import random
from collections.abc import Sequence

_EDGES = (0, 1, 31, 32, 127, 128, 255, 4096, 65_535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
_CHANGES_MAX = 4
_STRETCH_MAX_BYTES = 64


def mutated(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """One input of the corpus with one to a few changes."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(1, _CHANGES_MAX)):
        change = chance.choice((_flip, _put_edge, _put_edge, _erase, _repeat, _insert, _truncate))
        change(data, chance)
    if chance.random() < 0.2:
        _splice(data, chance.choice(corpus), chance)
    return bytes(data)


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _put_edge(data: bytearray, chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    size = chance.choice((1, 4, 4, 8))
    edge = chance.choice(_EDGES) % (1 << 8 * size)
    data[at : at + size] = edge.to_bytes(size, "little")


def _erase(data: bytearray, chance: random.Random) -> None:
    start, end = _stretch(data, chance)
    del data[start:end]


def _repeat(data: bytearray, chance: random.Random) -> None:
    start, end = _stretch(data, chance)
    data[start:start] = data[start:end]


def _insert(data: bytearray, chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    data[at:at] = chance.randbytes(chance.randint(1, 8))


def _truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randint(0, len(data)) :]


def _splice(data: bytearray, other: bytes, chance: random.Random) -> None:
    data[chance.randint(0, len(data)) :] = other[chance.randint(0, len(other)) :]


def _stretch(data: bytearray, chance: random.Random) -> tuple[int, int]:
    start = chance.randint(0, len(data))
    return start, min(len(data), start + chance.randint(1, _STRETCH_MAX_BYTES))
