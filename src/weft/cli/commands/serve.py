"""`weft serve`: run a gateway, and tell a newcomer what to try with it."""

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

# Not below `weft.cli`, whose loggers are silent: this is a line of the gateway's log.
_log = logging.getLogger("weft.serve")

# Which setting each option stands for.
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
    help=f"Where to listen; port 0 takes a free one.  [default: {DEFAULT_GATEWAY}]",
)
@click.option("--name", help="How the gateway calls itself; the machine's name if not given.")
@click.option("--data", type=click.Path(file_okay=False), help="Where it keeps what must survive.")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings in TOML, read again on SIGHUP; an option given here wins over them.",
)
@click.option(
    "--journal",
    metavar="[PATTERN]",
    multiple=True,
    is_flag=False,
    flag_value=">",
    help="Keep what is published, or only this; may be given several times. Needs --data.",
)
@click.option(
    "--journal-scope",
    type=click.Choice(["entered", "mesh"]),
    help="Keep what enters here, or what comes from other gateways, too.  [default: entered]",
)
@click.option(
    "--join",
    metavar="HOST:PORT",
    multiple=True,
    help="Be one mesh with this gateway and those it knows; may be given several times.",
)
@click.option(
    "--registry",
    metavar="HOST:PORT",
    multiple=True,
    help="Find the gateways of the mesh through this one; may be given several times.",
)
@click.option("--region", help="Where the gateway is, for those who look for a near one.")
@click.option(
    "--mesh-secret",
    type=click.Path(dir_okay=False),
    help="A file with the secret that all gateways of the mesh share.",
)
@click.option("--tls-cert", type=click.Path(dir_okay=False), help="Speak TLS: the certificate.")
@click.option("--tls-key", type=click.Path(dir_okay=False), help="Speak TLS: the private key.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="How log lines look.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="How much is logged.",
)
@click.option(
    "--debug-echo",
    is_flag=True,
    default=None,
    help="Say back what a WebSocket says at /SERVICE/_echo, for suites that test WebSockets.",
)
def serve(config: Path | None, **options: Any) -> int:
    """Run a gateway until ^C or SIGTERM, which drain it.

    Without keys it listens on this machine only. Every setting is in docs/operations.md.
    """
    # Slow to import, and no other command needs it.
    from weft.gateway.config.load import load  # noqa: PLC0415
    from weft.gateway.serve import serve as run_gateway  # noqa: PLC0415

    # An option that was not given is None, or empty if it could be given several times.
    given = {KEYS[name]: value for name, value in options.items() if value not in (None, ())}
    read = functools.partial(load, config, given)
    settings = read()
    return run_gateway(
        settings,
        read_again=None if config is None else read,
        on_ready=functools.partial(welcome, settings),
    )


def welcome(settings: "Settings", address: object) -> None:
    """Say what can be done now, to people; whoever reads the log as JSON gets a line there."""
    where = f"tls://{address}" if settings.tls.is_on else str(address)
    if settings.log.format == "json":
        _log.info("ready on %s", where)
        return
    to_it = "" if where == DEFAULT_GATEWAY else f" --gateway {where}"
    weft = command_name()
    streams.result(f"gateway {settings.name} is ready on {where}; in another terminal:")
    streams.result(f"  {weft} sub 'greetings.>'{to_it}")
    # It lasts long enough for the others to show it.
    streams.result(f"  {weft} pub greetings.world hello --count 1000 --rate 10{to_it}")
    streams.result(f"  {weft} top{to_it}")


def command_name() -> str:
    """Return how to call this program in a terminal that is in the same folder.

    A program of a virtual environment is named by its path: that `weft` is found here, because the
    environment is active or `make` has put it on the PATH, says nothing of other terminals.
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
