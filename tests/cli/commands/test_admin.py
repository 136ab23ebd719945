"""Commands of an administrator to real gateways, each in a process of its own."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.cli.gateway_lines import Served, served, until

import weft
from weft.broker.auth.keys import ANY_SERVICE
from weft.cli.options.target import CommandTarget
from weft.cli.query import fetch_status
from weft.errors import BadKey, NotAllowed
from weft.gateway.keys.admin_key import identity_of
from weft.gateway.keys.manage import make_key, new_record
from weft.mesh.admin.admin_command import NONCE_BYTES, CommandOrder, SignedCommand, sign

Run = Callable[..., subprocess.CompletedProcess[str]]


class Mesh(NamedTuple):
    """Two gateways; one has the key of the administrator, the other only its public key."""

    paris: Served
    rome: Served
    admin: str
    # The key of a service, and that of a client at Paris.
    service: str
    client: str
    folder: Path


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mesh]:
    data = {name: tmp_path / name for name in ("paris", "rome")}
    for folder in data.values():
        folder.mkdir()
    admin = make_key(data["paris"], new_record("ops", "admin", ANY_SERVICE))
    service = make_key(data["paris"], new_record("quotes", "service", "default"))
    client = make_key(data["paris"], new_record("desk", "client", "default"))
    # Rome has keys, too, and none of them is the administrator's.
    make_key(data["rome"], new_record("bot", "service", "default"))
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text("f" * 64)
    monkeypatch.setenv("WEFT_KEY", admin.text)
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> Served:
            config = tmp_path / f"{name}.toml"
            config.write_text(
                f'name = "{name}"\ndata = "{data[name]}"\nservices = ["default"]\n[mesh]\n'
                f'secret_file = "{secret}"\nregion = "{name}-region"\n'
                f'admins = ["{admin.record.verifies}"]\n'
            )
            return stack.enter_context(served("--config", str(config), *arguments))

        paris = start("paris")
        rome = start("rome", "--join", paris.address)
        monkeypatch.setenv("WEFT_GATEWAY", paris.address)
        yield Mesh(paris, rome, admin.text, service.text, client.text, tmp_path)


def given(run_here: Run, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What came of a command, by the names of gateways."""
    done = run_here("admin", *arguments, "--json")
    assert (done.returncode, done.stderr) == (code, ""), done
    return {row["name"]: row for row in json.loads(done.stdout)["gateways"]}


def service_of(gateway: Served) -> dict[str, Any]:
    """What a gateway says of its service."""
    target = CommandTarget(gateway.address, "default", "", None, is_json=True)
    found: dict[str, Any] = fetch_status(target)["services"]["default"]
    return found


def await_both(run_here: Run) -> None:
    """Wait until a command comes to both."""

    def is_so() -> bool:
        rows = json.loads(run_here("admin", "status", "--json").stdout)["gateways"]
        return {(row["name"], row["state"]) for row in rows} == {
            ("paris", "done"),
            ("rome", "done"),
        }

    until(is_so)


@pytest.mark.req("RLY-8")
@pytest.mark.usefixtures("mesh")
def test_all_gateways_are_gathered_into_one_table(run_here: Run) -> None:
    await_both(run_here)
    rows = given(run_here, "status")
    assert {row["state"] for row in rows.values()} == {"done"}
    assert rows["rome"]["facts"]["nodes"] == 1
    done = run_here("admin", "status")
    assert done.returncode == 0
    assert [row.split()[:3] for row in done.stdout.splitlines()[1:]] == [
        ["paris", "(paris-region)", "done"],
        ["rome", "(rome-region)", "done"],
    ]
    assert set(given(run_here, "status", "--to", "region:rome-region")) == {"rome"}


