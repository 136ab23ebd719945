"""Several gateways, each in processes of its own, are one to those who are connected to them."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.gateway.meshes import LIMIT_S, wanted
from tests.journeys.mesh_of import (
    Proxy,
    client,
    gateway,
    killed_at_the_end,
    linked,
    mesh_of,
    mesh_status,
    until,
)
from tests.journeys.running import RunningGateway, kill

import weft
from weft.errors import NotKnown

Trio = list[RunningGateway]


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three gateways that every journey shares which leaves them whole."""
    with mesh_of(tmp_path_factory.mktemp("trio"), "ann", "bob", "cat") as made:
        yield made


@pytest.mark.req("MM-12", "MM-21", "RLY-3")
async def test_three_that_know_one_are_a_full_mesh(trio: Trio) -> None:
    await linked(*trio)


@pytest.mark.req("MM-12", "RLY-18")
async def test_patterns_are_heard_from_everywhere(trio: Trio, subject: str) -> None:
    await linked(*trio)
    async with client(trio[0]) as here, client(trio[1]) as there, client(trio[2]) as elsewhere:
        star, rest = here.subscribe(f"{subject}.*.temp"), there.subscribe(f"{subject}.>")
        await wanted(elsewhere, f"{subject}.x.temp", "ann", "bob")
        await wanted(elsewhere, f"{subject}.x", "bob")
        await elsewhere.publish(f"{subject}.x", weft.Message(number=1))
        await elsewhere.publish(f"{subject}.x.temp", weft.Message(number=2))
        assert (await star.next(LIMIT_S))["number"] == 2
        assert [(await rest.next(LIMIT_S))["number"] for _ in range(2)] == [1, 2]


@pytest.mark.req("MM-12")
async def test_what_one_publishes_comes_in_order_and_once(trio: Trio, subject: str) -> None:
    await linked(*trio)
    async with client(trio[0]) as here, client(trio[1]) as there:
        heard = here.subscribe(f"{subject}.>")
        await wanted(there, f"{subject}.0", "ann")
        for number in range(5000):
            await there.publish(f"{subject}.{number % 7}", weft.Message(number=number))
        numbers = [(await heard.next(LIMIT_S))["number"] for _ in range(5000)]
        assert numbers == list(range(5000))
        # Nothing comes after it that was sent before.
        await there.publish(f"{subject}.end", weft.Message(number=-1))
        assert (await heard.next(LIMIT_S))["number"] == -1


@pytest.mark.req("MM-23")
async def test_a_message_crosses_a_link_once_for_many(trio: Trio, subject: str) -> None:
    await linked(*trio)
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(client(trio[1]))
        heard = []
        for pattern in ("*", ">", "x", "x"):
            here = await stack.enter_async_context(client(trio[0]))
            heard.append(here.subscribe(f"{subject}.{pattern}"))
            await heard[-1].ready(LIMIT_S)
        await wanted(there, f"{subject}.x", "ann")
        before = [mesh_status(each) for each in trio]
        await there.publish(f"{subject}.x", b"", acknowledge=True)
        for each in heard:
            await each.next(LIMIT_S)
        after = [mesh_status(each) for each in trio]
        assert after[1]["sent"] - before[1]["sent"] == 1
        assert after[0]["received"] - before[0]["received"] == 1
        assert after[2]["received"] == before[2]["received"]


@pytest.mark.req("RLY-18")
async def test_what_only_those_here_want_stays_here(trio: Trio, subject: str) -> None:
    await linked(*trio)
    async with client(trio[0]) as here, client(trio[0]) as beside:
        heard = here.subscribe(f"{subject}.>")
        await heard.ready(LIMIT_S)
        before = mesh_status(trio[0])["sent"]
        for number in range(100):
            await beside.publish(f"{subject}.{number}", b"")
        for _ in range(100):
            await heard.next(LIMIT_S)
        assert mesh_status(trio[0])["sent"] == before


@pytest.mark.req("MM-22")
async def test_interest_is_withdrawn_when_the_last_that_had_it_goes(
    trio: Trio, subject: str
) -> None:
    await linked(*trio)
    async with client(trio[1]) as there, client(trio[0]) as one:
        first = one.subscribe(subject)
        async with client(trio[0]) as other:
            await other.subscribe(subject).ready(LIMIT_S)
            await wanted(there, subject, "ann")
            await first.close()
            # The other is still there.
            await wanted(there, subject, "ann")
        await wanted(there, subject)


@pytest.mark.req("MM-25")
async def test_interest_here_is_announced_although_another_gateway_has_the_same(
    trio: Trio, subject: str
) -> None:
    await linked(*trio)
    async with client(trio[0]) as one, client(trio[1]) as two, client(trio[2]) as three:
        at_one = one.subscribe(subject)
        await wanted(two, subject, "ann")
        at_two = two.subscribe(subject)
        await wanted(three, subject, "ann", "bob")
        await three.publish(subject, b"")
        await at_one.next(LIMIT_S)
        await at_two.next(LIMIT_S)


