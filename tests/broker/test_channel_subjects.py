import pytest
from tests.broker.rooms import CHESS, GO, NAME, admit, inside, opened
from tests.broker.talk import House

from weft.broker.channel_subjects import ID_DIGITS, plain_name, start_of


def named(subject: bytes) -> bytes:
    """What a subject is called for a member of CHESS."""
    house = House()
    guest = house.guest()
    admit(opened(house), guest)
    return plain_name(guest.peer, subject)


@pytest.mark.parametrize(
    "rest", [b"moves", b"moves.white", b"*", b">", b"moves.>", b"_x", "é".encode()]
)
def test_what_is_in_a_channel_is_called_by_its_name(rest: bytes) -> None:
    assert named(inside(rest)) == NAME + b"." + rest


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize(
    "subject",
    [
        b"_CHANNEL.",
        b"_CHANNEL.>",
        b"_CHANNEL.*",
        b"_CHANNEL.*.>",
        b"_CHANNEL.*.moves",
        b"_CHANNEL." + b"*." * 16 + b".moves",
        b"_CHANNEL." + b"*." * 40 + b"moves",
        b"_CHANNEL." + CHESS,
        b"_CHANNEL." + CHESS + b".",
        b"_CHANNEL." + CHESS + b"0.moves",
        b"_CHANNEL." + CHESS[:-1] + b".moves",
        b"_CHANNEL." + CHESS[:-1] + b".0moves",
        b"_CHANNEL." + CHESS.upper() + b".moves",
        b"_CHANNEL." + bytes(ID_DIGITS) + b".moves",
        b"_CHANNEL." + NAME + b".moves",
        b"_CHANNEL." + NAME.ljust(ID_DIGITS, b"x") + b".moves",
        inside(b"moves", GO),
    ],
)
def test_what_does_not_name_a_channel_by_its_id_has_no_name(subject: bytes) -> None:
    assert named(subject) == b""


def test_who_is_no_member_of_anything_has_no_names() -> None:
    assert plain_name(House().guest().peer, inside(b"moves")) == b""


def test_everything_in_a_channel_begins_alike() -> None:
    assert inside(b"moves").startswith(start_of(CHESS))
    assert not inside(b"moves", GO).startswith(start_of(CHESS))
