"""Subjects in channels: `_CHANNEL.`, an id of 32 hexadecimal digits, a dot and a subject.

Only members admitted to the id may use them. Permissions are checked against the channel's name:
`_CHANNEL.<id>.moves` in the channel `games.chess` needs those for `games.chess.moves`.
"""

from weft.broker.service import Peer
from weft.wire.subjects import CHANNEL

ID_DIGITS = 32

_ID_END = len(CHANNEL) + ID_DIGITS
_DOT = ord(".")


def plain_name(peer: Peer, name: bytes) -> bytes:
    """A subject or pattern in a channel as permissions name it; empty if the peer is no member."""
    if len(name) <= _ID_END + 1 or name[_ID_END] != _DOT:
        return b""
    channel = peer.channels.get(name[len(CHANNEL) : _ID_END])
    return b"" if channel is None else channel + name[_ID_END:]


def start_of(channel: bytes) -> bytes:
    """The prefix of all subjects and patterns in a channel."""
    return CHANNEL + channel + b"."