@pytest.mark.req("MM-12", "RLY-18")
async def test_a_request_is_answered_from_another_gateway(trio: Trio, subject: str) -> None:
    await linked(*trio)
    async with client(trio[0]) as here, client(trio[1]) as there:

        async def answer(message: weft.AsyncReceived) -> None:
            await message.respond(weft.Message(double=2 * message["number"]))

        await here.subscribe(subject, answer).ready(LIMIT_S)
        await wanted(there, subject, "ann")
        for number in range(100):
            asked = weft.Message(number=number)
            assert (await there.send_request(subject, asked, LIMIT_S))["double"] == 2 * number


async def test_a_request_that_nobody_serves_anywhere_is_refused(trio: Trio, subject: str) -> None:
    await linked(*trio)
    async with client(trio[1]) as there:
        with pytest.raises(NotKnown):
            await there.send_request(subject, b"", LIMIT_S)


@pytest.mark.req("MM-12")
async def test_of_a_group_across_gateways_one_member_gets_each_message(
    trio: Trio, subject: str
) -> None:
    await linked(*trio)
    async with client(trio[0]) as one, client(trio[1]) as two, client(trio[2]) as three:
        heard: asyncio.Queue[int] = asyncio.Queue()

        async def take(message: weft.AsyncReceived) -> None:
            heard.put_nowait(message["number"])

        for member in (one, two):
            await member.subscribe(subject, take, group="workers").ready(LIMIT_S)
        await wanted(three, subject, "ann", "bob")
        for number in range(200):
            await three.publish(subject, weft.Message(number=number))
        async with asyncio.timeout(LIMIT_S):
            numbers = sorted([await heard.get() for _ in range(200)])
        assert numbers == list(range(200))
        assert heard.empty()


@pytest.mark.req("MM-25", "RLY-4")
async def test_a_late_gateway_hears_what_is_wanted_and_is_told_it(tmp_path: Path) -> None:
    with mesh_of(tmp_path, "ann", "bob") as (ann, bob):
        async with client(ann) as one, client(bob) as two:
            at_one, at_two = one.subscribe("a.*"), two.subscribe("b.*")
            await wanted(two, "a.x", "ann")
            # It knows only one of them.
            with gateway(tmp_path, "cat", f'join = ["{bob.address}"]') as cat:
                async with client(cat) as three:
                    at_three = three.subscribe("c.*")
                    await wanted(three, "a.x", "ann")
                    await wanted(three, "b.x", "bob")
                    await wanted(one, "c.x", "cat")
                    await three.publish("a.x", b"")
                    await three.publish("b.x", b"")
                    await one.publish("c.x", b"")
                    for heard in (at_one, at_two, at_three):
                        await heard.next(LIMIT_S)
                # And when its last client has left, nothing is sent there any more.
                await wanted(one, "c.x")


@pytest.mark.req("MM-25")
async def test_a_service_that_was_killed_is_one_of_the_mesh_again(tmp_path: Path) -> None:
    with mesh_of(tmp_path, "ann", "bob") as (ann, bob):
        await linked(ann, bob)
        async with client(ann) as one, client(bob) as two:
            heard = one.subscribe("a.>")
            await wanted(two, "a.x", "ann")
            # Its clients come back by themselves, and ask for what they asked for.
            kill(ann.worker("default"))
            await until(lambda mesh: mesh["links"] == 1 and mesh["nodes"] == 1, ann, bob)
            await wanted(two, "a.x", "ann")
            await two.publish("a.x", weft.Message(number=7))
            assert (await heard.next(LIMIT_S))["number"] == 7


@pytest.mark.req("MM-25")
async def test_a_gateway_that_was_started_again_is_one_of_the_mesh_again(tmp_path: Path) -> None:
    with gateway(tmp_path, "ann", listen="127.0.0.1:0") as ann:
        with gateway(tmp_path, "bob", f'join = ["{ann.address}"]') as bob:
            await linked(ann, bob)
            address = bob.address
        with gateway(tmp_path, "bob", f'join = ["{ann.address}"]', address) as bob:
            await linked(ann, bob)
            async with client(ann) as one, client(bob) as two:
                heard = one.subscribe("a")
                await wanted(two, "a", "ann")
                await two.publish("a", b"")
                await heard.next(LIMIT_S)


