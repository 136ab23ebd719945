"""Reports about channels as plain values."""

from typing import Any

from weft.mesh.channels.coordinator import ChannelCoordinator
from weft.mesh.channels.directory import KnownChannel

Facts = dict[str, Any]


def listed(found: list[KnownChannel], limit: int) -> Facts:
    """Return up to `limit` channels, the largest first, and the number left out."""
    largest = sorted(found, key=_prominence)[:limit]
    return {"channels": [_entry(each) for each in largest], "more": len(found) - len(largest)}


def channel_facts(channels: ChannelCoordinator, channel: KnownChannel) -> Facts:
    """Return the full report of one channel."""
    record = channel.record
    places = [
        {
            "gateway": _gateway(channels, number),
            "members": place.members,
            "message_rate": place.message_rate,
        }
        for number, place in sorted(channel.places.items())
    ]
    return {
        **_entry(channel),
        "owner": record.opener,
        "gateway": record.gateway,
        "epoch": record.epoch,
        "is_confirmed": channels.holding.is_confirmed(channel.id),
        "message_rate": sum(place.message_rate for place in channel.places.values()),
        "places": places,
    }


def _entry(channel: KnownChannel) -> Facts:
    return {
        "name": channel.record.name.decode(),
        "id": channel.id.hex(),
        "protected": channel.record.is_protected,
        "members": channel.members,
        "gateways": len(channel.places),
    }


def _prominence(channel: KnownChannel) -> tuple[int, bytes]:
    return -channel.members, channel.record.name


def _gateway(channels: ChannelCoordinator, number: int) -> str:
    if number == channels.own:
        return channels.service.gateway
    member = None if channels.mesh is None else channels.mesh.members.numbered(number)
    return f"{number:08x}" if member is None else member.advert.name
