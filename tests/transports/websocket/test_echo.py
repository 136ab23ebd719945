import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transports.houses import HOST, UPGRADE, Guest, Page, framed, get, housing
from tests.transports.loops import on_both_loops, until
from websockets.frames import Opcode

from weft.transports.http.origins import WebRules

ON = WebRules(debug_echo=True)
ECHO = b"/weather/_echo"


@pytest.mark.parametrize("code", [Opcode.TEXT, Opcode.BINARY])
@on_both_loops
async def test_what_is_said_is_said_back_and_nobody_is_seated(code: Opcode) -> None:
    async with housing(rules=ON) as house:
        page = Page(house)
        await page.open(target=ECHO)
        await page.say(framed(code, b"hello"))
        frame = await page.frame()
        assert (frame.opcode, bytes(frame.data)) == (code, b"hello")
        assert not house.service.peers
        page.close()
        await until(lambda: not house._streams)


async def test_it_is_not_there_unless_it_is_asked_for() -> None:
    async with housing() as house:
        guest = Guest(house)
        assert await guest.ask(get(ECHO, HOST, *UPGRADE)) == 404
        guest.close()


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5))
@settings(max_examples=20)
def test_any_bytes_come_back(said: list[bytes]) -> None:
    async def run() -> None:
        async with housing(rules=ON) as house:
            page = Page(house)
            await page.open(target=ECHO)
            await page.say(*(framed(Opcode.BINARY, each) for each in said))
            assert [bytes((await page.frame()).data) for _ in said] == said
            page.close()

    asyncio.run(run())
