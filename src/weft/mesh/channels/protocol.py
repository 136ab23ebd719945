"""Control messages about channels, and the record that describes a channel."""

import hashlib
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.broker.channel_membership import NAME_MAX_BYTES
from weft.wire.password_proof import KEY_BYTES, Verifier
from weft.wire.subjects import is_reserved, is_subject

# Bounds on the entries of one control message: about 128 KiB.
HELD_MAX = 2048
RECORDS_MAX = 256

_PROTECTED = b"weft channel 1\0"
_OPEN = b"weft open channel 1\0"
_ID_BYTES = 16

# As in mesh/protocol.py, which imports these messages.
Node = Annotated[bytes, Meta(min_length=16, max_length=16)]
Count = Annotated[int, Meta(ge=0, le=(1 << 62) - 1)]
Text = Annotated[str, Meta(max_length=255)]
Id = Annotated[bytes, Meta(min_length=_ID_BYTES, max_length=_ID_BYTES)]
Name = Annotated[bytes, Meta(min_length=1, max_length=NAME_MAX_BYTES)]
Key = Annotated[bytes, Meta(max_length=KEY_BYTES)]


class Record(NamedTuple):
    """One channel as it was opened: owner, gateway, epoch of its name and keys.

    Immutable. The keys are empty without a password.
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
        """Whether it has a password."""
        return bool(self.stored)

    @property
    def is_sound(self) -> bool:
        """Whether it is valid: a name open to clients, and either both keys or none."""
        if {len(self.stored), len(self.server)} not in ({0}, {KEY_BYTES}):
            return False
        return is_subject(self.name) and not is_reserved(self.name)

    @property
    def verifier(self) -> Verifier:
        """Verifier for proofs of its password."""
        return Verifier(self.stored, self.server)

    def channel(self, service: str) -> bytes:
        """Return the channel id: a hash of name, owner, epoch and keys, or of the name alone.

        Unprotected channels of a name that were opened on both sides of a partition are one channel
        when it ends, and no gateway can give an existing id other keys.
        """
        names = service.encode() + b"\0" + self.name
        if not self.is_protected:
            return hashlib.sha256(_OPEN + names).digest()[:_ID_BYTES]
        made = names + b"\0" + self.owner + self.epoch.to_bytes(8, "little")
        keys = self.stored + self.server
        return hashlib.sha256(_PROTECTED + made + keys).digest()[:_ID_BYTES]


class ChannelAnnouncement(NamedTuple):
    """Announcement of a channel: its members at a gateway and their message rate."""

    channel: Id
    members: Annotated[int, Meta(ge=1, le=(1 << 62) - 1)]
    message_rate: Count = 0


class _Word(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Common base of the control messages."""


class ChannelAsk(_Word, tag=26, frozen=True):
    """Request for a vote on opening a channel."""

    token: Count
    record: Record


class ChannelVote(_Word, tag=27, frozen=True):
    """Answer to ChannelAsk, with the highest epoch of the name granted there."""

    token: Count
    verdict: Text
    epoch: Count


class ChannelsHeld(_Word, tag=28, frozen=True):
    """Announcement of channels with members here, which renews the leases of their names."""

    token: Count
    held: Annotated[tuple[ChannelAnnouncement, ...], Meta(max_length=HELD_MAX)]


class ChannelsSeen(_Word, tag=29, frozen=True):
    """Answer to ChannelsHeld: confirms every channel except the unknown and the refused."""

    token: Count
    unknown: Annotated[tuple[Id, ...], Meta(max_length=HELD_MAX)] = ()
    refused: Annotated[tuple[Id, ...], Meta(max_length=HELD_MAX)] = ()


class ChannelRecords(_Word, tag=30, frozen=True):
    """Records of channels that the receiver does not know."""

    records: Annotated[tuple[Record, ...], Meta(max_length=RECORDS_MAX)]


class ChannelDropped(_Word, tag=31, frozen=True):
    """Withdrawal of a claim: no members here, or the channel was not opened."""

    token: Count
    name: Name
    channel: Id


class ChannelClosedNotice(_Word, tag=32, frozen=True):
    """An authorized connection closed this channel on all gateways."""

    record: Record


ChannelWord = (
    ChannelAsk
    | ChannelVote
    | ChannelsHeld
    | ChannelsSeen
    | ChannelRecords
    | ChannelDropped
    | ChannelClosedNotice
)
