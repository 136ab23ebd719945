"""More of everything than anyone needs: what costs the gateway is refused, the rest is bounded."""

import threading
from collections.abc import Callable

import pytest
from tests.attacks.gateway_process import eventually, rss_bytes
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, Stranger, message, request, subscribe

from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Message

BURST = 2000
SETTINGS = {"limits.control_burst": BURST, "limits.control_per_s": 100}
MIB = 1 << 20
PING = encode(Kind.PING)


def churn(number: int) -> bytes:
    pattern = b"churn.%d.>" % number
    return subscribe(pattern) + encode(Kind.UNSUBSCRIBE, pattern)


CONTROL = {
    "PING": lambda _: PING,
    "PONG": lambda _: encode(Kind.PONG),
    "SUBSCRIBE again and again": lambda _: subscribe(b"same.thing"),
    "SUBSCRIBE and UNSUBSCRIBE": churn,
    "UNSUBSCRIBE what is not there": lambda n: encode(Kind.UNSUBSCRIBE, b"not.there.%d" % n),
    "SUBSCRIBE what is illegal": lambda _: subscribe(b"a..b"),
    "lists of patterns": lambda n: subscribe(b"", patterns=[f"list.{n}.{i}" for i in range(50)]),
}


@pytest.mark.parametrize("frame", CONTROL.values(), ids=CONTROL.keys())
def test_a_flood_of_control_ends_its_connection_alone(
    siege: Siege, frame: Callable[[int], bytes]
) -> None:
    flooder = siege.stranger()
    flood = b"".join(frame(number) for number in range(10 * BURST))
    # From a thread of its own: a gateway need not read what comes after the refusal.
    thread = threading.Thread(target=flooder.send, args=(flood,))
    with siege.bystander.talking():
        thread.start()
        assert flooder.hear_end() == "ControlFlood"
        thread.join()
    eventually(lambda: siege.counted()["ended ControlFlood"] == 1, siege.counted)
    counted = siege.counted()
    assert counted["refused ControlFlood"] == 1
    assert counted["refused BadSubject"] <= BURST + 100
    assert siege.gateway.service()["status"]["subscriptions"] == 2


def test_questions_to_the_gateway_are_bounded_like_control(siege: Siege) -> None:
    flooder = siege.stranger()
    reply = flooder.inbox() + b".1"
    body = Message().encode()
    names = (b"status", b"connections", b"subscriptions", b"flows")
    questions = b"".join(
        encode(Kind.MESSAGE, b"_WEFT.ask." + name, body, reply, Flag.REQUEST) for name in names
    )
    flooder.send(questions * BURST)
    with siege.bystander.talking():
        assert flooder.hear_end() == "ControlFlood"
    siege.await_counts(refused_ControlFlood=1, ended_ControlFlood=1)


def test_control_within_the_limit_is_answered(siege: Siege) -> None:
    stranger = siege.stranger()
    stranger.hear_until_pong()
    stranger.send(PING * (BURST - 10))
    assert [frame.kind for frame in stranger.hear_until_pong()] == [Kind.PONG] * (BURST - 10)
    siege.await_counts()


def flood_with(siege: Siege, frames: Callable[[Stranger], bytes]) -> list[int]:
    """Memory of the worker after each of several rounds, each of a connection of its own."""
    held: list[int] = []
    for _ in range(5):
        with Stranger(siege.port) as flooder:
            flooder.send(frames(flooder))
            flooder.hear_until_pong()
            held.append(rss_bytes(siege.worker))
    return held


def test_messages_to_ever_new_subjects_cost_no_memory_in_the_long_run(siege: Siege) -> None:
    number = 0

    def frames(_: Stranger) -> bytes:
        nonlocal number
        number += 40_000
        return b"".join(
            message(b"new.%d.%s" % (n, b"x" * 100)) for n in range(number - 40_000, number)
        )

    wide = siege.stranger(CONNECT + subscribe(b"nothing.>"))
    wide.hear_until_pong()
    with siege.bystander.talking():
        held = flood_with(siege, frames)
    assert held[-1] - held[1] < 8 * MIB, [each / MIB for each in held]
    siege.await_counts()


def test_ever_new_replies_cost_no_memory_in_the_long_run(siege: Siege) -> None:
    def frames(flooder: Stranger) -> bytes:
        inbox = flooder.inbox()
        return b"".join(message(b"same.thing", b"", inbox + b".%d" % n) for n in range(40_000))

    with siege.bystander.talking():
        held = flood_with(siege, frames)
    assert held[-1] - held[1] < 8 * MIB, [each / MIB for each in held]
    siege.await_counts()


def test_mistakes_whose_answers_are_not_read_end_as_slow_reading(siege: Siege) -> None:
    flooder = siege.stranger()
    mistakes = b"".join(message(b"illegal..%d" % n, flags=Flag.ANSWER) for n in range(5000))

    def make_mistakes() -> None:
        while siege.counted()["ended SlowReader"] == 0:
            flooder.send(mistakes)

    with siege.bystander.talking():
        make_mistakes()
    counted = siege.counted()
    assert counted["refused BadSubject"] > 0
    assert counted["ended SlowReader"] == 1


def test_a_flood_of_messages_does_not_keep_others_from_being_heard(siege: Siege) -> None:
    flooders = [siege.stranger() for _ in range(3)]
    flood = b"".join(message(b"flood.%d" % (n % 7), bytes(100)) for n in range(50_000))
    threads = [threading.Thread(target=flooder.send, args=(flood,)) for flooder in flooders]
    with siege.bystander.talking():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for flooder in flooders:
        flooder.hear_until_pong()
    siege.await_counts()


def test_requests_to_oneself_without_end_are_bounded(siege: Siege) -> None:
    flooder = siege.stranger(CONNECT + subscribe(b"to.myself"))
    inbox = flooder.inbox()
    flooder.send(*(request(b"to.myself", inbox + b".%d" % n, b"") for n in range(66_000)))
    heard = flooder.hear_until_pong()
    errors = sum(frame.kind == Kind.ERROR for frame in heard)
    assert errors == 66_000 - 65_536
    siege.await_counts(refused_TooMany=errors)
