"""Who may open a tunnel by a WebSocket, and that nobody takes another's."""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.broker.locksmith import key_of, record
from tests.transports.houses import HOST, Guest, get, housing
from tests.transports.loops import until
from tests.transports.tabs import INTEREST, Tab, bearer, publish, publishing

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.transports.http.server import HttpServer

MINE, OTHER = bearer(key_of("mine")), bearer(key_of("other"))


@asynccontextmanager
async def locked(*records: KeyRecord) -> AsyncIterator[HttpServer]:
    """A house that asks for keys."""
    async with housing() as house:
        house.service.set_keys(Keyring(records or (record("mine"), record("other"))))
        house.turn.flush()
        yield house


async def ticket_of(house: HttpServer, key: bytes) -> str:
    """A ticket for a key."""
    guest = Guest(house)
    await guest.say(get(b"/weather/ticket", HOST, key, method=b"POST"))
    status, _, body = await guest.answer()
    assert status == 200
    guest.close()
    return str(json.loads(body)["ticket"])


async def let_in(house: HttpServer, *headers: bytes) -> tuple[Tab, str]:
    """A tab with a key, and the id of its tunnel."""
    tab = Tab(house)
    header = await tab.enter("new=1", *headers)
    return tab, header["tunnel"]


async def is_undisturbed(tab: Tab) -> bool:
    """Say if a tab still has its tunnel, and was told nothing of any attempt."""
    return await tab.settle() == []


@pytest.mark.req("TUN-10")
@pytest.mark.parametrize(
    "query", ["new=1", "tunnel=gone", "new=1&ticket=none", "tunnel=x&ticket=y"]
)
@pytest.mark.parametrize("headers", [(), (bearer("nonsense"),), (bearer(key_of("stranger")),)])
async def test_without_a_key_that_counts_there_is_no_tunnel(
    query: str, headers: tuple[bytes, ...]
) -> None:
    async with locked() as house:
        tab = Tab(house)
        status, body = await tab.refusal(query, *headers)
        both = bool(headers) and "ticket" in query
        expected = (400, "BadGreeting") if both else (401, "BadKey")
        assert (status, json.loads(body)["error"]["name"]) == expected
        assert b"tunnel" not in body
        assert house.service.peers == {}
        tab.close()


@pytest.mark.req("TUN-10", "TUN-20")
async def test_a_ticket_opens_and_another_of_the_same_key_comes_back() -> None:
    async with locked() as house:
        tab = Tab(house)
        known_by = (await tab.enter(f"new=1&ticket={await ticket_of(house, MINE)}"))["tunnel"]
        again = Tab(house)
        header = await again.enter(f"tunnel={known_by}&ticket={await ticket_of(house, MINE)}")
        assert header["tunnel"] == known_by
        by_key = Tab(house)
        await by_key.come_back(known_by, "", MINE)
        for each in (tab, again, by_key):
            each.close()


@pytest.mark.req("TUN-20", "TUN-23")
async def test_nobody_takes_another_s_tunnel_even_with_its_id() -> None:
    async with locked() as house:
        tab, known_by = await let_in(house, MINE)
        thieves = {
            "another key": (f"tunnel={known_by}", (OTHER,), 403),
            "a ticket of another": (
                f"tunnel={known_by}&ticket={await ticket_of(house, OTHER)}",
                (),
                403,
            ),
            "nothing": (f"tunnel={known_by}", (), 401),
            "a ticket that is none": (f"tunnel={known_by}&ticket=none", (), 401),
            "a key that is none": (f"tunnel={known_by}", (bearer("x"),), 401),
            "its own name": (f"tunnel={known_by}&name=mine", (OTHER,), 403),
        }
        for query, headers, expected in thieves.values():
            thief = Tab(house)
            status, body = await thief.refusal(query, *headers)
            assert status == expected
            assert known_by.encode() not in body
            thief.close()
        assert await is_undisturbed(tab)
        assert house.service.refused == {"NotYours": 3, "BadKey": 3}
        tab.close()


