"""Names of services, named by those who may not have them started, or who only want to know."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess, eventually, is_running
from tests.attacks.stranger import Stranger, connect
from tests.transports.houses import HOST, UPGRADE, get

import weft
from weft.gateway.keys.manage import make_key, new_record
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

EVIL = b"Origin: https://evil.example"


def running(gateway: GatewayProcess) -> list[str]:
    return sorted(gateway.status()["services"])


def children(gateway: GatewayProcess) -> int:
    """How many processes the gateway has started and not seen end."""
    pid = gateway.process.pid
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def heard(gateway: GatewayProcess, sent: bytes) -> bytes:
    """Everything that is answered, without the dates and numbers in it."""
    with Stranger(gateway.port, sent) as stranger:
        stranger.end_sending()
        return re.sub(rb"(?i)\r\ndate: [^\r]*", b"", stranger.hear_bytes())


def test_pages_of_strangers_start_no_services(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path, {"services": []}) as gateway:
        for number in range(15):
            path = b"/evil%d/ws" % number
            for headers in ((HOST, EVIL), (b"Host: evil.example",), (b"Host: [::1]evil",)):
                status = heard(gateway, get(path, *headers))[:12]
                assert status in (b"HTTP/1.1 403", b"HTTP/1.1 421")
            # One that never says where it comes from.
            assert heard(gateway, get(path, HOST)[:-2]).startswith(b"HTTP/1.1 400")
        assert (running(gateway), children(gateway)) == ([], 0)
        refused = gateway.status()["front"]["refused"]
        assert (refused["UntrustedOrigin"], refused["UnknownHost"]) == (15, 30)
        assert "pages of 'https://evil.example' are not trusted" in gateway.log
        with Stranger(gateway.port, connect(b"orders")) as own:
            assert own.is_welcome()


def test_a_service_that_nobody_uses_ends_and_is_started_again(tmp_path: Path) -> None:
    with (
        GatewayProcess(tmp_path, {"services": [], "idle_s": 1.0}) as gateway,
        Stranger(gateway.port, connect(b"used")) as user,
    ):
        assert user.is_welcome()
        with Stranger(gateway.port, connect(b"unused")) as visitor:
            assert visitor.is_welcome()
            pid = gateway.worker("unused")
        eventually(lambda: running(gateway) == ["used"], gateway.status)
        eventually(lambda: not is_running(pid), gateway.log)
        assert "service=unused stopping: unused for 1.0 s" in gateway.log
        with Stranger(gateway.port, connect(b"unused")) as again:
            assert again.is_welcome()
        # Whoever is connected is not disturbed.
        assert user.hear_until_pong() == []


def test_a_service_that_is_named_or_has_kept_messages_does_not_end(tmp_path: Path) -> None:
    settings = {"services": ["named"], "idle_s": 0.5}
    with GatewayProcess(tmp_path, settings) as gateway:
        eventually(lambda: gateway.status()["uptime_s"] > 4, gateway.status)
        assert running(gateway) == ["named"]
    settings = {
        "services": [],
        "idle_s": 0.5,
        "data": str(tmp_path / "data"),
        "journal.patterns": [">"],
    }
    with GatewayProcess(tmp_path, settings) as gateway:
        with weft.Connection(gateway.address, service="keeping") as connection:
            connection.publish("a", {"n": 1}, acknowledge=True)
        with Stranger(gateway.port, connect(b"empty")) as visitor:
            assert visitor.is_welcome()
        eventually(lambda: running(gateway) == ["keeping"], gateway.status)
        eventually(lambda: gateway.status()["uptime_s"] > 5, gateway.status)
        assert running(gateway) == ["keeping"]


class Guarded:
    """A gateway with keys, and one service that no key and no setting names."""

    def __init__(self, gateway: GatewayProcess, boss: str, guest: str) -> None:
        self.gateway = gateway
        self.boss = boss
        self.guest = guest


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    data = folder / "data"
    boss = make_key(data, new_record("boss", "admin", "*")).text
    guest = make_key(data, new_record("guest", "client", "*")).text
    make_key(data, new_record("one", "service", "keyname"))
    settings = {"services": [], "data": str(data), "services_max": 3, "limits.greeting_s": 0.5}
    with GatewayProcess(folder, settings) as gateway, ExitStack() as stack:
        first = connect(b"running", key=boss)
        assert stack.enter_context(Stranger(gateway.port, first)).is_welcome()
        yield Guarded(gateway, boss, guest)


def greeting(service: bytes, **shown: object) -> bytes:
    return encode(Kind.CONNECT, service, Message(**shown).encode())


def post(path: bytes, body: bytes, *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return get(path, HOST, length, *headers, method=b"POST") + body


def probes(name: bytes) -> dict[str, bytes]:
    """What a stranger may ask about a service."""
    at = b"/" + name
    hello = b'[{"channel":"/meta/handshake","version":"1.0"}]'
    json = b"Content-Type: application/json"
    bad = b"Authorization: Bearer weft_00000000_nonsense"
    return {
        "no key": connect(name),
        "a wrong key": greeting(name, key="nonsense"),
        "a ticket": greeting(name, ticket="nonsense"),
        "a key and a ticket": greeting(name, key="x", ticket="y"),
        "another version": greeting(name, version=99),
        "a broken greeting": encode(Kind.CONNECT, name, b"nonsense"),
        "a number for a key": greeting(name, key=7),
        "no WebSocket": get(at + b"/ws", HOST),
        "a WebSocket": get(at + b"/ws", HOST, *UPGRADE),
        "a WebSocket with a ticket": get(at + b"/ws?ticket=nonsense", HOST, *UPGRADE),
        "a WebSocket with a wrong key": get(at + b"/ws", HOST, bad, *UPGRADE),
        "another page": get(at + b"/ws", HOST, EVIL),
        "another host": get(at + b"/ws", b"Host: evil.example"),
        "a bad host": get(at + b"/ws", b"Host: [::1]evil"),
        "a preflight": get(at + b"/publish/a", HOST, EVIL, method=b"OPTIONS"),
        "its own preflight": get(at + b"/publish/a", HOST, method=b"OPTIONS"),
        "a message": post(at + b"/publish/a", b"1"),
        "a message with a wrong key": post(at + b"/publish/a", b"1", bad),
        "a request": post(at + b"/request/a", b"1"),
        "another method": get(at + b"/publish/a", HOST, method=b"DELETE"),
        "a stream": get(at + b"/stream/a", HOST),
        "events": get(at + b"/events", HOST),
        "a tunnel": get(at + b"/tunnel?new=1", HOST),
        "a tunnel that is none": get(at + b"/tunnel?tunnel=nonsense", HOST),
        "a ticket, please": post(at + b"/ticket", b""),
        "Bayeux": post(at + b"/bayeux", hello, json),
        "no Bayeux": post(at + b"/bayeux", b"{", json),
        "middleman": get(at + b"/middleman", HOST, *UPGRADE),
        "a key in the URL": get(at + b"/publish/a?key=secret", HOST),
        "two in a row": get(at + b"/ws", HOST) + get(at + b"/stream/a", HOST),
        "another service behind it": get(at + b"/ws", HOST) + get(b"/default/ws", HOST),
        "half a request": get(at + b"/ws", HOST)[:-2],
        "a bare line feed": get(at + b"/ws", HOST, b"X: 1\nY: 2"),
        "a long head": get(at + b"/ws", HOST, b"X: " + b"x" * 9000),
        "a door that is none": get(at + b"/nothing", HOST),
        "none at all": get(at, HOST),
        "a link": encode(Kind.LINK, name, b"nonsense"),
    }


@pytest.mark.parametrize("probe", probes(b"x"))
def test_a_stranger_cannot_tell_a_service_that_runs_from_one_that_does_not(
    guarded: Guarded, probe: str
) -> None:
    answers = {
        name: heard(guarded.gateway, probes(name)[probe]).replace(name, b"NAME")
        for name in (b"running", b"lacking", b"keyname")
    }
    assert answers[b"lacking"] == answers[b"running"]
    assert answers[b"keyname"] == answers[b"running"]


def test_strangers_and_clients_have_nothing_started(guarded: Guarded) -> None:
    gateway = guarded.gateway
    before = children(gateway)
    for number in range(20):
        for sent in probes(b"any%d" % number).values():
            with Stranger(gateway.port, sent) as stranger:
                stranger.end_sending()
    for name in (b"another", b"keyname"):
        with Stranger(gateway.port, greeting(name, key=guarded.guest)) as client:
            assert client.hear_end() == "NoSuchService"
    assert children(gateway) == before
    with Stranger(gateway.port, greeting(b"running", key=guarded.guest)) as client:
        assert client.is_welcome()


def test_the_last_places_are_for_services_that_keys_name(guarded: Guarded) -> None:
    gateway = guarded.gateway
    with ExitStack() as stack:
        others = [
            stack.enter_context(Stranger(gateway.port, greeting(name, key=guarded.boss)))
            for name in (b"second", b"third", b"keyname")
        ]
        assert others[0].is_welcome()
        assert others[1].hear_end() == "NoSuchService"
        assert others[2].is_welcome()


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_the_key_of_a_service_has_it_started_also_by_a_websocket(
    tmp_path: Path, scheme: str
) -> None:
    data = tmp_path / "data"
    key = make_key(data, new_record("one", "service", "orders")).text
    with GatewayProcess(tmp_path, {"services": [], "data": str(data)}) as gateway:
        address = f"{scheme}://127.0.0.1:{gateway.port}"
        with weft.Connection(address, service="orders", key=key) as connection:
            connection.publish("a", {"n": 1})
