import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField, BadOption, BadSubject, NotYours, TooMany, UsageError
from weft.transports.middleman.protocol import read
from weft.transports.middleman.translator import MiddlemanTalk, body_text, error_frame, is_for_all
from weft.wire.frames import Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Field, Message

INBOX = b"_INBOX.00000001.000000010123456789abcdef."
THEIRS = b"_INBOX.00000001.00000002fedcba9876543210.1"
BODY_LIMIT = 1000
LIMIT = 9


class Peer:
    """A conversation, and what is said and told in it at some time."""

    def __init__(self) -> None:
        self._tokens = iter(range(100, 999))
        self.talk = MiddlemanTalk(INBOX, BODY_LIMIT, lambda: f"token{next(self._tokens)}")

    def say(self, text: str, now_ns: int = 0, limit: int = LIMIT) -> Frame:
        return parse(self.talk.frame(text, now_ns, limit))

    def hear(self, frame: bytes, now_ns: int = 0) -> str:
        return self.talk.told(frame, now_ns, LIMIT)


@pytest.fixture
def peer() -> Peer:
    return Peer()


def text_message(text: str) -> bytes:
    return Message(Field("", text)).encode()


def message(subject: bytes, body: bytes, reply: bytes = b"", flags: int = 0) -> bytes:
    return encode(Kind.MESSAGE, subject, body, reply, flags)


def error(subject: bytes, reply: bytes = b"") -> bytes:
    body = Message(number=4001, name="NotKnown", text="nobody serves it", kind=5)
    return encode(Kind.ERROR, subject, body.encode(), reply, Flag.REQUEST)


@pytest.mark.req("MID-6")
def test_pub_publishes_one_unnamed_text(peer: Peer) -> None:
    frame = peer.say("PUB weather.london\nX:ignored\n\nsunny\n.\n")
    assert frame == Frame(Kind.MESSAGE, 0, b"weather.london", b"", text_message("sunny"))


@pytest.mark.req("MID-7")
def test_sub_subscribes(peer: Peer) -> None:
    frame = peer.say("SUB weather.london\n\n.\n")
    assert frame == Frame(Kind.SUBSCRIBE, 0, b"weather.london", b"", b"")


def test_req_asks_with_a_reply_in_the_own_inbox(peer: Peer) -> None:
    frame = peer.say("REQ time\nReqID:7\n\nnow?\n.\n")
    reply = INBOX + b"token100"
    assert frame == Frame(Kind.MESSAGE, Flag.REQUEST, b"time", reply, text_message("now?"))


@pytest.mark.req("MID-8")
@pytest.mark.parametrize("command", ["REQ", "RES"])
def test_a_request_and_an_answer_need_a_request_id(peer: Peer, command: str) -> None:
    with pytest.raises(BadOption, match=f"{command} needs a header ReqID"):
        peer.say(f"{command} time\n\nnow?\n.\n")


def test_the_answer_comes_with_the_requesters_own_id_and_target(peer: Peer) -> None:
    reply = peer.say("REQ time\nReqID:mine\n\nnow?\n.\n").reply
    answer = message(reply, text_message("noon"))
    assert peer.hear(answer) == "RES time\nReqID:mine\n\nnoon\n.\n"
    assert peer.hear(answer) == ""


@pytest.mark.req("MID-11")
def test_answers_find_their_requests_in_any_order(peer: Peer) -> None:
    replies = [peer.say(f"REQ time\nReqID:{n}\n\n.\n").reply for n in range(3)]
    told = [peer.hear(message(reply, text_message("x"))) for reply in reversed(replies)]
    assert [read(text).request_id for text in told] == ["2", "1", "0"]


@pytest.mark.req("MID-11")
def test_a_request_id_waits_once(peer: Peer) -> None:
    reply = peer.say("REQ time\nReqID:1\n\n.\n").reply
    with pytest.raises(UsageError, match="waits for its answer"):
        peer.say("REQ other\nReqID:1\n\n.\n")
    peer.hear(error(b"time", reply))
    assert peer.say("REQ other\nReqID:1\n\n.\n").reply != reply


def test_requests_are_bounded(peer: Peer) -> None:
    for number in range(LIMIT):
        peer.say(f"REQ time\nReqID:{number}\n\n.\n")
    with pytest.raises(TooMany):
        peer.say("REQ time\nReqID:more\n\n.\n")


