"""Control messages between gateways, with the bounds on each field.

A control message is the body of one FABRIC frame: a MessagePack array that begins with the number
of its type. decode() checks lengths, counts and ranges; the receiver checks the meaning.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadWord
from weft.mesh.channels.protocol import ChannelWord
from weft.wire.frames import encode as encode_frame
from weft.wire.subjects import is_pattern, stays_here

# As in wire/frames.py.
LINK_KIND = 12
FABRIC_KIND = 14

WORD_MAX_BYTES = 512 << 10
# Bound on the patterns in one control message; the rest is for its other fields.
WANTED_ROOM_BYTES = WORD_MAX_BYTES - (64 << 10)
SUMMARY_MAX = 8192
ADDRESSES_MAX = 16
RANGES_MAX = 1024
# Bounds on a trace result: gateways on the path, subscriptions, next gateways.
PATH_MAX = 32
HEARD_MAX = 32
STEPS_MAX = 256
# Bounds on a signed command and on the payload of its outcome.
COMMAND_MAX_BYTES = 4096
FACTS_MAX_BYTES = 32 << 10

_PATTERN_MAX = 255
_GROUP_MAX = 127
# Upper bound of the MessagePack overhead per interest entry.
_WANTED_BYTES = 8

Node = Annotated[bytes, Meta(min_length=16, max_length=16)]
Number = Annotated[int, Meta(ge=1, le=0xFFFFFFFF)]
Count = Annotated[int, Meta(ge=0, le=(1 << 62) - 1)]
# Stream number with an epoch in the upper 16 bits: any u64.
Dense = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=255)]
Pattern = Annotated[bytes, Meta(min_length=1, max_length=_PATTERN_MAX)]
Group = Annotated[bytes, Meta(max_length=_GROUP_MAX)]


class InterestEntry(NamedTuple):
    """Interest entry: a pattern, for a queue group if not empty; a listener answers no requests."""

    pattern: Pattern
    group: Group = b""
    is_listener: bool = False


class Delta(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Changes of an interest set since the version before."""

    added: tuple[InterestEntry, ...] = ()
    removed: tuple[InterestEntry, ...] = ()


