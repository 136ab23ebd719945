import pytest
from tests.broker.locksmith import enter, locked, record
from tests.broker.rooms import CHESS, GO, NAME, admit, inside, opened
from tests.broker.talk import Guest, House, bodies, errors, fields, message, subscribe

from weft.broker.channel_membership import (
    JOINED_MAX,
    Admissions,
    may_join,
    may_open,
    subscriptions_in,
)
from weft.broker.service import NO_CHANNELS
from weft.errors import ChannelClosed, ChannelLost, TooMany
from weft.wire.frames import Flag, Kind


def changes(admissions: Admissions) -> list[bytes]:
    """The ids that are told of from now on."""
    told: list[bytes] = []
    admissions.on_change = told.append
    return told


def members(admissions: Admissions, channel: bytes = CHESS) -> list[int]:
    return [peer.number for peer in admissions.members(channel)]


def test_members_are_counted_and_told_of() -> None:
    house = House()
    admissions = opened(house)
    told = changes(admissions)
    one, two = house.guest(), house.guest()
    assert (len(admissions), admissions.ids(), admissions.count(CHESS)) == (0, [], 0)
    admit(admissions, one, two)
    admit(admissions, two, channel=GO)
    assert (len(admissions), admissions.ids()) == (2, [CHESS, GO])
    assert (admissions.count(CHESS), admissions.count(GO)) == (2, 1)
    assert members(admissions) == [one.peer.number, two.peer.number]
    assert told == [CHESS, CHESS, GO]


def test_who_is_admitted_twice_is_a_member_once() -> None:
    house = House()
    admissions = opened(house)
    guest = house.guest()
    admit(admissions, guest)
    told = changes(admissions)
    admit(admissions, guest, name=b"another")
    assert (admissions.count(CHESS), guest.peer.channels, told) == (1, {CHESS: NAME}, [])


def test_channels_of_one_are_not_those_of_all() -> None:
    house = House()
    admit(opened(house), house.guest())
    assert NO_CHANNELS == {}
    assert house.guest().peer.channels == {}


def test_a_connection_is_a_member_of_a_hundred_at_most() -> None:
    house = House()
    admissions = opened(house)
    guest = house.guest()
    ids = [f"{number:032x}".encode() for number in range(JOINED_MAX + 1)]
    for channel in ids[:JOINED_MAX]:
        admit(admissions, guest, channel=channel)
    with pytest.raises(TooMany, match="a member of 100 channels at most"):
        admit(admissions, guest, channel=ids[-1])
    assert (len(guest.peer.channels), admissions.count(ids[-1])) == (100, 0)
    admit(admissions, guest, channel=ids[0])
    admit(admissions, house.guest(), channel=ids[-1])
    admissions.leave(guest.peer, ids[0])
    admit(admissions, guest, channel=ids[-1])
    assert admissions.count(ids[-1]) == 2


@pytest.mark.req("RLY-19")
def test_a_channel_has_nobody_when_its_last_member_left() -> None:
    house = House()
    admissions = opened(house)
    one, two = house.guest(), house.guest()
    admit(admissions, one, two)
    told = changes(admissions)
    admissions.leave(one.peer, CHESS)
    assert (admissions.ids(), members(admissions)) == ([CHESS], [two.peer.number])
    admissions.leave(two.peer, CHESS)
    assert (admissions.ids(), len(admissions), told) == ([], 0, [CHESS, CHESS])


def test_leaving_what_one_is_no_member_of_changes_nothing() -> None:
    house = House()
    admissions = opened(house)
    one, two = house.guest(), house.guest()
    admit(admissions, one)
    told = changes(admissions)
    admissions.leave(two.peer, CHESS)
    admissions.leave(one.peer, GO)
    assert (members(admissions), told) == ([one.peer.number], [])


@pytest.mark.req("RLY-14")
def test_who_leaves_hears_and_says_no_more_there() -> None:
    house = House()
    admissions = opened(house)
    one, two = house.guest(b"", b"plain"), house.guest()
    admit(admissions, one, two)
    admit(admissions, one, two, channel=GO)
    one.say(
        subscribe(inside(b"moves.*"), flags=0),
        subscribe(inside(b"moves.white"), b"g", flags=0),
        subscribe(inside(b"moves.*", GO), flags=0),
        message(inside(b"moves.white"), b"before"),
    )
    assert len(subscriptions_in(one.peer, CHESS)) == 2
    weight = one.peer.weight
    admissions.leave(one.peer, CHESS)
    assert subscriptions_in(one.peer, CHESS) == []
    # Four elements with a wildcard, and a subject.
    assert weight - one.peer.weight == 5
    two.say(message(inside(b"moves.white"), b"no"), message(inside(b"moves.x", GO), b"yes"))
    two.say(message(b"plain", b"plain"))
    assert bodies(one.heard()) == [b"yes", b"plain"]
    # The same subject as its last message had.
    assert errors(one.say(message(inside(b"moves.white"), b"after"))) == ["NotAMember"]
    assert errors(one.say(subscribe(inside(b"moves.*"), flags=0))) == ["NotAMember"]


