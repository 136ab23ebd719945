"""HTTP and WebSocket at the doors of a service, spoken badly: only the guilty go."""

import base64
import contextlib
import itertools
import json

import pytest
from tests.attacks.siege import Siege
from tests.attacks.stranger import Stranger
from tests.attacks.web_stranger import WS, WebStranger
from tests.transports.houses import HOST, UPGRADE, framed, get, raw, text
from tests.transports.websocket.test_websocket import BAD_FRAMES
from websockets.frames import Opcode

from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Kind, encode

SETTINGS = {"limits.greeting_s": 0.5, "limits.frame_s": 0.5}
PUBLISH = b"/default/publish/a/b"


def ask(siege: Siege, sent: bytes) -> bytes:
    """Everything that is answered to some bytes."""
    stranger = siege.stranger(sent)
    with contextlib.suppress(OSError):
        stranger.end_sending()
    return stranger.hear_bytes()


def post(*headers: bytes, body: bytes = b"1", target: bytes = PUBLISH) -> bytes:
    return get(target, HOST, *headers, method=b"POST") + body


ONE = b"Content-Length: 1"
CHUNKED = b"Transfer-Encoding: chunked"
HOSTILE = {
    "a length and chunks": (post(ONE, CHUNKED, body=b"0\r\n\r\n"), 400),
    "two lengths": (post(ONE, b"Content-Length: 9"), 400),
    "a bare line feed": (post(b"X: y\nContent-Length: 9"), 400),
    "a folded line": (post(b"X: y", b" z"), 400),
    "a space before the colon": (post(b"Content-Length : 1"), 400),
    "chunked, identity": (post(b"Transfer-Encoding: chunked, identity"), 501),
    "xchunked": (post(b"Transfer-Encoding: xchunked"), 501),
    "a huge length": (post(b"Content-Length: 99999999999"), 413),
    "a huge header": (post(ONE, b"X: " + b"x" * 9000), 431),
    "a huge target": (post(ONE, target=PUBLISH + b"/" + b"x" * 3072), 414),
    "tiny chunks": (post(CHUNKED, body=b"1\r\na\r\n" * 1000), 400),
    "endless extensions": (post(CHUNKED, body=b"1;" + b"x" * 9000), 431),
    "a line feed in a parameter": (post(ONE, target=PUBLISH + b"?name=a%0d%0aX:%20y"), 400),
    "a line feed in the path": (post(ONE, target=PUBLISH + b"/a%0d%0ab"), 400),
    "a dot in the path": (post(ONE, target=PUBLISH + b"/a.b"), 400),
    "a slash in the path": (post(ONE, target=PUBLISH + b"/a%2fb"), 400),
    "a reserved path": (post(ONE, target=b"/default/publish/_WEFT/event/connected"), 400),
    "a wildcard": (post(ONE, target=b"/default/publish/*"), 400),
    "the host of another": (
        get(PUBLISH, b"Host: evil.example", ONE, method=b"POST") + b"1",
        421,
    ),
    "the page of another": (post(ONE, b"Origin: https://evil.example"), 403),
    "a page of nobody": (post(ONE, b"Origin: null"), 403),
    "a page on another port": (post(ONE, b"Origin: http://localhost:1"), 403),
    "a page that says it is elsewhere": (post(ONE, b"Sec-Fetch-Site: cross-site"), 403),
    "a page of a neighbour": (post(ONE, b"Sec-Fetch-Site: same-site"), 403),
    "a WebSocket of another page": (
        get(WS, HOST, *UPGRADE, b"Origin: https://evil.example"),
        403,
    ),
    "a key in the URL": (post(ONE, target=PUBLISH + b"?key=secret"), 400),
    "a token in the URL": (post(ONE, target=PUBLISH + b"?access_token=secret"), 400),
    "a preflight of another page": (
        get(PUBLISH, HOST, b"Origin: https://evil.example", method=b"OPTIONS"),
        403,
    ),
    "DELETE": (get(PUBLISH, HOST, method=b"DELETE"), 405),
    "TRACE": (get(PUBLISH, HOST, method=b"TRACE"), 405),
    "a door that is none": (get(b"/default/_echo", HOST), 404),
    "another service on the way": (get(b"/default/publish/../../other/ws", HOST), 405),
    "no JSON": (post(b"Content-Length: 1", b"Content-Type: application/json", body=b"{"), 400),
    "no WebSocket": (get(WS, HOST), 426),
    "an old WebSocket": (get(WS, HOST, *UPGRADE[:2], b"Sec-WebSocket-Version: 8"), 400),
}


