import json
import logging
import socket

import pytest

from weft.errors import NoSuchService, TooSlow
from weft.gateway.front.fd_passing import AS_HTTP
from weft.gateway.front.rejections import Rejections, error_frame
from weft.wire.frames import Kind, parse
from weft.wire.message.message import Message


def test_the_answer_says_number_name_and_text() -> None:
    frame = parse(error_frame(NoSuchService("no such thing")))
    assert frame.kind == Kind.ERROR
    assert Message.from_body(frame.body).to_dict() == {
        "number": 4004,
        "name": "NoSuchService",
        "text": "no such thing",
        "kind": Kind.CONNECT,
    }


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = socket.create_connection(listening.getsockname(), timeout=10)
        return peer, listening.accept()[0]


def test_whoever_is_refused_reads_why_though_nobody_read_what_it_sent() -> None:
    peer, sock = tcp_pair()
    with peer:
        peer.sendall(b"x" * 1000)
        assert sock.recv(1000, socket.MSG_PEEK)
        error = TooSlow("late")
        Rejections("london").refuse(sock, error, "peer")
        assert sock.fileno() == -1
        with peer.makefile("rb") as answer:
            assert answer.read() == error_frame(error)


def test_a_request_is_refused_with_an_error_as_json() -> None:
    peer, sock = tcp_pair()
    with peer:
        Rejections("london").refuse(sock, NoSuchService("no such thing"), "peer", AS_HTTP)
        with peer.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n")
    facts = {"number": 4004, "name": "NoSuchService", "text": "no such thing"}
    assert json.loads(body) == {"error": facts}


def test_refusals_are_counted_by_reason() -> None:
    refusals = Rejections("london")
    for _ in range(3):
        peer, sock = tcp_pair()
        refusals.refuse(sock, TooSlow("late"), "peer")
        peer.close()
    peer, sock = tcp_pair()
    refusals.left(sock)
    peer.close()
    assert refusals.counts == {"TooSlow": 3, "left": 1}


def test_whoever_is_gone_already_is_counted_all_the_same() -> None:
    refusals = Rejections("london")
    peer, sock = tcp_pair()
    # Closed with bytes unread, so that the connection is reset.
    sock.sendall(b"x")
    assert peer.recv(1, socket.MSG_PEEK)
    peer.close()
    refusals.refuse(sock, TooSlow("late"), "peer")
    assert refusals.counts == {"TooSlow": 1}
    assert sock.fileno() == -1


def test_a_flood_is_one_line_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "weft")
    refusals = Rejections("london")
    for _ in range(100):
        refusals.count(TooSlow("late"), "127.0.0.1:9")
    refusals.count(NoSuchService("none"), "127.0.0.1:9")
    assert [record.getMessage() for record in caplog.records] == [
        "refused, TooSlow: late",
        "refused, NoSuchService: none",
    ]
    assert vars(caplog.records[0])["peer"] == "127.0.0.1:9"
    assert vars(caplog.records[0])["gateway"] == "london"


def test_the_next_line_says_how_many_were_not_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "weft")
    now = 100.0
    monkeypatch.setattr("weft.transports.refusal_log.time.monotonic", lambda: now)
    refusals = Rejections("london")
    for _ in range(3):
        refusals.count(TooSlow("late"), "peer")
    now += 1.0
    refusals.count(TooSlow("late"), "peer")
    texts = [record.getMessage() for record in caplog.records]
    assert texts[1] == "refused, TooSlow: late (2 others since the last such line)"
