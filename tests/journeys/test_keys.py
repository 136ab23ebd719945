"""A gateway with keys, from the first one to its revocation, through real processes."""

import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
from tests.attacks.gateway_process import WAIT_S, GatewayProcess, eventually
from tests.attacks.stranger import CONNECT, Stranger, error_name

from weft.broker.auth.keys import Grant, KeyRecord
from weft.gateway.keys.key_file import change_keys, path_of
from weft.gateway.keys.manage import make_key, new_record, revoke_keys, rotate_key
from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Message


def greeting(**options: str) -> bytes:
    return encode(Kind.CONNECT, b"default", Message(**options).encode())


def made(data: Path, name: str, role: str = "service", **rights: list[str]) -> str:
    """The text of a new key."""
    service = "*" if role == "admin" else "default"
    wanted = msgspec.structs.replace(
        new_record(name, role, service),
        rights={right: Grant(allow=tuple(allow)) for right, allow in rights.items()},
    )
    return make_key(data, wanted).text


def change_one(data: Path, **facts: object) -> None:
    """Write the file anew, with these facts of the key named `one`."""

    def changed(records: tuple[KeyRecord, ...]) -> tuple[KeyRecord, ...]:
        return tuple(
            msgspec.structs.replace(each, **facts) if each.name == "one" else each
            for each in records
        )

    change_keys(data, changed)


def await_welcome(gateway: GatewayProcess, *keys: str) -> None:
    """Wait until the services know these keys; the front reads them, and logs it, before that."""

    def is_welcome(key: str) -> bool:
        with Stranger(gateway.port, greeting(key=key)) as guest:
            return guest.is_welcome()

    for key in keys:
        eventually(partial(is_welcome, key), f"{key[:11]} was never welcome")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def gateway(tmp_path: Path, data: Path) -> Iterator[GatewayProcess]:
    """A gateway that has a key from its start: `boss`."""
    make_key(data, new_record("boss", "admin", "*"))
    with GatewayProcess(tmp_path, {"data": str(data), "drain_s": 0.2}) as process:
        yield process


def test_a_gateway_that_had_no_keys_begins_to_ask_for_them(tmp_path: Path, data: Path) -> None:
    settings = {"data": str(data), "drain_s": 0.2}
    with (
        GatewayProcess(tmp_path, settings) as gateway,
        Stranger(gateway.port) as guest,
    ):
        assert guest.is_welcome()
        key = made(data, "one")
        assert guest.hear_end() == "BadKey"
        with Stranger(gateway.port) as other:
            assert other.hear_end() == "BadKey"
        with Stranger(gateway.port, greeting(key=key)) as friend:
            assert friend.is_welcome()


def test_keys_are_asked_of_everyone_also_on_loopback(gateway: GatewayProcess, data: Path) -> None:
    key = made(data, "one")
    await_welcome(gateway, key)
    for first in (CONNECT, greeting(key="nonsense"), greeting(ticket="nonsense")):
        with Stranger(gateway.port, first) as stranger:
            assert stranger.hear_end() == "BadKey"
    with Stranger(gateway.port, greeting(key=key)) as friend:
        assert friend.is_welcome()


def test_guessing_gets_nowhere_and_is_counted(gateway: GatewayProcess, data: Path) -> None:
    key = made(data, "one")
    await_welcome(gateway, key)
    guesses = [key[:-1] + each for each in "0123456789abcdef" if each != key[-1]]
    for guess in guesses:
        with Stranger(gateway.port, greeting(key=guess)) as stranger:
            (told,) = stranger.hear_all()
            assert Message.from_body(told.body)["text"] == "the key is not accepted"
    # Text of a key must not get into a log, right or wrong.
    assert not any(guess in gateway.log for guess in [key, *guesses])


def test_a_revoked_key_ends_whoever_came_with_it(gateway: GatewayProcess, data: Path) -> None:
    gone, stays = made(data, "one"), made(data, "two")
    await_welcome(gateway, gone, stays)
    with (
        Stranger(gateway.port, greeting(key=gone)) as ended,
        Stranger(gateway.port, greeting(key=stays)) as friend,
    ):
        assert ended.is_welcome()
        assert friend.is_welcome()
        revoke_keys(data, "one")
        assert ended.hear_end() == "BadKey"
        with Stranger(gateway.port, greeting(key=gone)) as again:
            assert again.hear_end() == "BadKey"
        friend.send(encode(Kind.PING))
        assert friend.hear().kind == Kind.PONG


def test_a_key_that_expires_ends_whoever_came_with_it(gateway: GatewayProcess, data: Path) -> None:
    key = made(data, "one")
    await_welcome(gateway, key)
    with Stranger(gateway.port, greeting(key=key)) as guest:
        assert guest.is_welcome()
        # Long enough for the gateway to read it before, and if it is not, the end is the same.
        change_one(data, expires=datetime.now(UTC) + timedelta(seconds=3))
        assert guest.hear_end() == "BadKey"


