"""Admin commands: encoding, signature and validation.

A command is relayed as the exact bytes that the administrator signed, so no gateway has to trust
the relaying gateway. It is valid for one service, one target and a limited time, and is executed at
most once per gateway.
"""

from collections.abc import Callable, Collection
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from weft.errors import BadOption, shortened
from weft.mesh.links.identity import SigningIdentity
from weft.mesh.protocol import COMMAND_MAX_BYTES, Count, Text

NONCE_BYTES = 16
# Longest validity of a command, and tolerated difference between clocks.
LIFE_MAX_MS = 300_000
SKEW_MS = 30_000
# Bound on the unexpired commands that are remembered to reject replays.
SEEN_MAX = 10_000

ALL = "all"
NODE = "node:"
REGION = "region:"

_LABEL = b"weft command 1\0"

Verify = Callable[[bytes, bytes, bytes], bool]


class Command(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One admin command: `verb` with `value`, for the gateways that match `target`."""

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
        """Wall-clock time at which the command expires."""
        return self.issued_ms + self.life_ms


class CommandOrder(NamedTuple):
    """Operation and target of a command that is not signed yet."""

    service: str
    target: str
    verb: str
    value: str = ""


class SignedCommand(NamedTuple):
    """Encoded command with its signature."""

    said: bytes
    signature: bytes


class TargetAttributes(NamedTuple):
    """Attributes that a target can match: name, gateway id in hexadecimal, region."""

    name: str
    node: str
    region: str


class CommandRefusal(NamedTuple):
    """Reason for rejecting a command: the name of its counter, and a sentence."""

    name: str
    text: str


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Command)


def sign(
    admin: SigningIdentity, order: CommandOrder, nonce: bytes, issued_ms: int, life_ms: int
) -> SignedCommand:
    """Encode and sign an order; the nonce is random and has to be unique.

    Raises:
        BadOption: invalid target, or a field over its limit.
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
        raise BadOption(f"invalid command: {error}") from error
    return SignedCommand(said, admin.sign(_LABEL + said))


def check_target(target: str) -> None:
    """Check the syntax of a target.

    Raises:
        BadOption: not `all`, `node:NAME` or `region:NAME`.
    """
    named = target.removeprefix(NODE) if target.startswith(NODE) else target.removeprefix(REGION)
    if target != ALL and (named == target or not named):
        raise BadOption(f"target {shortened(target)} is not all, {NODE}NAME or {REGION}NAME")


def is_for(target: str, place: TargetAttributes) -> bool:
    """Return whether a target includes a gateway."""
    if target.startswith(NODE):
        return target.removeprefix(NODE) in (place.name, place.node)
    if target.startswith(REGION):
        return target.removeprefix(REGION) == place.region
    return target == ALL


class Judge:
    """Validator of the commands that reach one gateway."""

    def __init__(self, service: str, verify: Verify, since_ms: int) -> None:
        self._service = service
        self._verify = verify
        self._since_ms = since_ms
        # Public keys of the administrators.
        self.admins: Collection[bytes] = ()
        # Expiry of each accepted command, by nonce.
        self._seen: dict[bytes, int] = {}

    def remember(self, nonce: bytes, ends_ms: int) -> None:
        """Record that a command was executed, possibly before a restart."""
        self._seen[nonce] = ends_ms

    def judge(self, signed: SignedCommand, now_ms: int) -> Command | CommandRefusal:
        """Return a valid command, recorded as seen, or the reason for rejecting it."""
        try:
            command = _decoder.decode(signed.said)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return CommandRefusal("BadCommand", f"invalid command: {error}")
        if len(signed.said) > COMMAND_MAX_BYTES:
            return CommandRefusal("BadCommand", f"a command of over {COMMAND_MAX_BYTES} bytes")
        # Check the signer first: others must not learn which commands were issued.
        if command.admin not in self.admins:
            text = f"{command.admin.hex()} is not the key of an administrator here"
            return CommandRefusal("NotAnAdmin", text)
        if not self._verify(command.admin, signed.signature, _LABEL + signed.said):
            return CommandRefusal(
                "ForgedCommand", "it was not signed by the administrator that it names"
            )
        refusal = self._problem(command, now_ms)
        if refusal is not None:
            return refusal
        self._seen[command.nonce] = command.ends_ms
        return command

    def _problem(self, command: Command, now_ms: int) -> CommandRefusal | None:
        if command.service != self._service:
            return CommandRefusal("OtherService", f"it is for service {shortened(command.service)}")
        if command.ends_ms <= now_ms:
            late_s = (now_ms - command.ends_ms) / 1000
            return CommandRefusal(
                "ExpiredCommand", f"it expired {late_s:.1f} s ago by the clock here"
            )
        if command.issued_ms > now_ms + SKEW_MS:
            early_s = (command.issued_ms - now_ms) / 1000
            return CommandRefusal(
                "EarlyCommand", f"it is from {early_s:.1f} s ahead of the clock here"
            )
        if command.nonce in self._seen:
            return CommandRefusal("ReplayedCommand", "it was received here before")
        if command.issued_ms < self._since_ms:
            return CommandRefusal("ExpiredCommand", "it was signed before this gateway started")
        self._seen = {nonce: end for nonce, end in self._seen.items() if end > now_ms}
        if len(self._seen) >= SEEN_MAX:
            return CommandRefusal(
                "TooManyCommands", f"{SEEN_MAX} commands are unexpired, which is the limit"
            )
        return None
