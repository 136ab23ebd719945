"""The words that gateways say to each other about channels, and what a channel is to them."""

import hashlib
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.broker.channel_membership import NAME_MAX_BYTES
from weft.wire.password_proof import KEY_BYTES, Verifier
from weft.wire.subjects import is_reserved, is_subject

# What one word names at most: about 128 KiB.
HELD_MAX = 2048
RECORDS_MAX = 256

_PROTECTED = b"weft channel 1\0"
_OPEN = b"weft open channel 1\0"
_ID_BYTES = 16

# As in words.py, which imports these words.
Node = Annotated[bytes, Meta(min_length=16, max_length=16)]
Count = Annotated[int, Meta(ge=0, le=(1 << 62) - 1)]
Text = Annotated[str, Meta(max_length=255)]
Id = Annotated[bytes, Meta(min_length=_ID_BYTES, max_length=_ID_BYTES)]
Name = Annotated[bytes, Meta(min_length=1, max_length=NAME_MAX_BYTES)]
Key = Annotated[bytes, Meta(max_length=KEY_BYTES)]


class Record(NamedTuple):
    """One channel as it was opened: by whom, where, in which epoch of its name, and its keys.

    None of it ever changes. Without a password the keys are empty.
    """

    name: Name
    owner: Node
    epoch: Count
    stored: Key = b""
    server: Key = b""
    opener: Text = ""
    gateway: Text = ""

    @property
    def is_protected(self) -> bool:
        """Say if it has a password."""
        return bool(self.stored)

    @property
    def is_sound(self) -> bool:
        """Say if it can be: its name is one that people may use, and it has all keys or none."""
        if {len(self.stored), len(self.server)} not in ({0}, {KEY_BYTES}):
            return False
        return is_subject(self.name) and not is_reserved(self.name)

    @property
    def verifier(self) -> Verifier:
        """What checks proofs of its password."""
        return Verifier(self.stored, self.server)

    def channel(self, service: str) -> bytes:
        """Its id: of all that makes it another channel, or of the name alone without a password.

        So those without a password that were opened apart are one as soon as they meet, and nobody
        can give the id of a channel other keys.
        """
        names = service.encode() + b"\0" + self.name
        if not self.is_protected:
            return hashlib.sha256(_OPEN + names).digest()[:_ID_BYTES]
        made = names + b"\0" + self.owner + self.epoch.to_bytes(8, "little")
        keys = self.stored + self.server
        return hashlib.sha256(_PROTECTED + made + keys).digest()[:_ID_BYTES]


class Held(NamedTuple):
    """A channel that has members at a gateway."""

    channel: Id
    members: Annotated[int, Meta(ge=1, le=(1 << 62) - 1)]
    message_rate: Count = 0


class _Word(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What all words have in common."""


class ChannelAsk(_Word, tag=26, frozen=True):
    """May this channel be opened?"""

    token: Count
    record: Record


class ChannelVote(_Word, tag=27, frozen=True):
    """The answer to that, and the last epoch of the name that is known there."""

    token: Count
    verdict: Text
    epoch: Count


class ChannelsHeld(_Word, tag=28, frozen=True):
    """These channels have members here: a claim to their names for a while longer."""

    token: Count
    held: Annotated[tuple[Held, ...], Meta(max_length=HELD_MAX)]


class ChannelsSeen(_Word, tag=29, frozen=True):
    """The answer to that: all are confirmed, but for those that are not known or not agreed to."""

    token: Count
    unknown: Annotated[tuple[Id, ...], Meta(max_length=HELD_MAX)] = ()
    refused: Annotated[tuple[Id, ...], Meta(max_length=HELD_MAX)] = ()


class ChannelRecords(_Word, tag=30, frozen=True):
    """What these channels are."""

    records: Annotated[tuple[Record, ...], Meta(max_length=RECORDS_MAX)]


class ChannelDropped(_Word, tag=31, frozen=True):
    """A channel has no members here, or any more: its name is not claimed for it."""

    token: Count
    name: Name
    channel: Id


class ChannelClosed(_Word, tag=32, frozen=True):
    """Somebody who may has closed this channel for everybody."""

    record: Record


ChannelWord = (
    ChannelAsk
    | ChannelVote
    | ChannelsHeld
    | ChannelsSeen
    | ChannelRecords
    | ChannelDropped
    | ChannelClosed
)
