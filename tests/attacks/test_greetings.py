"""What comes instead of a greeting: turned away at the front, counted, and nobody else notices."""

import random
import struct

import pytest
from tests.attacks.gateway_process import descriptors, eventually
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, Stranger, connect, error_name

from weft.wire.frames import Kind, encode

GREETING_BYTES = 4096
SETTINGS = {"limits.greeting_s": 0.5, "limits.greeting_bytes": GREETING_BYTES}
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(194)


def first_frame(size: int, kind: int = Kind.CONNECT, names: tuple[int, int] = (0, 0)) -> bytes:
    return struct.pack("<IBBBB", size, kind, 0, *names) + bytes(24)


NO_GREETINGS = {
    **{f"size of {size}": (first_frame(size), "BadFrame") for size in (0, 1, 2, 3, 31)},
    "size over the limit": (first_frame(GREETING_BYTES + 1), "FrameTooBig"),
    "size of -1": (b"\xff\xff\xff\xff", "FrameTooBig"),
    "names longer than the frame": (first_frame(32, names=(200, 200)), "BadFrame"),
    "a message": (encode(Kind.MESSAGE, b"a.b"), "BadGreeting"),
    "a kind that is none": (encode(99, b"default"), "BadGreeting"),
    "no service": (encode(Kind.CONNECT), "BadGreeting"),
    "a service with a dot": (connect(b"de.fault"), "BadGreeting"),
    "a service above folders": (connect(b"../default"), "BadGreeting"),
    "a reserved service": (connect(b"_WEFT"), "BadGreeting"),
    "a service with a line end": (connect(b"default\n"), "BadGreeting"),
    "a service too long": (connect(b"x" * 64), "BadGreeting"),
    "a service not in UTF-8": (connect(b"\xff\xfe"), "BadGreeting"),
    "a service that is not run": (connect(b"other"), "NoSuchService"),
    "TLS": (TLS_HELLO, "BadGreeting"),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n", "FrameTooBig"),
    "RDP": (bytes.fromhex("030000130ee000000000000100080003000000"), "FrameTooBig"),
    "SOCKS": (bytes.fromhex("050100"), "TooSlow"),
    "Redis": (b"*1\r\n$4\r\nPING\r\n", "FrameTooBig"),
}


@pytest.mark.parametrize(("sent", "error"), NO_GREETINGS.values(), ids=NO_GREETINGS.keys())
def test_what_is_no_greeting_is_turned_away_at_the_front(
    siege: Siege, sent: bytes, error: str
) -> None:
    stranger = siege.stranger(sent)
    siege.bystander.talk()
    assert stranger.hear_end() == error
    siege.await_counts(**{f"front_{error}": 1})


GREETINGS_REFUSED = {
    "a name with wildcards": (connect(name=b"a.*"), "BadGreeting"),
    "a name that is reserved": (connect(name=b"_INBOX.x"), "BadGreeting"),
    "a name too long": (connect(name=b"x" * 128), "BadGreeting"),
    "another version": (connect(version=2), "BadGreeting"),
    "a version in words": (connect(version="one"), "BadGreeting"),
    "an address in numbers": (connect(address=7), "BadGreeting"),
    "a body that is no message": (encode(Kind.CONNECT, b"default", b"\x07"), "BadMessage"),
}


@pytest.mark.parametrize(
    ("greeting", "error"), GREETINGS_REFUSED.values(), ids=GREETINGS_REFUSED.keys()
)
def test_a_greeting_that_says_what_cannot_be_is_refused_by_the_service(
    siege: Siege, greeting: bytes, error: str
) -> None:
    assert siege.stranger(greeting).hear_end() == error
    siege.await_counts(**{f"refused_{error}": 1, f"ended_{error}": 1})


def test_a_long_greeting_is_accepted(siege: Siege) -> None:
    room = GREETING_BYTES - 2 * 255 - len(connect(client=""))
    assert siege.stranger(connect(client="x" * room)).hear(Kind.WELCOME)
    siege.await_counts()


def test_a_greeting_that_comes_byte_by_byte_is_accepted(siege: Siege) -> None:
    stranger = siege.stranger(b"")
    for at in range(len(CONNECT)):
        stranger.send(CONNECT[at : at + 1])
    assert stranger.hear(Kind.WELCOME)
    siege.await_counts()


@pytest.mark.parametrize("sent", [0, 3, len(CONNECT) - 1])
def test_a_greeting_that_is_never_finished_is_given_up(siege: Siege, sent: int) -> None:
    stranger = siege.stranger(CONNECT[:sent])
    siege.bystander.talk()
    assert stranger.hear_end() == "TooSlow"
    siege.await_counts(front_TooSlow=1)


def test_a_greeting_that_trickles_gets_no_more_time_than_another(siege: Siege) -> None:
    stranger = siege.stranger(b"")
    heard = b""
    stranger.socket.settimeout(0.02)
    # As slow as it can be without ever falling silent; the gateway must end it.
    for at in range(len(CONNECT) - 1):
        stranger.send(CONNECT[at : at + 1])
        try:
            heard = stranger.socket.recv(4096)
        except TimeoutError:
            continue
        break
    assert b"TooSlow" in heard
    siege.await_counts(front_TooSlow=1)


@pytest.mark.parametrize("sent", [0, 3, len(CONNECT) - 1])
def test_whoever_leaves_within_the_greeting_is_counted_and_forgotten(
    siege: Siege, sent: int
) -> None:
    open_before = descriptors(siege.gateway.process.pid)
    for _ in range(20):
        with Stranger(siege.port, CONNECT[:sent]) as stranger:
            stranger.end_sending()
            stranger.hear_all()
    siege.await_counts(**({"front_BadGreeting": 20} if sent else {"front_left": 20}))
    pid = siege.gateway.process.pid
    eventually(lambda: descriptors(pid) <= open_before, "descriptors are left open")


@pytest.mark.req("MM-10")
def test_random_bytes_are_turned_away(siege: Siege) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    expected = {"FrameTooBig", "BadFrame", "BadGreeting", "NoSuchService", "TooSlow", ""}
    for _ in range(300):
        with Stranger(siege.port, chance.randbytes(chance.randrange(4, 200))) as stranger:
            assert stranger.hear_end() in expected, f"seed {seed}"
    assert not [why for why in siege.counted() if not why.startswith("front ")], f"seed {seed}"


def test_what_was_sent_is_not_sent_back(siege: Siege) -> None:
    secret = b"my-secret-password"
    for sent in (b"GET /" + secret + b" HTTP/1.1\r\n\r\n", connect(secret + b"."), secret * 10):
        stranger = siege.stranger(sent)
        stranger.end_sending()
        heard = stranger.hear_bytes()
        assert heard
        assert secret not in heard
    refused = siege.stranger(connect(name=b"*." + secret)).hear(Kind.ERROR)
    assert secret.decode() not in error_name(refused) + str(refused.body)
