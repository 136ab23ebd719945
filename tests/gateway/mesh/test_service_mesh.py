"""Gateways find each other, are one mesh, and let nobody in who does not belong to it."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.broker.locksmith import key_of, record
from tests.gateway.meshes import (
    LIMIT_S,
    SERVICE,
    gateway,
    linked,
    status,
    until,
    wanted,
)

import weft
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings, Tls
from weft.gateway.gateway import Gateway
from weft.gateway.keys.key_file import change_keys
from weft.mesh.links.handshake import NONCE_BYTES, Admission, GatewayIntroduction, Handshake
from weft.mesh.links.signing import Signer, verify
from weft.wire.frames import Decoder, Kind, encode, parse
from weft.wire.message.message import Message

SECRET = "what all gateways of this mesh know"  # noqa: S105  # of nobody
STRANGER = Signer(b"s" * 32)

NO_MESH = "this gateway is in no mesh"


def secret_file(folder: Path, text: str = SECRET) -> str:
    path = folder / f"{len(text)}.secret"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def joining(*others: Gateway, secret: str = "") -> MeshSettings:
    return MeshSettings(join=tuple(other.address for other in others), secret_file=secret)


@asynccontextmanager
async def connected(made: Gateway, key: str = "") -> AsyncIterator[weft.AsyncConnection]:
    async with weft.connect(made.address, service=SERVICE, timeout_s=LIMIT_S, key=key) as client:
        yield client


async def asked(made: Gateway, frame: bytes) -> Message:
    """The last that a gateway says to whoever greets it with a frame."""
    host, _, port = made.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(frame)
    decoder = Decoder()
    decoder.feed(await reader.read())
    writer.close()
    await writer.wait_closed()
    last = b""
    while (found := decoder.next_frame()) is not None:
        last = found
    assert parse(last).kind == Kind.ERROR
    return Message.from_frame(last)


def hello(service: str, secret: bytes = b"") -> bytes:
    """The first word of a gateway that wants to be linked."""
    about = GatewayIntroduction(7, 1, "eve", "127.0.0.1:1", "", 0)
    admission = Admission(STRANGER, verify, secret)
    nonce = os.urandom(NONCE_BYTES)
    return Handshake(admission, service, about, nonce, is_dialler=True).begin()


@pytest.mark.req("MM-12")
async def test_what_is_published_at_one_gateway_is_heard_at_another() -> None:
    async with gateway("ann") as ann, gateway("bob", joining(ann)) as bob:
        await linked(ann, bob)
        async with connected(ann) as here, connected(bob) as there:
            heard = here.subscribe("a.*")
            await wanted(there, "a.b", "ann")
            await there.publish("a.b", weft.Message(value=7))
            assert (await heard.next(LIMIT_S))["value"] == 7


@pytest.mark.req("MM-21", "RLY-3")
async def test_three_that_know_one_are_all_linked_with_each_other() -> None:
    async with (
        gateway("ann") as ann,
        gateway("bob", joining(ann)) as bob,
        gateway("cat", joining(ann)) as cat,
    ):
        await linked(ann, bob, cat)


async def test_links_are_none_of_the_connections() -> None:
    async with gateway("ann") as ann, gateway("bob", joining(ann)) as bob:
        await linked(ann, bob)
        async with connected(ann) as client:
            answer = await client.send_request("_WEFT.ask.connections", b"", LIMIT_S)
            assert len(answer["connections"]) == 1
            assert (await status(ann))["connections"] == 1
            assert (await ann.status())["connections"] == 1


@pytest.mark.req("RLY-4")
async def test_a_gateway_that_is_not_there_yet_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with gateway("ann") as ann:
        address = ann.address
    async with gateway("bob", MeshSettings(join=(address,))) as bob:
        while "cannot link with" not in caplog.text:
            await asyncio.sleep(0.01)
        assert f"{address}: Connection refused" in caplog.text
        async with connected(bob) as client:
            # It serves those who are there all the same.
            await client.publish("a", b"", acknowledge=True)
        settings = Settings(name="ann", services=(SERVICE,))
        async with Gateway(address, settings=settings, workers="inline") as again:
            await linked(again, bob)


async def test_a_gateway_that_is_joined_by_itself_notices() -> None:
    async with gateway("ann") as first:
        address = first.address
    settings = Settings(name="ann", services=(SERVICE,), mesh=MeshSettings(join=(address,)))
    async with Gateway(address, settings=settings, workers="inline") as ann, connected(ann) as c:
        # Whoever comes first waits only until that is known.
        await c.publish("a", b"", acknowledge=True)
        assert (await status(ann))["mesh"]["links"] == 0


async def test_a_link_that_ends_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with gateway("ann") as ann:
        async with gateway("bob", joining(ann)) as bob:
            await linked(ann, bob)
        while "no longer linked" not in caplog.text:
            await asyncio.sleep(0.01)
    assert "no longer linked with gateway bob: it is closing down" in caplog.text


@pytest.mark.req("MM-20")
async def test_gateways_find_each_other_through_a_registry() -> None:
    async with gateway("ann") as registry:
        mesh = MeshSettings(registry=(registry.address,))
        async with gateway("bob", mesh) as bob, gateway("cat", mesh) as cat:
            await until(lambda mesh: mesh["links"] >= 1, bob, cat)
            async with connected(bob) as here, connected(cat) as there:
                heard = here.subscribe("a")
                await wanted(there, "a", "bob")
                await there.publish("a", b"x")
                assert (await heard.next(LIMIT_S)).subject == "a"


async def test_those_who_know_the_secret_are_linked(tmp_path: Path) -> None:
    secret = secret_file(tmp_path)
    async with (
        gateway("ann", MeshSettings(secret_file=secret)) as ann,
        gateway("bob", joining(ann, secret=secret)) as bob,
    ):
        await linked(ann, bob)


@pytest.mark.parametrize("secret", ["", "what others do not know"])
async def test_those_who_do_not_know_it_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, secret: str
) -> None:
    theirs = secret_file(tmp_path, secret) if secret else ""
    async with (
        gateway("ann", MeshSettings(secret_file=secret_file(tmp_path))) as ann,
        gateway("eve", joining(ann, secret=theirs)) as eve,
    ):
        while "did not prove that it belongs to this mesh" not in caplog.text:
            await asyncio.sleep(0.01)
        assert (await status(ann))["mesh"]["nodes"] == 0
        assert (await status(eve))["mesh"]["nodes"] == 0
        assert (await status(ann))["refused"]["NotAdmitted"] >= 1
        # Who was dialled says it, too: whom it turned away, and what to check.
        while "not linked with a gateway at 127.0.0.1:" not in caplog.text:
            await asyncio.sleep(0.01)
        [line] = [each for each in caplog.messages if "not linked with a gateway at" in each]
        assert f"claims to be 'eve' at '{eve.address}'" in line
        assert "mesh.secret_file" in line
        assert (await status(ann))["mesh"]["not_linked"]["NotAdmitted"] >= 1


async def test_of_two_gateways_with_one_node_key_the_first_stays_linked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    data, copy = tmp_path / "bob", tmp_path / "copy"
    async with gateway("ann") as ann, gateway("bob", joining(ann), data=str(data)) as bob:
        await linked(ann, bob)
        shutil.copytree(data, copy)
        async with gateway("rob", joining(ann), data=str(copy)) as rob:
            while (await status(ann))["mesh"]["not_linked"].get("CopiedKey", 0) < 3:
                await asyncio.sleep(0.01)
            assert (await status(rob))["mesh"]["links"] == 0
            assert "no longer linked" not in caplog.text
    # One line at the third gateway and one at the copy, however often it tried.
    lines = [each for each in caplog.messages if "has the same node.key" in each]
    about = f"'bob' at '{bob.address}' has the same node.key and is linked"
    assert len(lines) == 2
    assert all(about in line and "delete node.key" in line for line in lines)
    assert any(f"claims to be 'rob' at '{rob.address}'" in line for line in lines)


async def test_a_roster_lets_in_those_whom_it_names(tmp_path: Path) -> None:
    async with gateway("bob", data=str(tmp_path / "bob")) as bob:
        key = (await status(bob))["mesh"]["key"]
    async with gateway("ann", MeshSettings(roster=(key,))) as ann:
        async with gateway("bob", joining(ann), data=str(tmp_path / "bob")) as bob:
            await linked(ann, bob)
        async with gateway("eve", joining(ann)):
            while not (await status(ann))["refused"].get("NotAdmitted"):
                await asyncio.sleep(0.01)
            assert (await status(ann))["mesh"]["links"] == 0


async def test_links_speak_tls_where_their_address_says_so(tls: Tls) -> None:
    async with gateway("ann", tls=tls) as ann:
        port = ann.address.rpartition(":")[2]
        mesh = MeshSettings(join=(f"tls://localhost:{port}",), tls_ca=tls.cert)
        async with gateway("bob", mesh) as bob:
            await until(lambda mesh: mesh["links"] == 1, bob)
            assert (await status(ann))["mesh"]["address"] == f"tls://127.0.0.1:{port}"


async def test_a_gateway_that_gets_keys_parts_from_those_that_show_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway("ann", data=str(tmp_path)) as ann, gateway("bob", joining(ann)) as bob:
        await linked(ann, bob)
        change_keys(tmp_path, lambda _: (record("boss", "admin"),))
        await until(lambda mesh: mesh["links"] == 0, ann, bob)
        assert "leaving the mesh: there are keys now" in caplog.text
        told = await asked(ann, hello(SERVICE))
        assert told.get_string("text") == NO_MESH


async def test_the_first_key_of_a_gateway_without_a_mesh_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway("ann", data=str(tmp_path)) as ann:
        change_keys(tmp_path, lambda _: (record("boss", "admin"),))

        async def is_in_no_mesh() -> bool:
            return (await asked(ann, hello(SERVICE))).get_string("text") == NO_MESH

        async with asyncio.timeout(30):
            while not await is_in_no_mesh():
                await asyncio.sleep(0.05)
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_links_stay_when_keys_change(tmp_path: Path) -> None:
    secret = secret_file(tmp_path)
    mesh = MeshSettings(secret_file=secret)
    async with (
        gateway("ann", mesh, data=str(tmp_path)) as ann,
        gateway("bob", joining(ann, secret=secret)) as bob,
    ):
        await linked(ann, bob)
        async with connected(ann) as client:
            change_keys(tmp_path, lambda _: (record("boss", "admin"),))
            while client.is_connected:
                await asyncio.sleep(0.01)
        assert "BadKey" in (await status(ann))["ended"]
        assert (await status(ann))["mesh"]["links"] == 1
        async with connected(ann, key=key_of("boss")) as boss, connected(bob) as there:
            heard = boss.subscribe("a")
            await wanted(there, "a", "ann")
            await there.publish("a", b"")
            await heard.next(LIMIT_S)


async def test_with_keys_a_link_starts_no_service(tmp_path: Path) -> None:
    change_keys(tmp_path, lambda _: (record("boss", "admin"),))
    mesh = MeshSettings(secret_file=secret_file(tmp_path))
    settings = Settings(name="ann", data=str(tmp_path), mesh=mesh)
    async with Gateway("127.0.0.1:0", settings=settings, workers="inline") as ann:
        member = await asked(ann, hello("orders", SECRET.encode()))
        assert member.get_string("name") == "NoSuchService"
        # To strangers it reads as where there is such a service.
        stranger = await asked(ann, hello("orders"))
        assert stranger.get_string("name") == "NotAdmitted"
        assert "orders" not in (await ann.status())["services"]
        async with connected(ann, key=key_of("boss")):
            assert (await asked(ann, hello(SERVICE))).encode() == stranger.encode()


async def test_without_keys_a_link_starts_its_service() -> None:
    settings = Settings(name="ann")
    async with (
        Gateway("127.0.0.1:0", settings=settings, workers="inline") as ann,
        gateway("bob", joining(ann)) as bob,
    ):
        await linked(bob, ann)


async def test_a_gateway_with_keys_and_no_secret_is_in_no_mesh(tmp_path: Path) -> None:
    change_keys(tmp_path, lambda _: (record("boss", "admin"),))
    async with gateway("ann", data=str(tmp_path)) as ann:
        assert (await status(ann))["mesh"] is None
        for service in (SERVICE, "unknown"):
            told = await asked(ann, hello(service))
            assert told.get_string("text") == NO_MESH


async def test_a_second_hello_is_one_too_many() -> None:
    async with gateway("ann") as ann:
        told = await asked(ann, 2 * hello(SERVICE))
        assert told.get_string("name") == "BadGreeting"


async def test_nonsense_for_a_hello_is_told_of() -> None:
    async with gateway("ann") as ann:
        told = await asked(ann, encode(Kind.LINK, SERVICE.encode(), b"nonsense"))
        assert told.get_string("name") == "BadGreeting"


@pytest.mark.req("RLY-4")
async def test_the_first_clients_wait_for_the_first_link() -> None:
    async with gateway("ann") as ann, connected(ann) as here:
        heard = here.subscribe("a")
        await heard.ready(LIMIT_S)
        settings = Settings(name="bob", mesh=joining(ann))
        # To connect starts the service there.
        async with (
            Gateway("127.0.0.1:0", settings=settings, workers="inline") as bob,
            connected(bob) as there,
        ):
            await there.publish("a", b"first")
            assert (await heard.next(LIMIT_S)).origin != 0


async def test_whoever_drains_says_goodbye() -> None:
    async with gateway("ann") as ann, connected(ann) as here:
        heard = here.subscribe("a.>")
        async with gateway("bob", joining(ann)) as bob, connected(bob) as there:
            await linked(ann, bob)
            await wanted(there, "a.b", "ann")
            for number in range(1000):
                await there.publish(f"a.{number}", b"")
        # It was not given up for lost: nobody waits for it, and nothing of it is missing.
        await until(lambda mesh: mesh["nodes"] == mesh["links"] == mesh["gaps"] == 0, ann)
        subjects = [(await heard.next(LIMIT_S)).subject for _ in range(1000)]
        assert subjects == [f"a.{number}" for number in range(1000)]


async def test_whoever_drains_says_where_else_to_go() -> None:
    async with gateway("ann") as ann, gateway("bob", joining(ann)) as bob:
        await linked(ann, bob)
        host, _, port = bob.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(encode(Kind.CONNECT, SERVICE.encode()))
        decoder = Decoder()
        draining: asyncio.Task[None] | None = None
        while (frame := decoder.next_frame()) is None or frame[4] != Kind.GOODBYE:
            if frame is not None and draining is None:
                draining = asyncio.create_task(bob.drain())
            if frame is None:
                decoder.feed(await reader.read(65_536))
        assert Message.from_frame(frame)["elsewhere"] == [ann.address]
        writer.close()
        await writer.wait_closed()
        assert draining is not None
        await draining


@pytest.mark.req("MM-20")
async def test_others_can_be_joined_later() -> None:
    async with gateway("ann") as ann, gateway("bob") as bob:
        settings = Settings(name="bob", services=(SERVICE,), listen="127.0.0.1:0", drain_s=5.0)
        before = msgspec.structs.replace(settings, mesh=MeshSettings(max_links=3))
        assert bob.change(before) == ["mesh.max_links"]
        assert bob.change(msgspec.structs.replace(settings, mesh=joining(ann))) == []
        await linked(ann, bob)


async def test_certificates_that_cannot_be_read_change_nothing() -> None:
    async with gateway("bob") as bob:
        settings = Settings(name="bob", mesh=MeshSettings(tls_ca="/nowhere"))
        with pytest.raises(weft.errors.BadOption, match=r"mesh\.tls_ca"):
            bob.change(settings)


async def test_links_that_come_and_go_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with gateway("ann") as ann:
        async with gateway("bob", joining(ann)) as bob:
            await linked(ann, bob)
        assert "linked with gateway bob" in caplog.text
        while "no longer linked with gateway bob" not in caplog.text:
            await asyncio.sleep(0.01)
