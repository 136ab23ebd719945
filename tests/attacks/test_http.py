"""HTTP on the gateway's port, spoken badly: one answer at most, then the end."""

import contextlib

import pytest
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, Stranger

from weft.wire.frames import Kind

SETTINGS = {"limits.greeting_s": 0.5}


def ask(siege: Siege, sent: bytes) -> bytes:
    """Everything that is answered to some bytes."""
    stranger = siege.stranger(sent)
    # One that is hung up on has nothing more to end.
    with contextlib.suppress(OSError):
        stranger.end_sending()
    return stranger.hear_bytes()


def get(target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    lines = [method + b" " + target + b" HTTP/1.1", *(headers or (b"Host: localhost",)), b"", b""]
    return b"\r\n".join(lines)


HOST = b"Host: localhost"
REFUSED = {
    "head too large": (get(b"/", HOST, *[b"X-%d: " % n + b"x" * 100 for n in range(90)]), 431),
    "header too long": (get(b"/", HOST, b"X: " + b"x" * 9000), 431),
    "target too long": (get(b"/" + b"x" * 9000), 414),
    "target a little too long": (get(b"/" + b"x" * 2048), 414),
    "POST": (get(b"/status", HOST, b"Content-Length: 2", method=b"POST") + b"hi", 405),
    "PUT": (get(b"/status", method=b"PUT"), 405),
    "DELETE": (get(b"/status", method=b"DELETE"), 405),
    "TRACE": (get(b"/status", method=b"TRACE"), 405),
    "OPTIONS": (get(b"*", method=b"OPTIONS"), 405),
    "CONNECT": (get(b"localhost:22", method=b"CONNECT"), 405),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 405),
    "NATS": (b'CONNECT {"verbose":false}\r\nPING\r\n\r\n', 400),
    "no version": (b"GET /status\r\n\r\n", 400),
    "no host": (b"GET /status HTTP/1.1\r\n\r\n", 400),
    "two hosts": (get(b"/status", HOST, b"Host: evil.example"), 400),
    "a host of another": (get(b"/status", b"Host: evil.example"), 421),
    "a host with more behind it": (get(b"/status", b"Host: [::1]evil"), 421),
    "a host that looks like ours": (get(b"/status", b"Host: 127.0.0.1.evil.example"), 421),
    "a host that ends like ours": (get(b"/status", b"Host: evil.localhost"), 421),
    "a host with ours as a user": (get(b"/status", b"Host: localhost@evil.example"), 421),
    "a bracketed host": (get(b"/status", b"Host: [evil.example]"), 421),
    "an empty host": (get(b"/status", b"Host:"), 421),
    "an absolute target": (get(b"http://evil.example/status"), 400),
    "above the root": (get(b"/../../../../etc/passwd"), 404),
    "above the root, encoded": (get(b"/%2e%2e/%2e%2e/etc/passwd"), 404),
    "two slashes": (get(b"//status"), 404),
    "a slash behind": (get(b"/status/"), 404),
    "an encoded zero": (get(b"/status%00"), 404),
    "a zero": (get(b"/status\x00"), 400),
    "a space": (get(b"/sta tus"), 400),
    "closest: a huge limit": (get(b"/closest?limit=" + b"9" * 500), 400),
    "closest: no service": (get(b"/closest?service=..%2f..%2fetc"), 400),
    "closest: bytes that are no text": (get(b"/closest?region=%ff%fe%00"), 400),
    "closest: many parameters": (get(b"/closest?" + b"&".join([b"a=1"] * 400)), 400),
    "closest: a key where it is logged": (get(b"/closest?key=secret"), 400),
    "a method that a door does not take": (get(b"/default/publish/a/b"), 405),
    "a header with a zero": (get(b"/status", HOST, b"X: a\x00b"), 400),
    "a header without a name": (get(b"/status", HOST, b": x"), 400),
    "a space before the colon": (get(b"/status", HOST, b"Content-Length : 5"), 400),
    "two lengths": (get(b"/", HOST, b"Content-Length: 1", b"Content-Length: 2"), 400),
    "a length below zero": (get(b"/status", HOST, b"Content-Length: -1"), 400),
    "a huge length": (get(b"/status", HOST, b"Content-Length: " + b"9" * 500), 400),
    "an unknown encoding": (get(b"/status", HOST, b"Transfer-Encoding: chunked, gzip"), 501),
    "two encodings": (
        get(b"/status", HOST, b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
        501,
    ),
}


@pytest.mark.parametrize(("sent", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_a_request_that_is_wrong_gets_one_answer_that_says_so(
    siege: Siege, sent: bytes, status: int
) -> None:
    heard = ask(siege, sent)
    assert heard.startswith(b"HTTP/1.1 %d " % status), heard[:200]
    assert heard.count(b"HTTP/1.1 ") == 1
    assert b'"services"' not in heard
    if status == 421:
        siege.await_counts(front_UnknownHost=1)
    else:
        siege.await_counts()


@pytest.mark.parametrize(
    "header",
    [b"Origin: http://evil.example", b"Origin: null", b"Sec-Fetch-Site: cross-site"],
)
@pytest.mark.parametrize("path", [b"/closest", b"/nodes"])
def test_a_page_from_elsewhere_is_not_told_of_gateways_and_is_counted(
    siege: Siege, path: bytes, header: bytes
) -> None:
    heard = ask(siege, get(path, HOST, header))
    assert heard.startswith(b"HTTP/1.1 403 "), heard[:200]
    assert b"Access-Control" not in heard
    siege.await_counts(front_UntrustedOrigin=1)


FOLLOWED = {
    "another request": get(b"/healthz"),
    "a body of its own": b"x" * 100_000,
    "a greeting": CONNECT,
    "a chunked body": b"0\r\n\r\n" + get(b"/metrics"),
}


@pytest.mark.parametrize("more", FOLLOWED.values(), ids=FOLLOWED.keys())
@pytest.mark.parametrize(
    "headers",
    [
        (HOST,),
        (HOST, b"Content-Length: 5"),
        (HOST, b"Transfer-Encoding: chunked"),
        (HOST, b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        (HOST, b"Connection: keep-alive", b"Expect: 100-continue"),
        (HOST, b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),
    ],
    ids=["no body", "length", "chunked", "both", "keep-alive", "upgrade"],
)
def test_whatever_follows_a_request_is_not_answered(
    siege: Siege, headers: tuple[bytes, ...], more: bytes
) -> None:
    heard = ask(siege, get(b"/readyz", *headers) + more)
    assert heard.count(b"HTTP/1.1 ") <= 1
    assert heard.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 ")) or not heard
    siege.await_counts()


def test_requests_that_are_never_finished_do_not_keep_out_those_that_are(siege: Siege) -> None:
    slow = [siege.stranger(b"GET /status HTTP/1.1\r\nHost: local") for _ in range(300)]
    for _ in range(10):
        assert siege.gateway.get("/healthz") == b"ok\n"
    siege.bystander.talk()
    for stranger in slow:
        heard = stranger.hear_bytes()
        assert heard == b"" or heard.startswith(b"HTTP/1.1 408 ")
    counted = siege.counted()
    assert counted["front TooSlow"] + counted["front Overloaded"] == 300


def test_answers_that_are_not_read_do_not_keep_out_those_that_are(siege: Siege) -> None:
    for _ in range(200):
        siege.stranger(get(b"/metrics"))
    for _ in range(5):
        assert siege.gateway.get("/healthz") == b"ok\n"
    with Stranger(siege.port) as client:
        assert client.hear(Kind.WELCOME)
