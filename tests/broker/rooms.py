"""Channels for tests: their ids, and guests that were admitted to them."""

from tests.broker.talk import Guest, House

from weft.broker.channel_membership import Admissions

CHESS, GO = b"c0ffee" * 5 + b"00", b"0ddba11" * 4 + b"0000"
NAME = b"games.chess"


def inside(subject: bytes, channel: bytes = CHESS) -> bytes:
    """A subject or pattern in a channel."""
    return b"_CHANNEL." + channel + b"." + subject


def opened(house: House) -> Admissions:
    """The channels of a house, which its members leave when they are over."""
    admissions = Admissions()
    house.service.on_member_over = admissions.leave_all
    return admissions


def admit(
    admissions: Admissions, *guests: Guest, channel: bytes = CHESS, name: bytes = NAME
) -> None:
    """Make guests members of a channel."""
    for guest in guests:
        admissions.admit(guest.peer, channel, name)
