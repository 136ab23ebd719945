"""Subscriptions by the thousand, as wide, as long and as illegal as they can be."""

from typing import Any

import pytest
from tests.attacks.bystander import MESSAGES
from tests.attacks.gateway_process import rss_bytes
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, Stranger, message, subscribe

from weft.wire.frames import Flag, Kind, encode

LIMIT = 2000
SETTINGS = {"limits.subscriptions": LIMIT}
MIB = 1 << 20
AT_HOME = 2


def subscriptions(siege: Siege) -> int:
    """How many there are besides the bystander's."""
    return int(siege.gateway.service()["status"]["subscriptions"]) - AT_HOME


def answers(stranger: Stranger) -> list[Kind]:
    answers = (Kind.OK, Kind.ERROR)
    return [Kind(frame.kind) for frame in stranger.hear_until_pong() if frame.kind in answers]


def test_one_subscription_too_many_is_refused_and_the_others_stay(siege: Siege) -> None:
    stranger = siege.stranger()
    wishes = [subscribe(b"bomb.%d" % number, flags=Flag.ANSWER) for number in range(LIMIT + 1)]
    stranger.send(*wishes)
    assert answers(stranger) == [Kind.OK] * LIMIT + [Kind.ERROR]
    assert subscriptions(siege) == LIMIT
    # Asking again for what is there costs nothing; taking back makes room.
    stranger.send(wishes[0], encode(Kind.UNSUBSCRIBE, b"bomb.1"), wishes[LIMIT])
    assert answers(stranger) == [Kind.OK, Kind.OK]
    siege.await_counts(refused_TooMany=1)


