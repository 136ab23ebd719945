"""Descriptions of channels, as a gateway reports them to members and others."""

from dataclasses import dataclass
from typing import NamedTuple

from weft.wire.message.message import Message


@dataclass(frozen=True, slots=True)
class ChannelEntry:
    """A channel in a list of channels."""

    name: str
    id: str
    is_protected: bool
    members: int
    gateways: int


class ChannelList(list[ChannelEntry]):
    """Channels by descending number of members; `more` counts those beyond the limit."""

    def __init__(self, answer: Message) -> None:
        super().__init__(_entry(each) for each in answer["channels"])
        self.more = int(answer["more"])


class ChannelPlace(NamedTuple):
    """A gateway with members of a channel, and the rate of their messages per second."""

    gateway: str
    members: int
    message_rate: float


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """Details of one channel: its owner, its gateway, and the gateways of its members."""

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
    """Return the details of a channel from a gateway's answer."""
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
