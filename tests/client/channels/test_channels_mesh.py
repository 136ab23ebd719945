"""Channels of clients at several gateways: they hear each other, and move when one dies."""

import asyncio

import pytest
from tests.client.connection.test_reconnect import QUICK
from tests.gateway.meshes import LIMIT_S, SERVICE, gateway, linked

import weft
from weft.errors import ChannelExists, WrongPassword
from weft.gateway.config.mesh_settings import MeshSettings

HORSE = "correct horse"


async def joined_by(client: weft.AsyncConnection, password: str | None) -> weft.AsyncChannel:
    """Join a channel that this gateway may not have heard of yet; few tries are needed."""
    while True:
        try:
            return await client.join_channel("room", password)
        except WrongPassword:
            await asyncio.sleep(0.2)


@pytest.mark.req("RLY-11", "RLY-18")
@pytest.mark.parametrize("password", [None, HORSE])
async def test_members_move_to_another_gateway_and_still_hear_each_other(
    password: str | None,
) -> None:
    async with gateway("bob") as bob:
        ann_joins = MeshSettings(join=(bob.address,))
        async with gateway("ann", ann_joins) as ann:
            await linked(ann, bob)
            both = f"{ann.address},{bob.address}"
            here = await weft.connect(both, service=SERVICE, **QUICK)
            there = await weft.connect(bob.address, service=SERVICE, **QUICK)
            room = await here.open_channel("room", password)
            table = await joined_by(there, password)
            assert (table.id, room.silent) == (room.id, ())
            with pytest.raises(ChannelExists):
                await there._channels._open(table._membership)
            at_table, in_room = table.subscribe("a"), room.subscribe("b")
            await at_table.ready()
            await in_room.ready()
        # The gateway of whoever opened it is gone; it is still there for the other.
        async with asyncio.timeout(LIMIT_S):
            await room.publish("a", "moved", acknowledge=True)
        assert (await at_table.next(LIMIT_S)).text == "moved"
        await table.publish("b", "welcome back")
        assert (await in_room.next(LIMIT_S)).text == "welcome back"
        assert (here.gateway, room.id) == ("bob", table.id)
        await here.close()
        await there.close()
