"""What the gateway knows and says: who is there, who hears what, how much flows, what happened."""

import asyncio
from typing import Any

import pytest
from tests.journeys.clients import LIMIT_S, Client, Connect, Hearing
from tests.journeys.raw import dialled, greeting, subscribe
from tests.journeys.running import RunningGateway

import weft
from weft.errors import BadOption, NotKnown, Refused
from weft.wire.frames import HEADER_BYTES


async def asked(client: Client, question: str, **about: object) -> list[dict[str, Any]]:
    """What the gateway answers to a question that has a list for an answer."""
    answer = await client.request(f"_WEFT.ask.{question}", weft.Message(**about))
    return list(answer.to_dict()[question])


async def event_about(events: Hearing, name: str) -> weft.Received:
    """The next event about one connection; others happen all the time."""
    async with asyncio.timeout(LIMIT_S):
        while (event := await events.next())["name"] != name:
            pass
    return event


@pytest.mark.req("HUB-5")
async def test_a_connection_leads_to_its_subjects(connect: Connect, subject: str) -> None:
    async with connect(name=f"{subject}.me") as client, connect() as other:
        await client.subscribe([f"{subject}.a", f"{subject}.b.>"], policy="latest")
        await client.subscribe(f"{subject}.c", group="workers", listen_only=True)
        await other.subscribe(f"{subject}.a")
        found = await asked(other, "subscriptions", name=f"{subject}.me")
        assert {(each["pattern"], each["group"], each["policy"]) for each in found} == {
            (f"{subject}.a", "", "latest"),
            (f"{subject}.b.>", "", "latest"),
            (f"{subject}.c", "workers", "cut"),
        }
        assert {each["name"] for each in found} == {f"{subject}.me"}
        by_number = await asked(other, "subscriptions", connection=found[0]["connection"])
        assert by_number == found


@pytest.mark.req("HUB-5")
async def test_a_subject_leads_to_its_connections(connect: Connect, subject: str) -> None:
    names = [f"{subject}.{number}" for number in range(3)]
    async with connect(name=names[0]) as one, connect(name=names[1]) as two:
        await one.subscribe(f"{subject}.*.temp")
        await two.subscribe(f"{subject}.a.temp", group="workers")
        async with connect(name=names[2]) as three:
            await three.subscribe(f"{subject}.b.temp")
            found = await asked(three, "subscribers", subject=f"{subject}.a.temp")
            assert {(each["name"], each["group"]) for each in found} == {
                (names[0], ""),
                (names[1], "workers"),
            }


@pytest.mark.req("HUB-20")
async def test_a_leaving_client_is_removed_everywhere(connect: Connect, subject: str) -> None:
    name = f"{subject}.leaves"
    async with connect() as stays:
        async with connect(name=name) as leaves:
            await leaves.subscribe(f"{subject}.>")
            await leaves.answer(f"{subject}.ask", lambda _: "here")
            await leaves.publish(f"{subject}.x", "x")
            await leaves.flush()
            assert (await stays.request(f"{subject}.ask", "there?")).text == "here"
            assert len(await asked(stays, "connections", name=name)) == 1
        assert await asked(stays, "connections", name=name) == []
        assert await asked(stays, "subscriptions", name=name) == []
        assert await asked(stays, "flows", name=name) == []
        assert await asked(stays, "subscribers", subject=f"{subject}.ask") == []
        with pytest.raises(NotKnown):
            await stays.request(f"{subject}.ask", "there?")


