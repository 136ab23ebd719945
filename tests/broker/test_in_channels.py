"""What members of channels may do there, and others may not, as frames come in."""

from typing import Any

import pytest
from tests.broker.locksmith import enter, locked, record
from tests.broker.rooms import CHESS, GO, NAME, admit, inside, opened
from tests.broker.talk import (
    ANSWER,
    REQUEST,
    Guest,
    House,
    ask,
    bodies,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
    unsubscribe,
)

from weft.broker.auth.keys import Keyring
from weft.broker.auth.revalidate import review
from weft.broker.channel_membership import Admissions
from weft.broker.disconnect import leave
from weft.wire.frames import Flag, Kind, encode
from weft.wire.subjects import SUBJECT_MAX_BYTES

MOVES = inside(b"moves")


class Room:
    """A channel with two members, and a stranger that shares their service."""

    def __init__(self) -> None:
        self.house = House()
        self.admissions = opened(self.house)
        self.one, self.two, self.stranger = (self.house.guest() for _ in range(3))
        admit(self.admissions, self.one, self.two)


def keyed(**rights: Any) -> tuple[House, Admissions, Guest, Guest]:
    """A member whose client key has these rights, and one that may do everything."""
    house = locked(record("one", "client", **rights), record("two"))
    admissions = opened(house)
    guest, other = enter(house, "one"), enter(house, "two")
    admit(admissions, guest, other)
    return house, admissions, guest, other


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize("pattern", [b"moves", b"*", b">", b"moves.>"])
@pytest.mark.parametrize("group", [b"", b"g"])
def test_members_hear_what_members_say(pattern: bytes, group: bytes) -> None:
    room = Room()
    assert kinds(room.one.say(subscribe(inside(pattern), group))) == [Kind.OK]
    subject = inside(b"moves.white" if pattern == b"moves.>" else b"moves")
    assert room.two.say(message(subject, b"e4")) == []
    (heard,) = room.one.heard()
    assert (heard.subject, heard.body) == (subject, b"e4")
    assert kinds(room.two.say(message(subject, b"e5", flags=ANSWER))) == [Kind.OK]


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize("pattern", [b">", b"*.>", b"*", b"*.*.*", b"*." + CHESS + b".moves"])
def test_whoever_asks_for_everything_does_not_hear_channels(pattern: bytes) -> None:
    room = Room()
    room.stranger.say(subscribe(pattern, flags=0))
    # Nor does a member, but for what it asked for in the channel.
    room.one.say(subscribe(pattern, flags=0))
    room.two.say(message(MOVES, b"e4"))
    assert room.stranger.heard() == []
    assert room.one.heard() == []


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize(
    "subject",
    [
        MOVES,
        inside(b"moves", GO),
        inside(b"moves", CHESS.upper()),
        inside(b"moves", CHESS[:-1]),
        b"_CHANNEL." + NAME + b".moves",
        b"_CHANNEL.x",
        b"_CHANNEL." + CHESS,
    ],
)
def test_who_is_no_member_gets_nothing_in_and_hears_nothing(subject: bytes) -> None:
    room = Room()
    room.one.say(subscribe(inside(b">"), flags=0))
    stranger = room.stranger
    for frame in (
        message(subject),
        message(subject, flags=ANSWER),
        message(subject, b"?", stranger.inbox + b"1", REQUEST),
        message(b"plain", reply=subject),
        subscribe(subject),
        subscribe(subject, b"g"),
    ):
        assert errors(stranger.say(frame)) == ["NotAMember"]
    assert (room.one.heard(), stranger.peer.is_over) == ([], False)
    assert room.house.service.refused == {"NotAMember": 6}


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize(
    "pattern",
    [
        b"_CHANNEL.>",
        b"_CHANNEL.*",
        b"_CHANNEL.*.>",
        b"_CHANNEL.*.moves",
        b"_CHANNEL." + b"*." * 40 + b">",
        b"_CHANNEL." + b"*." * 15 + b"x.moves",
        b"_CHANNEL." + CHESS,
        inside(b"moves", GO),
    ],
)
def test_no_wildcard_stands_for_an_id_not_even_for_members(pattern: bytes) -> None:
    room = Room()
    assert errors(room.one.say(subscribe(pattern))) == ["NotAMember"]
    assert errors(room.one.say(subscribe(inside(b"a"), patterns=[pattern.decode()]))) == [
        "NotAMember"
    ]
    assert len(room.house.service.router) == 0


