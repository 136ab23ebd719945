import asyncio

import weft
from weft.cli.bench.plan import BenchPlan
from weft.cli.bench.worker import partner


def plan_at(gateway: str) -> BenchPlan:
    return BenchPlan(gateway=gateway, service="bench", tls_ca=None, size=1, seconds=1.0, window=8)


async def test_readers_say_how_far_they_are(gateway: str) -> None:
    plan = plan_at(gateway)
    async with weft.connect(gateway, service="bench") as connection:
        words = connection.subscribe(plan.subject("progress"))
        await words.ready()
        async with partner(plan, "read", range(3, 5)):
            there = {(await words.next())["reader"] for _ in range(2)}
            for _ in range(plan.step):
                await connection.publish(plan.subject("data"), b"x")
            told = [(await words.next()).to_dict() for _ in range(2)]
    assert there == {3, 4}
    assert sorted(word["reader"] for word in told) == [3, 4]
    assert {word["received"] for word in told} == {plan.step}


async def test_a_responder_gives_back_what_it_got(gateway: str) -> None:
    plan = plan_at(gateway)
    async with weft.connect(gateway, service="bench") as connection:
        words = connection.subscribe(plan.subject("progress"))
        await words.ready()
        async with partner(plan, "respond", range(1)):
            await words.next()
            answer = await connection.send_request(plan.subject("request"), b"same")
    assert answer.payload == b"same"


async def test_it_ends_with_whoever_started_it(gateway: str) -> None:
    async with partner(plan_at(gateway), "read", range(1)) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0


async def test_without_a_gateway_it_ends_by_itself() -> None:
    async with partner(plan_at("127.0.0.1:1"), "read", range(2)) as process:
        async with asyncio.timeout(20):
            assert await process.wait() == 1