@pytest.mark.req("HUB-20")
async def test_a_client_that_hangs_up_without_a_word_is_removed_everywhere(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    name = f"{subject}.gone"
    async with connect() as stays:
        events = await stays.subscribe("_WEFT.event.disconnected")
        async with dialled(gateway.address) as raw:
            await raw.greet(name=name)
            await raw.say(subscribe(subject))
            assert len(await asked(stays, "subscribers", subject=subject)) == 1
        await event_about(events, name)
        assert await asked(stays, "connections", name=name) == []
        assert await asked(stays, "subscribers", subject=subject) == []


@pytest.mark.req("HUB-9")
async def test_what_each_connection_sends_to_each_subject_is_metered(
    connect: Connect, subject: str
) -> None:
    one, two = f"{subject}.one", f"{subject}.two"
    async with connect(name=one) as first, connect(name=two) as second:
        for client, where, count in ((first, "a", 7), (first, "b", 2), (second, "a", 3)):
            for _ in range(count):
                await client.publish(f"{subject}.{where}", bytes(100))
            await client.flush()
        frame_bytes = HEADER_BYTES + len(subject) + 2 + 100
        found = await asked(first, "flows", subject=f"{subject}.a")
        assert {(each["name"], each["messages"], each["bytes"]) for each in found} == {
            (one, 7, 7 * frame_bytes),
            (two, 3, 3 * frame_bytes),
        }
        by_name = {each["subject"]: each for each in await asked(first, "flows", name=one)}
        flow = by_name[f"{subject}.b"]
        assert (flow["messages"], flow["bytes"]) == (2, 2 * frame_bytes)


@pytest.mark.req("HUB-9")
async def test_a_flow_has_its_time_and_its_rate(connect: Connect, subject: str) -> None:
    async with connect() as client:
        first = await client.acknowledged(subject, bytes(100))
        last = await client.acknowledged(subject, bytes(100))
        (flow,) = await asked(client, "flows", subject=subject)
        times = [flow["first_ns"], flow["last_ns"]]
        # Two clocks were read for each, one after the other.
        assert times == pytest.approx([first.time, last.time], abs=1e9)
        assert times == sorted(times)
        assert flow["message_rate"] > 0
        assert flow["byte_rate"] > flow["message_rate"]


@pytest.mark.req("HUB-9")
async def test_the_busiest_flows_come_first_and_the_rest_is_counted(
    connect: Connect, subject: str
) -> None:
    async with connect(name=f"{subject}.me") as client:
        for number in range(6):
            await client.publish(f"{subject}.{number}", bytes(1000 * (1 + number)))
        await client.flush()
        answer = await client.request(
            "_WEFT.ask.flows", weft.Message(name=f"{subject}.me", limit=2)
        )
        flows = answer.to_dict()["flows"]
        assert [each["subject"] for each in flows] == [f"{subject}.5", f"{subject}.4"]
        assert answer["more"] >= 4


async def test_a_connection_is_shown_with_what_it_has_and_did(
    connect: Connect, subject: str
) -> None:
    async with connect(name=f"{subject}.me") as client, connect() as other:
        hearing = await client.subscribe(subject)
        waiting = asyncio.create_task(other.request(subject, "hold on"))
        message = await hearing.next()
        (found,) = await asked(other, "connections", name=f"{subject}.me")
        shown = {name: found[name] for name in ("subscriptions", "unanswered", "dropped")}
        assert shown == {"subscriptions": 1, "unanswered": 1, "dropped": 0}
        assert (found["client"], found["is_behind"]) == ("weft-python", False)
        await client.respond(message, "done")
        await waiting
        (found,) = await asked(other, "connections", name=f"{subject}.me")
        assert found["unanswered"] == 0


async def test_the_service_is_shown_in_numbers(connect: Connect, subject: str) -> None:
    async with connect() as client:
        before = await client.request("_WEFT.ask.status", weft.Message())
        await client.subscribe(subject)
        for _ in range(10):
            await client.publish(subject, b"x")
        with pytest.raises(Refused):
            await client.acknowledged("_WEFT.x", "x")
        after = await client.request("_WEFT.ask.status", weft.Message())
        assert after["service"] == "default"
        assert after["subscriptions"] - before["subscriptions"] == 1
        assert after["messages_in"] - before["messages_in"] >= 10
        assert after["deliveries"] - before["deliveries"] >= 10
        refused = [each["refused"].get("Reserved", 0) for each in (before, after)]
        assert refused[1] - refused[0] == 1


async def test_a_question_that_cannot_be_answered_is_refused(
    connect: Connect, subject: str
) -> None:
    async with connect() as client:
        with pytest.raises(NotKnown):
            await client.request("_WEFT.ask.nothing", weft.Message())
        with pytest.raises(BadOption):
            await client.request("_WEFT.ask.flows", weft.Message(limit=100_000))
        with pytest.raises(BadOption):
            await client.request("_WEFT.ask.subscribers", weft.Message(subject=f"{subject}.*"))


async def test_arrivals_and_departures_are_announced(connect: Connect, subject: str) -> None:
    name = f"{subject}.guest"
    async with connect() as witness:
        connected = await witness.subscribe("_WEFT.event.connected")
        disconnected = await witness.subscribe("_WEFT.event.disconnected")
        async with connect(name=name):
            arrived = await event_about(connected, name)
        left = await event_about(disconnected, name)
        assert (arrived["service"], left["service"]) == ("default", "default")
        assert arrived["connection"] == left["connection"]
        assert left["reason"] == "left"
        assert arrived.publisher == 0


async def test_a_breach_of_the_protocol_is_the_reason_of_a_departure(
    connect: Connect, gateway: RunningGateway, subject: str
) -> None:
    name = f"{subject}.guest"
    async with connect() as witness:
        events = await witness.subscribe("_WEFT.event.*")
        async with dialled(gateway.address) as raw:
            await raw.greet(name=name)
            await raw.send(greeting())
            await raw.to_the_end()
        assert (await event_about(events, name)).subject == "_WEFT.event.connected"
        assert (await event_about(events, name))["reason"] == "BadGreeting"


async def test_nobody_but_the_gateway_speaks_on_its_subjects(
    connect: Connect, subject: str
) -> None:
    async with connect() as forger, connect() as witness:
        events = await witness.subscribe("_WEFT.event.>")
        for name in ("connected", "worker_restarted", subject):
            with pytest.raises(Refused):
                await forger.acknowledged(f"_WEFT.event.{name}", weft.Message(name=subject))
        async with connect(name=f"{subject}.real"):
            names = []
            while f"{subject}.real" not in names:
                names.append((await events.next())["name"])
        assert subject not in names
