"""Every word that gateways say to each other, and the bounds on each of them.

A word is the body of one FABRIC frame: MessagePack of an array that begins with the number of the
word. Lengths, counts and ranges are checked while it is decoded, so whatever comes out of decode()
is within its bounds; only its truth is left to be judged.
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
# What of a word may be filled with what is wanted; the rest is for what is around it.
WANTED_ROOM_BYTES = WORD_MAX_BYTES - (64 << 10)
SUMMARY_MAX = 8192
ADDRESSES_MAX = 16
RANGES_MAX = 1024
# What the answer to a trace names: gateways on the way, subscriptions, gateways further on.
PATH_MAX = 32
HEARD_MAX = 32
STEPS_MAX = 256
# What an administrator signs, and what a gateway tells of itself in return.
COMMAND_MAX_BYTES = 4096
FACTS_MAX_BYTES = 32 << 10

_PATTERN_MAX = 255
_GROUP_MAX = 127
# More than the MessagePack of a wanted takes beside its pattern and its group.
_WANTED_BYTES = 8

Node = Annotated[bytes, Meta(min_length=16, max_length=16)]
Number = Annotated[int, Meta(ge=1, le=0xFFFFFFFF)]
Count = Annotated[int, Meta(ge=0, le=(1 << 62) - 1)]
# Of a stream: an epoch in the upper 16 bits, so no bound below what a u64 holds.
Dense = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=255)]
Pattern = Annotated[bytes, Meta(min_length=1, max_length=_PATTERN_MAX)]
Group = Annotated[bytes, Meta(max_length=_GROUP_MAX)]


class Wanted(NamedTuple):
    """What a gateway asks for: a pattern, alone or for a group; a listener answers no requests."""

    pattern: Pattern
    group: Group = b""
    is_listener: bool = False


class Delta(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What changed in a set since the version before."""

    added: tuple[Wanted, ...] = ()
    removed: tuple[Wanted, ...] = ()


