"""Inboxes: whoever asks is answered by the one who was asked, and by nobody else."""

import asyncio

import pytest
from tests.journeys.clients import Connect
from tests.journeys.raw import (
    ANSWER,
    REQUEST,
    bodies,
    errors,
    fields,
    greeted,
    kinds,
    message,
    subscribe,
)
from tests.journeys.running import RunningGateway

import weft
from weft.client.status import What
from weft.errors import NotYours, UsageError
from weft.wire.frames import Kind


async def test_nobody_can_subscribe_to_the_inbox_of_another(gateway: RunningGateway) -> None:
    async with greeted(gateway.address) as owner, greeted(gateway.address) as thief:
        inbox = owner.inbox.decode()
        gateways, _, _ = inbox.rpartition(".")
        patterns = (f"{inbox}.>", f"{inbox}.1", f"{gateways}.>", "_INBOX.>", "_INBOX.*.*.>")
        heard = await thief.say(*(subscribe(pattern) for pattern in patterns))
        assert errors(heard) == ["NotYours"] * len(patterns)
        await owner.say(message(f"{inbox}.1", b"mine"))
        assert await thief.say() == []


async def test_an_inbox_is_not_guessed_from_another(gateway: RunningGateway) -> None:
    async with greeted(gateway.address) as one, greeted(gateway.address) as two:
        assert len(one.inbox) == len(two.inbox) == 40
        # The last 16 are chance; a number that counts up would match in almost all of them.
        same = sum(a == b for a, b in zip(one.inbox[-16:], two.inbox[-16:], strict=True))
        assert same < 12


async def test_only_whoever_was_given_a_request_can_answer_it(
    gateway: RunningGateway, subject: str
) -> None:
    async with (
        greeted(gateway.address) as asker,
        greeted(gateway.address) as answerer,
        greeted(gateway.address) as forger,
    ):
        await answerer.say(subscribe(subject))
        reply = asker.inbox + b".1"
        assert await asker.say(message(subject, b"?", reply, REQUEST)) == []
        asked = await answerer.next()
        assert asked.reply == reply
        forged = await forger.say(message(reply.decode(), b"forged", flags=ANSWER))
        assert errors(forged) == ["NotYours"]
        assert await asker.say() == []
        assert await answerer.say(message(reply.decode(), b"true")) == []
        assert bodies(await asker.say()) == [b"true"]


async def test_a_forged_answer_does_not_reach_a_pending_request(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    async with connect() as asker, connect() as answerer, greeted(gateway.address) as forger:
        requests = await answerer.subscribe(subject)
        request = asyncio.create_task(asker.request(subject, "?"))
        asked = await requests.next()
        await forger.say(message(asked.reply, b"forged"))
        await answerer.respond(asked, b"true")
        assert (await request).payload == b"true"


async def test_what_is_published_into_an_inbox_does_not_disturb_a_pending_request(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    async with connect() as asker, connect() as answerer, greeted(gateway.address) as stranger:
        requests = await answerer.subscribe(subject)
        request = asyncio.create_task(asker.request(subject, "?"))
        asked = await requests.next()
        inbox, _, number = asked.reply.rpartition(".")
        nobody = [f"{inbox}.{number}.more", f"{inbox}.zzz", f"{inbox}.{number}0"]
        heard = await stranger.say(*(message(reply, b"noise", flags=ANSWER) for reply in nobody))
        assert kinds(heard) == [Kind.OK] * 3
        await answerer.respond(asked, b"true")
        assert (await request).payload == b"true"
        assert asker.statistics.late == 3


async def test_a_request_is_answered_once_and_the_next_has_its_own_answer(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as answerer:
        requests = await answerer.subscribe(subject)
        for text in ("first", "second"):
            request = asyncio.create_task(asker.request(subject, "?"))
            asked = await requests.next()
            await answerer.respond(asked, text)
            assert (await request).text == text
            with pytest.raises(UsageError, match="was answered already"):
                await answerer.respond(asked, "once more")


async def test_a_reply_subject_in_the_inbox_of_another_is_refused(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as owner, greeted(gateway.address) as other:
        await owner.say(subscribe(subject))
        reply = owner.inbox + b".1"
        for flags in (ANSWER, ANSWER | REQUEST):
            heard = await other.say(message(subject, b"?", reply, flags))
            assert errors(heard) == ["NotYours"]
        assert await owner.say() == []


async def test_a_request_needs_a_reply_subject_of_its_own(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as asker:
        await asker.say(subscribe(subject))
        for reply in (b"", subject.encode() + b".answers"):
            heard = await asker.say(message(subject, b"?", reply, REQUEST))
            assert errors(heard) == ["UsageError"]
            assert (heard[0].reply, heard[0].flags & REQUEST) == (reply, REQUEST)
        twice = message(subject, b"?", asker.inbox + b".1", REQUEST)
        assert errors(await asker.say(twice, twice)) == ["UsageError"]


async def test_a_reply_subject_may_be_any_that_its_sender_could_publish_to(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as answerer:
        await answerer.answer(f"{subject}.question", lambda asked: f"to {asked.reply}")
        answers = await asker.subscribe(f"{subject}.answers")
        await asker.publish(f"{subject}.question", "?", reply=f"{subject}.answers")
        assert (await answers.next()).text == f"to {subject}.answers"


async def test_the_client_is_told_that_its_answer_came_from_the_wrong_one(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as answerer, connect() as meddler:
        requests = await answerer.subscribe(subject)
        request = asyncio.create_task(asker.request(subject, "?"))
        asked = await requests.next()
        with pytest.raises(NotYours):
            await meddler.acknowledged(asked.reply, "mine")
        await meddler.publish(asked.reply, "mine")
        assert isinstance((await meddler.statuses.until(What.REFUSED)).error, NotYours)
        await answerer.respond(asked, weft.Message(ok=True))
        assert (await request)["ok"] is True


async def test_an_answer_for_someone_who_left_is_no_error(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as answerer, greeted(gateway.address) as witness:
        await answerer.say(subscribe(subject))
        await witness.say(subscribe("_WEFT.event.disconnected"))
        async with greeted(gateway.address, name=f"{subject}.asker") as asker:
            await asker.say(message(subject, b"?", asker.inbox + b".1", REQUEST))
        asked = await answerer.next()
        while fields(await witness.next())["name"] != f"{subject}.asker":
            pass
        heard = await answerer.say(message(asked.reply.decode(), b"late", flags=ANSWER))
        assert kinds(heard) == [Kind.OK]


async def test_not_known_carries_the_subject_and_reply_of_its_request(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as asker:
        reply = asker.inbox + b".1"
        (error,) = await asker.say(message(subject, b"?", reply, REQUEST))
        assert (error.subject, error.reply) == (subject.encode(), reply)
        assert error.flags & REQUEST
        assert fields(error)["name"] == "NotKnown"
