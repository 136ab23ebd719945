"""What all tunnels and Bayeux clients of a service may keep together."""

from typing import Any

from tests.broker.locksmith import key_of, record
from tests.transports.bayeux.conversation import hall
from tests.transports.houses import HOST, Guest, get, housing
from tests.transports.tabs import Tab, bearer, listening, lost, publish, publishing, sweep_after

from weft.broker.auth.keys import Keyring
from weft.broker.limits import Limits
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.replay_memory import Account, KeptMemory

LIMITS = Limits()
# 20,000 for whoever comes first, 10,000 of it for one holder; and 2,000 for each in any case.
RULES = WebRules(kept_total_bytes=40_000, tunnels=6, bayeux_sessions=4, cull_s=1000.0)
EACH_BYTES = 2000
TEXT = "x" * 1000


def test_who_comes_first_has_room_until_half_is_taken_and_everyone_has_a_part_of_the_rest() -> None:
    memory = KeptMemory()
    first, second, third = (Account(memory, f"key {name}") for name in "abc")
    assert first.room(8000, RULES, LIMITS) == 8000
    first.keep(9999)
    assert first.room(8000, RULES, LIMITS) == 8000
    first.keep(10_000)
    # That is its share.
    assert first.room(8000, RULES, LIMITS) == EACH_BYTES
    assert first.room(1000, RULES, LIMITS) == 1000
    assert second.room(8000, RULES, LIMITS) == 8000
    second.keep(10_000)
    assert third.room(8000, RULES, LIMITS) == EACH_BYTES
    first.keep(9000)
    assert third.room(8000, RULES, LIMITS) == 8000
    first.keep(0)
    second.keep(0)
    assert memory.used == 0


def test_clients_of_one_holder_have_its_share_together() -> None:
    memory = KeptMemory()
    for _ in range(2):
        Account(memory, "key a").keep(5000)
    assert Account(memory, "key a").room(8000, RULES, LIMITS) == EACH_BYTES
    assert Account(memory, "key b").room(8000, RULES, LIMITS) == 8000


async def parted(house: HttpServer) -> str:
    """A tunnel that listens, and to which nobody is attached."""
    tab, known_by = await listening(house)
    await lost(house, tab)
    return known_by


async def test_tunnels_that_nobody_is_attached_to_keep_no_more_than_the_total() -> None:
    async with housing(rules=RULES) as house:
        known = [await parted(house) for _ in range(5)]
        page = await publishing(house)
        for _ in range(60):
            await publish(page, TEXT)
        assert house.kept.used <= RULES.kept_total_bytes
        # Each of them has something, and what it has not is announced.
        for known_by in known:
            tab = Tab(house)
            await tab.come_back(known_by)
            told = await tab.settle()
            kept = [each for each in told if "data" in each]
            lost_count = sum(each["gap"]["count"] for each in told if "gap" in each)
            assert kept
            assert len(kept) + lost_count == 60
            tab.close()
        page.close()


async def test_what_a_tunnel_kept_is_counted_no_longer_when_it_is_old_or_the_tunnel_over() -> None:
    async with housing(rules=RULES) as house:
        await parted(house)
        page = await publishing(house)
        await publish(page, TEXT)
        assert house.kept.used > len(TEXT)
        sweep_after(house, RULES.ring_s + 1)
        assert house.kept.used == 0
        await publish(page, TEXT)
        assert house.kept.used > len(TEXT)
        sweep_after(house, RULES.cull_s + 1)
        assert (house.kept.used, len(house.service.peers)) == (0, 1)
        page.close()


async def test_bayeux_clients_are_owed_no_more_than_there_is_room_for_and_the_rest_waits() -> None:
    web: dict[str, Any] = {"kept_total_bytes": 20_000, "tunnels": 6, "bayeux_sessions": 4}
    async with hall(**web) as made:
        reader, writer = await made.polling("/a"), await made.polling()
        for number in range(20):
            [answer] = await writer.ask(writer.said("/a", data=[number, TEXT]))
            assert answer["successful"]
        # Its share of the free half, and the last that was put there.
        assert 5000 <= made.house.kept.used < 7000
        assert made.session(reader).seat.peer.outbox.owed() > 10 * len(TEXT)
        told: list[int] = []
        while len(told) < 20:
            said = await reader.ask(reader.connect())
            told += [each["data"][0] for each in said if each["channel"] == "/a"]
        assert told == list(range(20))
        assert made.house.kept.used == 0
        for number in range(3):
            await writer.ask(writer.said("/a", data=[number, TEXT]))
        assert made.house.kept.used > 3000
        made.sweep(60.0)
        assert (made.sessions, made.house.kept.used) == (0, 0)


async def test_one_connection_has_its_share_of_tunnels_and_others_theirs() -> None:
    rules = WebRules(tunnels=4)
    async with housing(rules=rules) as house:
        greedy, other = Guest(house), Guest(house)
        for _ in range(2):
            assert await greedy.ask(get(b"/weather/tunnel?new=1&format=poll")) == 200
        await greedy.say(get(b"/weather/tunnel?new=1&format=poll"))
        status, _, body = await greedy.answer()
        assert status == 429
        assert b"this connection has 2 tunnels, which is its share of 4: see limits.share" in body
        assert await other.ask(get(b"/weather/tunnel?new=1&format=poll")) == 200
        assert house.service.refused == {"TooMany": 1}
        assert len(house.service.peers) == 3
        sweep_after(house, rules.cull_s + 1)
        assert await greedy.ask(get(b"/weather/tunnel?new=1&format=poll")) == 200
        greedy.close()
        other.close()


async def test_one_key_has_its_share_of_tunnels_over_however_many_connections() -> None:
    async with housing(rules=WebRules(tunnels=4)) as house:
        house.service.set_keys(Keyring([record("greedy"), record("other")]))
        house.turn.flush()
        pages = [Guest(house) for _ in range(4)]
        wish = b"/weather/tunnel?new=1&format=poll"
        asked = {name: get(wish, HOST, bearer(key_of(name))) for name in ("greedy", "other")}
        assert [await page.ask(asked["greedy"]) for page in pages[:3]] == [200, 200, 429]
        assert [await page.ask(asked["other"]) for page in pages[2:]] == [200, 200]
        for page in pages:
            page.close()
