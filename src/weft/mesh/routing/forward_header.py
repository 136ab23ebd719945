"""The frame in front of messages that says which gateways they are for, and by which way.

    32-byte header: origin at 8, count of frames that follow at 12, entries at 16 (u16), hops at 18
    name of a queue group, if they are for one member of it
    path: hops numbers of gateways (u32), the origin first, whoever sent it last
    entries of 16 bytes: number (u32), below (u16), interest (u16), number of the first frame (u64)

The entries are the tree that the origin wants the messages to take, in pre-order: `below` says how
many of those that follow are behind this one. The first is the gateway that gets the frame.

The lower byte of `interest` is 0 where the frames only pass through. Otherwise both bytes hold,
modulo 65,280, the version of that gateway's interest that the origin knew when it sent the frames;
valid if the flag INTEREST is set.
"""

from typing import NamedTuple

from weft.errors import BadFrame
from weft.wire.byteops import Bytes, put_u32, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Kind

ENTRY_BYTES = 16
COUNT_AT = 12
ENTRIES_AT = 16
HOPS_AT = 18
# More than any sensible mesh is wide.
HOPS_MAX = 32
# The entries are counted by a u16.
ENTRIES_MAX = 65_535

# What the frames that follow are, and whom they are for.
PLAIN = 1  # messages for all who are subscribed to them
GROUP = 2  # messages for one member of the named group
ONE = 4  # requests, replies and refusals: each says itself whom it is for
AGAIN = 8  # they were sent before
WORD = 16  # one word of a gateway to another; it has no number
TRACE = 32  # a word that everyone on the way hears, with what became of it there
INTEREST = 64  # entries carry the version of the destination's interest

# The mark of version 0, and of a destination whose version is not told.
FIRST_MARK = 1
# Versions of interest that have different marks.
MARKS = 255 * 256


class Entry(NamedTuple):
    """A gateway on the way of messages."""

    number: int
    below: int
    is_for: bool
    first: int = 0
    mark: int = FIRST_MARK


class Envelope(NamedTuple):
    """One taken apart, for people, tests and what is rare."""

    flags: int
    group: bytes
    frame_count: int
    path: tuple[int, ...]
    entries: tuple[Entry, ...]


def mark_of(version: int) -> int:
    """Return the mark of a version of interest: two bytes, of which the lower is never 0."""
    index = version % MARKS
    return 1 + index % 255 + (index // 255 << 8)


def version_of(mark: int, newest: int) -> int:
    """Return the version that a mark stands for: the latest possible up to `newest`."""
    index = (mark & 255) - 1 + 255 * (mark >> 8)
    return newest - (newest - index) % MARKS


def make(flags: int, group: bytes, path: list[int], entries: list[Entry]) -> bytearray:
    """The bytes of an envelope; the count is 0 until somebody puts it in.

    Raises:
        BadFrame: there are more hops or entries than it can hold.
    """
    if not 0 < len(path) <= HOPS_MAX or not 0 < len(entries) <= ENTRIES_MAX:
        raise BadFrame(f"{len(path)} hops and {len(entries)} entries make no envelope")
    header = bytearray(HEADER_BYTES)
    header[4] = int(Kind.FORWARD)
    header[5] = flags
    header[7] = len(group)
    put_u32(header, 8, path[0])
    header[ENTRIES_AT : ENTRIES_AT + 2] = len(entries).to_bytes(2, "little")
    header[HOPS_AT] = len(path)
    header += group
    for number in path:
        header += number.to_bytes(4, "little")
    for number, below, is_for, first, mark in entries:
        header += number.to_bytes(4, "little")
        header += below.to_bytes(2, "little")
        header += (mark if is_for else 0).to_bytes(2, "little")
        header += first.to_bytes(8, "little")
    put_u32(header, 0, len(header))
    return header


def entries_at(data: Bytes) -> int:
    """Where the entries of an envelope that was checked begin."""
    return HEADER_BYTES + data[7] + 4 * data[HOPS_AT]


def check(data: Bytes) -> None:
    """Make sure that bytes are one envelope, so that its parts can be read without looking further.

    Raises:
        BadFrame: they are not.
    """
    length = len(data)
    if length < HEADER_BYTES + 4 + ENTRY_BYTES or u32_at(data, 0) != length:
        raise BadFrame(f"{length} bytes are not one whole envelope")
    hops = data[HOPS_AT]
    entries = data[ENTRIES_AT] + 256 * data[ENTRIES_AT + 1]
    if data[4] != int(Kind.FORWARD) or data[6] != 0 or not 0 < hops <= HOPS_MAX or entries == 0:
        raise BadFrame(f"an envelope with {hops} hops and {entries} entries cannot be")
    if length != HEADER_BYTES + data[7] + 4 * hops + ENTRY_BYTES * entries:
        raise BadFrame(f"an envelope of {length} bytes does not hold what it says")
    if u32_at(data, COUNT_AT) == 0:
        raise BadFrame("an envelope is for one frame at least")


def read(data: Bytes) -> Envelope:
    """Take an envelope apart.

    Raises:
        BadFrame: it is none.
    """
    check(data)
    at = HEADER_BYTES + data[7]
    path = tuple(u32_at(data, at + 4 * hop) for hop in range(data[HOPS_AT]))
    entries = tuple(
        Entry(
            u32_at(data, at),
            data[at + 4] + 256 * data[at + 5],
            data[at + 6] != 0,
            u64_at(data, at + 8),
            (data[at + 6] + 256 * data[at + 7]) or FIRST_MARK,
        )
        for at in range(entries_at(data), len(data), ENTRY_BYTES)
    )
    group = bytes(data[HEADER_BYTES : HEADER_BYTES + data[7]])
    return Envelope(data[5], group, u32_at(data, COUNT_AT), path, entries)