def test_a_rotated_key_and_its_successor_both_open(gateway: GatewayProcess, data: Path) -> None:
    old = made(data, "one")
    new, _ = rotate_key(data, "one", timedelta(hours=1))
    await_welcome(gateway, new.text, old)


def test_rights_that_are_taken_away_are_told_by_name(gateway: GatewayProcess, data: Path) -> None:
    key = made(data, "one", subscribe=["a.>", "b"])
    await_welcome(gateway, key)
    with Stranger(gateway.port, greeting(key=key)) as guest:
        assert guest.is_welcome()
        for pattern in (b"a.*", b"b"):
            guest.send(encode(Kind.SUBSCRIBE, pattern, flags=Flag.ANSWER))
            assert guest.hear().kind == Kind.OK
        change_one(data, rights={"subscribe": Grant(allow=("b",))})
        told = guest.hear()
        assert (told.subject, error_name(told)) == (b"a.*", "NotAllowed")
        assert Message.from_body(told.body)["kind"] == Kind.SUBSCRIBE


def test_a_broken_file_changes_nothing_and_is_loud(gateway: GatewayProcess, data: Path) -> None:
    key = made(data, "one")
    await_welcome(gateway, key)
    path_of(data).chmod(0o644)
    eventually(lambda: "its mode is 0644" in gateway.log, lambda: gateway.log)
    assert "ERROR" in gateway.log
    with Stranger(gateway.port, greeting(key=key)) as friend:
        assert friend.is_welcome()
    with Stranger(gateway.port) as stranger:
        assert stranger.hear_end() == "BadKey"
    assert page(gateway, "/metrics", key).count("weft_keys_failing 1.0") == 1


def refused_start(*options: str) -> str:
    """What `weft serve` says when it does not start."""
    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "weft.cli", "serve", *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_gateway_does_not_start_with_a_file_that_others_can_read(data: Path) -> None:
    made(data, "one")
    path_of(data).chmod(0o640)
    assert "its mode is 0640" in refused_start("--data", str(data), "--listen", "127.0.0.1:0")


def test_an_address_for_others_is_refused_until_there_are_keys(data: Path) -> None:
    text = refused_start("--data", str(data), "--listen", "0.0.0.0:0")
    assert f"weft keys new --role admin --name NAME --data {data}" in text


def page(gateway: GatewayProcess, path: str, key: str = "") -> str:
    """A page, or the number of the status that is given instead."""
    request = urllib.request.Request(f"http://127.0.0.1:{gateway.port}{path}")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:  # noqa: S310
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return str(error.code)


def test_pages_that_tell_of_the_gateway_need_a_key(gateway: GatewayProcess, data: Path) -> None:
    service, client = made(data, "one"), made(data, "two", "client")
    eventually(lambda: "read 3 keys from" in gateway.log, lambda: gateway.log)
    for path in ("/status", "/metrics"):
        assert page(gateway, path) == "401"
        assert page(gateway, path, client) == "403"
        assert page(gateway, f"{path}?key={service}") == "401"
        assert "default" in page(gateway, path, service)
    assert page(gateway, "/healthz") == "ok\n"
    assert page(gateway, "/readyz") == "ready\n"
    assert '"keys":3' in page(gateway, "/status", service)


def test_a_key_is_revoked_while_the_service_is_busy(gateway: GatewayProcess, data: Path) -> None:
    busy, gone = made(data, "busy"), made(data, "gone")
    await_welcome(gateway, busy, gone)
    is_over = threading.Event()
    frames = encode(Kind.MESSAGE, b"noise", bytes(64), flags=Flag.BARE) * 500
    with (
        Stranger(gateway.port, greeting(key=busy)) as noisy,
        Stranger(gateway.port, greeting(key=gone)) as ended,
    ):
        assert noisy.is_welcome()
        assert ended.is_welcome()

        def make_noise() -> None:
            while not is_over.is_set():
                noisy.send(frames)

        noise = threading.Thread(target=make_noise)
        noise.start()
        try:
            revoke_keys(data, "gone")
            assert ended.hear_end() == "BadKey"
        finally:
            is_over.set()
            noise.join(WAIT_S)


def test_strangers_have_nothing_started_and_do_not_learn_what_runs(
    tmp_path: Path, data: Path
) -> None:
    key = make_key(data, new_record("boss", "admin", "*")).text
    settings = {"data": str(data), "services": [], "drain_s": 0.2}
    with GatewayProcess(tmp_path, settings) as gateway:
        for shown in ({}, {"key": "nonsense"}):
            first = encode(Kind.CONNECT, b"orders", Message(**shown).encode())
            with Stranger(gateway.port, first) as stranger:
                assert stranger.hear_end() == "BadKey"
        # As if it ran: a WebSocket is what that door is for.
        assert page(gateway, "/orders/ws") == "426"
        assert '"services":{}' in page(gateway, "/status", key)
        first = encode(Kind.CONNECT, b"orders", Message(key=key).encode())
        with Stranger(gateway.port, first) as friend:
            assert friend.is_welcome()