@pytest.mark.req("MID-11")
def test_a_request_is_answered_by_its_stand_in_once(peer: Peer) -> None:
    request = message(b"time", text_message("now?"), THEIRS, Flag.REQUEST)
    assert peer.hear(request) == "REQ time\nReqID:token100\n\nnow?\n.\n"
    frame = peer.say("RES time\nReqID:token100\n\nnoon\n.\n")
    assert frame == Frame(Kind.MESSAGE, 0, THEIRS, b"", text_message("noon"))
    with pytest.raises(NotYours):
        peer.say("RES time\nReqID:token100\n\nnoon\n.\n")


@pytest.mark.req("MID-11")
def test_an_unknown_request_id_answers_nothing(peer: Peer) -> None:
    with pytest.raises(NotYours, match="'token100'"):
        peer.say("RES time\nReqID:token100\n\nnoon\n.\n")


def test_an_answer_that_is_too_long_can_be_given_again(peer: Peer) -> None:
    peer.hear(message(b"time", text_message("now?"), THEIRS, Flag.REQUEST))
    with pytest.raises(BadField):
        peer.say(f"RES time\nReqID:token100\n\n{'x' * BODY_LIMIT}\n.\n")
    assert peer.say("RES time\nReqID:token100\n\nshort\n.\n").subject == THEIRS


@pytest.mark.req("MID-12")
@pytest.mark.parametrize(
    ("command", "right"), [("EPUB", "publish"), ("ESUB", "subscribe"), ("EREQ", "request")]
)
def test_enabling_opens_one_right_for_one_target(peer: Peer, command: str, right: str) -> None:
    frame = peer.say(f"{command} weather.london\n\n.\n")
    asked = Message(right=right, pattern="weather.london").encode()
    assert frame == Frame(
        Kind.MESSAGE, Flag.REQUEST, b"_WEFT.ask.enable", INBOX + b"token100", asked
    )
    assert peer.hear(message(frame.reply, Message().encode())) == ""


@pytest.mark.req("MID-13")
def test_a_right_that_cannot_be_enabled_is_an_error_of_its_target(peer: Peer) -> None:
    reply = peer.say("EPUB weather\n\n.\n").reply
    told = "ERR weather\nError:NotKnown\nNumber:4001\n\nnobody serves it\n.\n"
    assert peer.hear(error(b"_WEFT.ask.enable", reply)) == told


@pytest.mark.req("MID-16")
@pytest.mark.parametrize("command", ["UNSUB", "pub", "ERR", "MM", "", "PUB\t"])
def test_an_unknown_command_is_refused(peer: Peer, command: str) -> None:
    with pytest.raises(BadOption, match="is none of PUB, SUB, REQ, RES, EPUB, ESUB, EREQ"):
        peer.say(f"{command} a\n\n.\n")


@pytest.mark.parametrize("command", ["PUB", "SUB", "REQ", "EPUB", "ESUB", "EREQ"])
def test_no_command_takes_a_pattern(peer: Peer, command: str) -> None:
    with pytest.raises(BadSubject, match="wildcard"):
        peer.say(f"{command} a.*\nReqID:1\n\n.\n")


def test_a_body_is_bounded(peer: Peer) -> None:
    longest = "x" * (BODY_LIMIT - 13)
    assert len(peer.say(f"PUB a\n\n{longest}\n.\n").body) == BODY_LIMIT
    with pytest.raises(BadField, match=f"over the limit of {BODY_LIMIT}"):
        peer.say(f"PUB a\n\n{longest}x\n.\n")


def test_requests_end_with_their_life_and_are_told_of(peer: Peer) -> None:
    peer.say("REQ time\nReqID:old\n\n.\n", now_ns=10)
    peer.say("EPUB time\n\n.\n", now_ns=11)
    peer.say("REQ time\nReqID:new\n\n.\n", now_ns=20)
    peer.hear(message(b"time", b"", THEIRS, Flag.REQUEST), now_ns=10)
    assert [asked.request_id for asked in peer.talk.expire(20)] == ["old"]
    with pytest.raises(NotYours):
        peer.say("RES time\nReqID:token100\n\n.\n")


@pytest.mark.req("MID-2")
def test_a_welcome_is_exactly_this(peer: Peer) -> None:
    welcome = Message(version=1, gateway="london").encode()
    assert peer.hear(encode(Kind.WELCOME, b"s", welcome)) == "MM OK"


