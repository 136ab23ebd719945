"""What every dialect needs: frames out of a stretch of them, and a greeting to begin with."""

from weft.core.frames import Frame, Kind, encode
from weft.core.greeting import VERSION
from weft.core.messages import Message
from weft.core.words import u32_at
from weft.errors import WeftError, error_from_wire


def each_frame(frames: bytes) -> list[bytes]:
    """The whole frames that lie one behind the other."""
    first = u32_at(frames, 0)
    if first == len(frames):
        return [frames]
    found = [frames[:first]]
    at = first
    while at < len(frames):
        end = at + u32_at(frames, at)
        found.append(frames[at:end])
        at = end
    return found


def error_in(frame: Frame) -> WeftError:
    """What an ERROR says."""
    facts = Message.from_body(frame.body)
    return error_from_wire(facts.get_int64("number"), facts.get_string("text"))


def greeting(service: str, client: str, *, name: str = "", **proof: str) -> bytes:
    """The CONNECT of a peer that cannot say it; `proof` is its key or its ticket, if it has one."""
    told = {field: value for field, value in proof.items() if value}
    body = Message(version=VERSION, client=client, **told)
    return encode(Kind.CONNECT, service.encode(), body.encode(), name.encode())
