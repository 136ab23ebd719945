"""What is begun and not finished: frames, requests, and the end of a connection."""

import time

import pytest
from tests.attacks.gateway_process import WAIT_S, eventually, rss_bytes
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, Stranger, message, request, subscribe

from weft.wire.frames import Kind, encode

REQUESTS = 1000
SETTINGS = {"limits.frame_s": 0.5, "limits.request_s": 0.5, "limits.requests": REQUESTS}
SMALL = message(b"a.b", bytes(100))
LARGE = message(b"a.b", bytes(1 << 20))
MIB = 1 << 20


def trickle(stranger: Stranger, data: bytes) -> bytes:
    """Send a byte at a time, never silent for long, until something is heard."""
    stranger.socket.settimeout(0.02)
    ends = time.monotonic() + WAIT_S
    for at in range(len(data)):
        assert time.monotonic() < ends
        stranger.send(data[at : at + 1])
        try:
            return stranger.socket.recv(4096)
        except TimeoutError:
            continue
    raise AssertionError("everything was sent and nothing heard")


def test_frames_that_are_never_finished_end_their_connections_alone(siege: Siege) -> None:
    before_it = message(b"last.words", b"so long")
    beginnings = [SMALL[:1], SMALL[:3], SMALL[:4], SMALL[:40], LARGE[:100], LARGE[: 700 << 10]]
    witness = siege.stranger(CONNECT + subscribe(b"last.words"))
    witness.hear_until_pong()
    slow = [siege.stranger(CONNECT + before_it + beginning) for beginning in beginnings]
    with siege.bystander.talking():
        assert [stranger.hear_end() for stranger in slow] == ["TooSlow"] * len(slow)
    heard = [frame.body for frame in witness.hear_until_pong()]
    assert heard == [b"so long"] * len(slow)
    siege.await_counts(refused_TooSlow=len(slow), ended_TooSlow=len(slow))


@pytest.mark.parametrize("frame", [SMALL * 20, LARGE], ids=["a small one", "a large one"])
def test_a_frame_that_trickles_gets_no_more_time_than_another(siege: Siege, frame: bytes) -> None:
    # Many small frames may trickle for ever: each of them is finished in time. One may not.
    whole = encode(Kind.MESSAGE, b"a.b", frame)
    stranger = siege.stranger()
    stranger.hear(Kind.WELCOME)
    assert b"TooSlow" in trickle(stranger, whole)
    stranger.socket.close()
    siege.await_counts(refused_TooSlow=1, ended_TooSlow=1)


def test_a_peer_that_was_cut_and_does_not_hang_up_is_hung_up_on(siege: Siege) -> None:
    silent = siege.stranger(CONNECT + bytes(4))
    noisy = siege.stranger(CONNECT + bytes(4))
    noisy.hear_all()
    with siege.bystander.talking():
        while siege.counted()["ended BadFrame"] < 2:
            noisy.send(bytes(65_536))
    assert silent.hear_end() == "BadFrame"
    siege.await_counts(refused_BadFrame=2, ended_BadFrame=2)


@pytest.mark.req("MM-10")
def test_unfinished_frames_cost_what_was_sent_of_them_and_are_given_back(siege: Siege) -> None:
    """500 connections that send 64 KiB of 1 MiB: at most twice what was sent, not 500 MiB."""
    beginning = LARGE[: 64 << 10]
    siege.stranger(CONNECT + LARGE).hear_until_pong()
    before = rss_bytes(siege.worker)
    peaks = []
    for _ in range(2):
        slow = [siege.stranger(CONNECT + beginning) for _ in range(500)]
        for stranger in slow:
            stranger.hear(Kind.WELCOME)
        siege.bystander.talk()
        peaks.append(rss_bytes(siege.worker) - before)
        assert [stranger.hear_end() for stranger in slow] == ["TooSlow"] * 500
    sent = 500 * len(beginning)
    # Twice: a large frame is collected in a room that doubles. The rest: 500 connections.
    assert max(peaks) < 2 * sent + 16 * MIB, [peak / MIB for peak in peaks]
    siege.await_counts(refused_TooSlow=1000, ended_TooSlow=1000)
    # The second round costs no more than the first: what was given back is used again.
    assert peaks[1] <= peaks[0] + 8 * MIB, [peak / MIB for peak in peaks]


def test_a_responder_that_never_answers_is_not_waited_for_for_ever(siege: Siege) -> None:
    server = siege.stranger(CONNECT + subscribe(b"served.here"))
    asker = siege.stranger()
    inbox = asker.inbox()
    requests = b"".join(request(b"served.here", inbox + b".%d" % n) for n in range(REQUESTS))

    def asked_again() -> bool:
        # As many as there may be: each is refused until those before it are forgotten.
        asker.send(requests)
        return asker.hear_errors() == []

    with siege.bystander.talking():
        assert asked_again()
        eventually(asked_again, "its requests never expired")
    assert len(server.hear_until_pong()) == 1 + 2 * REQUESTS
