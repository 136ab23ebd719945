import asyncio
import gc
import json
import weakref
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transports.houses import HOST, UPGRADE, Guest, Page, framed, get, housing, raw, text
from tests.transports.loops import on_both_loops, until
from websockets.frames import Opcode

from weft.broker.limits import Limits
from weft.errors import BadFrame, BadKey, Draining, SlowReader
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.websocket.websocket import close_code
from weft.transports.websocket.websocket import framed as framed_by_server

PUBLISH = '{"path":"/a","data":1}'
INTEREST = '{"interest":"/a","ack":1}'
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate"
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
VERSION = b"Sec-WebSocket-Version: 13"


async def listening(house: HttpServer, *headers: bytes) -> Page:
    """Someone who hears what is published to /a, the own words too."""
    page = Page(house)
    await page.greet(*headers)
    await page.say(text(INTEREST))
    assert await page.told() == {"ok": 1}
    return page


def refused(house: HttpServer) -> dict[str, int]:
    return dict(house.service.refused)


BAD_HANDSHAKES = {
    "no upgrade": (get(b"/weather/ws"), 426),
    "no key": (get(b"/weather/ws", HOST, *UPGRADE[:3]), 400),
    "two keys": (get(b"/weather/ws", HOST, *UPGRADE, KEY), 400),
    "a short key": (get(b"/weather/ws", HOST, *UPGRADE[:3], b"Sec-WebSocket-Key: YQ=="), 400),
    "no version": (get(b"/weather/ws", HOST, UPGRADE[0], UPGRADE[1], KEY), 400),
    "another version": (
        get(b"/weather/ws", HOST, *UPGRADE[:2], KEY, b"Sec-WebSocket-Version: 8"),
        400,
    ),
    "two versions": (get(b"/weather/ws", HOST, *UPGRADE, VERSION), 400),
    "no connection header": (get(b"/weather/ws", HOST, *UPGRADE[1:]), 426),
    "another upgrade": (
        get(b"/weather/ws", HOST, UPGRADE[0], b"Upgrade: h2c", VERSION, KEY),
        426,
    ),
    "a POST": (get(b"/weather/ws", HOST, *UPGRADE, method=b"POST"), 405),
    "HTTP/1.0": (get(b"/weather/ws", HOST, *UPGRADE).replace(b"HTTP/1.1", b"HTTP/1.0"), 505),
    "an unknown subprotocol": (
        get(b"/weather/ws", HOST, *UPGRADE, b"Sec-WebSocket-Protocol: soap"),
        400,
    ),
}


@pytest.mark.parametrize(("sent", "status"), BAD_HANDSHAKES.values(), ids=BAD_HANDSHAKES.keys())
@on_both_loops
async def test_a_handshake_that_is_wrong_is_answered_and_nobody_is_seated(
    sent: bytes, status: int
) -> None:
    async with housing() as house:
        guest = Guest(house)
        assert await guest.ask(sent) == status
        assert refused(house) == {"BadRequest": 1}
        assert not house.service.peers
        guest.close()


async def test_one_who_should_upgrade_is_told_how() -> None:
    async with housing() as house:
        guest = Guest(house)
        await guest.say(get(b"/weather/ws"))
        _, headers, _ = await guest.answer()
        assert headers["upgrade"] == "websocket"
        assert headers["sec-websocket-version"] == "13"
        guest.close()


@on_both_loops
async def test_the_subprotocol_that_both_know_is_chosen() -> None:
    async with housing() as house:
        page = Page(house)
        headers = await page.open(b"Sec-WebSocket-Protocol: soap, weft.json, weft.binary")
        assert headers["sec-websocket-protocol"] == "weft.json"
        page.close()


@on_both_loops
async def test_what_comes_with_the_handshake_is_heard() -> None:
    async with housing() as house:
        page = Page(house)
        await page.say(get(b"/weather/ws", HOST, *UPGRADE) + text(INTEREST) + text(PUBLISH))
        heard = b""
        while b'"data":1' not in heard:
            heard += await page.read()
        assert heard.index(b'"welcome"') < heard.index(b'"ok":1') < heard.index(b'"data":1')
        page.close()


@pytest.mark.parametrize("code", [1000, 1001, 3999])
@pytest.mark.parametrize("is_one_read", [True, False])
async def test_a_close_within_a_fragmented_message_is_answered_like_any_other(
    code: int, is_one_read: bool
) -> None:
    async with housing() as house:
        page = await listening(house)
        start, end = framed(Opcode.TEXT, b'{"path":', fin=False), framed(Opcode.CONT, b'"/a"}')
        close = framed(Opcode.CLOSE, code.to_bytes(2, "big") + b"bye")
        if is_one_read:
            await page.say(start + close + end)
        else:
            await page.say(start)
            await until(lambda: house.service.unfinished_bytes > 0)
            await page.say(close)
        assert await page.hear_close() == (code, "bye")
        await until(lambda: not house.service.peers)
        assert refused(house) == {}
        assert house.service.unfinished_bytes == 0
        page.close()