@pytest.mark.parametrize("pattern", [b"_CHANNEL", b"_CHANNELS.x", b"_CHANNEL_.>", b"_channel.x"])
def test_what_only_looks_like_a_channel_belongs_to_the_system(pattern: bytes) -> None:
    room = Room()
    assert errors(room.one.say(subscribe(pattern))) == ["Reserved"]
    assert errors(room.one.say(message(pattern.replace(b">", b"x")))) == ["Reserved"]


@pytest.mark.parametrize("subject", [b"moves.*", b">", b"a..b", b"a.", b"a/b", b"\xff"])
def test_what_is_no_subject_is_none_in_a_channel(subject: bytes) -> None:
    room = Room()
    assert errors(room.one.say(message(inside(subject)))) == ["BadSubject"]
    assert errors(room.one.say(message(b"plain", reply=inside(subject)))) == ["BadSubject"]
    _, _, guest, _ = keyed(publish=[">"], request=[">"])
    assert errors(guest.say(message(inside(subject)))) == ["BadSubject"]


def test_a_subject_in_a_channel_may_have_so_many_bytes() -> None:
    room = Room()
    most = b"a." * 60 + b"a" * (213 - 120)
    room.one.say(subscribe(inside(most), flags=0))
    room.two.say(message(inside(most), b"just"))
    assert bodies(room.one.heard()) == [b"just"]
    assert len(inside(most)) == SUBJECT_MAX_BYTES
    # A name of the greatest length makes one that is too long for a plain subject.
    house, admissions, guest, _ = keyed(publish=[">"], subscribe=[">"])
    admit(admissions, guest, channel=GO, name=b"n" * 127)
    guest.say(subscribe(inside(most, GO), flags=0))
    assert bodies(guest.say(message(inside(most, GO), b"just"))) == [b"just"]
    assert house.service.refused == {}


@pytest.mark.req("RLY-14")
def test_two_channels_of_one_name_never_mix() -> None:
    house = House()
    admissions = opened(house)
    one, two, both = house.guest(), house.guest(), house.guest()
    admit(admissions, one, both)
    admit(admissions, two, both, channel=GO)
    for guest, channel in ((one, CHESS), (two, GO), (both, CHESS), (both, GO)):
        guest.say(subscribe(inside(b">", channel), flags=0))
    assert bodies(one.say(message(inside(b"a"), b"first"))) == [b"first"]
    assert bodies(two.say(message(inside(b"a", GO), b"second"))) == [b"second"]
    assert (one.heard(), two.heard()) == ([], [])
    assert bodies(both.heard()) == [b"first", b"second"]
    assert errors(one.say(message(inside(b"a", GO)))) == ["NotAMember"]


def test_a_member_answers_a_request_of_another() -> None:
    room = Room()
    room.one.say(subscribe(MOVES, flags=0))
    assert room.two.say(request(room.two, MOVES)) == []
    (asked,) = room.one.heard()
    room.one.say(message(asked.reply, b"e5"))
    assert bodies(room.two.heard()) == [b"e5"]
    assert errors(room.two.say(request(room.two, inside(b"nobody")))) == ["NotKnown"]


def test_a_reply_subject_in_a_channel_leads_to_members() -> None:
    room = Room()
    room.one.say(subscribe(inside(b"answers"), flags=0))
    room.two.say(subscribe(MOVES, flags=0))
    room.one.say(message(MOVES, b"?", inside(b"answers")))
    (asked,) = room.two.heard()
    assert asked.reply == inside(b"answers")
    room.two.say(message(asked.reply, b"e5"))
    assert bodies(room.one.heard()) == [b"e5"]
    # Who heard it elsewhere cannot answer there.
    assert errors(room.stranger.say(message(asked.reply))) == ["NotAMember"]
    assert errors(room.one.say(message(MOVES, reply=inside(b"x", GO)))) == ["NotAMember"]
    # A request is answered to an inbox, as ever.
    assert errors(room.one.say(message(MOVES, b"?", inside(b"answers"), REQUEST))) == ["UsageError"]


@pytest.mark.parametrize("subject", [MOVES, b"plain"])
def test_a_reply_subject_in_a_channel_is_not_masked(subject: bytes) -> None:
    room = Room()
    room.two.say(subscribe(subject if subject == b"plain" else MOVES, flags=0))
    refused = room.one.say(message(subject, reply=inside(b"answers"), flags=Flag.MASKED))
    assert errors(refused) == ["UsageError"]
    assert "not masked" in fields(refused[0])["text"]
    assert (room.two.heard(), room.one.peer.masks) == ([], {})


