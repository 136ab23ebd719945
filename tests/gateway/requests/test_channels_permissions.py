"""Who may open, join, close and see which channels, over real sockets."""

import asyncio
from pathlib import Path

import pytest
from tests.broker.locksmith import record
from tests.gateway.channel_talk import CHESS, Place, keys
from tests.gateway.meshes import LIMIT_S

import weft
from weft.errors import NotAMember
from weft.gateway.keys.key_file import change_keys

PLAYER = {right: ["games.>"] for right in ("publish", "subscribe")}
CLIENT = record("client", "client", **PLAYER)
OTHER = record("other", "client", **PLAYER)
STRANGER = record("stranger", "client", publish=["a.>"], subscribe=["a.>"])
SERVES = record("serves")
BOSS = record("boss", "admin")


async def test_whoever_opened_it_closes_it_and_other_clients_do_not(tmp_path: Path) -> None:
    async with Place(tmp_path, CLIENT, OTHER) as place:
        alice, bob = await place.caller(key="client"), await place.caller(key="other")
        again = await place.caller(key="client")
        channel = await alice.open()
        for caller in (bob, again):
            # Members as well as others: it is the connection that counts, not the key.
            assert await caller.refused("close", name=CHESS) == "NotAllowed"
            await caller.ask("join", name=CHESS)
            assert await caller.refused("close", id=channel) == "NotAllowed"
        assert await alice.ask("close", id=channel) == {}
        assert await alice.listed() == []
        for caller in (alice, bob):
            with pytest.raises(NotAMember):
                await caller.client.publish(f"_CHANNEL.{channel}.x", b"", acknowledge=True)
        # What was closed may be opened again, and is then another's to close.
        await bob.open()
        assert await alice.refused("close", name=CHESS) == "NotAllowed"


@pytest.mark.parametrize("key", ["serves", "boss"])
@pytest.mark.parametrize("by", ["id", "name"])
async def test_services_and_admins_close_any(tmp_path: Path, key: str, by: str) -> None:
    async with Place(tmp_path, CLIENT, SERVES, BOSS) as place:
        alice, closer = await place.caller(key="client"), await place.caller(key=key)
        about = {"id": await alice.open(**keys()), "name": CHESS}
        assert await closer.ask("close", **{by: about[by]}) == {}
        assert await closer.refused("close", name=CHESS) == "NotKnown"
        assert await closer.listed() == []


async def test_members_are_told_that_it_was_closed() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        channel = await alice.open()
        await bob.ask("join", name=CHESS)
        heard = bob.client.subscribe(f"_CHANNEL.{channel}.moves")
        await heard.ready()
        await alice.ask("close", id=channel)
        with pytest.raises(weft.WeftError) as told:
            await heard.next(LIMIT_S)
        assert type(told.value).__name__ == "ChannelClosed"


async def test_what_somebody_else_may_not_see_is_not_closed_or_shown(tmp_path: Path) -> None:
    async with Place(tmp_path, CLIENT, OTHER, STRANGER) as place:
        alice, bob = await place.caller(key="client"), await place.caller(key="other")
        stranger = await place.caller(key="stranger")
        hidden = await alice.open(**keys())
        await alice.open("games.go")
        for caller, name in ((bob, CHESS), (stranger, CHESS), (stranger, "games.go")):
            for question in ("show", "close"):
                assert await caller.refused(question, name=name) == "NotKnown"
        assert await bob.refused("show", id=hidden) == "NotKnown"
        assert await stranger.refused("show", name="no.such") == "NotKnown"


async def test_clients_see_what_is_open_to_them_and_insiders_everything(tmp_path: Path) -> None:
    async with Place(tmp_path, CLIENT, OTHER, STRANGER, SERVES, BOSS) as place:
        alice = await place.caller("alice", key="client")
        await alice.open("games.go")
        hidden = await alice.open(**keys())
        seen = {
            key: sorted(await (await place.caller(key=key)).listed())
            for key in ("other", "stranger", "serves", "boss")
        }
        both = [CHESS, "games.go"]
        assert seen == {"other": ["games.go"], "stranger": [], "serves": both, "boss": both}
        # Whoever is a member knows of it anyway.
        bob = await place.caller(key="other")
        await bob.prove()
        assert sorted(await bob.listed()) == both
        shown = await bob.ask("show", name=CHESS)
        assert {name: shown[name] for name in ("id", "owner", "gateway", "members")} == {
            "id": hidden,
            "owner": "alice",
            "gateway": "london",
            "members": 2,
        }
        assert (shown["protected"], shown["is_confirmed"], shown["epoch"]) == (True, True, 1)
        assert shown["places"] == [{"gateway": "london", "members": 2, "message_rate": 0}]
        # Nothing of its keys is told.
        assert not {"stored", "server"} & shown.keys()


async def test_rights_to_the_name_are_needed(tmp_path: Path) -> None:
    hearer = record("hearer", "client", subscribe=["games.>"])
    async with Place(tmp_path, CLIENT, STRANGER, hearer) as place:
        alice, stranger = await place.caller(key="client"), await place.caller(key="stranger")
        listens = await place.caller(key="hearer")
        assert await listens.refused("open", name=CHESS) == "NotAllowed"
        assert await stranger.refused("open", name=CHESS) == "NotAllowed"
        channel = await alice.open()
        for question in ("join", "prove"):
            assert await stranger.refused(question, name=CHESS) == "NotAllowed"
        assert (await listens.ask("join", name=CHESS))["id"] == channel


async def test_lists_have_the_largest_first_and_count_what_is_left_out() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        for number in range(3):
            await alice.open(f"rooms.{number}")
        await bob.ask("join", name="rooms.1")
        answer = await bob.ask("list", limit=2)
        assert [(each["name"], each["members"]) for each in answer["channels"]] == [
            ("rooms.1", 2),
            ("rooms.0", 1),
        ]
        assert (answer["more"], (await bob.ask("list"))["more"]) == (1, 0)
        for limit in (0, -1, 1001):
            assert await bob.refused("list", limit=limit) == "BadOption"
        assert await bob.refused("list", limit="x") == "WrongType"


@pytest.mark.req("RLY-19")
async def test_a_key_that_is_revoked_ends_its_memberships(tmp_path: Path) -> None:
    async with Place(tmp_path, CLIENT, SERVES) as place:
        alice, watcher = await place.caller(key="client"), await place.caller(key="serves")
        await alice.open(**keys())
        assert await watcher.listed() == [CHESS]
        change_keys(tmp_path, lambda _: (SERVES,))
        while await watcher.listed():
            await asyncio.sleep(0.01)