@on_both_loops
async def test_messages_before_a_close_in_the_same_read_count() -> None:
    async with housing() as house:
        one, other = await listening(house), await listening(house)
        close = framed(Opcode.CLOSE, (1000).to_bytes(2, "big"))
        await one.say(text(PUBLISH) + text(PUBLISH) + close + text(PUBLISH))
        assert [(await other.told())["data"] for _ in range(2)] == [1, 1]
        assert await one.hear_close() == (1000, "")
        await until(lambda: len(house.service.peers) == 1)
        one.close()
        other.close()


@on_both_loops
async def test_messages_before_a_bad_frame_count_and_none_after_it() -> None:
    async with housing() as house:
        one, other = await listening(house), await listening(house)
        await one.say(text(PUBLISH) + raw(0x83) + text(PUBLISH))
        assert (await other.told())["data"] == 1
        assert (await one.hear_close())[0] == 1002
        await until(lambda: len(house.service.peers) == 1)
        assert refused(house) == {"BadFrame": 1}
        assert dict(house.service.ended) == {"BadFrame": 1}
        one.close()
        other.close()


BAD_FRAMES = {
    "not masked": (raw(0x81, b"{}", is_masked=False), 1002),
    "RSV1 without an extension": (raw(0xC1, b"{}"), 1002),
    "RSV2": (raw(0xA1, b"{}"), 1002),
    "RSV3": (raw(0x91, b"{}"), 1002),
    **{f"opcode {code}": (raw(0x80 | code), 1002) for code in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "an orphan": (framed(Opcode.CONT, b"x"), 1002),
    "a text within a text": (framed(1, b"{", fin=False) + text("{}"), 1002),
    "a fragmented ping": (raw(0x09, b"x"), 1002),
    "a long ping": (raw(0x89, b"x" * 126), 1002),
    "a close of one byte": (raw(0x88, b"x"), 1002),
    "a close with a bad text": (raw(0x88, b"\x03\xe8\xff"), 1007),
    **{
        f"a close with {code}": (raw(0x88, code.to_bytes(2, "big")), 1002)
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)
    },
    "too long": (raw(0x81, length=1 << 40), 1009),
    "a length below zero": (raw(0x81, length=(1 << 64) - 1), 1009),
    "fragments that are too long": (
        framed(1, b"x" * 1_100_000, fin=False) + framed(0, b"x" * 1_100_000, fin=False),
        1009,
    ),
    "no UTF-8": (text(b'{"path":"/a","data":"\xff"}'), 1007),
    "half a character": (text(b"\xe2\x82"), 1007),
    "a surrogate": (text(b"\xed\xa0\x80"), 1007),
    "no UTF-8 in a fragment": (framed(1, b"a\xff", fin=False), 1007),
    "half a character in fragments": (framed(1, b"\xe2", fin=False) + framed(0, b"\x82"), 1007),
    "binary": (framed(Opcode.BINARY, b"{}"), 1003),
}


