"""Opening, joining, leaving, closing and looking at channels, over real sockets."""

import asyncio
from typing import Any

import pytest
from tests.gateway.channel_talk import CHESS, NONCE, PASSWORD, Caller, Place, keys, proof_of, secret
from tests.gateway.meshes import LIMIT_S, SERVICE
from tests.journeys.raw import greeted

import weft
from weft.errors import NotAMember, Reserved
from weft.wire.frames import Flag, Kind, encode
from weft.wire.password_proof import ProofInput, sign

KEY = b"k" * 32
QUESTIONS = ("open", "join", "prove", "leave", "close", "list", "show")


async def gone(caller: Caller, name: str) -> None:
    """Wait until a channel is no more."""
    while name in await caller.listed():
        await asyncio.sleep(0.01)


@pytest.mark.req("RLY-11")
async def test_a_channel_is_opened_joined_and_talked_in() -> None:
    async with Place() as place:
        alice, bob = await place.caller("alice"), await place.caller("bob")
        opened = await alice.ask("open", name=CHESS)
        joined = await bob.ask("join", name=CHESS)
        facts = {"id": opened["id"], "name": CHESS, "protected": False}
        assert (opened, joined) == (facts | {"silent": []}, facts)
        assert len(bytes.fromhex(opened["id"])) == 16
        subject = f"_CHANNEL.{opened['id']}.moves"
        heard = bob.client.subscribe(subject)
        await heard.ready()
        await alice.client.publish(subject, b"e4")
        assert (await heard.next(LIMIT_S)).payload == b"e4"


@pytest.mark.req("RLY-14")
async def test_who_proves_the_password_is_a_member_and_is_shown_that_the_gateway_knows_it() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        opened = await alice.ask("open", name=CHESS, **keys())
        assert opened["protected"]
        subject = f"_CHANNEL.{opened['id']}.moves"
        challenge = (await bob.ask("join", name=CHESS))["challenge"]
        assert len(challenge) == 32
        with pytest.raises(NotAMember):
            await bob.client.publish(subject, b"early", acknowledge=True)
        proven = await bob.ask("prove", **proof_of(challenge))
        claim = ProofInput(SERVICE, CHESS.encode(), challenge, NONCE)
        assert proven == {
            "id": opened["id"],
            "name": CHESS,
            "protected": True,
            "signature": sign(secret().server, claim),
        }
        await bob.client.publish(subject, b"now", acknowledge=True)


@pytest.mark.req("RLY-14")
async def test_what_is_kept_of_a_password_proves_nothing() -> None:
    async with Place() as place:
        alice, mallory = await place.caller(), await place.caller()
        await alice.open(**keys())
        for stolen in keys().values():
            challenge = (await mallory.ask("join", name=CHESS))["challenge"]
            about = proof_of(challenge) | {"proof": stolen}
            assert await mallory.refused("prove", **about) == "WrongPassword"


WRONG_NAMES: list[Any] = [
    "",
    "a..b",
    "a.*",
    ">",
    "_x",
    "_CHANNEL.x",
    "a/b",
    "n" * 128,
    "n." * 64 + "n",
    "\ud800",
    7,
]


@pytest.mark.parametrize("question", ["open", "join", "prove", "show", "close"])
async def test_what_is_no_name_is_refused_and_nothing_comes_of_it(question: str) -> None:
    async with Place() as place:
        caller = await place.caller()
        for name in WRONG_NAMES:
            try:
                about = weft.Message.from_dict({"name": name})
            except weft.WeftError:
                # No client can say it.
                continue
            assert await caller.refused(question, **about.to_dict()) in ("BadSubject", "WrongType")
        assert await caller.refused(question) == "NoSuchField"
        assert await caller.listed() == []
        assert await caller.open("n" * 63 + "." + "n" * 63)


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize(
    "about",
    [
        {"stored": KEY},
        {"server": KEY},
        {"stored": b"", "server": b""},
        {"stored": b"", "server": KEY},
        {"stored": KEY, "server": b""},
        {"stored": KEY[1:], "server": KEY},
        {"stored": KEY, "server": KEY + b"k"},
        {"stored": "k" * 32, "server": "k" * 32},
        {"stored": KEY, "server": "k" * 32},
        {"stored": 0, "server": 0},
        {"stored": None, "server": None},
        {"stored": False, "server": KEY},
    ],
)
async def test_keys_that_are_not_two_of_32_bytes_never_make_a_channel_without_a_password(
    about: dict[str, Any],
) -> None:
    async with Place() as place:
        caller = await place.caller()
        refused = await caller.refused("open", name=CHESS, **about)
        assert refused in ("BadOption", "WrongType", "NoSuchField")
        assert await caller.listed() == []
        # Nor one that others could join without a word.
        assert "challenge" in await caller.ask("join", name=CHESS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": b"n" * 15},
        {"nonce": b"n" * 65},
        {"nonce": b""},
        {"nonce": "n" * 16},
        {"proof": "p" * 32},
        {"challenge": b"c" * 32},
        {"challenge": b""},
        {"challenge": "c"},
        {"name": "games.go"},
        {"proof": b""},
        {"proof": b"p" * 31},
        {"proof": b"p" * 33},
    ],
)
async def test_a_proof_with_wrong_fields_proves_nothing(wrong: dict[str, Any]) -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        channel = await alice.open(**keys())
        challenge = (await bob.ask("join", name=CHESS))["challenge"]
        refused = await bob.refused("prove", **(proof_of(challenge) | wrong))
        assert refused in ("BadOption", "WrongType", "WrongPassword")
        assert await bob.refused("leave", id=channel) == "NotAMember"
        assert (await bob.prove())["id"] == channel


