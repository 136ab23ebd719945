"""What of a mesh a gateway keeps: what enters there, or what comes from others, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.gateway.meshes import LIMIT_S, SERVICE, gateway, linked, wanted

import weft
from weft.broker.journal.batcher import ARRIVED
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import JournalSettings
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.wire.frames import Flag, parse


@asynccontextmanager
async def two(
    folder: Path, scope: str
) -> AsyncIterator[tuple[weft.AsyncConnection, weft.AsyncConnection]]:
    """Connections to two gateways that are linked; the second, bob, keeps a journal."""
    journal = JournalSettings(patterns=("a.>",), scope=scope)  # type: ignore[arg-type]  # a name
    async with gateway("ann") as ann:
        join = MeshSettings(join=(ann.address,))
        async with gateway("bob", join, data=str(folder), journal=journal) as bob:
            await linked(ann, bob)
            async with (
                weft.connect(ann.address, service=SERVICE, timeout_s=LIMIT_S) as there,
                weft.connect(bob.address, service=SERVICE, timeout_s=LIMIT_S) as here,
            ):
                yield there, here


def kept(folder: Path) -> list[tuple[bytes, int]]:
    """The bodies of bob's journal, and the flags of their frames."""
    found = history(folder / "journal", SERVICE, "bob")
    frames = [parse(each.frame) for each in found if isinstance(each, JournalRecord)]
    return [(frame.body, frame.flags) for frame in frames]


async def test_a_journal_of_the_mesh_asks_for_what_it_keeps(tmp_path: Path) -> None:
    async with two(tmp_path, "mesh") as (there, here):
        # Nobody is subscribed.
        await wanted(there, "a.b", "bob")
        await there.publish("other", b"unwanted")
        await there.publish("a.b", b"arrived")
        late = here.subscribe("a.b", since=0)
        assert (await late.next(LIMIT_S)).payload == b"arrived"
        await here.publish("a.b", b"entered", acknowledge=True)
        assert (await late.next(LIMIT_S)).payload == b"entered"
    assert kept(tmp_path) == [
        (b"arrived", Flag.BARE | ARRIVED),
        (b"entered", Flag.BARE | Flag.ANSWER),
    ]


async def test_a_journal_of_what_entered_leaves_the_rest_to_others(tmp_path: Path) -> None:
    async with two(tmp_path, "entered") as (there, here):
        await wanted(there, "a.b")
        heard = here.subscribe("a.b")
        await wanted(there, "a.b", "bob")
        await there.publish("a.b", b"arrived")
        assert (await heard.next(LIMIT_S)).payload == b"arrived"
        await here.publish("a.b", b"entered", acknowledge=True)
    assert kept(tmp_path) == [(b"entered", Flag.BARE | Flag.ANSWER)]


@pytest.mark.parametrize("scope", ["entered", "mesh"])
async def test_whoever_catches_up_gets_messages_as_they_were_sent(
    tmp_path: Path, scope: str
) -> None:
    async with two(tmp_path, scope) as (there, here):
        heard = here.subscribe("a.>")
        await wanted(there, "a.b", "bob")
        await there.publish("a.b", b"arrived")
        await heard.next(LIMIT_S)
        await here.publish("a.c", b"entered", acknowledge=True)
        question = weft.Message(patterns=["a.>"], position=0, offset=0)
        page = await here.send_request("_WEFT.ask.history", question, LIMIT_S)
    frames = page.get_blob("frames")
    flags = []
    while frames:
        size = int.from_bytes(frames[:4], "little")
        flags.append(parse(frames[:size]).flags)
        frames = frames[size:]
    asked = Flag.BARE | Flag.ANSWER
    assert flags == {"entered": [asked], "mesh": [Flag.BARE, asked]}[scope]
