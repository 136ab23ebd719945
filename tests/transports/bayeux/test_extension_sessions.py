"""CometD's extensions timesync and binary, on real connections; and what `ext` is not for."""

import time
from typing import Any

import pytest
from tests.transports.bayeux.conversation import HANDSHAKE, hall, published

from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Message

pytestmark = pytest.mark.req("TUN-24")
BYTES = bytes(range(256))
# The first four bytes, 0 1 2 3.
FOUR = "009c6"


def sync_of(sent: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = answer["ext"]["timesync"]
    assert told.keys() == {"tc", "ts", "p", "a"}
    assert told["tc"] == sent["tc"]
    assert told["a"] == sent["tc"] + sent["o"] + sent["l"] - told["ts"]
    assert told["p"] >= 0
    return told


async def test_every_answer_of_the_protocol_tells_the_time_that_was_asked() -> None:
    async with hall() as made:
        client = await made.http()
        sync = {"tc": 1_000, "l": 20, "o": -3}
        asked = {"ext": {"timesync": sync}}
        before = time.time_ns() // 1_000_000
        shaken = await client.shake_hands(**asked["ext"])
        answers = [shaken]
        for message in (
            client.connect(**asked),
            client.said("/meta/subscribe", subscription="/a", **asked),
            client.said("/meta/unsubscribe", subscription="/a", **asked),
            client.said("/meta/disconnect", **asked),
        ):
            answers += await client.ask(message)
        after = time.time_ns() // 1_000_000
        for answer in answers:
            assert answer["successful"]
            assert before <= sync_of(sync, answer)["ts"] <= after


async def test_acknowledgements_and_errors_stay_beside_the_time() -> None:
    async with hall() as made:
        client = await made.http()
        sync = {"timesync": {"tc": 1, "l": 0, "o": 0}}
        shaken = await client.shake_hands(ack=True, **sync)
        assert shaken["ext"]["ack"] is True
        sync_of(sync["timesync"], shaken)
        [answer] = await client.ask(client.connect(ext=sync))
        assert answer["ext"]["ack"] == 0
        sync_of(sync["timesync"], answer)
        refused = client.said("/meta/subscribe", subscription="nowhere", ext=sync)
        [answer] = await client.ask(refused)
        assert answer["ext"]["error"]["name"] == "BadSubject"
        sync_of(sync["timesync"], answer)


async def test_a_connect_that_was_held_tells_how_long() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        held = await made.beside(client)
        sync = {"tc": 1, "l": 0, "o": 0}
        held.say(held.connect(ext={"timesync": sync}))
        native = await made.native()
        began = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 < began + 20:
            await client.ask(client.said("/b", data=1))
        await native.say(published(b"a", number=1))
        *_, answer = (await held.hear()).said
        assert sync_of(sync, answer)["p"] >= 20


async def test_without_being_asked_nobody_is_told_the_time() -> None:
    async with hall() as made:
        client = await made.polling()
        [answer] = await client.ask(client.said("/a", data=1, ext={"timesync": {"tc": 1}}))
        assert answer["successful"]
        assert "ext" not in answer


async def test_bytes_from_a_client_are_bytes_to_others_and_the_other_way_round() -> None:
    async with hall() as made:
        client = await made.polling("/**", binary=True)
        native = await made.native(b"up")
        data = {"data": FOUR, "last": True}
        [answer] = await client.ask(client.said("/up", data=data, ext={"binary": {}}))
        assert answer["successful"]
        [frame] = await native.hear(1)
        assert Message.from_body(frame.body).to_dict() == {"": bytes(range(4))}
        [told, _] = await client.ask(client.connect())
        assert told["ext"] == {"binary": {}}
        assert told["data"] == {"data": FOUR, "last": True, "meta": {}}
        await native.say(encode(Kind.MESSAGE, b"down", bytes(range(4)), flags=Flag.BARE))
        [told, _] = await client.ask(client.connect())
        assert (told["channel"], told["ext"]) == ("/down", {"binary": {}})
        assert told["data"] == {"data": FOUR, "last": True, "meta": {}}


async def test_parts_with_meta_are_fields_on_the_way_and_parts_again() -> None:
    async with hall() as made:
        client = await made.polling("/up")
        other = await made.polling("/up", binary=True)
        native = await made.native(b"up")
        data = {"data": FOUR, "last": False, "meta": {"name": "a.png"}}
        await client.ask(client.said("/up", data=data, ext={"binary": {}}))
        [frame] = await native.hear(1)
        fields = {"data": bytes(range(4)), "last": False, "meta": {"name": "a.png"}}
        assert Message.from_body(frame.body).to_dict() == fields
        # Who has used the extension has it.
        for each in (client, other):
            [told, _] = await each.ask(each.connect())
            assert told["data"] == data
            assert told["ext"] == {"binary": {}}


async def test_a_client_without_the_extension_gets_bytes_as_ever() -> None:
    async with hall() as made:
        client, reader = await made.polling("/a"), await made.polling("/a", binary=True)
        native = await made.native()
        await native.say(published(b"a", data=BYTES[:3], last=True))
        [told, _] = await client.ask(client.connect())
        assert told["data"] == {"data": {"$blob": "AAEC"}, "last": True}
        assert "ext" not in told
        [told, _] = await reader.ask(reader.connect())
        assert told["data"] == {"data": "009c", "last": True, "meta": {}}


async def test_the_reply_stays_beside_bytes() -> None:
    async with hall() as made:
        client = await made.polling("/a", binary=True)
        native = await made.native()
        await native.say(encode(Kind.MESSAGE, b"a", b"\0\1\2\3", reply=b"b", flags=Flag.BARE))
        [told, _] = await client.ask(client.connect())
        assert told["ext"] == {"reply": "/b", "binary": {}}


async def test_binary_data_that_is_none_is_refused_and_published_nowhere() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        for data in ("text", {"data": "a b c"}, {"data": FOUR, "last": "yes"}):
            [answer] = await client.ask(client.said("/a", data=data, ext={"binary": {}}))
            assert answer["error"].startswith("400:")
            assert answer["ext"]["error"]["name"] == "BadField"
        assert made.service.refused["BadField"] == 3


async def test_a_handshake_says_that_binary_is_spoken_to_who_asks() -> None:
    async with hall() as made:
        client = await made.http()
        [answer] = await client.ask(HANDSHAKE | {"ext": {"binary": True}})
        assert answer["ext"] == {"binary": True}


async def test_what_is_shown_in_ext_is_delivered_to_nobody() -> None:
    async with hall() as made:
        client = await made.polling("/a")
        native = await made.native(b"a")
        await client.ask(client.said("/a", data={"x": 1}, ext={"token": "secret"}))
        [frame] = await native.hear(1)
        assert Message.from_body(frame.body).to_dict() == {"x": 1}
        assert b"secret" not in frame.body
        assert frame.reply == b""
        [told, _] = await client.ask(client.connect())
        assert "ext" not in told
