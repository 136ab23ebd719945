import pytest
from tests.transports.houses import HOST, Guest, get, housing

from weft.broker.limits import Limits
from weft.errors import NotAllowed
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange, Request
from weft.transports.http.origins import WebRules
from weft.transports.http.server import bearer

PAGE = b"Origin: https://pages.example"
RULES = WebRules(origins=("https://pages.example",), hosts=("mesh.example",))


def refuse(_exchange: Exchange, _door: HttpDoor) -> None:
    raise NotAllowed("not you")


PAGES = {
    "another page": (b"Origin: https://evil.example", "UntrustedOrigin", "'https://evil.example'"),
    "a frame": (b"Sec-Fetch-Site: cross-site", "UntrustedOrigin", "pages of another site"),
    "another host": (b"Host: [::1]evil", "UnknownHost", "'[::1]evil'"),
}


@pytest.mark.parametrize(("header", "name", "text"), PAGES.values(), ids=PAGES.keys())
async def test_what_comes_from_elsewhere_is_counted_and_logged_by_its_name_once_a_second(
    header: bytes, name: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = (header,) if header.startswith(b"Host") else (HOST, header)
    async with housing(rules=RULES) as house:
        house.doors["refuse"] = refuse
        guest = Guest(house)
        with caplog.at_level("INFO"):
            for _ in range(20):
                assert await guest.ask(get(b"/weather/refuse", *headers)) in (403, 421)
        assert house.service.refused == {name: 20}
        lines = [each for each in caplog.messages if name in each]
        assert text in lines[0]
        assert len(lines) < 20
        guest.close()


PROBLEMS = {
    "another host": (get(b"/weather/refuse", b"Host: evil.example"), 421),
    "an empty host": (get(b"/weather/refuse", b"Host:"), 421),
    "another service": (get(b"/traffic/refuse"), 421),
    "no door": (get(b"/weather/nothing"), 404),
    "another page": (get(b"/weather/refuse", HOST, b"Origin: https://evil.example"), 403),
    "a frame of another page": (get(b"/weather/refuse", HOST, b"Sec-Fetch-Site: cross-site"), 403),
    "a key in the URL": (get(b"/weather/refuse?key=secret"), 400),
    "a password in the URL": (get(b"/weather/refuse?password=secret"), 400),
    "a refusal": (get(b"/weather/refuse"), 403),
    "a name that we go by": (get(b"/weather/refuse", b"Host: mesh.example"), 403),
}


@pytest.mark.parametrize(("sent", "status"), PROBLEMS.values(), ids=PROBLEMS.keys())
async def test_a_request_that_cannot_be_is_answered_counted_and_the_connection_goes_on(
    sent: bytes, status: int
) -> None:
    async with housing(rules=RULES) as house:
        house.doors["refuse"] = refuse
        guest = Guest(house)
        assert await guest.ask(sent) == status
        assert sum(house.service.refused.values()) == 1
        assert await guest.ask(get(b"/weather/nothing")) == 404
        guest.close()


async def test_a_page_that_is_trusted_may_ask_and_read() -> None:
    async with housing(rules=RULES) as house:
        guest = Guest(house)
        await guest.say(get(b"/weather/ws", HOST, PAGE, method=b"OPTIONS"))
        status, headers, body = await guest.answer()
        assert (status, body) == (204, b"")
        assert headers["access-control-allow-origin"] == "https://pages.example"
        assert "POST" in headers["access-control-allow-methods"]
        await guest.say(get(b"/weather/ws", HOST, PAGE))
        status, headers, _ = await guest.answer()
        assert (status, headers["access-control-allow-origin"]) == (426, "https://pages.example")
        assert "Origin" in headers["vary"]
        guest.close()


async def test_a_page_that_is_not_trusted_may_not_even_ask() -> None:
    async with housing(rules=RULES) as house:
        guest = Guest(house)
        evil = b"Origin: https://evil.example"
        await guest.say(get(b"/weather/ws", HOST, evil, method=b"OPTIONS"))
        status, headers, _ = await guest.answer()
        assert status == 403
        assert "access-control-allow-origin" not in headers
        guest.close()


@pytest.mark.parametrize(
    ("shown", "key"),
    [
        *(("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", ""), ("", "")),
        *(("Bearer", ""), ("Bearerabc", "")),
    ],
)
def test_a_key_is_shown_as_a_bearer_shows_it(shown: str, key: str) -> None:
    request = Request("GET", "weather", "ws", (), {}, {"authorization": shown})
    assert bearer(request) == key


async def test_one_who_asks_too_often_what_cannot_be_runs_out_of_credit() -> None:
    async with housing(Limits(control_burst=3, control_per_s=1)) as house:
        seat = house.seat(_Deaf())
        house.greet(seat, Request("GET", "weather", "ws", (), {}, {}), "test")
        for _ in range(5):
            house.charge(seat.peer, NotAllowed("no"))
        assert seat.peer.is_over
        assert house.service.refused == {"NotAllowed": 5, "ControlFlood": 1}
        house.turn.flush()
        assert not house.service.peers


class _Deaf:
    """A speaker that takes everything and tells nobody."""

    has_room = True

    def tell(self, frames: bytes) -> None:
        pass

    def rest(self) -> None:
        pass

    def go_on(self) -> None:
        pass

    def over(self, error: object) -> None:
        pass
