import asyncio
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transports.houses import HOST, UPGRADE, Guest, Page, get, housing
from tests.transports.loops import on_both_loops, until

from weft.broker.limits import Limits
from weft.transports.http.connection import AT_ONCE_MAX, CHUNKS_MAX, HttpDoor
from weft.transports.http.exchange import Exchange
from weft.transports.http.server import HttpServer

ECHO = b"/weather/echo"


def echo(exchange: Exchange, _door: HttpDoor) -> None:
    """Answer with what was asked."""
    request = exchange.request
    exchange.answer(200, b"|".join([request.method.encode(), *_path(request.path), request.body]))


def _path(path: tuple[str, ...]) -> list[bytes]:
    return [element.encode() for element in path]


class Desk:
    """A door that answers when it is told to."""

    def __init__(self, house: HttpServer) -> None:
        self.exchanges: list[Exchange] = []
        self.lost = 0
        house.doors["echo"] = echo
        house.doors["later"] = self.answer

    def answer(self, exchange: Exchange, _door: HttpDoor) -> None:
        exchange.on_lost = self._lost
        self.exchanges.append(exchange)

    def _lost(self) -> None:
        self.lost += 1


def post(target: bytes, body: bytes, *headers: bytes) -> bytes:
    size = b"Content-Length: %d" % len(body)
    return get(target, HOST, size, *headers, method=b"POST") + body