@pytest.mark.req("RLY-8")
def test_gateways_are_administered_from_any_of_them(mesh: Mesh, run_here: Run) -> None:
    await_both(run_here)
    with weft.Connection(mesh.paris.address, name="quotes.1", key=mesh.service) as quotes:
        quotes.send_request("_WEFT.ask.status", {}, timeout=10)
        assert given(run_here, "close", "quotes.1", "--to", "paris")["paris"]["text"] == "1 closed"
    assert service_of(mesh.paris)["status"]["ended"]["ClosedByAdmin"] == 1
    assert given(run_here, "log", "debug", "--to", "all")["rome"]["state"] == "done"
    assert given(run_here, "links", "3", "--to", "rome")["rome"]["state"] == "done"
    assert given(run_here, "reload", "--to", "rome")["rome"]["text"] == "read again"
    given(run_here, "ban", "desk", "--to", "paris")
    with (
        pytest.raises(BadKey),
        weft.Connection(mesh.paris.address, key=mesh.client) as banned,
    ):
        banned.publish("a", "x")
    given(run_here, "drain", "--to", "rome")
    assert mesh.rome.process.wait(30) == 0
    until(lambda: set(given(run_here, "status")) == {"paris"})
    kept = (mesh.folder / "rome" / "commands-default.log").read_text().splitlines()
    verbs = [(entry["verb"], entry["state"]) for entry in map(json.loads, kept)]
    assert ("drain", "begun") in verbs
    assert ("log", "done") in verbs


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("log", "loud"), "level 'loud' is not debug, info, warning or error"),
        (("close", "nobody"), "there is no connection with the number or name 'nobody'"),
        (("ban", "nobody"), "there is no key with the id or name 'nobody'"),
        (("links", "5000"), "links '5000' is not in 1 … 1024"),
    ],
)
@pytest.mark.usefixtures("mesh")
def test_what_cannot_be_done_is_told_and_is_a_failure(
    run_here: Run, arguments: tuple[str, ...], text: str
) -> None:
    assert given(run_here, *arguments, "--to", "paris", code=1)["paris"]["text"] == text


@pytest.mark.req("RLY-9")
def test_commands_need_the_key_of_an_admin(
    mesh: Mesh, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in (mesh.service, mesh.client):
        monkeypatch.setenv("WEFT_KEY", key)
        done = run_here("admin", "drain", "--to", "all")
        assert done.returncode == 1
        assert "not allowed" in done.stderr
    monkeypatch.delenv("WEFT_KEY")
    done = run_here("admin", "drain", "--to", "all")
    assert (done.returncode, "needs the key of an admin" in done.stderr) == (2, True)
    assert mesh.paris.process.poll() is None


@pytest.mark.req("RLY-9")
def test_what_was_overheard_cannot_be_given_again_not_even_after_a_restart(mesh: Mesh) -> None:
    order = CommandOrder("default", "node:paris", "status")
    now_ms = time.time_ns() // 1_000_000
    signed = sign(identity_of(mesh.admin), order, os.urandom(NONCE_BYTES), now_ms, 60_000)

    def give(what: SignedCommand, key: str) -> list[Any]:
        with weft.Connection(mesh.paris.address, key=key) as connection:
            answer = connection.send_request("_WEFT.ask.command", what._asdict(), timeout=10)
            return answer.get_list("gateways")

    assert len(give(signed, mesh.admin)) == 1
    with pytest.raises(NotAllowed, match="received here before"):
        give(signed, mesh.admin)
    with pytest.raises(NotAllowed, match="not signed"):
        give(signed._replace(signature=bytes(64)), mesh.admin)
    with pytest.raises(NotAllowed, match="keys of admins only"):
        give(signed, mesh.service)
    worker = service_of(mesh.paris)["pid"]
    os.kill(worker, signal.SIGKILL)
    until(lambda: service_of(mesh.paris)["pid"] not in (worker, None))
    until(lambda: service_of(mesh.paris)["state"] == "up")
    with pytest.raises(NotAllowed, match="received here before"):
        give(signed, mesh.admin)
    late = sign(identity_of(mesh.admin), order, os.urandom(NONCE_BYTES), now_ms - 61_000, 60_000)
    with pytest.raises(NotAllowed, match="expired"):
        give(late, mesh.admin)


@pytest.mark.usefixtures("mesh")
def test_whom_a_command_is_for_has_to_be_said(run_here: Run) -> None:
    done = run_here("admin", "drain")
    assert (done.returncode, "--to" in done.stderr) == (2, True)
    done = run_here("admin", "status", "--to", "nowhere")
    assert (done.returncode, "no gateway is nowhere" in done.stderr) == (2, True)
    done = run_here("admin", "status", "--to", "regio:x")
    assert (done.returncode, "target 'regio:x' is not all" in done.stderr) == (2, True)