class _Word(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Common base of the control messages."""


class Ping(_Word, tag=1, frozen=True):
    """Heartbeat with a digest of all adverts that the sender knows, and its load."""

    token: Count
    digest: Dense
    load: Count = 0


class Pong(_Word, tag=2, frozen=True):
    """Answer to a ping, with its token."""

    token: Count


class AdvertWord(_Word, tag=3, frozen=True):
    """Signed advert, with fields that are not signed.

    `delta` leads to the interest version in the advert from the one before. `lost_ms` is how long
    the sender has had no path to the gateway of the advert, 0 with a path.
    """

    said: Annotated[bytes, Meta(max_length=16 << 10)]
    signature: Annotated[bytes, Meta(max_length=128)]
    delta: Delta | None = None
    lost_ms: Count = 0


class Known(NamedTuple):
    """Versions that the sender has of a gateway's advert and interest set."""

    node: Node
    incarnation: Count
    sequence: Count
    version: Count


class Summary(_Word, tag=4, frozen=True):
    """Versions known to the sender; the receiver answers with newer ones. May span messages."""

    entries: Annotated[tuple[Known, ...], Meta(max_length=SUMMARY_MAX)]
    is_last: bool = True


class Want(_Word, tag=5, frozen=True):
    """Request for the interest set of a gateway."""

    node: Node


class Snapshot(_Word, tag=6, frozen=True):
    """Part of an interest set at one version."""

    node: Node
    version: Count
    part: Count
    is_last: bool
    wanted: tuple[InterestEntry, ...]


class LinkReady(_Word, tag=7, frozen=True):
    """The receiver has been sent everything it lacked: the link may carry messages."""


class Redirect(_Word, tag=8, frozen=True):
    """Refusal of a link by a gateway at its limit, with addresses to try instead."""

    addresses: Annotated[tuple[Text, ...], Meta(max_length=ADDRESSES_MAX)]


class Goodbye(_Word, tag=9, frozen=True):
    """The link is closed on purpose; `is_leaving`: because the gateway leaves the mesh."""

    is_leaving: bool = False


class RegistrationConfirmed(_Word, tag=10, frozen=True):
    """Confirmation of a registration, with addresses of other gateways."""

    addresses: Annotated[tuple[Text, ...], Meta(max_length=ADDRESSES_MAX)]


class HighWaterMark(_Word, tag=16, frozen=True):
    """Last number sent to the receiver; `is_last`: the stream ends with it."""

    number: Dense
    is_last: bool = False


class Ack(_Word, tag=17, frozen=True):
    """Acknowledgement of all frames up to a number."""

    number: Dense


class Nack(_Word, tag=18, frozen=True):
    """Negative acknowledgement of a range of numbers, inclusive: request to retransmit."""

    first: Dense
    last: Dense


class Gone(_Word, tag=19, frozen=True):
    """Unavailable ranges, inclusive: no longer in the sender's retransmit buffer."""

    ranges: Annotated[tuple[tuple[Dense, Dense], ...], Meta(max_length=RANGES_MAX)]


class LostRanges(_Word, tag=25, frozen=True):
    """Lost ranges, inclusive: never received, and no longer awaited."""

    ranges: Annotated[tuple[tuple[Dense, Dense], ...], Meta(max_length=RANGES_MAX)]


class Probe(_Word, tag=20, frozen=True):
    """Request to dial a gateway that the sender has lost."""

    node: Node
    address: Text


class Trace(_Word, tag=21, frozen=True):
    """Request for the route of a subject at each gateway, without a delivery.

    It takes the path of a message, behind a forwarding header with the flag TRACE.
    """

    token: Count
    subject: Pattern


class MatchingSubscription(NamedTuple):
    """Subscription that matches a subject; `is_next`: gets its group's next message."""

    name: Text
    connection: Count
    pattern: Text
    group: Text
    policy: Text
    is_listener: bool = False
    is_behind: bool = False
    is_next: bool = False


class Step(NamedTuple):
    """Gateway to which a trace was forwarded, or the reason why it was not."""

    number: Number
    reason: Text = ""
    rtt_ns: Count = 0
    waiting_bytes: Count = 0


class Traced(_Word, tag=22, frozen=True):
    """Answer to a trace: the path so far, matching subscriptions, and the next gateways.

    `responder` would get a request; `is_kept` tells if a journal there stores the subject. The
    `more_` fields count entries that were left out.
    """

    token: Count
    path: Annotated[tuple[Number, ...], Meta(max_length=PATH_MAX)]
    heard: Annotated[tuple[MatchingSubscription, ...], Meta(max_length=HEARD_MAX)] = ()
    more_heard: Count = 0
    responder: Text = ""
    is_kept: bool = False
    steps: Annotated[tuple[Step, ...], Meta(max_length=STEPS_MAX)] = ()
    more_steps: Count = 0


class CommandWord(_Word, tag=23, frozen=True):
    """Admin command as signed; see mesh/admin/admin_command.py."""

    token: Count
    said: Annotated[bytes, Meta(max_length=COMMAND_MAX_BYTES)]
    signature: Annotated[bytes, Meta(max_length=128)]


class Obeyed(_Word, tag=24, frozen=True):
    """Outcome of an admin command: state, text, and a payload as JSON."""

    token: Count
    state: Text
    text: Text = ""
    facts: Annotated[bytes, Meta(max_length=FACTS_MAX_BYTES)] = b""


LinkWord = (
    Ping
    | Pong
    | AdvertWord
    | Summary
    | Want
    | Snapshot
    | LinkReady
    | Redirect
    | Goodbye
    | RegistrationConfirmed
)
RoutedWord = (
    HighWaterMark
    | Ack
    | Nack
    | Gone
    | LostRanges
    | Probe
    | Trace
    | Traced
    | CommandWord
    | Obeyed
    | ChannelWord
)
Word = LinkWord | RoutedWord

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


def encode(word: Word) -> bytes:
    """Return the body of the frame for a control message."""
    return _encoder.encode(word)


def decode(body: bytes) -> Word:
    """Return the control message in a body.

    Raises:
        BadWord: invalid or over a limit.
    """
    if len(body) > WORD_MAX_BYTES:
        raise BadWord(f"{len(body)} bytes are over the limit of {WORD_MAX_BYTES}")
    try:
        word = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadWord(f"invalid control message of {len(body)} bytes: {error}") from error
    if isinstance(word, AdvertWord):
        if word.delta is not None:
            _check_wanted(word.delta.added, word.delta.removed)
    elif isinstance(word, Snapshot):
        _check_wanted(word.wanted)
    return word


def frame_of(word: Word) -> bytes:
    """Return the whole frame for a control message."""
    return encode_frame(FABRIC_KIND, body=_encoder.encode(word))


def in_parts(wanted: Iterable[InterestEntry]) -> Iterator[tuple[InterestEntry, ...]]:
    """Split interest entries into parts that fit a message each; at least one, maybe empty."""
    part: list[InterestEntry] = []
    room = WANTED_ROOM_BYTES
    for each in wanted:
        size = wanted_bytes(each)
        if size > room:
            yield tuple(part)
            part = []
            room = WANTED_ROOM_BYTES
        part.append(each)
        room -= size
    yield tuple(part)


def wanted_bytes(wanted: InterestEntry) -> int:
    """Return an upper bound of the encoded size of an interest entry."""
    return len(wanted.pattern) + len(wanted.group) + _WANTED_BYTES


def _check_wanted(
    wanted: tuple[InterestEntry, ...], removed: tuple[InterestEntry, ...] = ()
) -> None:
    # Leaves room for the other fields, also of a gateway that floods it on.
    size = sum(map(wanted_bytes, wanted)) + sum(map(wanted_bytes, removed))
    if size > WANTED_ROOM_BYTES:
        raise BadWord(f"{size} bytes of patterns are over the limit of {WANTED_ROOM_BYTES}")
    for each in wanted:
        if not is_pattern(each.pattern):
            raise BadWord(f"a pattern of {len(each.pattern)} bytes is invalid")
        if stays_here(each.pattern):
            raise BadWord("a system pattern cannot be forwarded")