@pytest.mark.parametrize(
    "pattern", [b"*." * 98 + b"%d.>", b"*." * 99 + b"%d", b"%d." + b"a." * 98 + b"*"]
)
def test_a_wide_pattern_counts_as_often_as_it_has_elements(siege: Siege, pattern: bytes) -> None:
    stranger = siege.stranger()
    wishes = [subscribe(pattern % number, flags=Flag.ANSWER) for number in range(LIMIT // 100 + 1)]
    stranger.send(*wishes)
    assert answers(stranger) == [Kind.OK] * (LIMIT // 100) + [Kind.ERROR]
    assert subscriptions(siege) == LIMIT // 100
    siege.bystander.talk()
    siege.await_counts(refused_TooMany=1)


def test_a_list_with_one_pattern_too_many_is_refused_as_a_whole(siege: Siege) -> None:
    stranger = siege.stranger()
    patterns = [f"bomb.{number}" for number in range(LIMIT + 1)]
    stranger.send(subscribe(b"", patterns=patterns), subscribe(b"bomb.0", patterns=["a..b"]))
    assert stranger.hear_errors() == ["TooMany", "BadSubject"]
    assert subscriptions(siege) == 0
    siege.await_counts(refused_TooMany=1, refused_BadSubject=1)


def test_a_list_that_no_message_can_hold_ends_its_connection(siege: Siege) -> None:
    stranger = siege.stranger()
    count = (70_000).to_bytes(4, "little")
    body = b"\x01\0\0\0" + b"\x08\0\0\0patterns" + b"\x10" + count + b"\x01\0\0\0\0" * 70_000
    stranger.send(encode(Kind.SUBSCRIBE, b"a", body))
    assert stranger.hear_end() == "MessageTooBig"
    siege.await_counts(refused_MessageTooBig=1, ended_MessageTooBig=1)


ILLEGAL = {
    "empty": (b"", "BadSubject"),
    "empty element": (b"a..b", "BadSubject"),
    "leading dot": (b".a", "BadSubject"),
    "tail in the middle": (b"a.>.b", "BadSubject"),
    "wildcard in an element": (b"a*b", "BadSubject"),
    "control character": (b"a\x00b", "BadSubject"),
    "slash": (b"a/b", "BadSubject"),
    "not UTF-8": (b"a.\xff", "BadSubject"),
    "101 elements": (b".".join([b"a"] * 101), "BadSubject"),
    "an element too long": (b"a" * 128, "BadSubject"),
    "the system": (b"_SYSTEM.>", "Reserved"),
    "all inboxes": (b"_INBOX.>", "NotYours"),
    "one of the inboxes": (b"_INBOX.*.*", "NotYours"),
    "the inboxes by their name": (b"_INBOX", "Reserved"),
}


@pytest.mark.parametrize(("pattern", "error"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_what_may_not_be_asked_for_is_refused_and_the_connection_goes_on(
    siege: Siege, pattern: bytes, error: str
) -> None:
    stranger = siege.stranger(CONNECT + subscribe(pattern))
    assert stranger.hear_errors() == [error]
    assert subscriptions(siege) == 0
    siege.await_counts(**{f"refused_{error}": 1})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"policy": "keep_all"}, "BadOption"),
        ({"policy": 3}, "WrongType"),
        ({"patterns": "a.b"}, "WrongType"),
        ({"patterns": [7]}, "BadOption"),
        ({"listen_only": "yes"}, "WrongType"),
    ],
)
def test_options_that_cannot_be_are_refused_and_the_connection_goes_on(
    siege: Siege, options: dict[str, Any], error: str
) -> None:
    stranger = siege.stranger(CONNECT + subscribe(b"a.b", **options))
    assert stranger.hear_errors() == [error]
    assert subscriptions(siege) == 0
    siege.await_counts(**{f"refused_{error}": 1})


def test_asking_for_everything_overhears_no_answers(siege: Siege) -> None:
    spy = siege.stranger(CONNECT + subscribe(b">") + subscribe(b"*.*.*") + subscribe(b"*.>"))
    spy.hear_until_pong()
    siege.bystander.talk()
    subjects = [frame.subject for frame in spy.hear_until_pong() if frame.kind == Kind.MESSAGE]
    assert len(subjects) == MESSAGES
    assert all(subject.startswith(b"bystander.") for subject in subjects)


def test_a_member_of_a_thousand_groups_gets_a_message_once(siege: Siege) -> None:
    stranger = siege.stranger()
    stranger.send(*(subscribe(b"bomb.group", b"g.%d" % number) for number in range(LIMIT + 1)))
    assert stranger.hear_errors() == ["TooMany"]
    stranger.send(message(b"bomb.group", b"1"), message(b"bomb.group", b"2"))
    bodies = [frame.body for frame in stranger.hear_until_pong() if frame.kind == Kind.MESSAGE]
    assert bodies == [b"1", b"2"]
    siege.await_counts(refused_TooMany=1)


@pytest.mark.parametrize("group", [b"*", b"a..b", b"g" * 128, b"\xff"])
def test_a_group_that_is_no_name_is_refused(siege: Siege, group: bytes) -> None:
    stranger = siege.stranger(CONNECT + subscribe(b"a.b", group))
    assert stranger.hear_errors() == ["BadSubject"]
    assert subscriptions(siege) == 0
    siege.await_counts(refused_BadSubject=1)


def test_bombs_leave_nothing_behind(siege: Siege) -> None:
    """Rounds of connections that fill their limits in every way: memory is flat in the end."""
    wishes = b"".join(
        [subscribe(b"%d.%s" % (n, b"x" * 120)) for n in range(500)]
        + [subscribe(b"*.%d.%s.>" % (n, b"y" * 100)) for n in range(250)]
        + [subscribe(b"bomb.group", b"%d.%s" % (n, b"z" * 100)) for n in range(500)]
    )
    held: list[int] = []
    for _ in range(6):
        for stranger in [Stranger(siege.port, CONNECT + wishes) for _ in range(4)]:
            with stranger:
                assert stranger.hear_errors() == []
        siege.bystander.talk()
        held.append(rss_bytes(siege.worker))
    assert held[-1] - held[2] < 4 * MIB, [each / MIB for each in held]
    siege.await_counts()
