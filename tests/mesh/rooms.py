"""Those who open and join channels in a mesh without sockets."""

from typing import NamedTuple

from tests.mesh.gateways import Local
from tests.mesh.mesh import Net, Node

from weft.broker.channel_subjects import start_of
from weft.errors import WeftError
from weft.mesh.channels.coordinator import hexadecimal
from weft.mesh.channels.directory import KnownChannel
from weft.wire.frames import Frame, Kind, encode
from weft.wire.message.message import Message
from weft.wire.password_proof import Verifier

ROOM = b"room"


class Result(NamedTuple):
    """What came of an opening."""

    told: list[KnownChannel | WeftError]
    silent: list[str]
    local: Local

    @property
    def channel(self) -> KnownChannel:
        assert isinstance(self.told[0], KnownChannel)
        return self.told[0]

    @property
    def error(self) -> type[WeftError] | None:
        """The kind of refusal; None if it was opened, or is not decided."""
        return type(self.told[0]) if self.told and isinstance(self.told[0], WeftError) else None


def keys(password: str) -> Verifier:
    letter = password.encode()[:1]
    return Verifier(letter * 32, letter * 32)


def begin(node: Node, password: str = "", name: bytes = ROOM) -> Result:
    """Somebody at a gateway asks for a channel to be opened."""
    local = node.local()
    result = Result([], [], local)

    def opened(told: KnownChannel | WeftError, silent: list[str]) -> None:
        result.told.append(told)
        result.silent.extend(silent)
        if isinstance(told, KnownChannel):
            node.channels.admit(local.peer, told)

    node.channels.open(local.peer, name, keys(password) if password else None, opened)
    node.flush()
    return result


def opened(node: Node, password: str = "", name: bytes = ROOM) -> Result:
    """Somebody at a gateway opens a channel, and everybody has heard of it."""
    result = begin(node, password, name)
    node.mesh.carry()
    node.mesh.wait(0.5)
    assert result.told
    return result


def joined(node: Node, name: bytes = ROOM) -> Local:
    """Somebody at a gateway becomes a member, whatever the password."""
    local = node.local()
    found = node.channels.find(name)
    assert found is not None
    node.channels.admit(local.peer, found)
    pattern = start_of(hexadecimal(found.id)) + b">"
    local.say(encode(Kind.SUBSCRIBE, pattern))
    node.mesh.wait(0.5)
    local.frames()
    return local


def talk(local: Local, body: bytes) -> None:
    """Say something in the first channel that somebody is in."""
    channel = next(iter(local.peer.channels))
    local.publish(start_of(channel) + b"talk", body)


def errors(local: Local) -> list[str]:
    """The names of the errors that somebody was told of."""
    return [_name(frame) for frame in local.frames() if frame.kind == Kind.ERROR]


def _name(frame: Frame) -> str:
    return Message.from_body(frame.body).get_string("name")


def isolate(net: Net, *alone: int) -> None:
    """Cut some places off from all others."""
    for one in alone:
        for other in net.nodes:
            if other not in alone:
                net.cut(one, other)


def heal(net: Net) -> None:
    net.apart.clear()
