"""A gateway that closes down waits for slow clients only while they make progress.

`drain_s` is far longer than a test may take: a gateway that waits for a client that stands still
never ends in time.
"""

import signal
import socket
from collections.abc import Callable

from tests.attacks.gateway_process import WAIT_S, GatewayProcess, eventually
from tests.attacks.stranger import CONNECT, Stranger, fields, message, subscribe

from weft.wire.frames import Flag, Frame, Kind, encode

Serve = Callable[..., GatewayProcess]

SETTINGS: dict[str, object] = {"drain_s": 1000.0, "drain_stall_s": 0.5}
BODY = bytes(50_000)
# Together more than the kernel keeps for a connection.
COUNT = 400


def small_reader(port: int) -> Stranger:
    """A subscriber for which the kernel keeps little on its side."""
    greeting = CONNECT + subscribe(b"load.>", policy="cut")
    return Stranger(port, greeting, receive_buffer=16_384)


def publish_all(gateway: GatewayProcess) -> list[int]:
    """Publish messages, and return the sequences of those that were acknowledged."""
    with Stranger(gateway.port) as speaker:
        for _ in range(COUNT):
            speaker.send(message(b"load.a", BODY, flags=Flag.ANSWER))
        heard = speaker.hear_until_pong()
    return [frame.sequence for frame in heard if frame.kind == Kind.OK]


def test_a_reader_that_stands_still_does_not_delay_a_drain_and_learns_why_it_ended(
    serve: Serve,
) -> None:
    gateway = serve(SETTINGS)
    with (
        small_reader(gateway.port) as reader,
        Stranger(gateway.port) as other,
    ):
        reader.hear_until_pong()
        assert len(publish_all(gateway)) == COUNT
        gateway.process.send_signal(signal.SIGTERM)
        other.hear(Kind.GOODBYE)
        other.send(encode(Kind.GOODBYE))
        other.hear_all()
        assert gateway.process.wait(WAIT_S) == 0
        last = reader.hear_all()[-1]
    assert last.kind == Kind.ERROR
    told = fields(last)
    assert told["name"] == "SlowReader"
    assert "drain_stall_s" in told["text"]
    assert "0.5 s" in told["text"]


def test_a_slow_reader_that_makes_progress_gets_everything_during_a_drain(serve: Serve) -> None:
    gateway = serve(SETTINGS)
    with small_reader(gateway.port) as reader:
        reader.hear_until_pong()
        acknowledged = publish_all(gateway)
        gateway.process.send_signal(signal.SIGTERM)
        heard: list[Frame] = []
        for frame in reader.frames():
            heard.append(frame)
            if frame.kind == Kind.GOODBYE:
                reader.send(encode(Kind.GOODBYE))
        assert gateway.process.wait(WAIT_S) == 0
    assert [frame.sequence for frame in heard if frame.kind == Kind.MESSAGE] == acknowledged
    assert heard[-1].kind == Kind.GOODBYE


def test_a_client_that_does_not_answer_the_goodbye_does_not_delay_a_drain(serve: Serve) -> None:
    gateway = serve(SETTINGS)
    with Stranger(gateway.port) as silent:
        silent.hear(Kind.WELCOME)
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WAIT_S) == 0
        assert [frame.kind for frame in silent.hear_all()] == [Kind.GOODBYE]


def test_a_client_that_works_on_a_request_is_waited_for(serve: Serve) -> None:
    gateway = serve(SETTINGS)
    with (
        Stranger(gateway.port, CONNECT + subscribe(b"work")) as responder,
        Stranger(gateway.port) as requester,
        Stranger(gateway.port) as silent,
    ):
        responder.hear_until_pong()
        inbox = requester.inbox()
        silent.hear(Kind.WELCOME)
        requester.send(message(b"work", b"?", inbox + b".1", Flag.REQUEST))
        asked = responder.hear(Kind.MESSAGE)
        gateway.process.send_signal(signal.SIGTERM)
        # One that does nothing is let go: then the others have waited for longer than it may.
        silent.hear_all()
        responder.send(message(asked.reply, b"!"), encode(Kind.GOODBYE))
        answer = requester.hear(Kind.MESSAGE)
        requester.send(encode(Kind.GOODBYE))
        assert gateway.process.wait(WAIT_S) == 0
    assert answer.body == b"!"


def test_a_page_that_stands_still_does_not_delay_a_drain(serve: Serve) -> None:
    gateway = serve(SETTINGS)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    sock.connect(("127.0.0.1", gateway.port))
    with sock:
        sock.sendall(b"GET /default/stream/load?subpaths=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        eventually(lambda: gateway.service()["status"]["subscriptions"] > 0, "no subscription")
        publish_all(gateway)
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WAIT_S) == 0


def test_a_request_that_is_never_complete_does_not_delay_a_drain(serve: Serve) -> None:
    gateway = serve(SETTINGS)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT_S) as sock:
        sock.sendall(
            b"POST /default/publish/a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nabc"
        )
        eventually(lambda: gateway.service()["handed_over"] == 1, "it is not connected")
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WAIT_S) == 0
