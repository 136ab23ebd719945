"""Rights that services enable, and keys that are accepted or not, with real gateways."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import MADE, key_of, record
from tests.client.conftest import RunningGateway
from tests.client.connection.test_reconnect import QUICK, Statuses

import weft
from weft.broker.auth.keys import KeyRecord
from weft.client.asyncio.connection import connect
from weft.client.key_file import FILE_MAX_BYTES, key_in
from weft.client.options import Options
from weft.client.requests.runtime_grants import enabled_body
from weft.client.status import What
from weft.client.sync.connection import Connection
from weft.errors import BadKey, BadOption, BadSubject, NotAllowed
from weft.gateway.config.settings import Settings
from weft.gateway.gateway import Gateway
from weft.gateway.keys.key_file import change_keys

SERVICE = record("service", service="default")
CLIENT = record("client", "client", service="default")


class LockedGateway(RunningGateway):
    """A gateway with keys; put() changes them, and it looks at once."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.put(SERVICE, CLIENT)
        super().__init__()

    def put(self, *records: KeyRecord) -> None:
        change_keys(self.data, lambda _: records)

    async def _start(self) -> None:
        settings = Settings(data=str(self.data), services=("default",))
        self._gateway = Gateway(listen=self.address, settings=settings, workers="inline")
        await self._gateway.start()
        self.address = self._gateway.address


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[LockedGateway]:
    gateway = LockedGateway(tmp_path)
    yield gateway
    gateway.end()


def reach(gateway: LockedGateway, name: str, **more: Any) -> Any:
    return connect(gateway.address, key=key_of(name), **{**QUICK, **more})


@asynccontextmanager
async def both(
    gateway: LockedGateway,
) -> AsyncIterator[tuple[weft.AsyncConnection, weft.AsyncConnection]]:
    """A service and a client."""
    async with reach(gateway, "service") as service, reach(gateway, "client") as client:
        yield service, client


@pytest.mark.parametrize("key", ["", key_of("nobody")])
@pytest.mark.parametrize("wait", [False, True])
async def test_a_key_that_is_not_accepted_is_an_error_at_once(
    locked: LockedGateway, key: str, wait: bool
) -> None:
    with pytest.raises(BadKey, match="the key is not accepted" if key else "a key is needed"):
        await connect(locked.address, key=key, wait=wait, **QUICK)


async def test_a_revoked_key_ends_the_connection_for_good(locked: LockedGateway) -> None:
    statuses = Statuses()
    async with reach(locked, "client", on_status=statuses.put) as connection:
        locked.put(SERVICE, record("client", "client", service="default", revoked=MADE))
        lost = await statuses.wait_for(What.DISCONNECTED)
        assert isinstance(lost.error, BadKey)
        given_up = await statuses.wait_for(What.CLOSED)
        assert isinstance(given_up.error, BadKey)
        assert not connection.is_connected


async def test_a_gateway_that_accepts_the_key_is_found_behind_one_that_does_not(
    locked: LockedGateway, another: RunningGateway
) -> None:
    addresses = f"{locked.address},{another.address}"
    async with connect(addresses, key=key_of("nobody"), wait=True, **QUICK) as connection:
        assert connection.is_connected


async def test_what_a_service_enables_a_client_may_do(locked: LockedGateway) -> None:
    async with both(locked) as (service, client):
        with pytest.raises(NotAllowed):
            await client.publish("chat.room", "x", acknowledge=True)
        await service.enable("publish", "chat.*")
        await client.publish("chat.room", "x", acknowledge=True)
        await service.disable("publish", "chat.*")
        with pytest.raises(NotAllowed, match=r"may not publish to 'chat\.room'"):
            await client.publish("chat.room", "x", acknowledge=True)


@pytest.mark.req("MID-13")
async def test_a_client_cannot_enable(locked: LockedGateway) -> None:
    async with reach(locked, "client") as client:
        with pytest.raises(NotAllowed, match="a client may not enable"):
            await client.enable("publish", "a")


