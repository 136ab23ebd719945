"""Middleman spoken badly: what is wrong is told, nothing of it is done, and only the guilty go."""

import asyncio
import random

from tests.attacks.siege import Siege
from tests.transports.middleman.raw_peer import LIMIT_S, dialled, error_in, let_in

from weft.transports.middleman.protocol import written
from weft.wire.frames import Kind, encode

SETTINGS = {"limits.requests": 20, "limits.outbox_bytes": 65_536, "limits.outbox_age_s": 2.0}
PIECES = (
    *("PUB", "SUB", "REQ", "RES", "EPUB", "ESUB", "EREQ", "ERR", "MM OK", " ", " a", " a.b", " *"),
    *("\n", "\r\n", "\n\n", "\r\n\r\n", ".", "\n.\n", "\r\n.\r\n", "\n.\r\n", "..", "\r", "\0"),
    *(
        "ReqID:1",
        "ReqID:",
        "reqid: 2",
        ":",
        "\u2028",
        "\x85",
        "text",
        "_INBOX.",
        "_WEFT.ask.status",
    ),
)
SMUGGLED = written("PUB", "victim", "smuggled")


async def test_messages_smuggled_in_others_are_not_carried_out(siege: Siege) -> None:
    carriers = (
        f"PUB a\n\nbody\n.\n{SMUGGLED}",
        f"PUB a\r\n\r\nbody\r\n.\r\n{SMUGGLED}",
        f"PUB a\n\nbody\n.\r\n{SMUGGLED}",
        f"PUB a\nReqID:1\r\r\n.\r\n{SMUGGLED}",
        f"PUB a\u2028{SMUGGLED}",
        f"PUB a\rPUB victim\r\rsmuggled\r.\r{SMUGGLED}",
        f"\n{SMUGGLED}",
        f".\n{SMUGGLED}",
        SMUGGLED + SMUGGLED,
        f"REQ a\nReqID:1\n.\n{SMUGGLED}\n\n.\n",
    )
    address = f"127.0.0.1:{siege.port}"
    async with let_in(address) as victim, let_in(address) as attacker:
        await victim.subscribe("victim")
        for text in carriers:
            await attacker.send(text)
            [said] = await attacker.settle()
            assert said.command == "ERR", text
        assert await victim.settle() == []


async def test_a_body_that_tries_to_end_early_is_delivered_whole(siege: Siege) -> None:
    address = f"127.0.0.1:{siege.port}"
    body = f"first\n.\n{SMUGGLED}.\r\n.\n."
    async with let_in(address) as victim, let_in(address) as attacker:
        await victim.subscribe("a")
        await attacker.say("PUB", "a", body)
        assert (await victim.told()).body == body
        assert await victim.settle() == []


async def test_whatever_is_said_the_conversation_goes_on(siege: Siege) -> None:
    chance = random.Random(7)
    async with let_in(f"127.0.0.1:{siege.port}") as attacker:
        with siege.bystander.talking():
            for _ in range(50):
                for _ in range(20):
                    await attacker.send("".join(chance.choices(PIECES, k=chance.randint(0, 9))))
                await attacker.settle()


async def test_bodies_that_are_no_messages_are_told_as_bytes(siege: Siege) -> None:
    async with let_in(f"127.0.0.1:{siege.port}") as reader:
        await reader.subscribe("a")
        native = siege.stranger()
        bodies = [b"\xff", b"\x01\x00\x00\x00\xff\xff\xff\x7f", b"", b"text\n."]
        native.send(*(encode(Kind.MESSAGE, b"a", body) for body in bodies))
        native.hear_until_pong()
        told = [said.body for said in await reader.settle()]
        assert told == ['{"$blob":"/w=="}', '{"$blob":"AQAAAP///38="}', "", "text\n."]


async def test_requests_that_nobody_answers_are_bounded(siege: Siege) -> None:
    address = f"127.0.0.1:{siege.port}"
    async with let_in(address) as service, let_in(address) as attacker:
        await service.subscribe("a")
        for number in range(30):
            await attacker.say("REQ", "a", "", ReqID=str(number))
        errors = [error_in(said) for said in await attacker.settle()]
        assert errors == [("a", "TooMany", str(number)) for number in range(20, 30)]
        assert len(await service.settle()) == 20


async def test_answers_that_were_guessed_reach_nobody(siege: Siege) -> None:
    address = f"127.0.0.1:{siege.port}"
    async with (
        let_in(address) as service,
        let_in(address) as client,
        let_in(address) as attacker,
    ):
        await service.subscribe("a")
        await client.say("REQ", "a", "", ReqID="1")
        stand_in = (await service.told()).request_id
        for guess in ("1", stand_in, stand_in.upper(), stand_in[:-1], "_INBOX.1", "0" * 32):
            await attacker.say("RES", "a", "forged", ReqID=guess)
            assert error_in(await attacker.told())[1] == "NotYours"
        assert await client.settle() == []


async def test_one_that_does_not_read_is_cut_and_the_others_hear_everything(siege: Siege) -> None:
    address = f"127.0.0.1:{siege.port}"
    count = 400
    async with (
        let_in(address) as speaker,
        let_in(address) as listener,
        let_in(address) as sleeper,
    ):
        await listener.subscribe("a")
        await sleeper.subscribe("a")
        sleeper.socket.transport.pause_reading()
        for number in range(count):
            await speaker.say("PUB", "a", f"{number} {'x' * 60_000}")
            assert (await listener.told()).body.startswith(f"{number} ")
        siege.await_counts(ended_SlowReader=1, refused_BadOption=2)
        sleeper.socket.transport.abort()


async def test_newcomers_that_say_nothing_or_anything_are_told_nothing(siege: Siege) -> None:
    address = f"127.0.0.1:{siege.port}"
    for text in ("x" * 513, "x" * 2_000_000, b"", b"\x00" * 64):
        async with dialled(address) as peer:
            await peer.send(text)
            assert (await peer.closed()).reason == ""
    async with dialled(address) as peer:
        await peer.send("x" * 3_000_000)
        await asyncio.wait_for(peer.socket.wait_closed(), LIMIT_S)
        assert peer.socket.close_code == 1009


async def test_half_a_message_is_never_carried_out(siege: Siege) -> None:
    whole = "PUB a\n\nbody\n.\n"
    async with let_in(f"127.0.0.1:{siege.port}") as peer:
        await peer.subscribe("a")
        for cut in range(len(whole)):
            await peer.send(whole[:cut])
            assert (await peer.told()).command == "ERR"
        await peer.send(whole)
        assert (await peer.told()).command == "PUB"