def chunked(target: bytes, *chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = get(target, HOST, b"Transfer-Encoding: chunked", method=b"POST")
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


@on_both_loops
async def test_requests_are_answered_one_after_the_other_on_one_connection() -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        for number in range(3):
            await guest.say(post(ECHO + b"/a%20b/c", b"%d" % number))
            assert await guest.answer() == (200, _any(), b"POST|a b|c|%d" % number)
        guest.close()
        await until(lambda: house.connections == 0)


class _any(dict[str, str]):  # noqa: N801  # reads as a word
    """Equal to whatever headers there are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict)

    __hash__ = None


@given(st.lists(st.integers(1, 40), max_size=40), st.booleans())
@settings(max_examples=40, deadline=None)
def test_requests_survive_any_split(sizes: list[int], is_chunked: bool) -> None:
    async def run() -> None:
        async with housing() as house:
            Desk(house)
            guest = Guest(house)
            one = chunked(ECHO, b"he", b"llo") if is_chunked else post(ECHO, b"hello")
            data = one + get(ECHO) + post(ECHO, b"", b"X-Long: " + b"x" * 50)
            for size in sizes:
                await guest.say(data[:size])
                data = data[size:]
                await asyncio.sleep(0)
            await guest.say(data)
            answers = [(await guest.answer())[2] for _ in range(3)]
            assert answers == [b"POST|hello", b"GET|", b"POST|"]
            guest.close()

    asyncio.run(run())


TE = b"Transfer-Encoding: chunked"
SMUGGLED = {
    "a length and chunks": (get(ECHO, HOST, b"Content-Length: 5", TE) + b"0\r\n\r\n", 400),
    "chunks and a length": (get(ECHO, HOST, TE, b"Content-Length: 5") + b"0\r\n\r\n", 400),
    "two lengths": (get(ECHO, HOST, b"Content-Length: 1", b"Content-Length: 2") + b"ab", 400),
    "a list of lengths": (get(ECHO, HOST, b"Content-Length: 1, 2") + b"ab", 400),
    "a length with a sign": (get(ECHO, HOST, b"Content-Length: +1") + b"a", 400),
    "a length in hex": (get(ECHO, HOST, b"Content-Length: 0x1") + b"a", 400),
    "a length below zero": (get(ECHO, HOST, b"Content-Length: -1"), 400),
    "a length of many digits": (get(ECHO, HOST, b"Content-Length: " + b"9" * 30), 400),
    "a length over the limit": (get(ECHO, HOST, b"Content-Length: 99999999"), 413),
    "bare line feeds": (b"GET /weather/echo HTTP/1.1\nHost: localhost\n\r\n\r\n", 400),
    "a bare line feed in a header": (get(ECHO, HOST, b"X: a\nContent-Length: 5"), 400),
    "a bare carriage return": (get(ECHO, HOST, b"X: a\rContent-Length: 5"), 400),
    "a folded line": (get(ECHO, HOST, b"X: a", b" b"), 400),
    "a folded line with a tab": (get(ECHO, HOST, b"X: a", b"\tb"), 400),
    "a space before the colon": (get(ECHO, HOST, b"Content-Length : 5"), 400),
    "chunked, identity": (get(ECHO, HOST, b"Transfer-Encoding: chunked, identity"), 501),
    "identity": (get(ECHO, HOST, b"Transfer-Encoding: identity"), 501),
    "xchunked": (get(ECHO, HOST, b"Transfer-Encoding: xchunked"), 501),
    "gzip, chunked": (get(ECHO, HOST, b"Transfer-Encoding: gzip, chunked"), 501),
    "chunked twice": (get(ECHO, HOST, TE, TE), 501),
    "an absolute target": (get(b"http://localhost/weather/echo"), 400),
    "an authority": (get(b"localhost:80", method=b"CONNECT"), 400),
    "a star": (get(b"*", method=b"OPTIONS"), 400),
    "no target": (b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a space in the target": (get(b"/weather/echo /x"), 400),
    "a byte over 127 in the target": (get(ECHO + b"/\xc3\xa4"), 400),
    "a control character": (get(ECHO, HOST, b"X: a\x01b"), 400),
    "a zero": (get(ECHO, HOST, b"X: a\x00b"), 400),
    "no version": (b"GET /weather/echo\r\nHost: localhost\r\n\r\n", 400),
    "HTTP/2": (b"GET /weather/echo HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /weather/echo HTTP/0.9\r\n\r\n", 400),
    "a method in small letters": (get(ECHO, method=b"get"), 400),
    "no host": (b"GET /weather/echo HTTP/1.1\r\n\r\n", 400),
    "two hosts": (get(ECHO, HOST, b"Host: localhost"), 400),
    "hosts in one": (get(ECHO, b"Host: localhost, evil.example"), 400),
    "a header without a colon": (get(ECHO, HOST, b"oops"), 400),
    "a header without a name": (get(ECHO, HOST, b": x"), 400),
    "a target that is too long": (get(ECHO + b"/" + b"x" * 3072), 414),
    "a head that is too long": (get(ECHO, HOST, b"X: " + b"x" * 5000), 431),
    "a head that never ends": (b"GET /weather/echo HTTP/1.1\r\n" + b"X: y\r\n" * 1000, 431),
    "many headers": (get(ECHO, HOST, *[b"X-%d: y" % n for n in range(1000)]), 431),
    "a parameter twice": (get(ECHO + b"?a=1&a=2"), 400),
    "no UTF-8 in the target": (get(ECHO + b"/%ff"), 400),
    "no UTF-8 in the query": (get(ECHO + b"?a=%ff"), 400),
    "a slash in an element": (get(ECHO + b"/a%2Fb"), 400),
    "too short a path": (get(b"/weather"), 404),
    "a chunk without a size": (get(ECHO, HOST, TE) + b"\r\n\r\n", 400),
    "a chunk with a sign": (get(ECHO, HOST, TE) + b"+5\r\nhello\r\n0\r\n\r\n", 400),
    "a chunk of endless size": (get(ECHO, HOST, TE) + b"f" * 30 + b"\r\n", 400),
    "a chunk that is too long": (get(ECHO, HOST, TE) + b"5\r\nhelloX\r\n0\r\n\r\n", 400),
    "extensions that are none": (get(ECHO, HOST, TE) + b"5;" + b"x" * 5000, 400),
    "trailers that are none": (chunked(ECHO, b"a", end=b"0\r\n" + b"X: y\r\n" * 10), 400),
    "tiny chunks": (chunked(ECHO, *[b"a"] * (CHUNKS_MAX + 20)), 400),
    "a body over the limit in chunks": (chunked(ECHO, *[b"a" * 60_000] * 20), 413),
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
}


@pytest.mark.parametrize(("sent", "status"), SMUGGLED.values(), ids=SMUGGLED.keys())
async def test_what_can_be_read_in_two_ways_is_answered_once_and_ends_the_connection(
    sent: bytes, status: int
) -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        # Nothing behind it is taken for a request of its own.
        await guest.say(sent + get(ECHO))
        heard = await guest.hear_end()
        assert heard.startswith(b"HTTP/1.1 %d " % status), heard[:100]
        assert heard.count(b"HTTP/1.1 ") == 1
        assert b"x" * 100 not in heard
        assert dict(house.service.refused) == {"BadRequest": 1}
        assert house.service.unfinished_bytes == 0
        guest.close()


@pytest.mark.parametrize(
    "sent",
    [
        get(ECHO, HOST, TE) + b"5;" + b"x" * 5000,
        chunked(ECHO, b"a", end=b"0\r\n" + b"X: y\r\n" * 1000),
    ],
    ids=["extensions", "trailers"],
)
async def test_what_stands_around_chunks_is_bounded(sent: bytes) -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        assert await guest.ask(sent) == 431
        guest.close()


@on_both_loops
async def test_pipelined_requests_are_answered_in_order_in_several_turns() -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        count = 20 * AT_ONCE_MAX
        sending = asyncio.create_task(
            guest.say(*(get(ECHO + b"/%d" % number) for number in range(count)))
        )
        heard = [(await guest.answer())[2] for _ in range(count)]
        assert heard == [b"GET|%d|" % number for number in range(count)]
        await sending
        guest.close()


@on_both_loops
async def test_pipelined_requests_are_answered_though_nothing_more_is_asked() -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        await guest.say(*[get(ECHO)] * (3 * AT_ONCE_MAX))
        guest.sock.shutdown(1)
        assert (await guest.hear_end()).count(b"GET|") == 3 * AT_ONCE_MAX
        guest.close()


@on_both_loops
async def test_what_waits_behind_an_answer_is_answered_though_nothing_more_is_asked() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house)
        await guest.say(get(b"/weather/later") * 2 + get(ECHO) + get(ECHO)[:5])
        guest.sock.shutdown(1)
        for number in range(2):
            await until(partial(lambda n: len(desk.exchanges) == n, number + 1))
            await asyncio.sleep(0.01)
            desk.exchanges[number].answer(200, b"later")
        assert (await guest.hear_end()).count(b"HTTP/1.1 200") == 3
        guest.close()


@on_both_loops
async def test_the_next_request_waits_until_this_one_is_answered() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house)
        await guest.say(get(b"/weather/later") + get(ECHO))
        await until(lambda: len(desk.exchanges) == 1)
        # As in a flush: nothing may be said for anybody from here.
        desk.exchanges[0].answer(200, b"first")
        assert [(await guest.answer())[2] for _ in range(2)] == [b"first", b"GET|"]
        guest.close()


async def test_asking_on_without_end_is_not_read_until_there_is_an_answer() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house, is_small=True)
        await guest.say(get(b"/weather/later"))
        await until(lambda: len(desk.exchanges) == 1)
        count = 10_000
        sending = asyncio.create_task(guest.say(*[get(ECHO)] * count))
        await asyncio.sleep(0.05)
        assert not sending.done()
        desk.exchanges[0].answer(200, b"first")
        assert (await guest.answer())[2] == b"first"
        for _ in range(count):
            assert (await guest.answer())[2] == b"GET|"
        await sending
        guest.close()


async def test_asking_on_without_end_during_an_answer_that_lasts_ends_it() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house)
        await guest.say(get(b"/weather/later"))
        await until(lambda: len(desk.exchanges) == 1)
        desk.exchanges[0].begin("text/plain")
        await guest.say(b"x" * 5000)
        await until(lambda: desk.lost == 1)
        guest.close()


@on_both_loops
async def test_an_answer_that_lasts_comes_in_pieces_and_keeps_the_connection() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house)
        await guest.say(get(b"/weather/later"))
        await until(lambda: len(desk.exchanges) == 1)
        exchange = desk.exchanges[0]
        exchange.begin("text/plain")
        exchange.send(b"one")
        exchange.send(b"two")
        exchange.end()
        status, headers, _ = await guest.answer()
        assert (status, headers["transfer-encoding"]) == (200, "chunked")
        while not guest.unread.endswith(b"0\r\n\r\n"):
            guest.unread += await guest.read()
        assert guest.unread == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
        guest.unread = b""
        assert await guest.ask(get(ECHO)) == 200
        guest.close()


@on_both_loops
async def test_whoever_hangs_up_during_an_answer_that_lasts_is_lost() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house)
        await guest.say(get(b"/weather/later"))
        await until(lambda: len(desk.exchanges) == 1)
        desk.exchanges[0].begin("text/plain")
        guest.close()
        await until(lambda: desk.lost == 1)
        assert desk.exchanges[0].is_over
        desk.exchanges[0].send(b"to nobody")
        desk.exchanges[0].end()


@on_both_loops
async def test_who_asks_and_ends_gets_a_large_answer_to_its_end() -> None:
    async with housing() as house:
        desk = Desk(house)
        guest = Guest(house, is_small=True)
        await guest.say(get(b"/weather/later"))
        guest.sock.shutdown(1)
        await until(lambda: len(desk.exchanges) == 1)
        desk.exchanges[0].answer(200, b"x" * 300_000)
        assert (await guest.hear_end()).count(b"x") >= 300_000
        guest.close()
        await until(lambda: house.connections == 0)


@on_both_loops
async def test_head_gets_the_head_alone() -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        await guest.say(get(ECHO, method=b"HEAD") + get(ECHO))
        head = b""
        while b"GET|" not in head:
            head += await guest.read()
        assert b"HEAD|" not in head
        assert head.count(b"HTTP/1.1 200") == 2
        guest.close()


@on_both_loops
async def test_who_waits_to_be_told_to_go_on_is_told() -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        await guest.say(
            get(ECHO, HOST, b"Content-Length: 2", b"Expect: 100-continue", method=b"POST")
        )
        assert (await guest.answer())[0] == 100
        await guest.say(b"hi")
        assert (await guest.answer())[2] == b"POST|hi"
        guest.close()


async def test_who_would_send_too_much_is_not_told_to_go_on() -> None:
    async with housing(Limits(body_bytes=10)) as house:
        Desk(house)
        guest = Guest(house)
        await guest.say(get(ECHO, HOST, b"Content-Length: 11", b"Expect: 100-continue"))
        assert (await guest.answer())[0] == 413
        guest.close()


@pytest.mark.parametrize("sent", [get(ECHO)[:-2], get(ECHO, HOST, b"Content-Length: 5") + b"a"])
async def test_a_request_that_takes_too_long_is_told_so(sent: bytes) -> None:
    async with housing(Limits(greeting_s=0.001, frame_s=0.001)) as house:
        Desk(house)
        guest = Guest(house)
        await guest.say(sent)
        answered = asyncio.create_task(guest.answer())
        while not answered.done():
            await asyncio.sleep(0.002)
            house.turn.begin()
            house.turn.flush()
            house.sweep()
        assert (await answered)[0] == 408
        assert dict(house.service.refused) == {"TooSlow": 1}
        guest.close()


async def test_what_is_not_complete_is_counted_and_let_go() -> None:
    async with housing() as house:
        Desk(house)
        guest = Guest(house)
        await guest.say(get(ECHO, HOST, b"Content-Length: 5000") + b"x" * 3000)
        await until(lambda: house.service.unfinished_bytes == 3000)
        guest.close()
        await until(lambda: house.connections == 0)
        assert house.service.unfinished_bytes == 0


async def test_when_all_together_hold_too_much_the_next_is_turned_away() -> None:
    async with housing() as house:
        Desk(house)
        house.service.unfinished_bytes += 256 << 20
        guest = Guest(house)
        await guest.say(get(ECHO, HOST, b"Content-Length: 5000") + b"x" * 3000)
        assert (await guest.answer())[0] == 503
        assert house.service.unfinished_bytes == 256 << 20
        assert dict(house.service.refused) == {"Overloaded": 1}
        guest.close()


async def test_a_companion_ends_with_its_connection_and_with_its_hand_over() -> None:
    class Companion:
        ended = 0

        def end(self) -> None:
            self.ended += 1

    companion = Companion()

    def bring(exchange: Exchange, door: HttpDoor) -> None:
        door.companion = companion
        exchange.answer(200)

    async with housing() as house:
        house.doors["bring"] = bring
        page = Page(house)
        assert await page.ask(get(b"/weather/bring")) == 200
        await page.open()
        assert companion.ended == 1
        page.close()
        guest = Guest(house)
        assert await guest.ask(get(b"/weather/bring")) == 200
        guest.close()
        await until(lambda: companion.ended == 2)


async def test_a_fault_of_a_door_ends_the_connection_that_it_came_up_in_alone() -> None:
    def fail(_exchange: Exchange, _door: HttpDoor) -> None:
        raise RuntimeError("a fault of ours")

    async with housing() as house:
        Desk(house)
        house.doors["fail"] = fail
        one, other = Guest(house), Guest(house)
        await one.say(get(b"/weather/fail"))
        assert await one.hear_end() == b""
        # In a turn of its own, too.
        late = Guest(house)
        await late.say(*[get(ECHO)] * AT_ONCE_MAX, get(b"/weather/fail"))
        assert (await late.hear_end()).count(b"GET|") == AT_ONCE_MAX
        assert await other.ask(get(ECHO)) == 200
        for guest in (one, other, late):
            guest.close()


@on_both_loops
async def test_draining_closes_who_waits_and_answers_who_asked() -> None:
    async with housing() as house:
        desk = Desk(house)
        idle, asking = Guest(house), Guest(house)
        assert await idle.ask(get(ECHO)) == 200
        await asking.say(get(b"/weather/later") + get(ECHO))
        await until(lambda: len(desk.exchanges) == 1)
        house.drain(2.0)
        assert await idle.hear_end() == b""
        desk.exchanges[0].answer(200, b"in time")
        status, headers, body = await asking.answer()
        assert (status, headers["connection"], body) == (200, "close", b"in time")
        assert await asking.hear_end() == b""
        idle.close()
        asking.close()
        await house.emptied()


@on_both_loops
async def test_draining_waits_for_a_begun_request_for_as_long_as_is_said() -> None:
    async with housing() as house:
        guest = Guest(house)
        begun = b"POST /weather/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nabc"
        await guest.say(begun)
        await until(lambda: any(each.deadline_ns for each in house._streams))
        house.drain(2.0)
        (stream,) = house._streams
        assert stream.deadline_ns == house.now_ns + 2_000_000_000
        house.service.now_ns = stream.deadline_ns + 1
        house.sweep()
        assert await guest.hear_end() == b""
        guest.close()


async def test_an_upgrade_hands_the_connection_over() -> None:
    async with housing() as house:
        guest = Guest(house)
        await guest.say(get(b"/weather/ws", HOST, *UPGRADE))
        assert (await guest.answer())[0] == 101
        assert house.connections == 0
        guest.close()
        await until(lambda: not house.service.peers)
