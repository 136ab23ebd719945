"""One subject space behind every door: whoever publishes, whoever listens, with the same rights."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.attacks.gateway_process import GatewayProcess
from tests.journeys.running import RunningGateway
from tests.journeys.visitors import DOORS, LIMIT_S, Denied

from weft.broker.auth.keys import Grant
from weft.gateway.keys.manage import make_key, new_record

RIGHTS = {
    "publish": Grant(allow=("open.>",), deny=("open.secret.>",)),
    "subscribe": Grant(allow=("open.>",), deny=("open.secret.>",)),
}
TEXTS = ("hello", "Grüße ✓", '{"a": "</script>\\n\\n"}', ".", "")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A gateway with keys, and the key of a client with some rights."""
    data = tmp_path_factory.mktemp("data")
    make_key(data, new_record("boss", "service", "default"))
    guest = msgspec.structs.replace(new_record("guest", "client", "default"), rights=RIGHTS)
    key = make_key(data, guest).text
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), {"data": str(data)}) as gateway:
        yield f"127.0.0.1:{gateway.port}", key


@pytest.mark.req("RLY-1", "MID-6", "MID-7")
@pytest.mark.parametrize("listener", DOORS)
@pytest.mark.parametrize("speaker", DOORS)
async def test_whoever_publishes_is_heard_by_whoever_listens(
    speaker: str, listener: str, gateway: RunningGateway
) -> None:
    address = gateway.address.partition("://")[2] or gateway.address
    path = f"/doors/{next(_numbers)}"
    async with (
        asyncio.timeout(LIMIT_S),
        DOORS[speaker](address, "") as speaking,
        DOORS[listener](address, "") as listening,
    ):
        await listening.listen(path)
        for text in TEXTS:
            await speaking.say(path, text)
            assert await listening.hear() == (path, text)


@pytest.mark.req("MID-13")
@pytest.mark.parametrize("path", ["/closed/a", "/open/secret/a"])
@pytest.mark.parametrize("door", DOORS)
async def test_what_a_key_does_not_allow_is_refused_alike_at_every_door(
    door: str, path: str, locked: tuple[str, str]
) -> None:
    async with asyncio.timeout(LIMIT_S), DOORS[door](*locked) as visitor:
        with pytest.raises(Denied, match="NotAllowed"):
            await visitor.say(path, "x")
        with pytest.raises(Denied, match="NotAllowed"):
            await visitor.listen(path)
    async with asyncio.timeout(LIMIT_S), DOORS[door](*locked) as visitor:
        mine = f"/open/{next(_numbers)}"
        await visitor.listen(mine)
        await visitor.say(mine, "allowed")
        assert await visitor.hear() == (mine, "allowed")


@pytest.mark.parametrize("door", DOORS)
async def test_nobody_gets_in_by_any_door_without_a_key(
    door: str, locked: tuple[str, str], tmp_path: Path
) -> None:
    stranger = make_key(tmp_path, new_record("stranger", "service", "default")).text
    for key in ("", stranger):
        with pytest.raises(Exception, match=r"[Kk]ey|401|1008"):
            async with asyncio.timeout(LIMIT_S), DOORS[door](locked[0], key) as visitor:
                await visitor.say("/open/a", "x")