@pytest.mark.req("MID-15")
def test_an_error_of_a_request_has_its_id(peer: Peer) -> None:
    reply = peer.say("REQ time\nReqID:mine\n\nnow?\n.\n").reply
    told = "ERR time\nError:NotKnown\nNumber:4001\nReqID:mine\n\nnobody serves it\n.\n"
    assert peer.hear(error(b"time", reply)) == told


def test_an_error_of_a_subject_has_its_target(peer: Peer) -> None:
    told = "ERR weather\nError:NotKnown\nNumber:4001\n\nnobody serves it\n.\n"
    assert peer.hear(error(b"weather")) == told


@pytest.mark.parametrize("subject", [b"", THEIRS])
def test_an_error_of_the_connection_has_no_target_and_no_inbox(peer: Peer, subject: bytes) -> None:
    told = "ERR *\nError:NotKnown\nNumber:4001\n\nnobody serves it\n.\n"
    assert peer.hear(error(subject)) == told


def test_what_was_refused_before_it_was_a_frame_is_told_as_an_error(peer: Peer) -> None:
    frame = error_frame(BadOption("no\n.\nway"), "weather", "7")
    told = "ERR weather\nError:BadOption\nNumber:1005\nReqID:7\n\nno\n..\nway\n.\n"
    assert peer.hear(frame) == told


def test_gaps_and_goodbyes_are_told_as_errors(peer: Peer) -> None:
    gap = encode(Kind.GAP, body=Message(reason="slow", count=7).encode())
    lost = "ERR *\nError:SlowReader\nNumber:3005\n\n7 messages will not come: slow\n.\n"
    assert peer.hear(gap) == lost
    goodbye = encode(Kind.GOODBYE, body=Message(reason="draining", text="closing").encode())
    assert peer.hear(goodbye) == "ERR *\nError:Draining\nNumber:3004\n\nclosing\n.\n"


@pytest.mark.parametrize("kind", [Kind.OK, Kind.PONG])
def test_other_frames_say_nothing(peer: Peer, kind: Kind) -> None:
    assert peer.hear(encode(kind, b"a")) == ""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (Message(Field("", "text")), "text"),
        (Message(Field.blob("", b"caf\xc3\xa9")), "café"),
        (Message(Field.blob("", b"\xff")), '{"$blob":"/w=="}'),
        (Message(Field("", 7)), "7"),
        (Message(Field("", [1, "zwei"])), '[1,"zwei"]'),
        (Message(temp=21.5, at="Köln"), '{"temp":21.5,"at":"Köln"}'),
        (Message(text="named"), '{"text":"named"}'),
        (Message(), "{}"),
    ],
)
def test_a_message_is_its_text_or_what_json_says_of_it(content: Message, text: str) -> None:
    assert body_text(message(b"a", content.encode())) == text


def test_bare_bytes_are_their_text() -> None:
    assert body_text(message(b"a", b"bare", flags=Flag.BARE)) == "bare"
    assert body_text(message(b"a", b"\xff", flags=Flag.BARE)) == '{"$blob":"/w=="}'


@given(st.binary(max_size=40), st.sampled_from([0, int(Flag.BARE)]))
def test_any_body_is_told(body: bytes, flags: int) -> None:
    told = Peer().hear(message(b"a.b", body, flags=flags))
    said = read(told)
    assert (said.command, said.target, said.headers) == ("PUB", "a.b", {})


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_body_reaches_the_other_side_as_it_was(body: str) -> None:
    sender, receiver = Peer(), Peer()
    stuffed = receiver.hear(message(b"a", text_message(body)))
    frame = sender.talk.frame(stuffed, 0, LIMIT)
    assert body_text(frame) == body
    assert receiver.hear(frame) == stuffed


def test_what_is_the_same_for_all_is_told_once_for_all() -> None:
    assert is_for_all(message(b"a", b""))
    assert not is_for_all(message(b"a", b"", THEIRS, Flag.REQUEST))
    assert not is_for_all(message(INBOX + b"1", b""))
    assert not is_for_all(error(b"a"))


def test_what_the_gateway_is_asked_nobody_else_answers() -> None:
    for flags, answer in ((0, ""), (Flag.FROM_GATEWAY, "RES _WEFT.ask.status\nReqID:7\n\n{}\n.\n")):
        peer = Peer()
        reply = peer.say("REQ _WEFT.ask.status\nReqID:7\n\n.\n").reply
        assert peer.hear(message(reply, Message().encode(), flags=flags)) == answer
