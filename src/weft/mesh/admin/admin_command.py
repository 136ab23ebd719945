"""What an administrator tells gateways to do, under its signature, and how each of them judges it.

Whoever passes a command on passes on the very bytes that were signed: the word of another gateway
counts for nothing. A command is for one service, for certain gateways and for a short time, and is
obeyed once.
"""

from collections.abc import Callable, Collection
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadOption, shortened
from weft.mesh.links.identity import Identity
from weft.mesh.protocol import COMMAND_MAX_BYTES, Count, Text

NONCE_BYTES = 16
# A command holds for so long at most, and clocks may differ by so much.
LIFE_MAX_MS = 300_000
SKEW_MS = 30_000
# Commands that hold still and were heard here are remembered, up to so many.
SEEN_MAX = 10_000

ALL = "all"
NODE = "node:"
REGION = "region:"

_LABEL = b"weft command 1\0"

Verify = Callable[[bytes, bytes, bytes], bool]


class Command(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One command: `verb` with its `value`, for those that `target` names."""

    admin: Annotated[bytes, Meta(min_length=32, max_length=32)]
    service: Text
    target: Text
    verb: Text
    value: Text
    issued_ms: Count
    life_ms: Annotated[int, Meta(ge=1, le=LIFE_MAX_MS)]
    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]

    @property
    def ends_ms(self) -> int:
        """Until when it holds."""
        return self.issued_ms + self.life_ms


class Order(NamedTuple):
    """What is to be done, and by whom."""

    service: str
    target: str
    verb: str
    value: str = ""


class Signed(NamedTuple):
    """A command as it travels."""

    said: bytes
    signature: bytes


class Place(NamedTuple):
    """A gateway, as a target can name it: by its name, by its id in hexadecimal, by its region."""

    name: str
    node: str
    region: str


class Refusal(NamedTuple):
    """Why a command is not obeyed: the name that it is counted by, and a sentence."""

    name: str
    text: str


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Command)


def sign(admin: Identity, order: Order, nonce: bytes, issued_ms: int, life_ms: int) -> Signed:
    """Make a command of an order; the nonce is by chance, so that it was never given before.

    Raises:
        BadOption: it cannot be, and which part of it.
    """
    check_target(order.target)
    said = _encoder.encode(
        Command(
            admin=admin.key,
            service=order.service,
            target=order.target,
            verb=order.verb,
            value=order.value,
            issued_ms=issued_ms,
            life_ms=life_ms,
            nonce=nonce,
        )
    )
    try:
        _decoder.decode(said)
    except msgspec.ValidationError as error:
        raise BadOption(f"the command cannot be given: {error}") from error
    return Signed(said, admin.sign(_LABEL + said))


def check_target(target: str) -> None:
    """See that a target names somebody.

    Raises:
        BadOption: it does not.
    """
    named = target.removeprefix(NODE) if target.startswith(NODE) else target.removeprefix(REGION)
    if target != ALL and (named == target or not named):
        raise BadOption(f"target {shortened(target)} is not all, {NODE}NAME or {REGION}NAME")


def is_for(target: str, place: Place) -> bool:
    """Say if a gateway is one of those that a target names."""
    if target.startswith(NODE):
        return target.removeprefix(NODE) in (place.name, place.node)
    if target.startswith(REGION):
        return target.removeprefix(REGION) == place.region
    return target == ALL


class Judge:
    """Decides at one gateway which commands are obeyed."""

    def __init__(self, service: str, verify: Verify, since_ms: int) -> None:
        self._service = service
        self._verify = verify
        self._since_ms = since_ms
        # Public keys of those who may give commands.
        self.admins: Collection[bytes] = ()
        # Until when those that were heard here hold.
        self._seen: dict[bytes, int] = {}

    def remember(self, nonce: bytes, ends_ms: int) -> None:
        """A command was obeyed, maybe in an earlier life of this gateway."""
        self._seen[nonce] = ends_ms

    def judge(self, signed: Signed, now_ms: int) -> Command | Refusal:
        """The command, which counts as given from now on, or why it is none to be obeyed."""
        try:
            command = _decoder.decode(signed.said)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Refusal("BadCommand", f"a command cannot be read: {error}")
        if len(signed.said) > COMMAND_MAX_BYTES:
            return Refusal("BadCommand", f"a command of over {COMMAND_MAX_BYTES} bytes")
        # Who it is from first: others learn nothing of what was given when.
        if command.admin not in self.admins:
            text = f"{command.admin.hex()} is the key of no administrator here"
            return Refusal("NotAnAdmin", text)
        if not self._verify(command.admin, signed.signature, _LABEL + signed.said):
            return Refusal("ForgedCommand", "it was not signed by the administrator that it names")
        refusal = self._problem(command, now_ms)
        if refusal is not None:
            return refusal
        self._seen[command.nonce] = command.ends_ms
        return command

    def _problem(self, command: Command, now_ms: int) -> Refusal | None:
        if command.service != self._service:
            return Refusal("OtherService", f"it is for service {shortened(command.service)}")
        if command.ends_ms <= now_ms:
            late_s = (now_ms - command.ends_ms) / 1000
            return Refusal("ExpiredCommand", f"it expired {late_s:.1f} s ago by the clock here")
        if command.issued_ms > now_ms + SKEW_MS:
            early_s = (command.issued_ms - now_ms) / 1000
            return Refusal("EarlyCommand", f"it is from {early_s:.1f} s ahead of the clock here")
        if command.nonce in self._seen:
            return Refusal("ReplayedCommand", "it was given here before")
        if command.issued_ms < self._since_ms:
            return Refusal("ExpiredCommand", "it was signed before this gateway began")
        self._seen = {nonce: end for nonce, end in self._seen.items() if end > now_ms}
        if len(self._seen) >= SEEN_MAX:
            return Refusal("TooManyCommands", f"{SEEN_MAX} commands hold already")
        return None
