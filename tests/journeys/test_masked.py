"""Masked replies: whoever answers sees a stand-in, and the answer finds whoever asked."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
import websockets
from tests.journeys.clients import Connect, rest, taken, texts
from tests.journeys.raw import ANSWER, REQUEST, bodies, errors, fields, greeted, kinds, message
from tests.journeys.raw import subscribe as wish
from tests.journeys.running import RunningGateway, running

from weft.client.status import What
from weft.errors import BadOption, NotKnown, NotYours, ResponderGone
from weft.wire.frames import Flag, Kind

MASKED = Flag.MASKED


@pytest.mark.req("HUB-7")
async def test_a_responder_sees_a_stand_in_and_its_answer_finds_the_asker(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as answerer:
        requests = await answerer.subscribe(subject)
        plain = asyncio.create_task(asker.request(subject, "who?"))
        known = await requests.next()
        await answerer.respond(known, "you")
        inbox, _, _ = (await plain).subject.rpartition(".")
        asked = asyncio.create_task(asker.request(subject, "who?", masked=True))
        request = await requests.next()
        assert request.text == "who?"
        assert (known.reply.rpartition(".")[0], known.publisher > 0) == (inbox, True)
        assert (inbox in request.reply, request.publisher) == (False, 0)
        await answerer.respond(request, "somebody")
        answer = await asked
        assert answer.text == "somebody"
        assert answer.subject.startswith(inbox)


@pytest.mark.req("HUB-7")
async def test_the_answers_of_many_reach_the_subject_that_was_masked(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as one, connect() as two, connect() as witness:
        heard = [await client.subscribe(f"{subject}.question") for client in (one, two)]
        answers = await asker.subscribe(f"{subject}.answers")
        others = await witness.subscribe(f"{subject}.answers")
        await asker.publish(f"{subject}.question", "?", reply=f"{subject}.answers", masked=True)
        for client, hearing in zip((one, two), heard, strict=True):
            question = await hearing.next()
            assert (subject in question.reply, question.publisher) == (False, 0)
            await client.respond(question, "an answer")
            await client.respond(question, "another")
        assert sorted(texts(await taken(answers, 4))) == ["an answer"] * 2 + ["another"] * 2
        assert {each.subject for each in await taken(others, 4)} == {f"{subject}.answers"}


@pytest.mark.req("HUB-7")
async def test_a_page_can_mask_its_reply_and_be_answered(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    address = f"ws://{gateway.address}/default/ws"
    async with connect() as answerer, asyncio.timeout(60), websockets.connect(address) as page:
        await answerer.answer(subject, lambda asked: f"{asked.publisher} {asked.reply}")
        inbox = json.loads(await page.recv())["welcome"]["inbox"]
        reply = f"{inbox}/1"
        asked = {"path": f"/{subject}", "reply": reply, "request": True, "masked": True}
        await page.send(json.dumps(asked))
        answer = json.loads(await page.recv())
        publisher, _, stand_in = answer["data"].partition(" ")
        assert (answer["path"], publisher) == (reply, "0")
        assert not f"/{stand_in.replace('.', '/')}".startswith(inbox)


async def test_a_gathering_can_be_masked(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as one, connect() as two:
        for name, client in (("1", one), ("2", two)):
            await client.answer(subject, partial("{} {.publisher}".format, name))
        answers = await asker.gather(subject, "who?", masked=True, count=2)
        assert sorted(texts(answers)) == ["1 0", "2 0"]


async def test_many_masked_requests_at_once_get_each_its_own_answer(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as answerer:
        await answerer.answer(subject, lambda asked: f"{asked.text}!")
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(asker.request(subject, f"{number}", masked=number % 3 > 0))
                for number in range(60)
            ]
        assert [task.result().text for task in asked] == [f"{number}!" for number in range(60)]


async def test_a_masked_request_fails_as_any_other(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as answerer:
        with pytest.raises(NotKnown):
            await asker.request(subject, "?", masked=True)
        requests = await answerer.subscribe(subject)
        asked = asyncio.create_task(asker.request(subject, "?", masked=True))
        await requests.next()
        await answerer.close()
        with pytest.raises(ResponderGone):
            await asked


async def test_a_large_message_can_be_masked_and_so_can_its_answer(
    connect: Connect, subject: str
) -> None:
    async with connect() as asker, connect() as answerer:
        await answerer.answer(subject, lambda asked: asked.payload)
        large = bytes(range(256)) * 4096
        assert (await asker.request(subject, large, masked=True)).payload == large


async def test_nobody_else_can_answer_a_masked_request_or_listen_to_its_stand_in(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    async with connect() as asker, connect() as answerer, greeted(gateway.address) as thief:
        requests = await answerer.subscribe(subject)
        asked = asyncio.create_task(asker.request(subject, "?", masked=True))
        stand_in = (await requests.next()).reply
        assert errors(await thief.say(wish(stand_in))) == ["NotYours"]
        assert errors(await thief.say(wish("_INBOX.>"))) == ["NotYours"]
        assert errors(await thief.say(message(stand_in, b"forged"))) == ["NotYours"]
        reply = stand_in.encode()
        assert errors(await thief.say(message(subject, b"?", reply, MASKED))) == ["NotYours"]
        guessed = stand_in[:-4] + ("0.r" if stand_in[-4:-2] != "00" else "1.r")
        assert kinds(await thief.say(message(guessed, b"forged", flags=ANSWER))) == [Kind.OK]
        await answerer.publish(stand_in, "true")
        assert (await asked).text == "true"
        await answerer.publish(stand_in, "once more")
        await answerer.flush()
        await asker.flush()
        assert asker.statistics.late == 0


async def test_the_client_is_told_that_it_was_not_asked(connect: Connect, subject: str) -> None:
    async with connect() as asker, connect() as answerer, connect() as meddler:
        requests = await answerer.subscribe(subject)
        asked = asyncio.create_task(asker.request(subject, "?", masked=True))
        request = await requests.next()
        with pytest.raises(NotYours):
            await meddler.acknowledged(request.reply, "mine")
        await meddler.publish(request.reply, "mine")
        assert isinstance((await meddler.statuses.until(What.REFUSED)).error, NotYours)
        await answerer.respond(request, "true")
        assert (await asked).text == "true"


async def test_an_answer_to_someone_who_left_is_no_error_and_reaches_nobody(
    gateway: RunningGateway, connect: Connect, subject: str
) -> None:
    async with greeted(gateway.address) as answerer, connect() as witness:
        await answerer.say(wish(f"{subject}.question"), wish("_WEFT.event.disconnected"))
        answers = await witness.subscribe(f"{subject}.answers")
        async with greeted(gateway.address, name=f"{subject}.asker") as asker:
            for reply in (asker.inbox + b".1", f"{subject}.answers".encode()):
                await asker.say(message(f"{subject}.question", b"?", reply, MASKED))
        asked = [await answerer.next() for _ in range(2)]
        while fields(await answerer.next())["name"] != f"{subject}.asker":
            pass
        late = [message(each.reply.decode(), b"late", flags=ANSWER) for each in asked]
        assert kinds(await answerer.say(*late)) == [Kind.OK, Kind.OK]
        assert await rest(witness, answers) == []


async def test_a_stand_in_ends_when_the_gateway_forgets_requests(
    tmp_path: Path, subject: str
) -> None:
    with running(tmp_path, "[limits]\nrequest_s = 1.0\n") as gateway:
        async with greeted(gateway.address) as asker, greeted(gateway.address) as answerer:
            await answerer.say(wish(subject))
            await asker.say(message(subject, b"?", asker.inbox + b".1", MASKED))
            stand_in = (await answerer.next()).reply.decode()
            asking = answerer.inbox + b".1"
            # A request says at once whether somebody is behind it; an answer is never an error.
            async with asyncio.timeout(60):
                while not errors(await answerer.say(message(stand_in, b"?", asking, REQUEST))):
                    assert len(bodies(await asker.say())) == 1
            await answerer.say(message(stand_in, b"late"))
            assert bodies(await asker.say()) == []


async def test_without_a_reply_nothing_can_be_masked(connect: Connect, subject: str) -> None:
    async with connect() as asker:
        with pytest.raises(BadOption):
            await asker.publish(subject, "hello", masked=True)