class _Word(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What all words have in common."""


class Ping(_Word, tag=1, frozen=True):
    """Are you there? With a digest of every advert that the sender knows, and its load."""

    token: Count
    digest: Dense
    load: Count = 0


class Pong(_Word, tag=2, frozen=True):
    """The answer to a ping, by its token."""

    token: Count


class AdvertWord(_Word, tag=3, frozen=True):
    """An advert as its gateway signed it, and what nobody signed.

    `delta` leads to the version that the advert names, from the one before it. `lost_ms` is for
    how long the sender has had no path to the gateway that it is about; 0: it has one.
    """

    said: Annotated[bytes, Meta(max_length=16 << 10)]
    signature: Annotated[bytes, Meta(max_length=128)]
    delta: Delta | None = None
    lost_ms: Count = 0


class Known(NamedTuple):
    """Which advert of a gateway somebody has, and which version of what it wants."""

    node: Node
    incarnation: Count
    sequence: Count
    version: Count


class Summary(_Word, tag=4, frozen=True):
    """What the sender knows; whoever hears it sends what is newer. It may take several words."""

    entries: Annotated[tuple[Known, ...], Meta(max_length=SUMMARY_MAX)]
    is_last: bool = True


class Want(_Word, tag=5, frozen=True):
    """Send me everything that this gateway wants."""

    node: Node


class Snapshot(_Word, tag=6, frozen=True):
    """A part of everything that a gateway wants, at one version."""

    node: Node
    version: Count
    part: Count
    is_last: bool
    wanted: tuple[Wanted, ...]


class Ready(_Word, tag=7, frozen=True):
    """You have been sent everything that you lacked: the link may carry messages."""


class Redirect(_Word, tag=8, frozen=True):
    """I have as many links as I may: go to these."""

    addresses: Annotated[tuple[Text, ...], Meta(max_length=ADDRESSES_MAX)]


class Goodbye(_Word, tag=9, frozen=True):
    """This link ends on purpose; `is_leaving`: and so does the gateway."""

    is_leaving: bool = False


class Registered(_Word, tag=10, frozen=True):
    """You are known here now, and so are these."""

    addresses: Annotated[tuple[Text, ...], Meta(max_length=ADDRESSES_MAX)]


class Mark(_Word, tag=16, frozen=True):
    """The last number that was sent to you; `is_last`: there will be none after it."""

    number: Dense
    is_last: bool = False


class Ack(_Word, tag=17, frozen=True):
    """Everything up to this number was received."""

    number: Dense


class Nack(_Word, tag=18, frozen=True):
    """These numbers are missing, both ends included."""

    first: Dense
    last: Dense


class Gone(_Word, tag=19, frozen=True):
    """These numbers cannot be had any more, both ends included."""

    ranges: Annotated[tuple[tuple[Dense, Dense], ...], Meta(max_length=RANGES_MAX)]


class Missed(_Word, tag=25, frozen=True):
    """These numbers never came and are not waited for any more, both ends included."""

    ranges: Annotated[tuple[tuple[Dense, Dense], ...], Meta(max_length=RANGES_MAX)]


class Probe(_Word, tag=20, frozen=True):
    """I have lost this gateway: try to reach it."""

    node: Node
    address: Text


class Trace(_Word, tag=21, frozen=True):
    """Nothing to deliver: say what would become of a message to this subject where you are.

    It goes by the way of such a message, in an envelope with the flag TRACE.
    """

    token: Count
    subject: Pattern


class Heard(NamedTuple):
    """A subscription that a subject leads to; `is_next`: its group's next message is for it."""

    name: Text
    connection: Count
    pattern: Text
    group: Text
    policy: Text
    is_listener: bool = False
    is_behind: bool = False
    is_next: bool = False


class Step(NamedTuple):
    """A gateway that something was passed on to, or was not to be reached for a reason."""

    number: Number
    reason: Text = ""
    rtt_ns: Count = 0
    waiting_bytes: Count = 0


class Traced(_Word, tag=22, frozen=True):
    """The answer to a trace: the way that it came, who is subscribed, and where it went on to.

    `responder` is who would be given a request, `is_kept` whether a journal there keeps it. What is
    not listed is counted.
    """

    token: Count
    path: Annotated[tuple[Number, ...], Meta(max_length=PATH_MAX)]
    heard: Annotated[tuple[Heard, ...], Meta(max_length=HEARD_MAX)] = ()
    more_heard: Count = 0
    responder: Text = ""
    is_kept: bool = False
    steps: Annotated[tuple[Step, ...], Meta(max_length=STEPS_MAX)] = ()
    more_steps: Count = 0


class CommandWord(_Word, tag=23, frozen=True):
    """What an administrator signed, for whoever it is for: `commands.py` reads it."""

    token: Count
    said: Annotated[bytes, Meta(max_length=COMMAND_MAX_BYTES)]
    signature: Annotated[bytes, Meta(max_length=128)]


class Obeyed(_Word, tag=24, frozen=True):
    """What came of a command: how it ended, a sentence, and facts as JSON."""

    token: Count
    state: Text
    text: Text = ""
    facts: Annotated[bytes, Meta(max_length=FACTS_MAX_BYTES)] = b""


LinkWord = (
    Ping | Pong | AdvertWord | Summary | Want | Snapshot | Ready | Redirect | Goodbye | Registered
)
RoutedWord = (
    Mark | Ack | Nack | Gone | Missed | Probe | Trace | Traced | CommandWord | Obeyed | ChannelWord
)
Word = LinkWord | RoutedWord

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


def encode(word: Word) -> bytes:
    """The body of the frame that says a word."""
    return _encoder.encode(word)


def decode(body: bytes) -> Word:
    """The word that a body is.

    Raises:
        BadWord: it is none, or one that is over its bounds.
    """
    if len(body) > WORD_MAX_BYTES:
        raise BadWord(f"a word of {len(body)} bytes is over the limit of {WORD_MAX_BYTES}")
    try:
        word = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadWord(f"a word of {len(body)} bytes cannot be read: {error}") from error
    if isinstance(word, AdvertWord):
        if word.delta is not None:
            _check_wanted(word.delta.added, word.delta.removed)
    elif isinstance(word, Snapshot):
        _check_wanted(word.wanted)
    return word


def frame_of(word: Word) -> bytes:
    """The whole frame that says a word on a link."""
    return encode_frame(FABRIC_KIND, body=_encoder.encode(word))


def in_parts(wanted: Iterable[Wanted]) -> Iterator[tuple[Wanted, ...]]:
    """What is wanted, in parts that fit into a word each; at least one, which may be empty."""
    part: list[Wanted] = []
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


def wanted_bytes(wanted: Wanted) -> int:
    """About how many bytes of a word it takes to say what is wanted, and never fewer."""
    return len(wanted.pattern) + len(wanted.group) + _WANTED_BYTES


def _check_wanted(wanted: tuple[Wanted, ...], removed: tuple[Wanted, ...] = ()) -> None:
    # Whoever passes it on may have more to say around it: that must not make it too large.
    size = sum(map(wanted_bytes, wanted)) + sum(map(wanted_bytes, removed))
    if size > WANTED_ROOM_BYTES:
        raise BadWord(f"{size} bytes of patterns are over the limit of {WANTED_ROOM_BYTES}")
    for each in wanted:
        if not is_pattern(each.pattern):
            raise BadWord(f"a pattern of {len(each.pattern)} bytes is not legal")
        if stays_here(each.pattern):
            raise BadWord("a pattern of the system is nobody else's business")