def test_an_inbox_is_masked_in_a_channel_as_elsewhere() -> None:
    room = Room()
    room.one.say(subscribe(MOVES, flags=0))
    room.two.say(request(room.two, MOVES, flags=Flag.MASKED))
    (asked,) = room.one.heard()
    assert not asked.reply.startswith(room.two.inbox)
    room.one.say(message(asked.reply, b"e5"))
    assert bodies(room.two.heard()) == [b"e5"]


def test_a_run_of_messages_of_a_stranger_is_refused_with_one_error() -> None:
    room = Room()
    room.one.say(subscribe(MOVES, flags=0))
    assert errors(room.stranger.say(*[message(MOVES)] * 3)) == ["NotAMember"]
    assert room.house.service.refused == {"NotAMember": 3}
    assert room.one.heard() == []


def test_who_was_refused_may_say_it_once_it_is_a_member() -> None:
    room = Room()
    room.one.say(subscribe(MOVES, flags=0))
    assert errors(room.stranger.say(message(MOVES, b"before"))) == ["NotAMember"]
    admit(room.admissions, room.stranger)
    assert room.stranger.say(message(MOVES, b"after")) == []
    assert bodies(room.one.heard()) == [b"after"]


def test_what_was_subscribed_to_in_a_channel_is_taken_back_as_elsewhere() -> None:
    room = Room()
    room.one.say(subscribe(MOVES, flags=0))
    assert kinds(room.one.say(unsubscribe(MOVES))) == [Kind.OK]
    room.two.say(message(MOVES))
    assert (room.one.heard(), room.one.peer.weight) == ([], 0)
    assert kinds(room.stranger.say(unsubscribe(MOVES))) == [Kind.OK]


# What a key may do.

RIGHTS: list[tuple[str, bytes, dict[str, list[str]]]] = [
    ("publish", message(MOVES), {"publish": ["games.chess.moves"]}),
    ("publish", message(MOVES, flags=ANSWER), {"publish": ["games.>"]}),
    ("reply", message(b"ours", reply=MOVES), {"publish": ["ours", "games.chess.*"]}),
    ("subscribe", subscribe(MOVES, flags=0), {"subscribe": ["*.*.moves"]}),
    ("subscribe", subscribe(MOVES, b"g", flags=0), {"subscribe": ["games.chess.moves"]}),
]
WRONG = ["games.chess.x", "games.go.>", "moves", "_CHANNEL.>", MOVES.decode(), "-games.chess.moves"]


@pytest.mark.parametrize(("deed", "frame", "rights"), RIGHTS)
def test_a_member_may_do_what_its_key_may_do_with_the_name(
    deed: str, frame: bytes, rights: dict[str, list[str]]
) -> None:
    _, _, guest, _ = keyed(**rights)
    assert errors(guest.say(frame)) == [], deed


