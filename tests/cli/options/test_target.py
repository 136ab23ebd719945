import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from weft.cli.options.target import CommandTarget, target_options
from weft.errors import BadOption

Run = Callable[..., subprocess.CompletedProcess[str]]


@click.command()
@target_options
def shown(target: CommandTarget) -> None:
    """Print the target."""
    click.echo(repr(target))


def target_with(tls_ca: str | None) -> CommandTarget:
    return CommandTarget(gateway="g", service="s", name="", tls_ca=tls_ca, is_json=False)


def target_of(*arguments: str, **environment: str) -> str:
    done = CliRunner().invoke(shown, arguments, env=environment)
    assert done.exit_code == 0
    return done.output.strip()


def test_defaults_lead_to_a_gateway_on_this_machine() -> None:
    assert target_of() == repr(
        CommandTarget(
            gateway="127.0.0.1:7411", service="default", name="", tls_ca=None, is_json=False
        )
    )


def test_the_environment_can_say_where() -> None:
    assert target_of(WEFT_GATEWAY="a:1", WEFT_SERVICE="s", WEFT_NAME="me.1") == repr(
        CommandTarget(gateway="a:1", service="s", name="me.1", tls_ca=None, is_json=False)
    )


def test_an_option_wins_over_the_environment() -> None:
    assert "gateway='b:2'" in target_of("--gateway", "b:2", WEFT_GATEWAY="a:1")


def test_certificates_come_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nonsense")
    with pytest.raises(BadOption, match="has no certificates"):
        target_with(str(file)).tls()
    assert target_with(None).tls() is None


@pytest.mark.parametrize(
    "host", ["a..b", ".", "a" * 70, "\udcff\udcfe", "a b", "a\nb", "xn--é", "[::1%a b]"]
)
@pytest.mark.parametrize("command", [["pub", "a.b", "x"], ["status"], ["bench"]])
def test_a_host_that_cannot_be_is_a_mistake(run_here: Run, command: list[str], host: str) -> None:
    done = run_here(*command, "--gateway", f"{host}:7655")
    assert done.stderr.startswith("weft: bad option: address ")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    "gateway", ["a.b.:1", "[fe80::1%eth0]:1", "tls://zürich.example", "a:1, b:2", "my_host"]
)
def test_every_way_to_name_a_gateway_is_taken(gateway: str) -> None:
    assert f"gateway={gateway!r}" in target_of("--gateway", gateway)
