"""`weft serve`: run a gateway, and print commands to try with it."""

import functools
import logging
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.options.help_text import examples
from weft.cli.options.target import DEFAULT_GATEWAY
from weft.cli.output import streams

if TYPE_CHECKING:
    from weft.gateway.config.settings import Settings

# Not below `weft.cli`, whose loggers are silent: this line is for the gateway's log.
_log = logging.getLogger("weft.serve")

# Setting of each option.
KEYS = {
    "listen": "listen",
    "name": "name",
    "data": "data",
    "tls_cert": "tls.cert",
    "tls_key": "tls.key",
    "log_format": "log.format",
    "log_level": "log.level",
    "journal": "journal.patterns",
    "journal_scope": "journal.scope",
    "join": "mesh.join",
    "registry": "mesh.registry",
    "region": "mesh.region",
    "mesh_secret": "mesh.secret_file",
    "debug_echo": "web.debug_echo",
}


@click.command(
    epilog=examples(
        "weft serve",
        "weft serve --listen 127.0.0.1:7500 --name london",
        "weft serve --config weft.toml --log-format json",
        "weft serve --data /var/lib/weft --journal 'orders.>'",
        "weft serve --listen 127.0.0.1:7412 --name paris --join 127.0.0.1:7411",
    )
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help=f"The listen address; port 0 takes a free one.  [default: {DEFAULT_GATEWAY}]",
)
@click.option("--name", help="Name of the gateway (default: the machine's).")
@click.option("--data", type=click.Path(file_okay=False), help="Folder for keys and journals.")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings in TOML, reloaded on SIGHUP; options take precedence.",
)
@click.option(
    "--journal",
    metavar="[PATTERN]",
    multiple=True,
    is_flag=False,
    flag_value=">",
    help="Journal all messages, or those to PATTERN; may be repeated. Needs --data.",
)
@click.option(
    "--journal-scope",
    type=click.Choice(["entered", "mesh"]),
    help="Journal messages that enter here, or also those from the mesh.  [default: entered]",
)
@click.option(
    "--join",
    metavar="HOST:PORT",
    multiple=True,
    help="Join the mesh of this gateway; may be repeated.",
)
@click.option(
    "--registry",
    metavar="HOST:PORT",
    multiple=True,
    help="Find the gateways of the mesh through this registry; may be repeated.",
)
@click.option("--region", help="Region of the gateway, for clients that look for a close one.")
@click.option(
    "--mesh-secret",
    type=click.Path(dir_okay=False),
    help="File with the secret that all gateways of the mesh share.",
)
@click.option("--tls-cert", type=click.Path(dir_okay=False), help="Certificate for TLS.")
@click.option("--tls-key", type=click.Path(dir_okay=False), help="Private key for TLS.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Format of log lines.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Least severity that is logged.",
)
@click.option(
    "--debug-echo",
    is_flag=True,
    default=None,
    help="Echo WebSocket messages at /SERVICE/_echo, for WebSocket test suites.",
)
def serve(config: Path | None, **options: Any) -> int:
    """Run a gateway until ^C or SIGTERM, which drain it.

    Without keys it listens on this machine only. Every setting is in docs/operations.md.
    """
    # Slow to import, and only needed here.
    from weft.gateway.config.load import load  # noqa: PLC0415
    from weft.gateway.serve import serve as run_gateway  # noqa: PLC0415

    # An option that was not given is None, or empty if it may be repeated.
    given = {KEYS[name]: value for name, value in options.items() if value not in (None, ())}
    read = functools.partial(load, config, given)
    settings = read()
    return run_gateway(
        settings,
        read_again=None if config is None else read,
        on_ready=functools.partial(welcome, settings),
    )


def welcome(settings: "Settings", address: object) -> None:
    """Print commands to try next; with JSON logs, log one line instead."""
    where = f"tls://{address}" if settings.tls.is_on else str(address)
    if settings.log.format == "json":
        _log.info("ready on %s", where)
        return
    to_it = "" if where == DEFAULT_GATEWAY else f" --gateway {where}"
    weft = command_name()
    streams.result(f"gateway {settings.name} is ready on {where}; in another terminal:")
    streams.result(f"  {weft} sub 'greetings.>'{to_it}")
    # Slow enough for the other commands to show it.
    streams.result(f"  {weft} pub greetings.world hello --count 1000 --rate 10{to_it}")
    streams.result(f"  {weft} top{to_it}")


def command_name() -> str:
    """Return the command for this program, for a terminal in the same folder.

    A program of a virtual environment is named by its path: `weft` may be on the PATH here only
    because the environment is active, or `make` has added it, which other terminals lack.
    """
    if sys.prefix == sys.base_prefix:
        return "weft"
    script = Path(sys.prefix, "bin", "weft")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m weft.cli"
    on_path = _on_path_outside(script.parent)
    if on_path is not None and script.samefile(on_path):
        return "weft"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))


def _on_path_outside(folder: Path) -> str | None:
    """Return the `weft` that a shell finds without this folder on its PATH."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(
        "weft", path=os.pathsep.join(each for each in folders if each != str(folder))
    )
