"""Queue groups: of all members one gets each message, and every message is got."""

from itertools import chain

import pytest
from tests.journeys.clients import Connect, rest, taken, texts
from tests.journeys.raw import bodies, greeted, kinds, message, subscribe
from tests.journeys.raw import unsubscribe as take_back
from tests.journeys.running import RunningGateway

from weft.wire.frames import Kind


async def test_each_message_goes_to_exactly_one_member(connect: Connect, subject: str) -> None:
    sent = [str(number) for number in range(300)]
    async with connect() as publisher, connect() as one, connect() as two, connect() as three:
        members = (one, two, three)
        hearings = [await each.subscribe(subject, group="workers") for each in members]
        for text in sent:
            await publisher.publish(subject, text)
        await publisher.flush()
        got = [texts(await rest(*each)) for each in zip(members, hearings, strict=True)]
        assert sorted(chain(*got), key=int) == sent
        assert all(got), "a member got nothing at all"
        # What one member gets is still in order.
        assert all(each == sorted(each, key=int) for each in got)


async def test_whoever_is_in_no_group_hears_everything(connect: Connect, subject: str) -> None:
    sent = [str(number) for number in range(50)]
    async with connect() as publisher, connect() as member, connect() as listener:
        await member.subscribe(subject, group="workers")
        heard = await listener.subscribe(subject)
        for text in sent:
            await publisher.publish(subject, text)
        assert texts(await taken(heard, len(sent))) == sent


async def test_each_group_gets_every_message(connect: Connect, subject: str) -> None:
    sent = [str(number) for number in range(50)]
    async with connect() as publisher, connect() as red, connect() as blue:
        hearings = [await red.subscribe(subject, group="red")]
        hearings.append(await blue.subscribe(subject, group="blue"))
        for text in sent:
            await publisher.publish(subject, text)
        for hearing in hearings:
            assert texts(await taken(hearing, len(sent))) == sent


async def test_groups_of_one_name_are_one_group_whatever_their_patterns(
    gateway: RunningGateway, subject: str
) -> None:
    sent = [b"%d" % number for number in range(40)]
    async with greeted(gateway.address) as one, greeted(gateway.address) as two:
        await one.say(subscribe(f"{subject}.*", "workers"))
        await two.say(subscribe(f"{subject}.>", "workers"))
        heard = bodies(await one.say(*(message(f"{subject}.a", body) for body in sent)))
        heard += bodies(await two.say())
        assert sorted(heard, key=int) == sent


async def test_what_a_member_leaves_goes_to_those_who_stay(connect: Connect, subject: str) -> None:
    sent = [str(number) for number in range(30)]
    async with connect() as publisher, connect() as stays:
        heard = await stays.subscribe(subject, group="workers")
        async with connect() as leaves:
            await leaves.subscribe(subject, group="workers")
        for text in sent:
            await publisher.publish(subject, text)
        assert texts(await taken(heard, len(sent))) == sent


async def test_a_member_that_takes_back_its_pattern_gets_no_more(
    gateway: RunningGateway, subject: str
) -> None:
    async with greeted(gateway.address) as stays, greeted(gateway.address) as leaves:
        await stays.say(subscribe(subject, "workers"))
        said = await leaves.say(subscribe(subject, "workers"), take_back(subject, "workers"))
        assert kinds(said) == [Kind.OK, Kind.OK]
        sent = [b"%d" % number for number in range(10)]
        assert bodies(await stays.say(*(message(subject, body) for body in sent))) == sent
        assert await leaves.say() == []


@pytest.mark.parametrize("subscriptions", [2, 3])
async def test_members_in_one_client_share_what_it_gets(
    connect: Connect, subject: str, subscriptions: int
) -> None:
    sent = [str(number) for number in range(30)]
    async with connect() as client:
        hearings = [await client.subscribe(subject, group="g") for _ in range(subscriptions)]
        for text in sent:
            await client.publish(subject, text)
        await client.flush()
        got = [texts(await rest(client, hearing)) for hearing in hearings]
        assert sorted(chain(*got), key=int) == sent
        assert all(len(each) == len(sent) // subscriptions for each in got)
