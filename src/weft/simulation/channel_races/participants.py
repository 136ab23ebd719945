"""Simulated clients that open and join channels, and send messages in them.

Each message names the password of its sender, so that a leak between channels is detected.
"""

from hashlib import sha256
from typing import Protocol

from weft.broker.channel_subjects import start_of
from weft.errors import ChannelLost, WeftError
from weft.mesh.channels.coordinator import hexadecimal
from weft.mesh.channels.directory import KnownChannel
from weft.simulation.channel_races.history import Opened, RaceHistory
from weft.simulation.clients import Client, Scene
from weft.simulation.gateway import SimGateway
from weft.wire.frames import Frame, Kind, encode
from weft.wire.message.message import Message
from weft.wire.password_proof import Secret, Verifier


def secret(password: str) -> Secret:
    """Return the keys of a password, without the slow derivation of the real one."""
    return Secret(
        sha256(b"c" + password.encode()).digest(), sha256(b"s" + password.encode()).digest()
    )


class RaceScene(Scene, Protocol):
    """Context of a race: clock, and the history to record in."""

    race: RaceHistory
    # Derive subjects from the channel name instead of the id: to test that leaks are detected.
    is_by_name: bool


class RaceMember(Client):
    """Client that wants to be in the channel of a name, with or without a password."""

    def __init__(self, scene: RaceScene, gateway: SimGateway, name: str, password: str) -> None:
        self.race_scene = scene
        self.channel_name = name.encode()
        self.password = password
        self.channel = b""
        scene.race.members += 1
        super().__init__(scene, f"m{scene.race.members}", gateway)

    @property
    def verifier(self) -> Verifier | None:
        """Verifier of the password for the gateway."""
        return secret(self.password).verifier if self.password else None

    def open(self) -> None:
        """Open the channel."""
        self.race_scene.race.attempts += 1
        self.gateway.act(self._open)

    def join(self) -> None:
        """Join the channel if it has the same password."""
        self.gateway.act(self._join)

    def talk(self) -> None:
        """Send a message in the channel."""
        if self.channel:
            subject = self._start() + b"talk"
            self.say(encode(Kind.MESSAGE, subject, self.password.encode() or b"-"))

    def heard(self, frame: Frame) -> None:
        """Record a message, or the loss of the channel."""
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

    def _opened(self, result: KnownChannel | WeftError, _silent: list[str]) -> None:
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

    def _become_member(self, channel: KnownChannel) -> None:
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
