"""Where a client waits for lanes: at one address, and only once it is asked to."""

import asyncio
import socket

import pytest

from weft.client.lanes.handshake import Invitation, Other
from weft.client.lanes.listener import INVITATIONS_MAX, LaneListener

INVITATION = Invitation(b"hot", b"ticket", bytes(32), Other(7, "writer"), False, 1e12)


def answers(host: str, port: int) -> bool:
    with socket.socket() as caller:
        caller.settimeout(5)
        return caller.connect_ex((host, port)) == 0


@pytest.mark.req("HUB-21")
async def test_it_listens_at_the_address_that_it_is_given_and_at_no_other() -> None:
    listener = LaneListener(lambda *_: None)
    assert listener.port == 0
    await listener.open("127.0.0.1")
    port = listener.port
    try:
        assert await asyncio.to_thread(answers, "127.0.0.1", port)
        assert not await asyncio.to_thread(answers, "127.0.0.2", port)
        await listener.open("127.0.0.1")
        assert listener.port == port
        await listener.open("127.0.0.2")
        assert await asyncio.to_thread(answers, "127.0.0.2", listener.port)
        assert not await asyncio.to_thread(answers, "127.0.0.1", port)
    finally:
        listener.close()


@pytest.mark.req("HUB-21")
async def test_without_an_address_it_does_not_listen_at_all() -> None:
    listener = LaneListener(lambda *_: None)
    with pytest.raises(OSError, match="assign requested address"):
        await listener.open("")
    assert listener.port == 0


@pytest.mark.req("HUB-21")
async def test_an_invitation_is_good_once_and_only_for_its_time() -> None:
    listener = LaneListener(lambda *_: None)
    listener.invite(INVITATION)
    assert listener.take(b"another") is None
    assert listener.take(b"ticket") is INVITATION
    assert listener.take(b"ticket") is None
    listener.invite(INVITATION._replace(ends_at=0.0))
    assert listener.take(b"ticket") is None


async def test_of_too_many_invitations_the_oldest_are_forgotten() -> None:
    listener = LaneListener(lambda *_: None)
    for number in range(INVITATIONS_MAX + 1):
        listener.invite(INVITATION._replace(ticket=b"%d" % number))
    assert listener.take(b"0") is None
    assert listener.take(b"1") is not None