@pytest.mark.parametrize(("sent", "status"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_request_gets_one_answer_that_says_so_and_has_no_effect(
    siege: Siege, sent: bytes, status: int
) -> None:
    witness = WebStranger(siege.port)
    witness.tell({"interest": "/>"})
    witness.told_until_pong()
    heard = ask(siege, sent)
    assert heard.startswith(b"HTTP/1.1 %d " % status), heard[:300]
    assert heard.count(b"HTTP/1.1 ") == 1
    assert b"secret" not in heard
    assert witness.told_until_pong() == []
    witness.socket.close()


def test_a_request_smuggled_behind_another_is_not_carried_out(siege: Siege) -> None:
    witness = WebStranger(siege.port)
    witness.tell({"interest": "/a", "subpaths": True})
    witness.told_until_pong()
    smuggled = post(ONE, target=b"/default/publish/a/smuggled")
    for headers in ((ONE, CHUNKED), (CHUNKED, ONE), (CHUNKED, b"Transfer-Encoding: identity")):
        ask(siege, post(*headers, body=b"0\r\n\r\n" + smuggled))
    assert witness.told_until_pong() == []
    witness.socket.close()


def test_slow_heads_and_slow_bodies_are_cut_and_nobody_waits_for_them(siege: Siege) -> None:
    heads = [siege.stranger(get(PUBLISH)[:-2]) for _ in range(100)]
    bodies = [siege.stranger(post(b"Content-Length: 9")) for _ in range(100)]
    with siege.bystander.talking():
        for stranger in heads + bodies:
            assert stranger.hear_bytes().startswith(b"HTTP/1.1 408 ")
    assert siege.counted()["refused TooSlow"] == 200


def test_a_flood_of_pipelined_requests_is_answered_and_others_get_their_turn(siege: Siege) -> None:
    flood = post(ONE) * 2000
    strangers = [siege.stranger(b"") for _ in range(4)]
    with siege.bystander.talking():
        for stranger in strangers:
            stranger.send(flood[:60_000])
        for stranger in strangers:
            with contextlib.suppress(OSError):
                stranger.end_sending()
            assert stranger.hear_bytes().count(b"HTTP/1.1 200 ") == 60_000 // len(post(ONE))


@pytest.mark.parametrize(("sent", "code"), BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_a_bad_frame_cuts_its_sender_with_a_code_and_nobody_else(
    siege: Siege, sent: bytes, code: int
) -> None:
    guilty, other = WebStranger(siege.port), WebStranger(siege.port)
    guilty.send(sent)
    assert guilty.hear_close() == code
    assert other.told_until_pong() == []
    assert sum(n for why, n in siege.counted().items() if why.startswith("refused")) == 1
    guilty.socket.close()
    other.socket.close()


SIZES = {"no size": bytes(32), "huge": b"\xff" * 40, "under a header": b"\x1f" + bytes(40)}


@pytest.mark.parametrize("frames", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("is_array", [True, False], ids=["one text", "two texts"])
def test_a_page_of_history_that_a_peer_makes_up_stops_nothing(
    siege: Siege, frames: bytes, is_array: bool
) -> None:
    stranger = WebStranger(siege.port)
    blob = base64.b64encode(frames).decode()
    page = {"next": 0, "head": 0, "left": 0, "missing": 0, "frames": {"$blob": blob}}
    forged = {"path": stranger.welcome["inbox"] + "/recall/1", "data": page}
    wish = {"interest": "/x", "since": "1h", "ack": 1}
    stranger.tell(*([[forged, wish]] if is_array else [forged, wish]))
    refused = [told for told in stranger.told_until_pong() if "error" in told]
    assert [told["ack"] for told in refused if "ack" in told] == [1]
    siege.bystander.talk()
    stranger.socket.close()


def test_a_text_for_frames_and_frames_for_texts_are_refused(siege: Siege) -> None:
    binary = WebStranger(siege.port, b"Sec-WebSocket-Protocol: weft.binary", is_greeted=False)
    binary.send(text("{}"))
    assert binary.hear_close() == 1003
    siege.await_counts(refused_UnexpectedFrame=1, ended_UnexpectedFrame=1)
    binary.socket.close()


def binary_stranger(siege: Siege) -> WebStranger:
    return WebStranger(siege.port, b"Sec-WebSocket-Protocol: weft.binary", is_greeted=False)


def test_frames_before_the_greeting_are_refused(siege: Siege) -> None:
    stranger = binary_stranger(siege)
    stranger.send(framed(Opcode.BINARY, encode(Kind.SUBSCRIBE, b"a")))
    assert stranger.hear_close() == 4605
    siege.await_counts(refused_BadGreeting=1, ended_BadGreeting=1)
    stranger.socket.close()


def test_one_that_never_greets_is_cut(siege: Siege) -> None:
    stranger = binary_stranger(siege)
    assert stranger.hear_close() == 4607
    siege.await_counts(refused_TooSlow=1, ended_TooSlow=1)
    stranger.socket.close()


def test_half_a_frame_that_is_never_finished_is_given_up(siege: Siege) -> None:
    stranger = binary_stranger(siege)
    stranger.send(framed(Opcode.BINARY, encode(Kind.CONNECT, b"default")))
    stranger.send(framed(Opcode.BINARY, encode(Kind.MESSAGE, b"a", b"x" * 1000)[:500]))
    assert stranger.hear_close() == 4607
    siege.await_counts(refused_TooSlow=1, ended_TooSlow=1)
    stranger.socket.close()


def kinds_in(frames: bytes) -> list[int]:
    return [frame[4] for frame in each_frame(frames)]


def test_a_frame_in_pieces_of_a_byte_is_one_frame(siege: Siege) -> None:
    stranger = binary_stranger(siege)
    whole = encode(Kind.CONNECT, b"default") + encode(Kind.PING, body=b"x")
    stranger.send(*(framed(Opcode.BINARY, whole[at : at + 1]) for at in range(len(whole))))
    heard = b""
    while not heard or kinds_in(heard)[-1] != Kind.PONG:
        frame = stranger.frame()
        assert frame is not None
        heard += bytes(frame.data)
    assert kinds_in(heard) == [Kind.WELCOME, Kind.PONG]
    stranger.socket.close()


def test_a_message_that_is_never_finished_is_given_up(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    stranger.send(framed(Opcode.TEXT, b"{", fin=False))
    assert stranger.hear_close() == 4607
    siege.await_counts(refused_TooSlow=1, ended_TooSlow=1)
    stranger.socket.close()


JSON = {
    "nothing": "",
    "a word": "hello",
    "a number": "7",
    "deep arrays": "[" * 50_000,
    "deep objects": '{"path":' * 50_000,
    "deep data": '{"path":"/a","data":' + "[" * 500 + "]" * 500 + "}",
    "wide data": '{"path":"/a","data":[' + "0," * 70_000 + "0]}",
    "many datagrams": "[" + ",".join(["{}"] * 1025) + "]",
    "the same key twice": '{"path":"/a","path":"/b"}',
    "the same key twice in data": '{"path":"/a","data":{"x":1,"x":2}}',
    "a giant integer": '{"path":"/a","data":' + "9" * 4000 + "}",
    "an endless integer": '{"path":"/a","data":' + "9" * 5000 + "}",
    "a giant double": '{"path":"/a","data":1e999}',
    "NaN": '{"path":"/a","data":NaN}',
    "Infinity": '{"path":"/a","data":-Infinity}',
    "half a pair in data": '{"path":"/a","data":"\\ud800"}',
    "half a pair in a key": '{"path":"/a","data":{"\\ud800":1}}',
    "half a pair in a path": '{"path":"/\\ud800"}',
    "half a pair in an unknown key": '{"path":"/a","\\ud800":1}',
    "half a pair in an ack": '{"path":"/a","ack":"\\ud800"}',
    "half a pair in a ping": '{"ping":"\\ud800"}',
    "half a pair in a group": '{"interest":"/a","group":"\\ud800"}',
    "half a pair in a policy": '{"interest":"/a","policy":"\\ud800"}',
    "a long group": '{"interest":"/a","group":"' + "g" * 300 + '"}',
    "a long ping": '{"ping":"' + "p" * 65 + '"}',
    "an unknown policy": '{"interest":"/a","policy":"never"}',
    "a long path": '{"path":"/' + "p" * 300 + '"}',
    "a reserved path": '{"path":"/_WEFT/event/connected","data":1}',
    "a message over the limit": '{"path":"/a","data":"' + "x" * 1_100_000 + '"}',
}


def test_json_that_says_nothing_is_told_of_and_the_conversation_goes_on(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    for about, said in JSON.items():
        stranger.send(text(said))
        told = stranger.told_until_pong()
        assert len(told) == 1, (about, told)
        assert told[0]["error"]["name"] in (
            *("BadField", "BadOption", "BadSubject", "Reserved", "UsageError"),
        ), about
    stranger.socket.close()


KEYS = ("path", "data", "reply", "request", "not_back", "interest", "subpaths", "group")
VALUES: tuple[object, ...] = (
    None,
    True,
    7,
    -1,
    1.5,
    "",
    "x",
    "/",
    "/a",
    "/a/>",
    [],
    [1],
    {},
    {"$blob": 1},
    "/\x00",
)


def test_whatever_value_any_key_has_the_conversation_goes_on(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    others = ("policy", "listen_only", "forget", "ping", "ack", "since", "unknown")
    for key, value in itertools.product((*KEYS, *others), VALUES):
        for about in ({}, {"path": "/b"}, {"interest": "/c"}, {"forget": "/c"}):
            stranger.tell(about | {key: value})
    stranger.told_until_pong()
    stranger.socket.close()


def test_a_body_that_is_no_message_does_not_end_who_reads_json(siege: Siege) -> None:
    reader = WebStranger(siege.port)
    reader.tell({"interest": "/a"})
    reader.told_until_pong()
    native = siege.stranger()
    bodies = [b"\xff" * 40, b"\x01", b"\x01\x00\x00\x00\xff\xff\xff\x7f"]
    native.send(*(encode(Kind.MESSAGE, b"a", body) for body in bodies))

    native.hear_until_pong()
    told = reader.told_until_pong()
    assert [each["error"]["name"] for each in told[:3]] == ["BadMessage"] * 3
    assert {each["path"] for each in told} == {"/a"}
    reader.socket.close()


def test_messages_before_a_close_are_delivered(siege: Siege) -> None:
    reader, speaker = WebStranger(siege.port), WebStranger(siege.port)
    reader.tell({"interest": "/a"})
    reader.told_until_pong()
    said = b"".join(text(json.dumps({"path": "/a", "data": number})) for number in range(100))
    speaker.send(said + framed(Opcode.CLOSE, (1000).to_bytes(2, "big")))
    assert speaker.hear_close() == 1000
    assert [each["data"] for each in reader.told_until_pong()] == list(range(100))
    reader.socket.close()
    speaker.socket.close()


def test_one_that_only_hangs_up_halfway_is_let_go(siege: Siege) -> None:
    stranger = WebStranger(siege.port)
    stranger.end_sending()
    assert stranger.hear_close() in (0, 1000, 1006)
    stranger.socket.close()


def test_thousands_of_idle_websockets_take_little_and_disturb_nobody(siege: Siege) -> None:
    count = 500
    idle = [WebStranger(siege.port) for _ in range(count)]
    with siege.bystander.talking():
        idle[0].tell({"interest": "/a"})
        idle[0].told_until_pong()
        idle[-1].tell({"path": "/a", "data": 1})
        assert idle[0].told()["data"] == 1
    assert siege.gateway.connections() == count + 2
    for each in idle:
        each.socket.close()


def test_an_unmasked_flood_is_cut_at_its_first_frame(siege: Siege) -> None:
    with Stranger(siege.port, get(WS, HOST, *UPGRADE)) as stranger:
        stranger.send(raw(0x81, b'{"path":"/a"}', is_masked=False) * 10_000)
        heard = stranger.hear_bytes()
    assert heard.startswith(b"HTTP/1.1 101 ")
    siege.await_counts(refused_BadFrame=1, ended_BadFrame=1)
