"""Forwarding header: the frame in front of a batch, with its destinations and paths.

    32-byte header: origin at 8, count of frames that follow at 12, entries at 16 (u16), hops at 18
    name of a queue group, if the frames are for one member of it
    path: hops numbers of gateways (u32), the origin first, the sender last
    entries of 16 bytes: number (u32), below (u16), interest (u16), number of the first frame (u64)

The entries are the forwarding plan of the origin, a tree in pre-order: `below` is the number of
following entries that are below this one. The first entry is the gateway that gets the frame.

The lower byte of `interest` is 0 where the frames only pass through. Otherwise both bytes are the
interest version of that gateway, modulo 65,280, that the origin knew when it sent the frames; valid
if the flag INTEREST is set.
"""

from typing import NamedTuple

from weft.errors import BadFrame
from weft.wire.byteops import Bytes, put_u32, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Kind

ENTRY_BYTES = 16
COUNT_AT = 12
ENTRIES_AT = 16
HOPS_AT = 18
# Above the diameter of any sensible mesh.
HOPS_MAX = 32
# The entries are counted by a u16.
ENTRIES_MAX = 65_535

# Kind and addressing of the frames that follow.
PLAIN = 1  # messages for all subscribers
GROUP = 2  # messages for one member of the named group
ONE = 4  # requests, replies and errors, each addressed to one receiver
AGAIN = 8  # retransmitted
WORD = 16  # a control message, which has no number
TRACE = 32  # a control message that every hop handles, after forwarding it
INTEREST = 64  # entries carry the interest version of the destination

# Mark of version 0, and of a destination without a known version.
FIRST_MARK = 1
# Number of distinct marks.
MARKS = 255 * 256


class PlannedGateway(NamedTuple):
    """Gateway in the forwarding plan."""

    number: int
    below: int
    is_for: bool
    first: int = 0
    mark: int = FIRST_MARK


class ForwardHeader(NamedTuple):
    """Decoded forwarding header, for tests and rare cases."""

    flags: int
    group: bytes
    frame_count: int
    path: tuple[int, ...]
    entries: tuple[PlannedGateway, ...]


def mark_of(version: int) -> int:
    """Return the mark of an interest version: two bytes, the lower never 0."""
    index = version % MARKS
    return 1 + index % 255 + (index // 255 << 8)


def version_of(mark: int, newest: int) -> int:
    """Return the version of a mark: the latest possible up to `newest`."""
    index = (mark & 255) - 1 + 255 * (mark >> 8)
    return newest - (newest - index) % MARKS


def make(flags: int, group: bytes, path: list[int], entries: list[PlannedGateway]) -> bytearray:
    """Encode a forwarding header; the frame count is filled in later.

    Raises:
        BadFrame: too many hops or entries.
    """
    if not 0 < len(path) <= HOPS_MAX or not 0 < len(entries) <= ENTRIES_MAX:
        raise BadFrame(
            f"{len(path)} hops and {len(entries)} entries: limits {HOPS_MAX}, {ENTRIES_MAX}"
        )
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
    """Return the offset of the entries in a checked forwarding header."""
    return HEADER_BYTES + data[7] + 4 * data[HOPS_AT]


def check(data: Bytes) -> None:
    """Check the structure of a forwarding header, so that its parts can be read directly.

    Raises:
        BadFrame: invalid forwarding header.
    """
    length = len(data)
    if length < HEADER_BYTES + 4 + ENTRY_BYTES or u32_at(data, 0) != length:
        raise BadFrame(f"incomplete forwarding header of {length} bytes")
    hops = data[HOPS_AT]
    entries = data[ENTRIES_AT] + 256 * data[ENTRIES_AT + 1]
    if data[4] != int(Kind.FORWARD) or data[6] != 0 or not 0 < hops <= HOPS_MAX or entries == 0:
        raise BadFrame(f"invalid forwarding header: {hops} hops and {entries} entries")
    if length != HEADER_BYTES + data[7] + 4 * hops + ENTRY_BYTES * entries:
        raise BadFrame(f"forwarding header of {length} bytes does not match its counts")
    if u32_at(data, COUNT_AT) == 0:
        raise BadFrame("a forwarding header without frames")


def read(data: Bytes) -> ForwardHeader:
    """Decode a forwarding header.

    Raises:
        BadFrame: invalid forwarding header.
    """
    check(data)
    at = HEADER_BYTES + data[7]
    path = tuple(u32_at(data, at + 4 * hop) for hop in range(data[HOPS_AT]))
    entries = tuple(
        PlannedGateway(
            u32_at(data, at),
            data[at + 4] + 256 * data[at + 5],
            data[at + 6] != 0,
            u64_at(data, at + 8),
            (data[at + 6] + 256 * data[at + 7]) or FIRST_MARK,
        )
        for at in range(entries_at(data), len(data), ENTRY_BYTES)
    )
    group = bytes(data[HEADER_BYTES : HEADER_BYTES + data[7]])
    return ForwardHeader(data[5], group, u32_at(data, COUNT_AT), path, entries)
