"""Those who open and join channels of a simulated mesh, and talk in them.

Each message says which password its sender knows: so whoever hears one of another password has
heard what it should not.
"""

from hashlib import sha256
from typing import Protocol

from weft.broker.channel_subjects import start_of
from weft.errors import ChannelLost, WeftError
from weft.mesh.channels.coordinator import hexadecimal
from weft.mesh.channels.directory import Channel
from weft.simulation.channel_races.history import Opened, RaceHistory
from weft.simulation.clients import Client, Scene
from weft.simulation.gateway import Gateway
from weft.wire.frames import Frame, Kind, encode
from weft.wire.message.message import Message
from weft.wire.password_proof import Secret, Verifier


def secret(password: str) -> Secret:
    """The keys of a password; what makes guessing slow would make simulating slow."""
    return Secret(
        sha256(b"c" + password.encode()).digest(), sha256(b"s" + password.encode()).digest()
    )


class RaceScene(Scene, Protocol):
    """Where they are, and what is noted of them."""

    race: RaceHistory
    # How subjects in a channel begin; other than by its id only to see what that would lead to.
    is_by_name: bool


class Member(Client):
    """Somebody who knows a password, or none, and wants to be in the channel of a name."""

    def __init__(self, scene: RaceScene, gateway: Gateway, name: str, password: str) -> None:
        self.race_scene = scene
        self.channel_name = name.encode()
        self.password = password
        self.channel = b""
        scene.race.members += 1
        super().__init__(scene, f"m{scene.race.members}", gateway)

    @property
    def verifier(self) -> Verifier | None:
        """What a gateway is told of the password."""
        return secret(self.password).verifier if self.password else None

    def open(self) -> None:
        """Open the channel."""
        self.race_scene.race.attempts += 1
        self.gateway.act(self._open)

    def join(self) -> None:
        """Join the channel, if its password is this one's."""
        self.gateway.act(self._join)

    def talk(self) -> None:
        """Say something in the channel."""
        if self.channel:
            subject = self._start() + b"talk"
            self.say(encode(Kind.MESSAGE, subject, self.password.encode() or b"-"))

    def heard(self, frame: Frame) -> None:
        """A message comes, or the news that the channel is lost."""
        race = self.race_scene.race
        if frame.kind == Kind.MESSAGE:
            race.deliveries += 1
            said = frame.body.decode()
            if said != (self.password or "-"):
                race.leaks.append(f"{self.name} ({self.password or 'none'}) heard {said}")
        elif frame.kind == Kind.ERROR and self.channel:
            number = Message.from_body(frame.body).get_int64("number")
            if number == ChannelLost.number:
                race.lost += 1
                self.channel = b""

    def _open(self) -> None:
        if self.is_here:
            channels = self.gateway.channels
            channels.open(self.peer, self.channel_name, self.verifier, self._opened)

    def _opened(self, result: Channel | WeftError, _silent: list[str]) -> None:
        race = self.race_scene.race
        if isinstance(result, WeftError):
            race.refuse(result)
            return
        record = result.record
        race.opened.append(Opened(record.name, record.epoch, result.id, record.is_protected))
        self._become_member(result)

    def _join(self) -> None:
        if not self.is_here or self.channel:
            return
        found = self.gateway.channels.find(self.channel_name)
        if found is not None and found.record.verifier == (self.verifier or (b"", b"")):
            self._become_member(found)

    def _become_member(self, channel: Channel) -> None:
        if not self.is_here or self.peer.is_over:
            return
        self.gateway.channels.admit(self.peer, channel)
        self.channel = hexadecimal(channel.id)
        pattern = self._start() + b">"
        self.gateway.read(self.peer, encode(Kind.SUBSCRIBE, pattern))

    def _start(self) -> bytes:
        if self.race_scene.is_by_name:
            return b"by-name." + self.channel_name + b"."
        return start_of(self.channel)
