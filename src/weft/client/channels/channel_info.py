"""What a gateway tells about channels to somebody who may not be in them."""

from dataclasses import dataclass
from typing import NamedTuple

from weft.wire.message.message import Message


@dataclass(frozen=True, slots=True)
class ChannelEntry:
    """One channel of a list."""

    name: str
    id: str
    is_protected: bool
    members: int
    gateways: int


class ChannelList(list[ChannelEntry]):
    """Channels, those with the most members first; `more` is how many are beyond the limit."""

    def __init__(self, answer: Message) -> None:
        super().__init__(_entry(each) for each in answer["channels"])
        self.more = int(answer["more"])


class ChannelPlace(NamedTuple):
    """A gateway that has members of a channel, and the messages that they sent per second."""

    gateway: str
    members: int
    message_rate: float


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """One channel in full: who opened it, where, and where its members are."""

    name: str
    id: str
    is_protected: bool
    owner: str
    gateway: str
    epoch: int
    is_confirmed: bool
    members: int
    message_rate: float
    places: tuple[ChannelPlace, ...]


def facts_in(answer: Message) -> ChannelFacts:
    """One channel, as a gateway describes it."""
    places = [
        ChannelPlace(each["gateway"], each["members"], each["message_rate"])
        for each in answer["places"]
    ]
    return ChannelFacts(
        name=answer["name"],
        id=answer["id"],
        is_protected=answer["protected"],
        owner=answer["owner"],
        gateway=answer["gateway"],
        epoch=answer["epoch"],
        is_confirmed=answer["is_confirmed"],
        members=answer["members"],
        message_rate=answer["message_rate"],
        places=tuple(places),
    )


def _entry(told: Message) -> ChannelEntry:
    return ChannelEntry(
        told["name"], told["id"], told["protected"], told["members"], told["gateways"]
    )