@pytest.mark.req("MID-17")
async def test_a_subscription_that_is_taken_back_ends_with_the_reason(
    locked: LockedGateway,
) -> None:
    async with both(locked) as (service, client):
        await service.enable("subscribe", "a")
        await service.enable("subscribe", "b")
        subscription = client.subscribe(["a", "b"])
        await subscription.ready()
        await service.disable("subscribe", "a")
        with pytest.raises(NotAllowed, match="may not subscribe to 'a'"):
            async for _ in subscription:
                pass


async def test_what_is_enabled_is_enabled_again_after_a_reconnect(locked: LockedGateway) -> None:
    async with reach(locked, "service") as service:
        await service.enable("publish", "a")
        await service.enable("publish", "b")
        await service.disable("publish", "b")
        await asyncio.to_thread(locked.stop)
        await asyncio.to_thread(locked.start)
        await service.flush()
        async with reach(locked, "client") as client:
            await client.publish("a", "x", acknowledge=True)
            with pytest.raises(NotAllowed):
                await client.publish("b", "x", acknowledge=True)


async def test_what_cannot_be_enabled_again_is_told(locked: LockedGateway) -> None:
    statuses = Statuses()
    async with reach(locked, "service", on_status=statuses.put) as service:
        await service.enable("publish", "a")
        await asyncio.to_thread(locked.stop)
        locked.put(record("service", service="default", publish=["b"]), CLIENT)
        await asyncio.to_thread(locked.start)
        refused = await statuses.wait_for(What.REFUSED)
        assert refused.detail == "the right to publish a is refused"
        assert isinstance(refused.error, NotAllowed)


def test_the_blocking_face_enables_too(locked: LockedGateway) -> None:
    with (
        Connection(locked.address, key=key_of("service")) as service,
        Connection(locked.address, key=key_of("client")) as client,
    ):
        service.enable("request", "quotes.get")
        service.subscribe("quotes.get", lambda message: message.respond("21"))
        assert client.send_request("quotes.get", "?").text == "21"
        service.disable("request", "quotes.get")
        with pytest.raises(NotAllowed, match=r"may not request 'quotes\.get'"):
            client.send_request("quotes.get", "?")


@pytest.mark.parametrize(
    ("right", "pattern", "error", "text"),
    [
        ("publsh", "a", BadOption, "did you mean 'publish'"),
        ("serve", "a", BadOption, "there is no right 'serve'"),
        ("publish", "a..b", BadSubject, "element 2 is empty"),
    ],
)
def test_what_cannot_be_enabled_is_not_even_asked_for(
    right: str, pattern: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        enabled_body(right, pattern)


def test_a_key_is_not_shown_by_accident() -> None:
    assert "secret" not in repr(Options(key="wk_secret"))
    with pytest.raises(BadOption, match="printable ASCII characters: it has 300") as refused:
        Options(key="secret" * 50)
    assert "secretsecret" not in str(refused.value)


def test_a_key_is_read_from_the_last_line_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "me.key"
    file.write_text(f"weft: it is shown only this once:\n{key_of('one')}\n")
    file.chmod(0o600)
    warnings: list[str] = []
    assert key_in(file, warnings.append) == key_of("one")
    assert warnings == []


def test_a_key_that_others_can_read_is_worth_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "me.key"
    file.write_text(key_of("one"))
    file.chmod(0o644)
    warnings: list[str] = []
    assert key_in(file, warnings.append) == key_of("one")
    assert "has mode 0644" in warnings[0]


@pytest.mark.parametrize("body", ["", "no key", "x" * FILE_MAX_BYTES + " wk_a"])
def test_a_file_without_a_key_is_refused_and_not_shown(tmp_path: Path, body: str) -> None:
    file = tmp_path / "me.key"
    file.write_text(body)
    with pytest.raises(BadOption, match="does not end with a key"):
        key_in(file, print)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"nothing\.key cannot be read: No such file"):
        key_in(tmp_path / "nothing.key", print)
