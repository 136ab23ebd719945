import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transports.houses import Page, framed, housing
from tests.transports.loops import on_both_loops, until
from websockets.frames import Opcode

from weft.broker.limits import Limits
from weft.transports.http.server import HttpServer
from weft.wire.frames import Decoder, Flag, Frame, Kind, encode, parse

CONNECT = encode(Kind.CONNECT, b"weather")
SUBSCRIBE = encode(Kind.SUBSCRIBE, b"a", flags=Flag.ANSWER)


class Native(Page):
    """A page that speaks frames."""

    async def start(self) -> None:
        await self.open(b"Sec-WebSocket-Protocol: weft.binary")
        self._decoder = Decoder(64 << 20)

    async def put(self, *pieces: bytes) -> None:
        await self.say(*(framed(Opcode.BINARY, piece) for piece in pieces))

    async def hear(self, count: int) -> list[Frame]:
        heard: list[Frame] = []
        while len(heard) < count:
            found = self._decoder.next_frame()
            if found is not None:
                heard.append(parse(found))
                continue
            frame = await self.frame()
            assert frame.opcode is Opcode.BINARY, frame
            self._decoder.feed(bytes(frame.data))
        return heard


async def native(house: HttpServer) -> Native:
    page = Native(house)
    await page.start()
    return page


@on_both_loops
async def test_frames_in_one_message_are_dealt_with_and_answered() -> None:
    async with housing() as house:
        page = await native(house)
        await page.put(CONNECT + SUBSCRIBE + encode(Kind.MESSAGE, b"a", b"\x00" * 4))
        kinds = [frame.kind for frame in await page.hear(3)]
        assert kinds == [Kind.WELCOME, Kind.OK, Kind.MESSAGE]
        page.close()


LARGE = encode(Kind.MESSAGE, b"a", b"\x00\x00\x00\x00" + b"x" * 90_000, flags=Flag.ANSWER)


@given(st.lists(st.integers(1, 60_000), max_size=12))
@settings(max_examples=25)
def test_frames_survive_any_cut_into_messages(sizes: list[int]) -> None:
    async def run() -> None:
        async with housing() as house:
            page = await native(house)
            data = CONNECT + SUBSCRIBE + LARGE + encode(Kind.PING, body=b"end")
            for size in sizes:
                await page.put(data[:size])
                data = data[size:]
            await page.put(data)
            kinds = [frame.kind for frame in await page.hear(5)]
            assert kinds == [Kind.WELCOME, Kind.OK, Kind.MESSAGE, Kind.OK, Kind.PONG]
            assert house.service.unfinished_bytes == 0
            page.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (encode(Kind.PING), 4605),
        (CONNECT + CONNECT, 4605),
        (CONNECT + b"\x00\x00\x00\x00", 4601),
        (CONNECT + b"\xff\xff\xff\xff", 4602),
        (CONNECT + encode(Kind.WELCOME), 4606),
        (encode(Kind.CONNECT, b"another"), 4804),
        (encode(Kind.CONNECT, b"weather", b"x" * 5000), 4602),
    ],
)
async def test_what_breaks_the_protocol_ends_it_with_a_code(sent: bytes, code: int) -> None:
    async with housing() as house:
        page = await native(house)
        await page.put(sent)
        assert (await page.hear_close())[0] == code
        page.close()
        await until(lambda: not house.service.peers)


async def test_half_a_frame_is_counted_timed_and_let_go() -> None:
    async with housing() as house:
        page = await native(house)
        await page.put(CONNECT)
        await page.hear(1)
        (peer,) = house.service.peers.values()
        await page.put(LARGE[:1000])
        await until(lambda: house.service.unfinished_bytes == 1000)
        began = peer.rest_ns
        assert began > 0
        await page.put(LARGE[1000:2000])
        await until(lambda: house.service.unfinished_bytes == 2000)
        assert peer.rest_ns == began
        page.close()
        await until(lambda: not house.service.peers)
        assert house.service.unfinished_bytes == 0


async def test_when_all_together_hold_too_much_the_next_is_turned_away() -> None:
    async with housing(Limits()) as house:
        page = await native(house)
        await page.put(CONNECT)
        await page.hear(1)
        house.service.unfinished_bytes += 256 << 20
        await page.put(LARGE[:1000])
        assert (await page.hear_close())[0] == 4207
        page.close()
        await until(lambda: not house.service.peers)
        assert house.service.unfinished_bytes == 256 << 20