@pytest.mark.req("MM-25")
async def test_a_link_that_was_cut_is_dialled_again_and_nothing_is_lost(tmp_path: Path) -> None:
    # Either may dial the other: there is no way past the proxies.
    async with Proxy() as before_ann, Proxy() as before_bob:
        join = f'join = ["{before_ann.address}"]\naddress = "{before_bob.address}"'
        with (
            gateway(tmp_path, "ann", f'address = "{before_ann.address}"') as ann,
            gateway(tmp_path, "bob", join) as bob,
        ):
            before_ann.lead_to(ann.address)
            before_bob.lead_to(bob.address)
            async with client(ann) as one, client(bob) as two:
                heard = one.subscribe("a.>")
                await wanted(two, "a.x", "ann")
                for first in range(0, 60, 20):
                    for number in range(first, first + 10):
                        await two.publish("a.x", weft.Message(number=number))
                    before_ann.cut()
                    before_bob.cut()
                    for number in range(first + 10, first + 20):
                        await two.publish("a.x", weft.Message(number=number))
                    numbers = [(await heard.next(LIMIT_S))["number"] for _ in range(20)]
                    assert numbers == list(range(first, first + 20))
            assert before_ann.accepted + before_bob.accepted > 3
            assert mesh_status(ann)["gaps"] == 0


@pytest.mark.req("MM-25")
async def test_what_was_kept_for_a_gateway_cuts_no_reader_when_it_is_back(tmp_path: Path) -> None:
    count, body = 15, bytes(1 << 20)
    async with Proxy() as before_ann, Proxy() as before_bob:
        join = f'join = ["{before_ann.address}"]\naddress = "{before_bob.address}"'
        with (
            gateway(tmp_path, "ann", f'address = "{before_ann.address}"') as ann,
            gateway(tmp_path, "bob", join) as bob,
        ):
            before_ann.lead_to(ann.address)
            before_bob.lead_to(bob.address)
            async with client(ann) as writer, AsyncExitStack() as stack:
                readers = [await stack.enter_async_context(client(bob)) for _ in range(4)]
                heard = [reader.subscribe("kept.>") for reader in readers]
                await asyncio.gather(*[each.ready(LIMIT_S) for each in heard])
                await wanted(writer, "kept.x", "bob")
                for proxy in (before_ann, before_bob):
                    proxy.lead_to(":0")
                    proxy.cut()
                for number in range(count):
                    await writer.publish(f"kept.{number}", body, acknowledge=True)
                before_ann.lead_to(ann.address)
                before_bob.lead_to(bob.address)
                for each in heard:
                    subjects = [(await each.next(LIMIT_S)).subject for _ in range(count)]
                    assert subjects == [f"kept.{number}" for number in range(count)]
                assert [reader.statistics.connects for reader in readers] == [1] * len(readers)
            assert mesh_status(bob)["gaps"] == 0


@pytest.mark.req("MM-24", "RLY-4")
async def test_those_here_hear_each_other_with_every_other_gateway_down(tmp_path: Path) -> None:
    with (
        killed_at_the_end(tmp_path, "ann") as ann,
        gateway(tmp_path, "bob", f'join = ["{ann.address}", "127.0.0.1:1"]') as bob,
    ):
        await linked(ann, bob)
        async with client(bob) as one, client(bob) as other:
            heard = one.subscribe("a")
            await heard.ready(LIMIT_S)
            ann.kill()
            await until(lambda mesh: mesh["links"] == 0, bob)
            for number in range(100):
                await other.publish("a", weft.Message(number=number))
            numbers = [(await heard.next(LIMIT_S))["number"] for _ in range(100)]
            assert numbers == list(range(100))


@pytest.mark.req("MM-20")
async def test_gateways_find_each_other_by_a_registry(tmp_path: Path) -> None:
    with gateway(tmp_path, "registry") as registry:
        mesh = f'registry = ["{registry.address}"]'
        with gateway(tmp_path, "bob", mesh) as bob, gateway(tmp_path, "cat", mesh) as cat:
            async with client(bob) as one, client(cat) as two:
                heard = one.subscribe("a")
                await wanted(two, "a", "bob")
                await two.publish("a", b"")
                await heard.next(LIMIT_S)


@pytest.mark.req("MM-21", "RLY-3")
async def test_with_few_links_allowed_messages_still_go_everywhere(tmp_path: Path) -> None:
    names = ["ann", "bob", "cat", "dan"]
    async with AsyncExitStack() as stack:
        made: list[RunningGateway] = []
        for name in names:
            join = f'join = ["{made[-1].address}"]\n' if made else ""
            mesh = f"{join}max_links = 2"
            made.append(stack.enter_context(gateway(tmp_path, name, mesh)))
        await until(lambda mesh: mesh["nodes"] == 3, *made)
        clients = [await stack.enter_async_context(client(each)) for each in made]
        heard = [each.subscribe("a") for each in clients]
        for each, own in zip(clients, names, strict=True):
            await wanted(each, "a", *[name for name in names if name != own])
        for number, each in enumerate(clients):
            await each.publish("a", weft.Message(number=number))
        for hearing in heard:
            numbers = sorted([(await hearing.next(LIMIT_S))["number"] for _ in names])
            assert numbers == [0, 1, 2, 3]