@pytest.mark.parametrize(("deed", "frame", "rights"), RIGHTS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_member_may_not_do_what_its_key_may_not(
    deed: str, frame: bytes, rights: dict[str, list[str]], wrong: str
) -> None:
    (right,) = rights
    _, _, guest, _ = keyed(**{right: ["ours", ">", wrong] if wrong[0] == "-" else ["ours", wrong]})
    assert errors(guest.say(frame)) == ["NotAllowed"], deed


def test_who_has_all_rights_is_no_member_by_that() -> None:
    everything = {
        right: [">", "_CHANNEL.>"] for right in ("publish", "subscribe", "request", "serve")
    }
    house = locked(record("one", "client", **everything), record("boss", "admin"))
    opened(house)
    for name in ("one", "boss"):
        guest = enter(house, name)
        assert errors(guest.say(message(MOVES))) == ["NotAMember"]
        assert errors(guest.say(request(guest, MOVES))) == ["NotAMember"]
        assert errors(guest.say(subscribe(MOVES))) == ["NotAMember"]
        assert errors(guest.say(message(b"a", reply=MOVES))) == ["NotAMember"]


@pytest.mark.parametrize(
    ("right", "expected"), [("games.chess.moves", []), ("games.go.moves", ["NotAllowed"])]
)
def test_a_request_takes_the_right_to_request(right: str, expected: list[str]) -> None:
    _, _, guest, other = keyed(request=[right])
    other.say(subscribe(MOVES, flags=0))
    assert errors(guest.say(request(guest, MOVES))) == expected
    assert errors(guest.say(message(MOVES))) == ["NotAllowed"]
    assert len(other.heard()) == 1 - len(expected)


@pytest.mark.parametrize(
    ("right", "expected"), [("games.chess.>", []), ("games.go.>", ["NotKnown"])]
)
def test_only_who_may_serve_the_name_is_given_requests(right: str, expected: list[str]) -> None:
    _, _, guest, other = keyed(subscribe=[">"], serve=[right])
    guest.say(subscribe(MOVES, flags=0))
    assert errors(other.say(request(other, MOVES))) == expected
    other.say(message(MOVES, b"news"))
    assert bodies(guest.heard())[-1:] == [b"news"]


def test_what_a_service_enabled_for_clients_holds_in_channels() -> None:
    _, _, client, service = keyed()
    assert errors(client.say(message(MOVES))) == ["NotAllowed"]
    ask(service, "enable", right="publish", pattern="games.chess.>")
    assert errors(client.say(message(MOVES))) == []
    ask(service, "disable", right="publish", pattern="games.chess.>")
    assert errors(client.say(message(MOVES))) == ["NotAllowed"]


# What is lost.


def test_a_lost_right_takes_back_what_was_subscribed_to_in_channels() -> None:
    house, _, guest, other = keyed(subscribe=["games.>", "plain"], publish=["games.>"])
    guest.say(
        subscribe(MOVES, flags=0),
        subscribe(inside(b"moves.*"), b"g", flags=0),
        subscribe(inside(b"chat"), flags=0),
        subscribe(b"plain", flags=0),
        message(MOVES),
    )
    guest.heard()
    house.service.set_keys(
        Keyring([record("one", "client", subscribe=["games.chess.chat", "plain"]), record("two")])
    )
    review(house.service)
    house.flush()
    frames = guest.heard()
    assert [(frame.subject, frame.reply, fields(frame)["name"]) for frame in frames] == [
        (MOVES, b"", "NotAllowed"),
        (inside(b"moves.*"), b"g", "NotAllowed"),
    ]
    other.say(message(MOVES, b"no"), message(inside(b"chat"), b"yes"), message(b"plain", b"yes"))
    assert bodies(guest.heard()) == [b"yes", b"yes"]
    # The same subject as its last message had.
    assert errors(guest.say(message(MOVES))) == ["NotAllowed"]


def test_who_may_serve_no_more_listens_on_in_channels() -> None:
    house, _, guest, other = keyed(subscribe=[">"], serve=[">"])
    guest.say(subscribe(MOVES, flags=0))
    house.service.set_keys(Keyring([record("one", "client", subscribe=[">"]), record("two")]))
    house.flush()
    assert errors(other.say(request(other, MOVES))) == ["NotKnown"]
    other.say(message(MOVES, b"news"))
    assert bodies(guest.heard()) == [b"news"]


@pytest.mark.req("RLY-19")
@pytest.mark.parametrize("last", [encode(Kind.GOODBYE), b"\0\0\0\0"])
def test_who_is_over_is_a_member_of_nothing(last: bytes) -> None:
    room = Room()
    admit(room.admissions, room.one, channel=GO)
    room.one.say(subscribe(MOVES, flags=0), subscribe(inside(b">", GO), flags=0))
    room.one.say(last)
    assert room.one.peer.channels == {}
    assert room.admissions.ids() == [CHESS]
    assert room.admissions.members(CHESS) == [room.two.peer]
    room.two.say(message(MOVES, b"later"))
    assert bodies(room.one.heard()) == []
    leave(room.one.peer)
    leave(room.two.peer)
    assert (len(room.admissions), len(room.house.service.router)) == (0, 0)


def test_a_member_may_leave_where_nobody_counts_them() -> None:
    room = Room()
    room.house.service.on_member_over = None
    leave(room.one.peer)
    assert room.one.peer.number not in room.house.service.peers


def test_whoever_serves_in_a_channel_and_leaves_it_answers_what_it_was_given() -> None:
    room = Room()
    room.one.say(subscribe(MOVES, flags=0))
    room.two.say(request(room.two, MOVES))
    (asked,) = room.one.heard()
    room.admissions.leave(room.one.peer, CHESS)
    room.one.say(message(asked.reply, b"last"))
    assert bodies(room.two.heard()) == [b"last"]
    assert errors(room.two.say(request(room.two, MOVES))) == ["NotKnown"]