@pytest.mark.parametrize("missing", ["challenge", "nonce", "proof"])
async def test_a_proof_that_lacks_a_field_proves_nothing(missing: str) -> None:
    async with Place() as place:
        alice = await place.caller()
        await alice.open(**keys())
        about = proof_of((await alice.ask("join", name=CHESS))["challenge"])
        del about[missing]
        assert await alice.refused("prove", **about) == "NoSuchField"


@pytest.mark.req("RLY-11")
@pytest.mark.parametrize("more", [{}, keys()], ids=["open", "protected"])
async def test_what_exists_is_not_opened_again_whatever_the_password(more: dict[str, Any]) -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        await alice.open(**more)
        for caller in (alice, bob):
            for again in ({}, keys(), keys("another")):
                error = await caller.error("open", name=CHESS, **again)
                assert type(error).__name__ == "ChannelExists"
                assert CHESS in str(error)
        assert (await alice.ask("show", name=CHESS))["members"] == 1


async def test_who_joins_twice_is_a_member_once() -> None:
    async with Place() as place:
        alice = await place.caller()
        channel = await alice.open()
        assert (await alice.ask("join", name=CHESS))["id"] == channel
        assert (await alice.ask("show", name=CHESS))["members"] == 1
        secret_one = await alice.open("games.go", **keys(name="games.go"))
        assert (await alice.prove(name="games.go"))["id"] == secret_one


@pytest.mark.req("RLY-19")
async def test_a_channel_ends_with_its_last_member_and_can_be_opened_at_once() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        first = await alice.open(**keys())
        await bob.prove()
        assert await alice.ask("leave", id=first) == {}
        assert (await bob.ask("show", name=CHESS))["members"] == 1
        await bob.ask("leave", id=first)
        assert await bob.listed() == []
        assert await bob.refused("show", name=CHESS) == "NotKnown"
        second = await bob.open(**keys("another"))
        assert second != first
        assert str(await alice.guess(PASSWORD)).startswith("there is no channel of this name")


@pytest.mark.req("RLY-19")
@pytest.mark.parametrize("more", [{}, keys()], ids=["open", "protected"])
async def test_a_channel_ends_when_its_last_member_is_gone(more: dict[str, Any]) -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        await alice.open(**more)
        await alice.client.close()
        await gone(bob, CHESS)
        assert await bob.open(**keys("another"))


@pytest.mark.parametrize("channel", ["", "x", "0" * 32, "0" * 31, "G" * 32, "é"])
async def test_ids_that_name_nothing_are_refused(channel: str) -> None:
    async with Place() as place:
        alice = await place.caller()
        await alice.open()
        assert await alice.refused("leave", id=channel) == "NotAMember"
        assert await alice.refused("close", id=channel) == "NotKnown"
        assert await alice.refused("show", id=channel) == "NotKnown"
        assert await alice.refused("leave", id=7) == "WrongType"
        assert await alice.refused("leave", name=CHESS) == "NoSuchField"
        assert await alice.listed() == [CHESS]


async def test_who_leaves_is_refused_where_it_was_a_member() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        channel = await alice.open()
        await bob.ask("join", name=CHESS)
        await bob.ask("leave", id=channel)
        assert await bob.refused("leave", id=channel) == "NotAMember"
        with pytest.raises(NotAMember):
            await bob.client.publish(f"_CHANNEL.{channel}.x", b"", acknowledge=True)


# What should not be said.

OPENING = weft.Message(name=CHESS, **keys()).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        b"\xff" * 100,
        OPENING[:-1],
        OPENING[:20],
        OPENING + b"\0",
        OPENING.replace(b"games", b"\xff\xfe\xfd\xfc\xfb"),
        bytes(100_000),
    ],
)
async def test_a_gateway_goes_on_whatever_the_bodies_are(body: bytes) -> None:
    async with Place() as place:
        for question in QUESTIONS:
            async with greeted(place.gateway.address, SERVICE) as raw:
                subject = f"_WEFT.ask.channel.{question}".encode()
                reply = raw.inbox + b".1"
                heard = await raw.say(encode(Kind.MESSAGE, subject, body, reply, Flag.REQUEST))
                assert len(heard) == 1
        caller = await place.caller()
        assert await caller.listed() == []
        assert await caller.open(**keys())


@pytest.mark.parametrize("question", QUESTIONS)
async def test_who_asks_without_wanting_an_answer_is_refused(question: str) -> None:
    async with Place() as place:
        caller = await place.caller()
        with pytest.raises(Reserved):
            await caller.client.publish(
                f"_WEFT.ask.channel.{question}", weft.Message(name=CHESS), acknowledge=True
            )
        assert await caller.listed() == []


async def test_what_nobody_can_ask_for_is_not_known() -> None:
    async with Place() as place:
        caller = await place.caller()
        for question in ("x", "OPEN", "open.x", "steal"):
            assert await caller.refused(question, name=CHESS) == "NotKnown"
