"""Those who want in without a key, or more than theirs allows."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.attacks.gateway_process import WAIT_S, GatewayProcess, eventually
from tests.attacks.stranger import Stranger, error_name, message, subscribe

from weft.broker.auth.keys import Grant
from weft.gateway.keys.manage import make_key, new_record, revoke_keys
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.message import Message

RIGHTS = {
    "publish": Grant(allow=("open.>",)),
    "subscribe": Grant(allow=(">",), deny=("open.secret",)),
    "request": Grant(allow=("_WEFT.>", ">")),
}


class Fortress:
    """A gateway with two keys: of a service that may do everything, and of a client."""

    def __init__(self, gateway: GatewayProcess, data: Path, service: str, client: str) -> None:
        self.gateway = gateway
        self.data = data
        self.service = service
        self.client = client

    def enter(self, **shown: str) -> Stranger:
        return Stranger(self.gateway.port, greeting(**shown))

    def guest(self) -> Stranger:
        """A client that was let in."""
        guest = self.enter(key=self.client)
        assert guest.is_welcome()
        return guest

    def counts(self) -> dict[str, int]:
        """Refusals of the service, by name."""
        page = self.page("/status", self.service)
        counts: dict[str, int] = json.loads(page)["services"]["default"]["status"]["refused"]
        return counts

    def page(self, path: str, key: str, method: str = "GET") -> bytes:
        request = urllib.request.Request(  # ours
            f"http://127.0.0.1:{self.gateway.port}{path}",
            method=method,
            headers={"Authorization": f"Bearer {key}"},
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:  # noqa: S310  # ours
            body: bytes = answer.read()
        return body


def greeting(name: str = "", **shown: str) -> bytes:
    return encode(Kind.CONNECT, b"default", Message(**shown).encode(), name.encode())


@pytest.fixture(scope="module")
def fortress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fortress]:
    folder = tmp_path_factory.mktemp("fortress")
    data = folder / "data"
    service = make_key(data, new_record("service", "service", "default")).text
    wanted = msgspec.structs.replace(new_record("client", "client", "default"), rights=RIGHTS)
    client = make_key(data, wanted).text
    with GatewayProcess(folder, {"data": str(data), "drain_s": 0.2}) as gateway:
        yield Fortress(gateway, data, service, client)


def answer(guest: Stranger, frame: bytes) -> Frame:
    guest.send(frame)
    return guest.hear()


def test_whoever_guesses_learns_nothing_and_is_counted(fortress: Fortress) -> None:
    key = fortress.service
    guesses = [
        *("wk_", key[:-1], key + "A", key.upper(), key.replace("wk_", "wk-"), f" {key}"),
        *(key[:12] + "A" * 43, "wk_00000000_" + key[12:], "*", "\x00" * 55, key[3:], key[12:]),
    ]
    texts = set()
    for guess in guesses:
        with fortress.enter(key=guess) as stranger:
            (told,) = stranger.hear_all()
            texts.add(Message.from_body(told.body)["text"])
    assert texts == {"the key is not accepted"}
    assert fortress.counts()["BadKey"] >= len(guesses)
    assert not any(guess in fortress.gateway.log for guess in guesses if len(guess) > 20)


def test_a_key_where_a_name_belongs_lets_nobody_in(fortress: Fortress) -> None:
    with Stranger(fortress.gateway.port, greeting(fortress.service, client="x")) as stranger:
        (told,) = stranger.hear_all()
        assert Message.from_body(told.body)["text"] == "a key is needed"
        assert fortress.service not in fortress.gateway.log


def test_what_follows_a_refused_greeting_is_not_carried_out(fortress: Fortress) -> None:
    with fortress.enter(key=fortress.service) as hearer:
        assert hearer.is_welcome()
        assert answer(hearer, subscribe(b">", flags=Flag.ANSWER)).kind == Kind.OK
        first = greeting(key="wrong") + message(b"open.a")
        with Stranger(fortress.gateway.port, first) as stranger:
            assert stranger.hear_end() == "BadKey"
        assert [frame.kind for frame in hearer.hear_until_pong()] == []


def test_a_ticket_is_good_once(fortress: Fortress) -> None:
    page = fortress.page("/default/ticket", fortress.client, "POST")
    ticket = json.loads(page)["ticket"]
    with fortress.enter(ticket=ticket) as guest:
        assert guest.is_welcome()
        for stolen in (ticket, ticket[:-1], ""):
            with fortress.enter(ticket=stolen) as thief:
                assert thief.hear_end() == "BadKey"
        # It is no more than its key.
        assert error_name(answer(guest, message(b"closed", flags=Flag.ANSWER))) == "NotAllowed"


def test_a_ticket_ends_with_its_key(fortress: Fortress) -> None:
    key = make_key(fortress.data, new_record("passing", "client", "default")).text

    def is_welcome() -> bool:
        with fortress.enter(key=key) as guest:
            return guest.is_welcome()

    eventually(is_welcome, "the key was never welcome")
    page = fortress.page("/default/ticket", key, "POST")
    with fortress.enter(key=key) as guest:
        assert guest.is_welcome()
        revoke_keys(fortress.data, "passing")
        assert guest.hear_end() == "BadKey"
    with fortress.enter(ticket=json.loads(page)["ticket"]) as late:
        assert late.hear_end() == "BadKey"


@pytest.mark.parametrize("group", [b"", b"workers"])
@pytest.mark.parametrize("pattern", [b">", b"*.*", b"open.>", b"open.*", b"open.secret"])
def test_nobody_hears_around_a_deny(fortress: Fortress, pattern: bytes, group: bytes) -> None:
    with fortress.guest() as guest:
        asked = subscribe(pattern, group, Flag.ANSWER)
        assert error_name(answer(guest, asked)) == "NotAllowed"


def test_what_belongs_to_others_and_to_the_system_stays_closed(fortress: Fortress) -> None:
    with fortress.guest() as guest, fortress.enter(key=fortress.service) as service:
        inbox = service.inbox()
        refused = {
            subscribe(inbox + b".>", flags=Flag.ANSWER): "NotYours",
            subscribe(b"_INBOX.>", flags=Flag.ANSWER): "NotYours",
            subscribe(b"_WEFT.event.>", flags=Flag.ANSWER): "NotAllowed",
            message(b"open.a", reply=b"closed.b", flags=Flag.ANSWER): "NotAllowed",
            message(b"open.a", reply=inbox + b".1", flags=Flag.ANSWER): "NotYours",
            message(b"_WEFT.event.connected", flags=Flag.ANSWER): "Reserved",
        }
        for frame, error in refused.items():
            assert error_name(answer(guest, frame)) == error


@pytest.mark.req("MID-13")
@pytest.mark.parametrize(
    "question", ["enable", "disable", "status", "connections", "subscriptions", "flows"]
)
def test_a_client_neither_gives_rights_nor_looks_around(fortress: Fortress, question: str) -> None:
    with fortress.enter(key=fortress.client) as guest:
        inbox = guest.inbox()
        body = Message(right="publish", pattern="closed").encode()
        subject = f"_WEFT.ask.{question}".encode()
        asked = encode(Kind.MESSAGE, subject, body, inbox + b".1", Flag.REQUEST)
        assert error_name(answer(guest, asked)) == "NotAllowed"
        tried = message(b"closed", flags=Flag.ANSWER)
        assert error_name(answer(guest, tried)) == "NotAllowed"


@pytest.mark.parametrize("path", ["/default/stream/open/a", "/default/tunnel?new=1&format=poll"])
def test_a_ticket_opens_one_door_once(fortress: Fortress, path: str) -> None:
    ticket = json.loads(fortress.page("/default/ticket", fortress.client, "POST"))["ticket"]
    mark = "&" if "?" in path else "?"
    url = f"http://127.0.0.1:{fortress.gateway.port}{path}{mark}ticket={ticket}"
    with urllib.request.urlopen(url, timeout=WAIT_S) as answer:  # ours
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(url, timeout=WAIT_S)  # ours
