import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess, eventually

from weft.cli.commands.keys import span
from weft.errors import BadOption
from weft.gateway.keys.key_file import path_of, read_keys

Run = Callable[..., subprocess.CompletedProcess[str]]


def made(run_here: Run, data: Path, name: str, *more: str, role: str = "service") -> str:
    """The key that `weft keys new` prints last."""
    options = ("--role", role, "--name", name, "--data", str(data))
    done = run_here("keys", "new", *options, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_new_key_is_the_last_line_and_shown_once(run_here: Run, tmp_path: Path) -> None:
    options = ("--role", "admin", "--name", "ops", "--data", str(tmp_path))
    done = run_here("keys", "new", *options)
    assert done.returncode == 0
    assert done.stdout.startswith("wk_")
    assert done.stdout.count("\n") == 1
    assert "it is shown only this once" in done.stderr
    assert done.stdout.strip() not in run_here("keys", "list", "--data", str(tmp_path)).stdout
    (record,) = read_keys(path_of(tmp_path))
    assert (record.name, record.role, record.service) == ("ops", "admin", "*")


def test_a_key_has_the_rights_that_were_given(run_here: Run, tmp_path: Path) -> None:
    rights = (
        *("--allow", "publish:a.>", "--allow", "publish:b", "--deny", "publish:a.secret"),
        *("--allow", "subscribe:>", "--expires", "30d", "--service", "market"),
    )
    made(run_here, tmp_path, "desk", *rights, role="client")
    (record,) = read_keys(path_of(tmp_path))
    assert record.rights["publish"].allow == ("a.>", "b")
    assert record.rights["publish"].deny == ("a.secret",)
    assert record.rights["subscribe"].allow == (">",)
    assert record.service == "market"
    assert record.expires is not None
    assert (record.expires - record.made).days in (29, 30)


def test_json_has_the_key_among_the_facts(run_here: Run, tmp_path: Path) -> None:
    facts = json.loads(made(run_here, tmp_path, "one", "--json"))
    assert facts["key"].startswith(f"wk_{facts['id']}_")
    assert (facts["name"], facts["usable"]) == ("one", True)
    (listed,) = run_here("keys", "list", "--json", "--data", str(tmp_path)).stdout.splitlines()
    assert json.loads(listed)["id"] == facts["id"]
    assert "key" not in json.loads(listed)
    assert "hash" not in json.loads(listed)


def test_the_list_tells_of_every_key(run_here: Run, tmp_path: Path) -> None:
    empty = run_here("keys", "list", "--data", str(tmp_path))
    assert "there are no keys" in empty.stdout
    made(run_here, tmp_path, "one", "--allow", "publish:a", "--deny", "publish:b")
    made(run_here, tmp_path, "two", "--expires", "1h")
    run_here("keys", "revoke", "one", "--data", str(tmp_path))
    shown = run_here("keys", "list", "--data", str(tmp_path)).stdout
    assert "revoked 20" in shown
    assert "expires 20" in shown
    assert "publish:a -publish:b" in shown


def test_a_key_is_rotated_and_the_new_one_is_the_last_line(run_here: Run, tmp_path: Path) -> None:
    old = made(run_here, tmp_path, "one")
    done = run_here("keys", "rotate", "one", "--overlap", "5m", "--data", str(tmp_path))
    assert done.stdout.startswith("wk_")
    assert done.stdout.strip() != old
    assert f"key {old[3:11]} expires at " in done.stderr


@pytest.mark.parametrize("is_json", [False, True])
def test_a_key_is_revoked_by_id_or_name(run_here: Run, tmp_path: Path, is_json: bool) -> None:
    key = made(run_here, tmp_path, "one")
    options = ["--json"] if is_json else []
    done = run_here("keys", "revoke", key[3:11], "--data", str(tmp_path), *options)
    assert key[3:11] in done.stdout
    again = run_here("keys", "revoke", "one", "--data", str(tmp_path))
    assert again.returncode == 2
    assert "is revoked or expired already" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--role", "servce"], "role 'servce' is none of service, client, admin; did you mean"),
        (["--role", "x"], "role 'x' is none of service, client, admin"),
        (["--allow", "publsh:a"], "right 'publsh' is none of publish, subscribe, request, serve,"),
        (["--allow", "publsh:a"], "did you mean 'publish'?"),
        (["--allow", "a.b"], "--allow 'a.b' is not RIGHT:PATTERN"),
        (["--deny", "publish:a..b"], "element 2 is empty"),
        (["--expires", "soon"], "--expires 'soon' is not a time such as"),
        (["--expires", "999999999w"], "is over the limit of 36525d"),
        (["--expires", "0s"], "would never be accepted"),
        (["--service", "a b"], "service 'a b' is neither a valid service name nor '*'"),
        (["--name", ""], "name '' is not 1 to 64"),
        (["--role", "admin", "--service", "market"], "an admin may do everything"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_made(
    run_here: Run, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    basics = ["--role", "service", "--name", "one", "--data", str(tmp_path)]
    done = run_here("keys", "new", *basics, *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stdout == ""
    assert read_keys(path_of(tmp_path)) == ()


def test_a_file_that_others_can_read_is_named(run_here: Run, tmp_path: Path) -> None:
    made(run_here, tmp_path, "one")
    path_of(tmp_path).chmod(0o604)
    done = run_here("keys", "list", "--data", str(tmp_path))
    assert done.returncode == 2
    assert f"{path_of(tmp_path)} cannot be used: its mode is 0604" in done.stderr


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("12h", 43_200)])
def test_a_time_is_read_as_people_write_it(text: str, seconds: int) -> None:
    assert span("--expires", text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 m", "1.5h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match="is not a time such as"):
        span("--overlap", text)


def test_every_command_takes_a_key(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    key = made(run_here, data, "one")
    file = tmp_path / "one.key"
    file.write_text(key)
    file.chmod(0o600)
    with GatewayProcess(tmp_path, {"data": str(data), "drain_s": 0.2}) as gateway:
        monkeypatch.setenv("WEFT_GATEWAY", gateway.address)
        refused = run_here("pub", "a", "x")
        assert refused.returncode == 1
        assert refused.stderr == "weft: bad key: a key is needed\n"
        assert run_here("status").stderr.startswith("weft: bad key: a key is needed")
        shown = ("--key-file", str(file))
        assert run_here("pub", "a", "x", *shown).returncode == 0
        assert "gateway besieged" in run_here("status", *shown).stdout
        monkeypatch.setenv("WEFT_KEY", key)
        assert run_here("pub", "a", "x").returncode == 0
        monkeypatch.delenv("WEFT_KEY")
        file.chmod(0o644)
        warned = run_here("pub", "a", "x", *shown)
        assert (warned.returncode, "has mode 0644" in warned.stderr) == (0, True)
        for command in (("status",), ("top", "--once"), ("mesh",)):
            assert run_here(*command, *shown).stderr.count("has mode 0644") == 1
        run_here("keys", "revoke", "one", "--data", str(data))
        eventually(lambda: "not accepted" in run_here("pub", "a", "x", *shown).stderr, gateway.log)