@pytest.mark.parametrize(("sent", "code"), BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
async def test_a_bad_frame_closes_with_the_code_that_says_why_and_is_counted(
    sent: bytes, code: int
) -> None:
    async with housing() as house:
        page = await listening(house)
        await page.say(sent)
        assert (await page.hear_close())[0] == code
        assert len(refused(house)) == 1
        assert sum(refused(house).values()) == 1
        # Whoever waits for it does not wait until it hangs up.
        assert not house.service.peers
        assert dict(house.service.ended) == refused(house)
        page.close()


@given(
    st.lists(st.text(max_size=40), min_size=1, max_size=5),
    st.lists(st.integers(1, 60), max_size=30),
    st.lists(st.integers(1, 20), max_size=10),
)
@settings(max_examples=50, deadline=None)
def test_messages_survive_any_fragments_and_any_split(
    words: list[str], reads: list[int], fragments: list[int]
) -> None:
    async def run() -> None:
        async with housing() as house:
            page = await listening(house)
            for data in pieces(b"".join(fragmented(word, fragments) for word in words), reads):
                await page.say(data)
                await asyncio.sleep(0)
            assert [(await page.told())["data"] for _ in words] == words
            page.close()

    asyncio.run(run())


def fragmented(word: str, sizes: list[int]) -> bytes:
    """A datagram in fragments of these sizes, a ping between them."""
    parts = pieces(json.dumps({"path": "/a", "data": word}, ensure_ascii=False).encode(), sizes)
    codes = [Opcode.TEXT] + [Opcode.CONT] * (len(parts) - 1)
    last = len(parts) - 1
    ping = framed(Opcode.PONG, b"between")
    frames = [
        framed(code, part, fin=number == last)
        for number, (code, part) in enumerate(zip(codes, parts, strict=True))
    ]
    return ping.join(frames)


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    """Bytes in pieces of these sizes, and the rest."""
    cut = []
    for size in sizes:
        if len(data) > size:
            cut.append(data[:size])
            data = data[size:]
    return [*cut, data]


@on_both_loops
async def test_a_ping_is_answered_with_what_it_says() -> None:
    async with housing() as house:
        page = await listening(house)
        await page.say(framed(Opcode.PING, b"now"))
        frame = await page.frame()
        assert (frame.opcode, bytes(frame.data)) == (Opcode.PONG, b"now")
        page.close()


@on_both_loops
async def test_a_ping_between_fragments_is_answered_before_the_message() -> None:
    async with housing(rules=WebRules(debug_echo=True)) as house:
        page = Page(house)
        await page.open(target=b"/weather/_echo")
        parts = (framed(Opcode.TEXT, b"he", fin=False), framed(Opcode.CONT, b"llo"))
        await page.say(text("first"), parts[0], framed(Opcode.PING, b"now"), parts[1])
        heard = [await page.frame() for _ in range(3)]
        assert [bytes(each.data) for each in heard] == [b"first", b"now", b"hello"]
        page.close()


@pytest.mark.parametrize("code", [Opcode.PING, Opcode.CONT], ids=["pings", "fragments"])
async def test_frames_that_are_no_messages_cost_like_any_other(code: Opcode) -> None:
    async with housing(Limits(control_burst=100, control_per_s=1)) as house:
        page = await listening(house)
        await page.say(framed(Opcode.TEXT, fin=False), framed(code, fin=code is Opcode.PING) * 200)
        assert (await page.hear_close())[0] == 4608
        assert refused(house) == {"ControlFlood": 1}
        page.close()


async def test_a_message_that_is_never_finished_is_given_up() -> None:
    async with housing(Limits(frame_s=0.001)) as house:
        page = await listening(house)
        await page.say(framed(Opcode.TEXT, b"{", fin=False))
        while not refused(house):
            await page.say(framed(Opcode.CONT, fin=False))
            house.turn.begin()
            house.turn.flush()
            house.sweep()
            await asyncio.sleep(0.001)
        assert refused(house) == {"TooSlow": 1}
        assert await page.hear_close() == (4607, "a message was not complete within 0.001 s")
        assert not house.service.peers
        page.close()


async def test_what_is_not_complete_is_counted_and_let_go() -> None:
    async with housing() as house:
        page = await listening(house)
        await page.say(framed(Opcode.TEXT, b"x" * 1000, fin=False))
        await until(lambda: house.service.unfinished_bytes == 1000)
        await page.say(raw(0x80, b"y" * 10, length=500))
        await until(lambda: house.service.unfinished_bytes > 1000)
        page.close()
        await until(lambda: not house.service.peers)
        assert house.service.unfinished_bytes == 0


@pytest.mark.parametrize("is_bomb", [False, True])
async def test_what_is_compressed_is_read_up_to_the_limit(is_bomb: bool) -> None:
    async with housing(rules=WebRules(deflate=True)) as house:
        page = Page(house)
        headers = await page.open(DEFLATE)
        assert "permessage-deflate" in headers["sec-websocket-extensions"]
        assert "client_no_context_takeover" in headers["sec-websocket-extensions"]
        await page.told()
        said = INTEREST.encode() + (b" " * (64 << 20) if is_bomb else b"")
        packer = zlib.compressobj(9, wbits=-15)
        packed = (packer.compress(said) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
        await page.say(raw(0xC1, packed))
        if is_bomb:
            assert (await page.hear_close())[0] == 1009
            assert refused(house) == {"FrameTooBig": 1}
        else:
            assert await page.told() == {"ok": 1}
        page.close()


@on_both_loops
async def test_one_that_hangs_up_leaves_the_service() -> None:
    async with housing() as house:
        page = Page(house, is_tcp=True)
        await page.greet()
        page.reset()
        await until(lambda: not house.service.peers)


async def test_nothing_of_one_that_left_waits_for_the_collector() -> None:
    async with housing() as house:
        page = await listening(house)
        (stream,) = house._streams  # what is kept is the question
        kept = [weakref.ref(stream.talk.listener)]  # type: ignore[attr-defined]
        del stream
        gc.collect()
        gc.disable()
        try:
            page.close()
            await until(lambda: not house.service.peers)
            assert [ref() for ref in kept] == [None]
        finally:
            gc.enable()


async def test_one_that_does_not_read_is_not_read_from() -> None:
    async with housing(Limits(control_burst=1 << 30)) as house:
        page = Page(house, is_small=True)
        await page.greet()
        (stream,) = house._streams  # what it holds is the question
        sending = asyncio.create_task(page.say(text("no JSON") * 200_000))
        held = 0
        for _ in range(300):
            await asyncio.sleep(0.001)
            held = max(held, stream.unsent)
        assert not sending.done()
        assert 0 < held < 1 << 20
        sending.cancel()
        page.close()
        await asyncio.gather(sending, return_exceptions=True)


def test_a_code_says_if_to_come_back_is_of_use() -> None:
    assert close_code(None) == 1000
    assert close_code(Draining("")) == 4204
    assert close_code(SlowReader("")) == 4205
    assert close_code(BadFrame("")) == 4601
    assert close_code(BadKey("")) == 4806


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_message_of_any_size_is_one_frame(size: int) -> None:
    assert framed_by_server(0x82, b"x" * size) == raw(0x82, b"x" * size, is_masked=False)