async def test_a_ticket_is_good_for_one_return() -> None:
    async with locked() as house:
        tab, known_by = await let_in(house, MINE)
        ticket = await ticket_of(house, MINE)
        again = Tab(house)
        await again.enter(f"tunnel={known_by}&ticket={ticket}")
        thief = Tab(house)
        assert (await thief.refusal(f"tunnel={known_by}&ticket={ticket}"))[0] == 401
        assert await is_undisturbed(again)
        for each in (tab, again, thief):
            each.close()


@pytest.mark.req("TUN-7", "TUN-23")
async def test_an_id_that_somebody_chose_never_becomes_a_tunnel() -> None:
    async with housing() as house:
        chosen = secrets.token_urlsafe(24)
        victim = Tab(house)
        header = await victim.enter(f"tunnel={chosen}")
        assert header["renewed"] is True
        assert header["tunnel"] != chosen
        attacker = Tab(house)
        other = await attacker.enter(f"tunnel={chosen}")
        assert other["tunnel"] not in (chosen, header["tunnel"])
        assert await is_undisturbed(victim)
        victim.close()
        attacker.close()


@pytest.mark.req("TUN-7")
async def test_whoever_guesses_gets_tunnels_of_its_own_and_no_word_of_others() -> None:
    async with housing() as house:
        tab = Tab(house)
        header = await tab.enter()
        await tab.tell(INTEREST)
        await tab.settle()
        page = await publishing(house)
        await publish(page, "secret")
        assert (await tab.told())["data"] == "secret"
        known_by = header["tunnel"]
        near = [known_by[:-1], known_by + "A", known_by.swapcase(), known_by[::-1], " " + known_by]
        path = header["path"].rpartition("/")[2]
        for guess in (*near, path, header["welcome"]["name"], "0", "%00", "../" + known_by):
            guesser = Tab(house)
            found = await guesser.enter(f"tunnel={guess.replace(' ', '%20')}&last=7.1")
            assert found["renewed"] is True
            assert await guesser.settle() == []
            guesser.close()
        assert await is_undisturbed(tab)
        tab.close()
        page.close()


async def test_whoever_loses_its_key_loses_its_tunnel() -> None:
    async with locked() as house:
        (tab, known_by), (away, left) = await let_in(house, MINE), await let_in(house, MINE)
        away.reset()
        house.service.set_keys(Keyring((record("other"),)))
        house.turn.flush()
        assert (await tab.hear_close())[0] == 4806
        await until(lambda: not house.service.peers)
        tab.close()
        for lost in (known_by, left):
            again = Tab(house)
            assert (await again.refusal(f"tunnel={lost}", MINE))[0] == 401
            again.close()


async def test_rights_that_were_taken_meanwhile_are_gone_when_it_comes_back() -> None:
    free = record("guest", "client", publish=["open.>"], subscribe=["open.>"])
    narrow = record("guest", "client", publish=["open.>"], subscribe=["open.b"])
    guest = bearer(key_of("guest"))
    async with locked(free, record("mine")) as house:
        tab, known_by = await let_in(house, guest)
        await tab.tell({"interest": "/open/a", "ack": 1}, {"interest": "/open/b", "ack": 2})
        await tab.settle()
        tab.reset()
        house.service.set_keys(Keyring((narrow, record("mine"))))
        house.turn.flush()
        page, _ = await let_in(house, MINE)
        for path in ("/open/a", "/open/b"):
            await page.tell({"path": path, "data": path})
        await page.settle()
        again = Tab(house)
        await again.come_back(known_by, "", guest)
        await again.tell({"interest": "/open/a", "ack": 3})
        told = await again.settle()
        assert [each["path"] for each in told if "data" in each] == ["/open/b"]
        assert {each["error"]["name"] for each in told if "error" in each} == {"NotAllowed"}
        again.close()
        page.close()


async def test_a_page_that_is_not_trusted_gets_no_tunnel() -> None:
    async with housing() as house:
        tab, known_by = await let_in(house)
        stranger = Tab(house)
        query = f"tunnel={known_by}"
        assert (await stranger.refusal(query, b"Origin: https://evil.example"))[0] == 403
        assert await is_undisturbed(tab)
        tab.close()
        stranger.close()
