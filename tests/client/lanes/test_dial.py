"""A call to a receiver: who gives it up, and what comes all the same."""

import asyncio
from contextlib import suppress

import pytest

from weft.client.lanes.dial import LaneDial
from weft.client.lanes.handshake import Invitation, Other
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.lane_tickets import Proofs

INVITATION = Invitation(b"hot", b"ticket", bytes(32), Other(7, "reader"), False, 1e9)


@pytest.mark.req("HUB-22")
async def test_an_answer_to_a_call_that_was_given_up_is_passed_over() -> None:
    asked: asyncio.Queue[bytes] = asyncio.Queue()
    has_hung_up = asyncio.Event()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.put_nowait(await reader.read(4096))
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        has_hung_up.set()

    async with await asyncio.start_server(met, "127.0.0.1", 0) as server:
        caller = LaneDial(INVITATION)
        port = server.sockets[0].getsockname()[1]
        calling = asyncio.ensure_future(caller.call(f"127.0.0.1:{port}", ""))
        _, hello = word_in(await asked.get())
        nonce = bytes(32)
        proofs = Proofs(INVITATION.key, INVITATION.ticket, hello.get_blob("nonce"), nonce)
        calling.cancel()
        # What was read before it could hang up.
        caller.took([lane_frame("serve", b"hot", nonce=nonce, proof=proofs.by_receiver())])
        with pytest.raises(asyncio.CancelledError):
            await calling
        await has_hung_up.wait()