def told(guest: Guest) -> list[tuple[bytes, bytes, str]]:
    """What a guest is told that it does not have any more: pattern, group and error."""
    frames = guest.heard()
    assert all((frame.kind, frame.flags) == (Kind.ERROR, Flag(0)) for frame in frames)
    assert all(fields(frame)["kind"] == Kind.SUBSCRIBE for frame in frames)
    return [(frame.subject, frame.reply, fields(frame)["name"]) for frame in frames]


def test_members_that_are_dismissed_are_told_of_each_subscription_and_then_of_all() -> None:
    house = House()
    admissions = opened(house)
    one, two, three = house.guest(), house.guest(), house.guest()
    admit(admissions, one, two)
    admit(admissions, one, three, channel=GO)
    one.say(subscribe(inside(b"a"), b"g", flags=0), subscribe(inside(b"b.*"), flags=0))
    one.say(subscribe(inside(b"c", GO), flags=0))
    two.say(subscribe(inside(b">"), flags=0))
    admissions.dismiss(CHESS, ChannelClosed("the channel was closed"))
    house.flush()
    everything = (inside(b">"), b"", "ChannelClosed")
    assert told(one) == [
        (inside(b"b.*"), b"", "ChannelClosed"),
        (inside(b"a"), b"g", "ChannelClosed"),
        everything,
    ]
    # The pattern that stands for all is told of once.
    assert told(two) == [everything]
    assert told(three) == []
    assert admissions.ids() == [GO]
    assert not one.peer.is_over
    assert [each.pattern for each in house.service.router.subscriptions(one.peer.outbox)] == [
        inside(b"c", GO)
    ]


def test_who_is_dismissed_may_be_admitted_again() -> None:
    house = House()
    admissions = opened(house)
    guest = house.guest()
    admit(admissions, guest)
    admissions.dismiss(CHESS, ChannelLost("another has the name"))
    house.flush()
    assert told(guest) == [(inside(b">"), b"", "ChannelLost")]
    assert errors(guest.say(message(inside(b"a")))) == ["NotAMember"]
    admit(admissions, guest)
    guest.say(subscribe(inside(b"a"), flags=0))
    assert bodies(guest.say(message(inside(b"a"), b"again"))) == [b"again"]


def test_to_dismiss_those_of_a_channel_without_members_does_nothing() -> None:
    house = House()
    admissions = opened(house)
    guest = house.guest()
    admissions.dismiss(CHESS, ChannelLost("x"))
    house.flush()
    assert guest.heard() == []


@pytest.mark.parametrize(
    ("rights", "is_opener", "is_joiner"),
    [
        ({"publish": ["games.chess.>"], "subscribe": ["games.chess.>"]}, True, True),
        ({"publish": ["games.>"], "subscribe": [">"]}, True, True),
        ({"publish": ["games.chess.>"]}, False, True),
        ({"subscribe": ["games.chess.>"]}, False, True),
        ({"request": [">"], "serve": [">"], "replay": [">"]}, False, False),
        ({"publish": ["games.chess"], "subscribe": ["games.chess"]}, False, False),
        ({"publish": ["games.chess.*"], "subscribe": ["games.chess.a.>"]}, False, False),
        ({"publish": ["games.go.>"], "subscribe": ["games.go.>"]}, False, False),
        ({"publish": ["_CHANNEL.>"], "subscribe": ["_CHANNEL.>"]}, False, False),
        ({"publish": [">", "-games.chess.secret"], "subscribe": [">"]}, False, True),
        ({"publish": [">", "-games.>"], "subscribe": [">", "-games.*.x"]}, False, False),
    ],
)
def test_rights_to_the_name_decide_who_may_open_and_join(
    rights: dict[str, list[str]], is_opener: bool, is_joiner: bool
) -> None:
    house = locked(record("one", "client", **rights))
    peer = enter(house, "one").peer
    assert (may_open(peer, NAME), may_join(peer, NAME)) == (is_opener, is_joiner)


def test_where_everyone_is_trusted_everyone_may_open_and_join() -> None:
    peer = House().guest().peer
    assert (may_open(peer, NAME), may_join(peer, NAME)) == (True, True)
