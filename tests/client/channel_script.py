"""What a scripted gateway says about channels, step by step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.client.conftest import Peer
from tests.client.connection.test_engine import Scripted, Statuses, meeting

import weft
from weft.errors import WeftError
from weft.wire.frames import Flag, Frame, Kind
from weft.wire.message.message import Message
from weft.wire.password_proof import ProofInput, Verifier, is_proven, secret_of, sign

ID = "0123456789abcdef0123456789abcdef"
OTHER_ID = "f" * 32
CHALLENGE = b"c" * 32
HORSE = "correct horse"
SECRET = secret_of("default", b"room", HORSE)

Result = TypeVar("Result")


async def asked(peer: Peer, verb: str) -> tuple[Frame, Message]:
    """The next question of a client, which is the one of this verb."""
    frame = await peer.frame(Kind.MESSAGE)
    assert frame.subject.decode() == f"_WEFT.ask.channel.{verb}"
    assert frame.flags & Flag.REQUEST
    return frame, Message.from_body(frame.body)


async def answer(peer: Peer, verb: str, **told: Any) -> Message:
    """Answer the next question, which is the one of this verb; what was asked."""
    frame, question = await asked(peer, verb)
    peer.send(Kind.MESSAGE, frame.reply, Message.from_dict(told), flags=Flag.FROM_GATEWAY)
    return question


async def refuse(peer: Peer, verb: str, error: type[WeftError]) -> Message:
    """Refuse the next question, which is the one of this verb; what was asked."""
    frame, question = await asked(peer, verb)
    peer.refuse((error.number, "no"), frame, Flag.REQUEST)
    return question


async def let_in(peer: Peer, channel_id: str = ID) -> None:
    """Answer somebody who joins a channel without a password."""
    await answer(peer, "join", id=channel_id, name="room", protected=False)


async def check(peer: Peer, verifier: Verifier, *, signed_by: bytes | None = None) -> None:
    """Let somebody into a channel with a password, who must prove to know it."""
    await answer(peer, "join", challenge=CHALLENGE)
    frame, told = await asked(peer, "prove")
    claim = ProofInput("default", b"room", told["challenge"], told["nonce"])
    assert is_proven(verifier, claim, told["proof"])
    signature = sign(verifier.server if signed_by is None else signed_by, claim)
    proven = Message(id=ID, name="room", protected=True, signature=signature)
    peer.send(Kind.MESSAGE, frame.reply, proven, flags=Flag.FROM_GATEWAY)


def say(peer: Peer, subject: str, body: bytes, channel_id: str = ID) -> None:
    """Send a message in the channel."""
    peer.send(Kind.MESSAGE, f"_CHANNEL.{channel_id}.{subject}".encode(), body, flags=Flag.BARE)


def take_back(peer: Peer, error: type[WeftError], pattern: str, group: bytes = b"") -> None:
    """Say that a subscription in the channel, or with `>` all of it, is no more."""
    told = Message(number=error.number, name="x", text="no more", kind=int(Kind.SUBSCRIBE))
    peer.send(Kind.ERROR, f"_CHANNEL.{ID}.{pattern}".encode(), told, group)


async def while_(script: Awaitable[object], work: Awaitable[Result]) -> Result:
    """Do something while the gateway plays its part."""
    _, result = await asyncio.gather(script, work)
    return result


@asynccontextmanager
async def member(
    scripted: Scripted, **options: Any
) -> AsyncIterator[tuple[weft.AsyncChannel, Peer, Statuses, Any]]:
    """A client in a channel without a password, and the gateway's end."""
    async with scripted() as gateway, meeting(gateway, **options) as (connection, peer, statuses):
        room = await while_(let_in(peer), connection.join_channel("room"))
        yield room, peer, statuses, gateway
