"""Fuzzes the middleman dialect: a text becomes a frame or a refusal, and comes out as it went in.

No text makes anything but a refusal of a call come out; what is told of a refusal, and of a frame,
is itself one message.
"""

from collections.abc import Iterator

from fuzz.targets import Broken, Target, said
from weft.errors import Refused, UsageError
from weft.transports.middleman.protocol import gist, read, written
from weft.transports.middleman.translator import MiddlemanTalk, body_text, error_frame
from weft.wire.frames import Kind, encode, parse
from weft.wire.message.message import Field, Message

_INBOX = b"_INBOX.00000007.000000010123456789abcdef."
_BODY_LIMIT = 4096
_REQUESTS_MAX = 4


def outcome(data: bytes) -> str:
    """Say an input, if it is text, and hear it; it is also a body that anybody may have sent."""
    talk = MiddlemanTalk(_INBOX, _BODY_LIMIT, lambda: "token")
    heard = _message(talk.told(encode(Kind.MESSAGE, b"a", data), 0, _REQUESTS_MAX))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return heard
    _message(written("PUB", "a", text), text)
    try:
        frame = talk.frame(text, 0, _REQUESTS_MAX)
    except (UsageError, Refused) as error:
        told = _message(talk.told(error_frame(error, *gist(text)), 0, _REQUESTS_MAX))
        return f"{heard}\n{said(error)}\n{told}"
    taken = parse(frame)
    if taken.kind == Kind.MESSAGE and not taken.subject.startswith(b"_"):
        body = read(text).body
        if body_text(frame) != body:
            raise Broken(f"{body!r} became {body_text(frame)!r} on its way")
    return f"{heard}\n{taken!r}"


def _message(text: str, body: str | None = None) -> str:
    """A text that the gateway writes, which must be one whole message."""
    found = read(text)
    if body is not None and found.body != body:
        raise Broken(f"{body!r} became {found.body!r} in {text!r}")
    if written(found.command, found.target, found.body, **found.headers).lower() != text.lower():
        raise Broken(f"{text!r} is read as {found!r}")
    return text


def _seeds() -> Iterator[bytes]:
    texts = (
        "PUB weather.london\n\nsunny\n.\n",
        "PUB weather.london\r\nX: 1\r\n\r\nsunny\r\n.\r\n",
        "SUB weather.london\n\n\r\n.\r\n",
        "REQ time\nReqID:7\n\nnow?\n.\n",
        "RES time\nReqID:token\n\nnoon\n.\n",
        "EPUB a\n\n.\n",
        "ESUB a\n\n.\n",
        "EREQ a\n\n.\n",
        "PUB a\n\n..\n...\n..a\n.\n",
        "PUB a\n\none\n.\nPUB b\n\ntwo\n.\n",
        "PUB a\n\none\r\n.\nb\r\n.\r\n",
        "PUB a..b\n\n.\n",
        "PUB a/b\n\n.\n",
        "SUB a.*\n\n.\n",
        "REQ a\n\n.\n",
        "REQ a\nReqID:1\nreqid:2\n\n.\n",
        "PUB a\x85b\n\n.\n",
        "UNSUB a\n\n.\n",
        "PUB a\n",
        "",
    )
    for text in texts:
        yield text.encode()
    yield Message(Field("", ".")).encode()
    yield Message(a=1, b=[b"\xff", 2.5]).encode()


_WORDS = (
    *(b"PUB ", b"SUB ", b"REQ ", b"RES ", b"EPUB ", b"ESUB ", b"EREQ ", b"ERR "),
    *(b"ReqID:", b"reqid: ", b"token", b"\n.\n", b"\r\n.\r\n", b"\n.\r\n", b"\r\n.\n"),
    *(b"\n\n", b"\r\n\r\n", b"\n\r\n", b"\n..", b".\r", b"\r", b"\xe2\x80\xa8", b"\xc2\x85"),
)

TARGET = Target(outcome, _seeds, _WORDS)
